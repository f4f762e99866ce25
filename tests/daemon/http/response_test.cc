#include <zlib.h>
#include <zstd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "daemon/http/front_fixture.h"
#include "http/router.h"

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

namespace edgecase::http::test {

TEST_CASE("front: who makes an answer is told now and then that its reader is slow") {
  std::atomic<int> told{0};
  FrontFixture f(FrontOptions{});
  f.router.add("GET", "/long", Effect::Reads, [&told](Call& call) {
    call.exchange.stream.on_slow([&told] { ++told; });
    call.answer_text(200, "text/plain", std::string(16u << 20, 'x'));
  });
  Client client = f.connect();
  client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  while (told < 2) std::this_thread::yield();
  const Answer answer = client.receive();
  CHECK(answer.status == 200);
  CHECK(answer.body.size() == 16u << 20);
}

}  // namespace edgecase::http::test

namespace edgecase::http {
namespace {

std::string unpacked_zstd(const std::string& packed, bool& is_whole) {
  ZSTD_DStream* const stream = ZSTD_createDStream();
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  std::string out;
  std::size_t left = 1;
  std::string step(4096, '\0');
  for (std::size_t filled = step.size(); in.pos < in.size || filled == step.size();) {
    ZSTD_outBuffer to{step.data(), step.size(), 0};
    left = ZSTD_decompressStream(stream, &to, &in);
    REQUIRE(ZSTD_isError(left) == 0);
    filled = to.pos;
    out.append(step, 0, filled);
    if (left == 0) break;
  }
  ZSTD_freeDStream(stream);
  is_whole = left == 0;
  return out;
}

// What it holds; `is_whole` tells whether it has its end.
std::string unpacked(const std::string& packed, bool& is_whole, wire::Coding coding) {
  if (coding == wire::Coding::Zstd) return unpacked_zstd(packed, is_whole);
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string copy = packed;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  std::string out;
  int outcome = Z_OK;
  while (outcome == Z_OK) {
    std::string step(4096, '\0');
    stream.next_out = reinterpret_cast<Bytef*>(step.data());
    stream.avail_out = static_cast<uInt>(step.size());
    outcome = inflate(&stream, Z_NO_FLUSH);
    out.append(step, 0, step.size() - stream.avail_out);
  }
  is_whole = outcome == Z_STREAM_END;
  inflateEnd(&stream);
  return out;
}

RequestHead asking(const std::string& method, const std::string& accepts) {
  RequestHead head;
  std::size_t used = 0;
  Refusal refusal;
  const std::string accept = accepts.empty() ? "" : "Accept-Encoding: " + accepts + "\r\n";
  REQUIRE(parse_request_head(method + " / HTTP/1.1\r\nHost: h\r\n" + accept + "\r\n", head, used,
                             refusal) == HeadOutcome::Complete);
  return head;
}

Response answer(const std::string& type, std::size_t bytes) {
  Response response;
  response.set_header("Content-Type", type);
  response.body = std::string(bytes, 'x');
  return response;
}

}  // namespace

TEST_CASE("packing: text that pays is packed for clients that take it") {
  struct Case {
    std::string method, accepts, type;
    std::size_t bytes;
    std::string coding;  // empty: none
    bool varies;
  };
  for (const Case& c :
       {Case{"GET", "gzip", "application/json", 5000, "gzip", true},
        Case{"POST", "deflate, gzip;q=0.5", "text/csv; charset=utf-8", 5000, "gzip", true},
        Case{"GET", "gzip", "application/x-ndjson", kPackedMinBytes, "gzip", true},
        Case{"GET", "gzip", "application/x-ndjson", kPackedMinBytes - 1, "", false},
        Case{"GET", "gzip, deflate, br, zstd", "application/json", 5000, "zstd", true},
        Case{"GET", "zstd;q=0.5, gzip", "application/json", 5000, "gzip", true},
        Case{"GET", "gzip;q=0.999,ZSTD; q=1.000", "application/json", 5000, "zstd", true},
        Case{"GET", "zstd;q=0, gzip;q=0.001", "application/json", 5000, "gzip", true},
        Case{"GET", "*", "application/json", 5000, "gzip", true},
        Case{"GET", "*;q=0.1, gzip;q=0", "application/json", 5000, "", true},
        Case{"GET", "zstd;q=much, gzip;q=2", "application/json", 5000, "", true},
        Case{"GET", "", "application/json", 5000, "", true},
        Case{"GET", "identity", "application/json", 5000, "", true},
        Case{"GET", "gzip;q=0.000", "application/json", 5000, "", true},
        Case{"HEAD", "gzip, zstd", "application/json", 5000, "", true},
        Case{"GET", "gzip", "image/jpeg", 5000, "", false},
        Case{"GET", "zstd", "application/vnd.apache.parquet", 5000, "", false}}) {
    CAPTURE(c.method);
    CAPTURE(c.accepts);
    CAPTURE(c.type);
    Response response = answer(c.type, c.bytes);
    pack_response(asking(c.method, c.accepts), response);
    CHECK(response.has_header("Vary") == c.varies);
    std::string coding;
    for (const auto& [name, value] : response.headers)
      if (name == "Content-Encoding") coding = value;
    CHECK(coding == c.coding);
    bool is_whole = false;
    const auto packed_by = coding == "zstd" ? wire::Coding::Zstd : wire::Coding::Gzip;
    const std::string body =
        coding.empty() ? response.body : unpacked(response.body, is_whole, packed_by);
    CHECK(is_whole != coding.empty());
    CHECK(body == std::string(c.bytes, 'x'));
  }
}

TEST_CASE("packing: errors, and what is packed already, stay as they are") {
  Response refused = answer("application/json", 5000);
  refused.status = 400;
  pack_response(asking("GET", "gzip"), refused);
  CHECK_FALSE(refused.has_header("Content-Encoding"));
  Response packed = answer("text/html", 5000);
  packed.set_header("Content-Encoding", "gzip");
  pack_response(asking("GET", "gzip"), packed);
  CHECK(packed.body == std::string(5000, 'x'));
  Response counted;
  counted.set_pieces(
      "text/plain", [](PieceWriter&) { return Sent::All; }, 5);
  pack_response(asking("GET", "gzip"), counted);
  CHECK(counted.packer == nullptr);
}

TEST_CASE("packing: each piece can be read when it was written, and the end tells that it is one") {
  for (const wire::Coding coding : {wire::Coding::Gzip, wire::Coding::Zstd}) {
    CAPTURE(wire::name_of(coding));
    const auto packer = wire::Packer::create(coding);
    REQUIRE(packer != nullptr);
    std::string sent, want;
    bool is_whole = true;
    for (const std::string& piece :
         {std::string("a,b\n"), std::string(), std::string(200'000, 'z'), std::string("1,2\n")}) {
      REQUIRE(packer->pack(piece, sent));
      want += piece;
      CHECK(unpacked(sent, is_whole, coding) == want);
      CHECK_FALSE(is_whole);
    }
    REQUIRE(packer->finish(sent));
    CHECK(unpacked(sent, is_whole, coding) == want);
    CHECK(is_whole);
    CHECK(sent.size() < 2'000);
  }
}

TEST_CASE("packing: what is packed at once stays within its room, or is not there") {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += std::to_string(i * i);
  for (const wire::Coding coding : {wire::Coding::Gzip, wire::Coding::Zstd}) {
    CAPTURE(wire::name_of(coding));
    std::string out = "before";
    REQUIRE(wire::pack_once(coding, text, out));
    bool is_whole = false;
    CHECK(unpacked(out.substr(6), is_whole, coding) == text);
    CHECK(is_whole);
    CHECK(out.size() < text.size());
    std::string none = "before";
    CHECK_FALSE(wire::pack_once(coding, text, none, 100));
    CHECK(none == "before");
    std::string little = "before";
    CHECK(wire::pack_once(coding, "", little));
    CHECK(unpacked(little.substr(6), is_whole, coding).empty());
  }
}

}  // namespace edgecase::http
