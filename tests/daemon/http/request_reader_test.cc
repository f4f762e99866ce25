#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "daemon/http/http_fixture.h"
#include "http/request_reader.h"

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

namespace edgecase::http::test {
namespace {

constexpr std::size_t kLimitBytes = 8u << 20;

struct Inflated {
  Refusal refusal;
  std::string body;
  std::uint64_t budget_bytes = 0;
};

Inflated inflate(const std::string& compressed, wire::Coding coding) {
  net::ByteBudget budget(4 * kLimitBytes);
  net::BudgetShare share(budget);
  Inflated got;
  got.refusal = inflate_body(compressed, coding, kLimitBytes, share, got.body);
  got.budget_bytes = share.bytes();
  return got;
}

// With a length that lies.
std::string lying(std::string gzip) {
  return gzip.replace(gzip.size() - 4, 4, std::string("\1\0\0\0", 4));
}

// A frame that says how much it holds, and one that does not.
std::string zstd(std::string_view text) {
  std::string out;
  REQUIRE(wire::pack_once(wire::Coding::Zstd, text, out));
  return out;
}
std::string zstd_stream(std::string_view text) {
  std::string out;
  const auto packer = wire::Packer::create(wire::Coding::Zstd);
  REQUIRE((packer->pack(text, out) && packer->finish(out)));
  return out;
}

}  // namespace

TEST_CASE("body decoder: a body of any size within the limit comes whole") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2u << 20} - 1, std::size_t{2u << 20},
                                 (std::size_t{2u << 20}) + 1, kLimitBytes - 1, kLimitBytes}) {
    CAPTURE(size);
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 7);
    const std::string gzip = compress(text, Wrapper::Gzip);
    for (const Inflated& got :
         {inflate(gzip, wire::Coding::Gzip), inflate(zstd(text), wire::Coding::Zstd),
          inflate(zstd_stream(text), wire::Coding::Zstd),
          inflate(compress(text, Wrapper::Zlib), wire::Coding::Deflate)}) {
      CHECK(got.refusal.http_status == 0);
      CHECK(got.body == text);
      CHECK(got.budget_bytes == size);
    }
    CHECK(inflate(gzip + "tail", wire::Coding::Gzip).refusal.http_status == 400);
    CHECK(inflate(gzip.substr(0, gzip.size() - 9), wire::Coding::Gzip).refusal.http_status == 400);
    const int with_one_more = size == kLimitBytes ? 413 : 0;
    for (const std::string& packed : {zstd(text), zstd_stream(text)}) {
      const auto status = [](const std::string& bytes) {
        return inflate(bytes, wire::Coding::Zstd).refusal.http_status;
      };
      CHECK(status(packed + "tail") == 400);
      CHECK(status(packed.substr(0, packed.size() - 1)) == 400);
      CHECK(status(packed.substr(0, 3)) == 400);
      CHECK(status(packed + zstd("x")) == with_one_more);
      CHECK(status(packed + zstd_stream("x")) == with_one_more);
    }
    const std::string more = gzip + compress("x", Wrapper::Gzip);
    CHECK(inflate(more, wire::Coding::Gzip).refusal.http_status == with_one_more);
  }
}

TEST_CASE("body decoder: a bomb is refused before much of it is kept, whatever it says") {
  const std::string zeros(64u << 20, '\0');
  const std::string gzip = compress(zeros, Wrapper::Gzip);
  std::string in_frames;
  for (int i = 0; i < 64; ++i) in_frames += zstd_stream(std::string(1u << 20, '\0'));
  struct Case {
    std::string compressed;
    wire::Coding coding;
  };
  for (const Case& c :
       {Case{gzip, wire::Coding::Gzip}, Case{lying(gzip), wire::Coding::Gzip},
        Case{gzip + compress("x", Wrapper::Gzip), wire::Coding::Gzip},
        Case{zstd(zeros), wire::Coding::Zstd}, Case{zstd_stream(zeros), wire::Coding::Zstd},
        Case{zstd("x") + zstd_stream(zeros), wire::Coding::Zstd},
        Case{in_frames, wire::Coding::Zstd},
        Case{compress(zeros, Wrapper::Zlib), wire::Coding::Deflate}}) {
    const Inflated got = inflate(c.compressed, c.coding);
    CHECK(got.refusal.http_status == 413);
    CHECK(got.body.capacity() <= 4u << 20);
  }
}

TEST_CASE("body decoder: what a frame of zstd asks for is bounded, and what it says is checked") {
  // One block of zeros each: a head that says 7 MiB, and one that looks back 16 MiB.
  const std::string magic("\x28\xb5\x2f\xfd", 4);
  const std::string zeros("\x53\x00\x00\x00", 4);  // 10 of them, the last block
  const std::string lies = magic + std::string("\xa0\x00\x00\x70\x00", 5) + zeros;
  const std::string looks_back = magic + std::string("\x00\x70", 2) + zeros;
  const std::string looks_less = magic + std::string("\x00\x68", 2) + zeros;
  const std::string skipped("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  std::string many;
  for (std::size_t i = 0; i < kZstdFramesMax; ++i) many += zstd("x");
  struct Case {
    std::string name, bytes;
    int status;
    std::string body;
  };
  for (const Case& c :
       {Case{"lies", lies, 400, ""}, Case{"looks back", looks_back, 413, ""},
        Case{"looks back less", looks_less, 0, std::string(10, '\0')},
        Case{"skipped", skipped + zstd("a") + skipped, 0, "a"},
        Case{"cut", skipped.substr(0, 9), 400, ""},
        Case{"an older format", std::string("\x27\xb5\x2f\xfd\x00\x00\x00\x00", 8), 400, ""},
        Case{"many", many, 0, std::string(kZstdFramesMax, 'x')},
        Case{"one more", many + zstd("x"), 413, ""}, Case{"no zstd", "m v=1", 400, ""}}) {
    CAPTURE(c.name);
    const Inflated got = inflate(c.bytes, wire::Coding::Zstd);
    CHECK(got.refusal.http_status == c.status);
    if (c.status == 0) CHECK(got.body == c.body);
    if (c.status == 0) CHECK(got.budget_bytes == c.body.size());
  }
  // Its window counts: there is no room for one.
  net::ByteBudget budget(1u << 20);
  net::BudgetShare share(budget);
  std::string body;
  CHECK(inflate_body(looks_less, wire::Coding::Zstd, kLimitBytes, share, body).http_status == 503);
}

TEST_CASE("body decoder: chunks take no more room than a body may have") {
  net::ByteBudget budget(4 * kLimitBytes);
  net::BudgetShare share(budget);
  ChunkedDecoder decoder;
  std::string body;
  std::string chunks;
  for (int i = 0; i < 3'001; ++i) chunks += "7\r\nseventh\r\n";
  ChunkedDecoder::Progress progress = ChunkedDecoder::Progress::NeedMore;
  while (progress == ChunkedDecoder::Progress::NeedMore) {
    std::size_t used = 0;
    progress = decoder.feed(chunks, kLimitBytes, share, body, used);
    REQUIRE(body.capacity() < kLimitBytes + 16);  // libraries round what they allocate up
  }
  CHECK(progress == ChunkedDecoder::Progress::TooLarge);
  CHECK(body.size() + 7 > kLimitBytes);
}

}  // namespace edgecase::http::test
