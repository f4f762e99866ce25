#include "http/response.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace edgecase::http {
namespace {

// A client that takes everything, or, without a limit left, nothing.
class Reader final : public net::Channel {
 public:
  Reader() : Channel(net::Socket()) {}
  net::Transfer receive(char* /*buffer*/, std::size_t /*size*/) override {
    return {net::Outcome::Closed, 0};
  }
  net::Transfer send(std::string_view bytes) override {
    received.append(bytes);
    return {net::Outcome::Done, bytes.size()};
  }
  std::string received;
};

struct Sending {
  std::string text;
  bool is_whole = false;
};

Sending sent(const std::string& request_line, Response response, bool is_cut = false) {
  RequestHead head;
  std::size_t used = 0;
  Refusal refusal;
  REQUIRE(parse_request_head(request_line + "\r\nHost: h\r\n\r\n", head, used, refusal) ==
          HeadOutcome::Complete);
  Reader reader;
  std::string output;
  AnswerStream stream(reader, output, 1'000'000);
  const std::atomic<bool> cut{is_cut};
  const bool is_whole = send_response(head, response, !head.keep_alive, stream, cut);
  stream.flush();
  return {reader.received, is_whole};
}

Response in_pieces(std::vector<std::string> pieces, Sent last,
                   std::optional<std::uint64_t> bytes = std::nullopt) {
  Response response;
  response.set_pieces(
      "text/plain",
      [pieces, last, next = std::size_t{0}](PieceWriter& body) mutable {
        if (next == pieces.size()) return last;
        return body.write(pieces[next++]) ? Sent::More : Sent::Broken;
      },
      bytes);
  return response;
}

}  // namespace

TEST_CASE("response: a body's end is told by its length, by chunks, or by the connection's end") {
  Response whole;
  whole.set_header("Content-Type", "text/plain");
  whole.body = "abc";
  Response none;
  none.status = 204;
  const Response chunks = in_pieces({"abc", "", std::string(17, 'd')}, Sent::All);
  const Response counted = in_pieces({"abc", "de"}, Sent::More, 5);
  struct Case {
    const char* request_line;
    const Response& response;
    std::string want;
  };
  const std::string type = "Content-Type: text/plain\r\n";
  for (const Case& c :
       {Case{"GET / HTTP/1.1", whole,
             "HTTP/1.1 200 OK\r\n" + type + "Content-Length: 3\r\n\r\nabc"},
        Case{"HEAD / HTTP/1.1", whole, "HTTP/1.1 200 OK\r\n" + type + "Content-Length: 3\r\n\r\n"},
        Case{"GET / HTTP/1.0", whole,
             "HTTP/1.1 200 OK\r\n" + type + "Content-Length: 3\r\nConnection: close\r\n\r\nabc"},
        Case{"GET / HTTP/1.1", none, "HTTP/1.1 204 No Content\r\n\r\n"},
        Case{"GET / HTTP/1.1", chunks,
             "HTTP/1.1 200 OK\r\n" + type + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n11\r\n" +
                 std::string(17, 'd') + "\r\n0\r\n\r\n"},
        Case{"HEAD / HTTP/1.1", chunks,
             "HTTP/1.1 200 OK\r\n" + type + "Transfer-Encoding: chunked\r\n\r\n"},
        Case{"GET / HTTP/1.0", chunks,
             "HTTP/1.1 200 OK\r\n" + type + "Connection: close\r\n\r\nabc" + std::string(17, 'd')},
        Case{"GET / HTTP/1.1", counted,
             "HTTP/1.1 200 OK\r\n" + type + "Content-Length: 5\r\n\r\nabcde"}}) {
    CAPTURE(c.want);
    const Sending got = sent(c.request_line, c.response);
    CHECK(got.is_whole);
    CHECK(got.text == c.want);
  }
}

TEST_CASE("response: an answer that breaks, is cut or falls short has no proper end") {
  for (const Response& response :
       {in_pieces({"abc"}, Sent::Broken), in_pieces({"abc"}, Sent::All, 5)}) {
    const Sending got = sent("GET / HTTP/1.1", response);
    CHECK_FALSE(got.is_whole);
    CHECK(got.text.find("\r\n0\r\n") == std::string::npos);
  }
  CHECK_FALSE(sent("GET / HTTP/1.1", in_pieces({"abc"}, Sent::All), true).is_whole);
}

TEST_CASE("response: no header's value ends its line") {
  Response response;
  response.set_header("X-A", "b\r\nX-C: d");
  CHECK(sent("GET / HTTP/1.1", response).text ==
        "HTTP/1.1 200 OK\r\nX-A: b  X-C: d\r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("response: set_header replaces, add_header keeps") {
  Response response;
  response.set_header("A", "1");
  response.set_header("A", "2");
  response.add_header("A", "3");
  CHECK(head_text(response, false, false) ==
        "HTTP/1.1 200 OK\r\nA: 2\r\nA: 3\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace edgecase::http
