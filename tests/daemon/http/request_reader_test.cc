#include "http/request_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace edgecase::http {
namespace {

const std::string kTwoRequests =
    "POST /a?x=1 HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
    "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
    "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

}  // namespace

TEST_CASE("request reader: a cut anywhere makes no difference") {
  for (std::size_t cut = 0; cut <= kTwoRequests.size(); ++cut) {
    CAPTURE(cut);
    net::ByteBudget budget(100);
    RequestReader reader(budget, 100);
    std::vector<ReceivedRequest> requests;
    for (const std::string& part : {kTwoRequests.substr(0, cut), kTwoRequests.substr(cut)}) {
      auto progress = reader.feed(part);
      while (progress == RequestReader::Progress::Complete) {
        requests.push_back(reader.take());
        progress = reader.next();
      }
      REQUIRE(progress == RequestReader::Progress::NeedMore);
    }
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].head.target == "/a?x=1");
    CHECK(requests[0].head.content_type == "text/plain");
    CHECK(requests[0].body == "hello");
    CHECK(requests[1].head.method == "PUT");
    CHECK(requests[1].body == "abcde");
    CHECK(reader.is_idle());
    CHECK(budget.used_bytes() == 10);
    requests.clear();
    CHECK(budget.used_bytes() == 0);
  }
}

TEST_CASE("request reader: the budget is returned when a body is refused") {
  net::ByteBudget budget(8);
  RequestReader reader(budget, 100);
  REQUIRE(reader.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n12345678") ==
          RequestReader::Progress::NeedMore);
  CHECK(budget.used_bytes() == 8);
  CHECK(reader.feed("9") == RequestReader::Progress::Refused);
  CHECK(reader.refusal().http_status == 503);
  CHECK(budget.used_bytes() == 0);
}

TEST_CASE("request head: what is kept of it") {
  struct Case {
    const char* head;
    bool keep_alive;
    const char* target;
  };
  for (const Case& c :
       {Case{"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", true, "/x"},
        Case{"GET /x HTTP/1.1\r\nhOST:h\r\nConnection: Upgrade, CLOSE\r\n\r\n", false, "/x"},
        Case{"GET /x HTTP/1.0\r\n\r\n", false, "/x"},
        Case{"GET http://h/x?y HTTP/1.1\r\nHost: h\r\n\r\n", true, "/x?y"},
        Case{"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", true, "/"},
        Case{"\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n", true, "/x"}}) {
    CAPTURE(c.head);
    RequestHead head;
    std::size_t used = 0;
    Refusal refusal;
    REQUIRE(parse_request_head(c.head, head, used, refusal) == HeadOutcome::Complete);
    CHECK(used == std::string_view(c.head).size());
    CHECK(head.keep_alive == c.keep_alive);
    CHECK(head.target == c.target);
  }
}

TEST_CASE("request head: path and parameters are decoded once, and all that is data stays") {
  struct Case {
    const char* target;
    std::string path;
    Parameters parameters;
  };
  for (const Case& c :
       {Case{"/", "/", {}}, Case{"/a%20b%2Fc+d", "/a b/c+d", {}},
        Case{"/a?x=1&y=a+b%2B&x=2", "/a", {{"x", "1"}, {"x", "2"}, {"y", "a b+"}}},
        Case{"/a?q=b=c?d#e&f", "/a", {{"q", "b=c?d#e"}, {"f", ""}}},
        Case{"/a#b?=n&&%41%3d=%26", "/a#b", {{"A=", "&"}}},
        Case{"/%zz%4?p=100%&q=%e2%82%ac", "/%zz%4", {{"p", "100%"}, {"q", "\u20ac"}}}}) {
    CAPTURE(c.target);
    RequestHead head;
    std::size_t used = 0;
    Refusal refusal;
    const std::string text = std::string("GET ") + c.target + " HTTP/1.1\r\nHost: h\r\n\r\n";
    REQUIRE(parse_request_head(text, head, used, refusal) == HeadOutcome::Complete);
    CHECK(head.path == c.path);
    CHECK(head.parameters == c.parameters);
  }
}

TEST_CASE("request head: bytes and headers are limited by their settings") {
  RequestHead head;
  std::size_t used = 0;
  Refusal refusal;
  const HeadLimits limits{.bytes = 1'024, .headers = 10};
  const auto parse = [&](std::size_t headers, std::size_t bytes) {
    std::string text = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (std::size_t i = 2; i < headers; ++i) text += "X: y\r\n";
    text += "P: ";
    text += std::string(bytes - text.size() - 4, 'p') + "\r\n\r\n";
    return parse_request_head(text, head, used, refusal, limits);
  };
  CHECK(parse(10, 1'024) == HeadOutcome::Complete);
  CHECK(parse(10, 1'025) == HeadOutcome::Refused);
  CHECK(refusal.http_status == 431);
  CHECK(refusal.status.message().find("http.head-limit = 1024") != std::string_view::npos);
  CHECK(parse(11, 500) == HeadOutcome::Refused);
  CHECK(refusal.http_status == 431);
  CHECK(refusal.status.message().find("http.headers = 10") != std::string_view::npos);
}

}  // namespace edgecase::http
