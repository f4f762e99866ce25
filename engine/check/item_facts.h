// ItemFacts: the content of an item of a value table, found by decoding all of it. Stateless.
#pragma once

#include <functional>
#include <optional>

#include "base/entry.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {

struct ItemFacts {
  ItemType type = ItemType::Single;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;  // as the item tells it: a group knows its largest alone
  SequenceNumber sequence_max = 0;
  Bytes first;  // full keys, both included
  Bytes last;
};

using LookAtEntry = std::function<void(const EntryView&)>;

// Nothing when the item is malformed: undecodable, keys not ascending or of another namespace.
// `look`, which may be empty, gets each entry.
std::optional<ItemFacts> read_item(const Item& item, NamespaceId namespace_id,
                                   const LookAtEntry& look);

}  // namespace edgecase::engine
