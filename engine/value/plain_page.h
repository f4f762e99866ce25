// A page of a group with GroupCodec::Plain: what a get reads of it. Layout: group_format.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"
#include "value/group_format.h"
#include "value/packing.h"

namespace edgecase::engine {

enum class SequenceColumn : unsigned char { None, Written };

// A page of `entries`, of one namespace, in key order, at least one, in two steps. What stands
// before the values is appended to `heads`; the answer is how many bytes the page will have.
// `largest` is the largest sequence of the group.
std::size_t append_page_heads(Bytes& heads, std::span<const EntryView> entries,
                              SequenceNumber largest, SequenceColumn sequences);
// Appends the page with these heads, its own alone. Its checksum is left open (value_item.h).
void append_page(Bytes& out, ByteView heads, std::span<const EntryView> entries,
                 SequenceColumn sequences);

// The page, packed where that pays. Its checksum is left open.
void append_packed_page(Bytes& out, ByteView page, Packer& packer);
inline bool is_packed_page(ByteView page) {
  return page.size() > kPageChecksumBytes && page[kPageChecksumBytes] == kPackedPageMark;
}
// Fills `unpacked`, a view of `page` or, where that is packed, of `room`, which only grows; it has
// no checksum then. What follows takes no packed page. False when it is malformed.
[[nodiscard]] bool unpack_page(ByteView page, Bytes& room, ByteView& unpacked);

// Looks for one key in the bytes of a page without keeping what is on the way. Fills sequence, kind
// and value of `entry` when it is `found`. False when the page is malformed.
[[nodiscard]] bool find_in_page(ByteView page, ByteView user_key, SequenceNumber largest,
                                EntryView& entry, bool& found);
// The first key of a page. False when the page is malformed.
[[nodiscard]] bool first_key_of_page(ByteView page, ByteView& user_key);

// Decodes a page, all of it or from a key on, a stretch at a time; reusable for the next. Owned by
// one thread.
class PlainPageReader {
 public:
  // `page` stays where it is while the entries are used; `prefix` is the namespace's. All functions
  // answer false when the page is malformed; there are no entries then.
  [[nodiscard]] bool open(ByteView page, ByteView prefix, SequenceNumber largest);
  // Only what lies at or after `full_key`, of the same namespace, and of that the first few: a scan
  // that looks into many pages wants little of each.
  [[nodiscard]] bool open_from(ByteView page, ByteView prefix, SequenceNumber largest,
                               ByteView full_key);
  // The entries that are decoded, until the next call that is not const: after open() all, at least
  // one.
  std::span<const EntryView> entries() const { return {entries_.data(), count_}; }
  // Whether the page has others behind them, and: those in their place.
  bool has_more() const { return !heads_.empty(); }
  [[nodiscard]] bool decode_more() { return decode(kGroupEntriesMax); }
  // The first at or after `full_key`; their number if there is none.
  std::size_t lower_bound(ByteView full_key) const;
  std::size_t memory_bytes() const {
    return entries_.capacity() * sizeof(EntryView) + keys_.capacity();
  }

 private:
  static constexpr std::size_t kFirstStretch = 4;

  [[nodiscard]] bool begin(ByteView page, ByteView prefix, SequenceNumber largest);
  [[nodiscard]] bool decode(std::size_t count_max);
  [[nodiscard]] bool fail();
  void grow_keys(std::size_t wanted);

  ByteView page_;
  ByteView heads_;  // of what is not decoded
  ByteView values_;
  bool with_sequences_ = false;
  SequenceNumber largest_ = 0;
  std::size_t prefix_bytes_ = 0;
  bool at_first_ = true;
  std::vector<EntryView> entries_;  // the first count_; their keys view keys_
  std::size_t count_ = 0;
  // The key before what is not decoded lies at key_begin_ and ends at key_end_.
  std::vector<char> keys_;
  std::size_t key_begin_ = 0;
  std::size_t key_end_ = 0;
};

}  // namespace edgecase::engine
