// A reader of Parquet that knows as much of it as ParquetWriter writes, and trusts it. For tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace edgecase::columnar {

std::vector<std::uint32_t> read_hybrid(std::string_view bytes, unsigned width, std::size_t count);
std::vector<std::int64_t> read_delta(std::string_view bytes);

// A structure of Thrift's compact protocol: whichever of these a field has.
struct ThriftValue {
  std::int64_t number = 0;
  std::string text = {};
  std::vector<ThriftValue> list = {};
  std::map<int, ThriftValue> fields = {};

  const ThriftValue& operator[](int field) const { return fields.at(field); }
};
ThriftValue read_structure(std::string_view& bytes);

struct ReadColumn {
  std::vector<bool> is_there;
  // The values of those rows, as text: numbers in decimal, doubles by their bits.
  std::vector<std::string> values;
};

struct ReadFile {
  ThriftValue footer;
  std::map<std::string, ReadColumn> columns;  // of all groups
};
ReadFile read_parquet(const std::string& file);

}  // namespace edgecase::columnar
