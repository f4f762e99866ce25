// A block of UMeta records and their filters; layout: umeta_format.h.
#pragma once

#include <memory>
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
  ByteView filter;   // of the item's keys (append_item_filter()); empty: none
  ByteView pages;    // page index of a plain group; empty: it is read whole
  ByteView numbers;  // summary of a series group (number_summary.h); empty: none
};

// What of a full key goes into a filter, for an item of `type`; nullopt for none.
std::optional<std::uint64_t> filter_hash(ItemType type, ByteView full_key);
// The filter of an item of `type` and that size with these entries, if it needs one.
void append_item_filter(Bytes& out, ItemType type, std::uint64_t item_bytes,
                        std::span<const EntryView> entries);

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

// Reads records one behind the other. Owned by one thread; borrows their bytes.
class UMetaDecoder {
 public:
  UMetaDecoder() = default;
  UMetaDecoder(UMetaDecoder&&) = default;  // views go along
  UMetaDecoder& operator=(UMetaDecoder&&) = default;

  // All that the next record is told by, but the first key of the one before.
  struct State {
    std::uint32_t input_offset = 0;
    std::uint32_t filter_offset = 0;
    // Where the item of the record before lies.
    std::uint64_t file_number = 0;
    std::uint64_t end_offset = 0;
  };

  void begin(ByteView records, ByteView filters) { resume(records, filters, State(), ByteView()); }
  void resume(ByteView records, ByteView filters, const State& state, ByteView first_before);

  // False when what follows is malformed, which it is also where it does not lie behind the record
  // that was read before it; there are no more calls then.
  bool next();
  bool at_end() const { return state_.input_offset == records_.size(); }
  // Views hold until the next call of next() or resume().
  const UMetaRecord& record() const { return record_; }
  const State& state() const { return state_; }
  std::size_t memory_bytes() const { return keys_.capacity(); }
  // The first key of the record before the next one.
  ByteView first() const { return ByteView(keys_.data(), first_size_); }

 private:
  struct KeyParts {
    std::uint32_t shared = 0;  // with the first key as it stands
    ByteView rest;
  };

  bool take_key(ByteView& input, KeyParts& key) const;
  bool lies_behind_last(const KeyParts& key) const;
  std::size_t put_together(const KeyParts& key, std::size_t place);
  char* key_memory(std::size_t place, std::size_t size);

  ByteView records_;
  ByteView filters_;
  State state_;
  UMetaRecord record_;
  std::vector<char> keys_;  // room for a first key and a last one, each of key_room_ bytes
  std::size_t key_room_ = 0;
  std::size_t first_size_ = 0;
  bool knows_last_ = false;  // record_ is the record before
};

// Where a get goes on: a record whose keys nobody has put together.
struct UMetaPlace {
  UMetaRecord record;      // without keys and smallest sequence; its views are of the block
  std::size_t shared = 0;  // how many bytes its first and its last key both begin with
};

// A block in memory, immutable: the bytes as they lie in the file and, where it was parsed, what
// finds one record among the others, all of which were read for that.
class UMetaBlock {
 public:
  static bool checksum_matches(ByteView block, std::uint64_t file_number, std::uint64_t offset);
  // Nothing when it is malformed. Looks at no checksum.
  static std::optional<UMetaBlock> parse(Bytes block);
  // Looks at the head alone: for a cursor that walks along, which comes to what is malformed.
  static std::optional<UMetaBlock> begin(Bytes block);

  std::size_t size() const { return count_; }

  // What can be said of a key without reading any that lies before its record's.
  enum class Sought : unsigned char { Here, Nowhere, Unknown };
  // Asks a parsed block. Here: if the block has `full_key`, then in the item of `place`; of a
  // Single it is the key. Unknown: only UMetaCursor::find() tells. Takes no memory.
  Sought locate(ByteView full_key, UMetaPlace& place) const;

  std::size_t filter_bytes() const { return filters().size(); }
  std::size_t memory_bytes() const;

 private:
  friend class UMetaCursor;

  // Where reading may begin: at every kAnchorRecords-th record.
  static constexpr std::size_t kAnchorRecords = 4;
  struct Anchor {
    UMetaDecoder::State state;
    std::uint32_t key_offset = 0;  // of the first key of the record before, in anchor_keys_
    std::uint32_t key_size = 0;
  };

  bool is_parsed() const { return !anchors_.empty(); }
  // Whether nothing is left behind what `decoder` has read.
  bool ends_with(const UMetaDecoder& decoder) const;
  ByteView records() const;
  ByteView filters() const { return ByteView(bytes_).substr(filter_offset_); }
  ByteView key_before(const Anchor& anchor) const {
    return ByteView(anchor_keys_).substr(anchor.key_offset, anchor.key_size);
  }

  Bytes bytes_;
  std::size_t count_ = 0;
  std::size_t record_offset_ = 0;
  std::size_t filter_offset_ = 0;
  std::vector<Anchor> anchors_;
  Bytes anchor_keys_;
  KeyHeads last_keys_;
};

// A place in a block, which it keeps. Owned by one thread.
class UMetaCursor {
 public:
  // Stands nowhere yet.
  void open(std::shared_ptr<const UMetaBlock> block);
  // Lets go of the block.
  void close();

  bool is_open() const { return block_ != nullptr; }
  // Only when open, as all that follows.
  const UMetaBlock& block() const { return *block_; }
  std::size_t size() const { return block_->size(); }
  // To record `index`, below size(). The next ones cost least; of a block that was not parsed, all
  // up to it are read. False, here and below, where one of these is malformed: it stands nowhere.
  bool select(std::size_t index);
  // To the first record, then from each to the next. False behind the last; then it stands nowhere.
  bool next();
  // To the first record whose last key is at or after `full_key`. False when there is none; then it
  // stands nowhere.
  bool find(ByteView full_key);
  // size() where it stands nowhere.
  std::size_t index() const { return index_; }
  // Only where it stands somewhere. Views hold until it moves.
  const UMetaRecord& record() const { return decoder_.record(); }

 private:
  bool walk(std::size_t index);
  bool walk_to(ByteView full_key);

  std::shared_ptr<const UMetaBlock> block_;
  std::size_t index_ = 0;
  UMetaDecoder decoder_;
};

}  // namespace edgecase::engine
