// The index of a plain group: the places of its pages, and the keys that they hold. A metadata
// record has it, so that a get reads one page of a group. It goes with the record from table to
// table; places count from the start of the item. A group of one page has none.
//
//   varint: offset of the first page in the item
//   for each page but the last:
//     varint, zigzag: its bytes - those of the page before (of the first: - 0)
//     length-prefixed: a key that no key of this page reaches and none of the next lies before, as
//     short as it can be, without what the first and the last key of the group share
//   The last page ends with the item.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"

namespace edgecase::engine {

struct PagePlace {
  std::size_t number = 0;
  std::size_t offset = 0;  // from the start of the item
  std::size_t size = 0;
};

// What an item is longer by in the file than in memory, before its first page and in each.
struct SealOverhead {
  std::size_t head_bytes = 0;
  std::size_t page_bytes = 0;
};

// Appends the page index of the group that `item` holds, with these `entries`; nothing for groups
// of one page.
void append_page_index(Bytes& out, ByteView item, std::span<const EntryView> entries,
                       const SealOverhead& overhead = {});

// Where the entry of `full_key` is if the group has it; it lies between the group's `first` and
// `last` key. Nothing when the index does not fit an item of `item_bytes`.
std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, ByteView first,
                                   ByteView last, ByteView full_key);
// The same where it is known how many bytes these two begin with.
std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, std::size_t shared,
                                   ByteView full_key);
// All of them. False when the index does not fit an item of `item_bytes`.
[[nodiscard]] bool list_pages(ByteView index, std::size_t item_bytes,
                              std::vector<PagePlace>& pages);
// Both at once: `number` is of the page that find_page() finds.
[[nodiscard]] bool list_pages(ByteView index, std::size_t item_bytes, ByteView first, ByteView last,
                              ByteView full_key, std::vector<PagePlace>& pages,
                              std::size_t& number);

}  // namespace edgecase::engine
