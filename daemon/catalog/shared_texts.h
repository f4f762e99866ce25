// Keeps texts that several series have in common once each, as rows of a table: the tags of a tag
// set, the bytes of an identity. Who has a text gives it back; nothing of it is left in memory once
// nobody has it. For MemoryCatalog and IdentityTable. Thread-compatible.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/name_index.h"
#include "catalog/name_store.h"

namespace edgecase::catalog {

class SharedTexts {
 public:
  // `names` holds the texts, and outlives the table; `seed` as of NameIndex.
  SharedTexts(NameStore& names, std::uint64_t seed) : names_(names), seed_(seed) {}

  // The row of a text that is not empty; one more has it. `parent` is told apart, too.
  std::uint32_t keep(std::uint32_t parent, std::string_view text) {
    const std::uint32_t hash = hash_name(seed_, parent, text);
    std::uint32_t row = find(hash, parent, text);
    if (row == kNoRow) {
      row = static_cast<std::uint32_t>(rows_.size());
      rows_.push_back({names_.keep(text), parent, 0});
      index_.insert(hash, row);
    }
    ++rows_[row].users;
    return row;
  }
  void give_back(std::uint32_t row) {
    if (--rows_[row].users == 0) NameStore::wipe(std::exchange(rows_[row].text, {}));
  }

  bool has(std::uint32_t parent, std::string_view text) const {
    return find(hash_name(seed_, parent, text), parent, text) != kNoRow;
  }
  std::string_view text(std::uint32_t row) const { return rows_[row].text; }
  std::uint32_t parent(std::uint32_t row) const { return rows_[row].parent; }

  // Without the texts; with so many more.
  std::uint64_t memory_bytes(std::size_t more = 0) const {
    std::uint64_t rows = rows_.capacity();
    while (rows < rows_.size() + more) rows = 2 * rows + 1;
    return rows * sizeof(Row) + index_.memory_bytes(more);
  }

 private:
  struct Row {
    std::string_view text;
    std::uint32_t parent = 0;
    std::uint32_t users = 0;
  };

  std::uint32_t find(std::uint32_t hash, std::uint32_t parent, std::string_view text) const {
    return index_.find(hash, [&](std::uint32_t row) {
      return rows_[row].parent == parent && rows_[row].text == text;
    });
  }

  NameStore& names_;
  const std::uint64_t seed_;
  std::vector<Row> rows_;
  NameIndex index_;
};

}  // namespace edgecase::catalog
