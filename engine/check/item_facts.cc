#include "check/item_facts.h"

#include <algorithm>

#include "value/group.h"

namespace edgecase::engine {
namespace {

bool take_entry(const EntryView& entry, NamespaceId namespace_id, const LookAtEntry& look,
                ItemFacts& facts) {
  if (entry.full_key.size() < kNamespacePrefixBytes || namespace_of(entry.full_key) != namespace_id)
    return false;
  if (facts.entries == 0) {
    facts.first = entry.full_key;
    facts.sequence_min = entry.sequence;
  } else if (entry.full_key <= ByteView(facts.last)) {
    return false;
  }
  facts.last = entry.full_key;
  facts.sequence_min = std::min(facts.sequence_min, entry.sequence);
  facts.sequence_max = std::max(facts.sequence_max, entry.sequence);
  ++facts.entries;
  if (entry.kind == EntryKind::Delete) ++facts.deletes;
  if (look) look(entry);
  return true;
}

}  // namespace

std::optional<ItemFacts> read_item(const Item& item, NamespaceId namespace_id,
                                   const LookAtEntry& look) {
  ItemFacts facts;
  facts.type = item.type();
  if (facts.type == ItemType::Single) {
    Bytes room;
    const auto entry = parse_single(item.contents(), room);
    if (!entry || !take_entry(*entry, namespace_id, look, facts)) return std::nullopt;
    return facts;
  }
  GroupReader group;
  if (!group.open(facts.type, item.contents())) return std::nullopt;
  for (std::size_t i = 0; i < group.entry_count(); ++i) {
    if (!group.move_to(i) || !take_entry(group.entry(), namespace_id, look, facts))
      return std::nullopt;
  }
  return facts;
}

}  // namespace edgecase::engine
