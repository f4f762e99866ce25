#include "daemon/columnar/parquet_reader.h"

#include <doctest/doctest.h>
#include <zstd.h>

#include <algorithm>

namespace edgecase::columnar {
namespace {

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return number;
}

std::int64_t take_zigzag(std::string_view& bytes) {
  const std::uint64_t number = take_varint(bytes);
  return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
}

std::uint64_t take_little(std::string_view& bytes, std::size_t size) {
  REQUIRE(bytes.size() >= size);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  bytes.remove_prefix(size);
  return number;
}

std::uint64_t bits_at(std::string_view bytes, std::size_t at, unsigned width) {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < width; ++i, ++at) {
    const auto byte = static_cast<unsigned char>(bytes[at / 8]);
    number |= std::uint64_t{(byte >> at % 8) & 1U} << i;
  }
  return number;
}

std::string_view take(std::string_view& bytes, std::size_t size) {
  REQUIRE(bytes.size() >= size);
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

ThriftValue take_value(std::string_view& bytes, unsigned type) {
  ThriftValue value;
  switch (type) {
    case 1:
    case 2: value.number = type == 1 ? 1 : 0; break;
    case 5:
    case 6: value.number = take_zigzag(bytes); break;
    case 8: value.text = take(bytes, take_varint(bytes)); break;
    case 9: {
      const auto head = static_cast<unsigned char>(take(bytes, 1)[0]);
      const std::uint64_t count = head >> 4 == 15 ? take_varint(bytes) : head >> 4;
      for (std::uint64_t i = 0; i < count; ++i)
        value.list.push_back(take_value(bytes, head & 0x0fU));
      break;
    }
    case 12: value = read_structure(bytes); break;
    default: FAIL("no such type: ", type);
  }
  return value;
}

std::string unpacked(std::string_view packed, std::size_t size) {
  std::string whole(size, '\0');
  REQUIRE(ZSTD_decompress(whole.data(), size, packed.data(), packed.size()) == size);
  return whole;
}

struct ReadPage {
  ThriftValue head;
  std::string bytes;
};

ReadPage take_page(std::string_view& bytes, bool is_packed) {
  ReadPage page;
  page.head = read_structure(bytes);
  const std::string_view body = take(bytes, static_cast<std::size_t>(page.head[3].number));
  page.bytes =
      is_packed ? unpacked(body, static_cast<std::size_t>(page.head[2].number)) : std::string(body);
  return page;
}

std::vector<std::string> plain_values(std::string_view bytes, std::int64_t type,
                                      std::size_t count) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < count; ++i) {
    if (type == 0) {
      values.push_back(std::to_string(bits_at(bytes, i, 1)));
    } else if (type == 6) {
      values.emplace_back(take(bytes, take_little(bytes, 4)));
    } else {
      values.push_back(std::to_string(take_little(bytes, 8)));
    }
  }
  return values;
}

void read_chunk(const std::string& file, const ThriftValue& described, bool is_optional,
                ReadColumn& column) {
  const ThriftValue& about = described[3];
  const bool has_dictionary = about.fields.contains(11);
  const std::int64_t begin = has_dictionary ? about[11].number : about[9].number;
  std::string_view bytes(file);
  bytes = bytes.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(about[7].number));
  const std::size_t whole = bytes.size();
  const bool is_packed = about[4].number == 6;
  const std::int64_t type = about[1].number;
  std::vector<std::string> dictionary;
  if (has_dictionary) {
    const ReadPage page = take_page(bytes, is_packed);
    const auto count = static_cast<std::size_t>(page.head[7][1].number);
    dictionary = plain_values(page.bytes, type, count);
    CHECK(about[9].number == begin + static_cast<std::int64_t>(whole - bytes.size()));
  }
  const ReadPage page = take_page(bytes, is_packed);
  CHECK(bytes.empty());
  std::string_view data = page.bytes;
  const auto rows = static_cast<std::size_t>(page.head[5][1].number);
  std::vector<std::uint32_t> there(rows, 1);
  if (is_optional) there = read_hybrid(take(data, take_little(data, 4)), 1, rows);
  const auto count = static_cast<std::size_t>(std::count(there.begin(), there.end(), 1U));
  CHECK(about[12][3].number == static_cast<std::int64_t>(rows - count));
  for (const std::uint32_t each : there) column.is_there.push_back(each == 1);
  std::vector<std::string> values;
  switch (page.head[5][2].number) {
    case 0: values = plain_values(data, type, count); break;
    case 5:
      for (const std::int64_t each : read_delta(data)) values.push_back(std::to_string(each));
      break;
    case 8: {
      const auto width = static_cast<unsigned>(take_little(data, 1));
      for (const std::uint32_t each : read_hybrid(data, width, count))
        values.push_back(dictionary.at(each));
      break;
    }
    case 9:
      for (std::size_t i = 0; i < count; ++i) {
        std::string bits;
        for (std::size_t k = 0; k < 8; ++k) bits.push_back(data[k * count + i]);
        std::string_view view = bits;
        values.push_back(std::to_string(take_little(view, 8)));
      }
      break;
    default: FAIL("no such encoding");
  }
  CHECK(values.size() == count);
  column.values.insert(column.values.end(), values.begin(), values.end());
}

}  // namespace

