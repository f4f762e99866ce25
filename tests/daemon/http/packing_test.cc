#include "http/packing.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "http/response.h"

namespace edgecase::http {
namespace {

// What gzip holds; `is_whole` tells whether it has its end.
std::string unpacked(const std::string& packed, bool& is_whole) {
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

TEST_CASE("packing: text that pays is packed for clients that take gzip") {
  struct Case {
    std::string method, accepts, type;
    std::size_t bytes;
    bool is_packed, varies;
  };
  for (const Case& c :
       {Case{"GET", "gzip", "application/json", 5000, true, true},
        Case{"POST", "deflate, gzip;q=0.5", "text/csv; charset=utf-8", 5000, true, true},
        Case{"GET", "gzip", "application/x-ndjson", kPackedMinBytes, true, true},
        Case{"GET", "gzip", "application/x-ndjson", kPackedMinBytes - 1, false, false},
        Case{"GET", "", "application/json", 5000, false, true},
        Case{"GET", "identity", "application/json", 5000, false, true},
        Case{"GET", "gzip;q=0", "application/json", 5000, false, true},
        Case{"HEAD", "gzip", "application/json", 5000, false, true},
        Case{"GET", "gzip", "image/jpeg", 5000, false, false},
        Case{"GET", "gzip", "application/vnd.apache.parquet", 5000, false, false}}) {
    CAPTURE(c.method);
    CAPTURE(c.accepts);
    CAPTURE(c.type);
    Response response = answer(c.type, c.bytes);
    pack_response(asking(c.method, c.accepts), response);
    CHECK(response.has_header("Content-Encoding") == c.is_packed);
    CHECK(response.has_header("Vary") == c.varies);
    bool is_whole = false;
    const std::string body = c.is_packed ? unpacked(response.body, is_whole) : response.body;
    CHECK(is_whole == c.is_packed);
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
  const auto packer = Packer::create();
  REQUIRE(packer != nullptr);
  std::string sent, want;
  bool is_whole = true;
  for (const std::string& piece :
       {std::string("a,b\n"), std::string(), std::string(200'000, 'z'), std::string("1,2\n")}) {
    REQUIRE(packer->pack(piece, sent));
    want += piece;
    CHECK(unpacked(sent, is_whole) == want);
    CHECK_FALSE(is_whole);
  }
  REQUIRE(packer->finish(sent));
  CHECK(unpacked(sent, is_whole) == want);
  CHECK(is_whole);
  CHECK(sent.size() < 2'000);
}

}  // namespace edgecase::http
