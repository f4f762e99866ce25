// A block of UMeta records and its filter; layout: umeta_format.h.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "base/key_heads.h"
#include "base/value_pointer.h"
#include "metadata/umeta_format.h"

namespace edgecase::engine {

// What the metadata layer knows of one item. The keys are borrowed.
struct UMetaRecord {
  ItemType type = ItemType::Single;
  ByteView first;  // full keys, both included
  ByteView last;
  std::uint64_t entries = 1;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  ValuePointer pointer;
  ByteView filter;  // of the item's keys (append_item_filter()); empty: none
  ByteView pages;   // page index of a plain group; empty: it is read whole
};

// What of a full key goes into a filter, for an item of `type`; nullopt for none.
std::optional<std::uint64_t> filter_hash(ItemType type, ByteView full_key);
// The filter of an item of `type` with these entries, if it needs one.
void append_item_filter(Bytes& out, ItemType type, std::span<const EntryView> entries);

// Gathers records; owned by one thread.
class UMetaBlockBuilder {
 public:
  // `record` lies behind all before it.
  void add(const UMetaRecord& record);

  bool empty() const { return count_ == 0; }
  bool full() const;
  // The block, checksum included, as it belongs at `offset` of file `file_number`. Valid until the
  // next call. The builder is empty afterwards.
  ByteView finish(std::uint64_t file_number, std::uint64_t offset);

 private:
  Bytes records_;
  Bytes filters_;
  Bytes block_;
  std::uint64_t count_ = 0;
  Bytes previous_first_;
  ValuePointer previous_;
};

// A block in memory, decoded and immutable.
class UMetaBlock {
 public:
  static bool checksum_matches(ByteView block, std::uint64_t file_number, std::uint64_t offset);
  // Nothing when it is malformed. Looks at no checksum.
  static std::optional<UMetaBlock> parse(ByteView block);

  std::size_t size() const { return records_.size(); }
  UMetaRecord record(std::size_t index) const;
  // The first record whose last key is at or after `full_key`; size() if there is none.
  std::size_t find(ByteView full_key) const;
  std::size_t filter_bytes() const { return filters_.size(); }
  std::size_t memory_bytes() const;

 private:
  struct Compact {
    std::uint32_t first_offset = 0;  // in keys_
    std::uint16_t first_size = 0;
    std::uint16_t last_size = 0;  // behind the first; a single has none of its own
    ItemType type = ItemType::Single;
    std::uint32_t entries = 1;
    std::uint32_t deletes = 0;
    SequenceNumber sequence_min = 0;
    SequenceNumber sequence_max = 0;
    ValuePointer pointer;
    std::uint32_t filter_offset = 0;  // in filters_
    std::uint32_t filter_size = 0;
    std::uint32_t pages_offset = 0;  // in pages_
    std::uint16_t pages_size = 0;
  };

  ByteView first_key(const Compact& record) const;
  ByteView last_key(const Compact& record) const;
  bool take_record(ByteView& input, bool first_of_block);
  bool take_key(ByteView& input, ByteView shared_with, std::uint16_t& size);

  std::vector<Compact> records_;
  KeyHeads last_keys_;
  Bytes keys_;
  Bytes filters_;
  Bytes pages_;
};

}  // namespace edgecase::engine
