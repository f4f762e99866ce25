// Parquet, as far as readings need it: one row group after another, one page a column, and the
// footer that lists them. DESIGN.md has the picture. One thread.
//
//   times, ints   DELTA_BINARY_PACKED: readings that come each second take next to nothing
//   names         RLE_DICTIONARY
//   doubles       RLE_DICTIONARY where a group has few values (sensors with one decimal), else
//                 BYTE_STREAM_SPLIT
//   bools, texts  PLAIN
//
// A column of a group is packed by zstd where that takes a tenth off. Each has its count of nulls;
// times and names also their least and greatest, by which readers pass over groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/table.h"

namespace edgecase::columnar {

class ParquetWriter final : public TableWriter {
 public:
  void begin(const std::vector<Column>& columns, const Metadata& metadata,
             std::string& out) override;
  Status group(const std::vector<Column>& columns, std::uint32_t rows, std::string& out) override;
  void end(std::string& out) override;

 private:
  std::string schema_, metadata_;  // of the footer, in Thrift
  std::size_t schema_elements_ = 0, metadata_pairs_ = 0;
  std::string groups_;  // the same of the row groups
  std::uint32_t group_count_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t offset_bytes_ = 0;  // of what was written
};

}  // namespace edgecase::columnar
