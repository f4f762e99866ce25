#include "http/body_decoder.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "daemon/http/http_fixture.h"

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