std::vector<std::uint32_t> read_hybrid(std::string_view bytes, unsigned width, std::size_t count) {
  std::vector<std::uint32_t> values;
  while (values.size() < count) {
    REQUIRE_FALSE(bytes.empty());
    const std::uint64_t head = take_varint(bytes);
    if ((head & 1) == 0) {
      const auto value = static_cast<std::uint32_t>(take_little(bytes, (width + 7) / 8));
      values.insert(values.end(), head >> 1, value);
      continue;
    }
    const std::string_view packed = take(bytes, (head >> 1) * width);
    for (std::size_t i = 0; i < (head >> 1) * 8 && values.size() < count; ++i)
      values.push_back(static_cast<std::uint32_t>(bits_at(packed, i * width, width)));
  }
  CHECK(values.size() == count);
  CHECK(bytes.empty());
  return values;
}

std::vector<std::int64_t> read_delta(std::string_view bytes) {
  const std::uint64_t block = take_varint(bytes), miniblocks = take_varint(bytes);
  const std::uint64_t count = take_varint(bytes);
  auto value = static_cast<std::uint64_t>(take_zigzag(bytes));
  std::vector<std::int64_t> values;
  if (count > 0) values.push_back(static_cast<std::int64_t>(value));
  while (values.size() < count) {
    const auto least = static_cast<std::uint64_t>(take_zigzag(bytes));
    const std::string_view widths = take(bytes, miniblocks);
    for (const char width : widths) {
      const std::size_t each = block / miniblocks;
      if (values.size() >= count) break;
      const std::string_view packed = take(bytes, each * static_cast<unsigned char>(width) / 8);
      for (std::size_t i = 0; i < each && values.size() < count; ++i) {
        const auto bits = static_cast<unsigned char>(width);
        value += least + bits_at(packed, i * bits, bits);
        values.push_back(static_cast<std::int64_t>(value));
      }
    }
  }
  CHECK(bytes.empty());
  return values;
}

ThriftValue read_structure(std::string_view& bytes) {
  ThriftValue value;
  for (int field = 0;;) {
    const auto head = static_cast<unsigned char>(take(bytes, 1)[0]);
    if (head == 0) return value;
    field += head >> 4;
    value.fields[field] = take_value(bytes, head & 0x0fU);
  }
}

ReadFile read_parquet(const std::string& file) {
  REQUIRE(file.size() > 12);
  CHECK(file.starts_with("PAR1"));
  CHECK(file.ends_with("PAR1"));
  std::string_view end = std::string_view(file).substr(file.size() - 8);
  const std::uint64_t footer_bytes = take_little(end, 4);
  REQUIRE(footer_bytes + 12 <= file.size());
  std::string_view footer =
      std::string_view(file).substr(file.size() - 8 - footer_bytes, footer_bytes);
  ReadFile read;
  read.footer = read_structure(footer);
  CHECK(footer.empty());
  const auto& schema = read.footer[2].list;
  for (const ThriftValue& group : read.footer[4].list) {
    REQUIRE(group[1].list.size() + 1 == schema.size());
    for (std::size_t i = 0; i + 1 < schema.size(); ++i) {
      const ThriftValue& element = schema[i + 1];
      read_chunk(file, group[1].list[i], element[3].number == 1, read.columns[element[4].text]);
    }
  }
  return read;
}

}  // namespace edgecase::columnar
