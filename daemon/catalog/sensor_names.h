// Names of sensors as the catalog keeps them: what line protocol's tags put in braces at a name's
// end is mostly that of other fields of the same tag set, and is kept once for all of them. For
// MemoryCatalog. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/name_store.h"
#include "catalog/shared_texts.h"

namespace edgecase::catalog {

class SensorNames {
 public:
  // Empty: of what is gone.
  struct Name {
    std::string_view head;
    std::uint32_t tail = kNoRow;  // kNoRow: it has none

    bool empty() const { return head.empty() && tail == kNoRow; }
  };

  // `names` holds the texts, and outlives the table; `seed` as of NameIndex.
  SensorNames(NameStore& names, std::uint64_t seed) : names_(names), tails_(names, seed) {}

  // Where the tags begin; the name's end, where it has none.
  static std::size_t head_bytes(std::string_view name) {
    return name.ends_with('}') ? std::min(name.find('{'), name.size()) : name.size();
  }

  Name keep(std::string_view name) {
    const std::size_t head = head_bytes(name);
    Name kept{names_.keep(name.substr(0, head)), kNoRow};
    if (head < name.size()) kept.tail = tails_.keep(0, name.substr(head));
    return kept;
  }
  // Leaves it empty.
  void give_back(Name& name) {
    NameStore::wipe(name.head);
    if (name.tail != kNoRow) tails_.give_back(name.tail);
    name = Name();
  }

  std::string_view tail(const Name& name) const {
    return name.tail == kNoRow ? std::string_view() : tails_.text(name.tail);
  }
  bool has_tail(std::string_view tail) const { return tails_.has(0, tail); }
  bool is(const Name& name, std::string_view text) const {
    if (name.tail == kNoRow) return name.head == text;
    const std::string_view tags = tails_.text(name.tail);
    return text.size() == name.head.size() + tags.size() && text.starts_with(name.head) &&
           text.ends_with(tags);
  }
  // Whether `a` is sorted before `b`, by bytes.
  bool is_before(const Name& a, const Name& b) const {
    std::string_view left = a.head, right = b.head;
    std::string_view left_tail = tail(a), right_tail = tail(b);
    while (true) {
      if (left.empty()) left = std::exchange(left_tail, {});
      if (right.empty()) right = std::exchange(right_tail, {});
      const std::size_t both = std::min(left.size(), right.size());
      if (both == 0) return left.empty() && !right.empty();
      const int order = left.compare(0, both, right, 0, both);
      if (order != 0) return order < 0;
      left.remove_prefix(both);
      right.remove_prefix(both);
    }
  }
  // Puts the whole name into `text`.
  void read(const Name& name, std::string& text) const {
    text.assign(name.head);
    text += tail(name);
  }

  // Without the texts; with so many more tails.
  std::uint64_t memory_bytes(std::size_t more_tails = 0) const {
    return tails_.memory_bytes(more_tails);
  }

 private:
  NameStore& names_;
  SharedTexts tails_;
};

}  // namespace edgecase::catalog
