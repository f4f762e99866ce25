// Arrow IPC, the file form (Feather version 2): schema, dictionaries of all names, one record batch
// after another, and the footer that lists them. DESIGN.md has the picture. One thread.
//
// All names are told before the first batch: some readers take no later ones. Buffers of batches
// are packed by zstd where that makes them shorter: a column without a value takes next to nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/table.h"

namespace edgecase::columnar {

// The names that dictionaries hold: they lie in memory as long as the answer lasts.
inline constexpr std::size_t kNamesMaxBytes = 4u << 20;

class ArrowWriter final : public TableWriter {
 public:
  void begin(const std::vector<Column>& columns, const Metadata& metadata,
             std::string& out) override;
  Status group(const std::vector<Column>& columns, std::uint32_t rows, std::string& out) override;
  void end(std::string& out) override;

 private:
  // Where a message lies in the file.
  struct Block {
    std::int64_t offset_bytes = 0;
    std::int32_t head_bytes = 0;
    std::int64_t body_bytes = 0;
  };
  Block append_message(std::string_view head, std::string_view body, std::string& out);

  std::vector<Block> dictionaries_, batches_;
  std::vector<Column> described_;  // without rows or names: for the footer's schema
  Metadata metadata_;
  std::int64_t offset_bytes_ = 0;  // of what was written
};

}  // namespace edgecase::columnar
