#include "columnar/table.h"

#include <doctest/doctest.h>

#include <tuple>

namespace edgecase::columnar {
namespace {

std::uint64_t little(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return number;
}

// Flatbuffers: where a field of the table at `table` is; 0: it is not told.
std::size_t field_at(const std::string& bytes, std::size_t table, std::size_t number) {
  const auto back = static_cast<std::int32_t>(little(bytes, table, 4));
  const std::size_t fields = table - static_cast<std::size_t>(back);
  if (4 + 2 * number >= little(bytes, fields, 2)) return 0;
  const std::size_t offset = little(bytes, fields + 4 + 2 * number, 2);
  return offset == 0 ? 0 : table + offset;
}

std::size_t follow(const std::string& bytes, std::size_t at) {
  return at + little(bytes, at, 4);
}

std::string a_file(std::uint32_t rows) {
  ReadingTable table;
  table.know("default", "d", "s");
  ArrowWriter writer;
  std::string file;
  writer.begin(table.columns(), {{"edgecase", "{}"}}, file);
  wire::Reading reading;
  reading.namespace_name = "default";
  reading.device = "d";
  reading.sensor = "s";
  for (std::uint32_t i = 0; i < rows; ++i) {
    reading.time_ns = i;
    reading.value = wire::Value::of_float64(i);
    table.add(reading);
  }
  if (rows > 0) REQUIRE(writer.group(table.columns(), table.rows(), file).ok());
  writer.end(file);
  return file;
}

}  // namespace

TEST_CASE("arrow: the footer lists messages that lie where it says, each on 8 bytes") {
  for (const std::uint32_t rows : {0U, 1U, 1'000U}) {
    CAPTURE(rows);
    const std::string file = a_file(rows);
    CHECK(file.starts_with(std::string("ARROW1\0\0", 8)));
    CHECK(file.ends_with("ARROW1"));
    const std::size_t length = little(file, file.size() - 10, 4);
    const std::string footer = file.substr(file.size() - 10 - length, length);
    const std::size_t root = follow(footer, 0);
    CHECK(little(footer, field_at(footer, root, 0), 2) == 4);  // version 5
    for (const auto& [number, want, kind] :
         {std::tuple{2U, 4U, 2U}, std::tuple{3U, rows > 0 ? 1U : 0U, 3U}}) {
      const std::size_t blocks = follow(footer, field_at(footer, root, number));
      REQUIRE(little(footer, blocks, 4) == want);
      CHECK((blocks + 4) % 8 == 0);
      for (std::size_t i = 0; i < want; ++i) {
        const std::size_t block = blocks + 4 + 24 * i;
        const std::size_t at = little(footer, block, 8);
        const std::size_t head_bytes = little(footer, block + 8, 4);
        CHECK(at % 8 == 0);
        CHECK(head_bytes % 8 == 0);
        CHECK(little(file, at, 4) == 0xffffffff);
        CHECK(little(file, at + 4, 4) == head_bytes - 8);
        const std::string head = file.substr(at + 8, head_bytes - 8);
        const std::size_t message = follow(head, 0);
        CHECK(little(head, field_at(head, message, 1), 1) == kind);
        CHECK(little(head, field_at(head, message, 3), 8) == little(footer, block + 16, 8));
        if (kind != 3) continue;
        const std::size_t batch = follow(head, field_at(head, message, 2));
        CHECK(little(head, field_at(head, batch, 0), 8) == rows);
      }
    }
  }
}

TEST_CASE("arrow: columns without a value take next to nothing") {
  CHECK(a_file(10'000).size() < 10'000 * 10);
}

}  // namespace edgecase::columnar
