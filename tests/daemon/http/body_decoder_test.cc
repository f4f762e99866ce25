#include "http/body_decoder.h"

#include <doctest/doctest.h>

#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr std::size_t kLimitBytes = 8u << 20;

struct Inflated {
  Refusal refusal;
  std::string body;
  std::uint64_t budget_bytes = 0;
};

Inflated inflate(const std::string& compressed, ContentCoding coding) {
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

}  // namespace

TEST_CASE("body decoder: a body of any size within the limit comes whole") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{2u << 20} - 1, std::size_t{2u << 20},
                                 (std::size_t{2u << 20}) + 1, kLimitBytes - 1, kLimitBytes}) {
    CAPTURE(size);
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 7);
    const std::string gzip = compress(text, Wrapper::Gzip);
    for (const Inflated& got : {inflate(gzip, ContentCoding::Gzip),
                                inflate(compress(text, Wrapper::Zlib), ContentCoding::Deflate)}) {
      CHECK(got.refusal.http_status == 0);
      CHECK(got.body == text);
      CHECK(got.budget_bytes == size);
    }
    CHECK(inflate(gzip + "tail", ContentCoding::Gzip).refusal.http_status == 400);
    CHECK(inflate(gzip.substr(0, gzip.size() - 9), ContentCoding::Gzip).refusal.http_status == 400);
    const int with_one_more = size == kLimitBytes ? 413 : 0;
    const std::string more = gzip + compress("x", Wrapper::Gzip);
    CHECK(inflate(more, ContentCoding::Gzip).refusal.http_status == with_one_more);
  }
}

TEST_CASE("body decoder: a bomb is refused before much of it is kept, whatever it says") {
  const std::string zeros(64u << 20, '\0');
  const std::string gzip = compress(zeros, Wrapper::Gzip);
  struct Case {
    std::string compressed;
    ContentCoding coding;
  };
  for (const Case& c : {Case{gzip, ContentCoding::Gzip}, Case{lying(gzip), ContentCoding::Gzip},
                        Case{gzip + compress("x", Wrapper::Gzip), ContentCoding::Gzip},
                        Case{compress(zeros, Wrapper::Zlib), ContentCoding::Deflate}}) {
    const Inflated got = inflate(c.compressed, c.coding);
    CHECK(got.refusal.http_status == 413);
    CHECK(got.body.capacity() <= 4u << 20);
  }
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
