#include "http/packing.h"

#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "http/response.h"

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
