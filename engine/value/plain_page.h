// A page of a group with GroupCodec::Plain: what a get reads of it. Layout: group_format.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"
#include "value/group_format.h"

namespace edgecase::engine {

enum class SequenceColumn : unsigned char { None, Written };

// Appends the page of `entries`: of one namespace, in key order, at least one. Its checksum is left
// open (item_checksums.h). `largest` is the largest sequence of the group.
void append_plain_page(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                       SequenceColumn sequences);

// Looks for one key in the bytes of a page without keeping what is on the way. Fills sequence, kind
// and value of `entry` when it is `found`. False when the page is malformed.
[[nodiscard]] bool find_in_page(ByteView page, ByteView user_key, SequenceNumber largest,
                                EntryView& entry, bool& found);
// Its first key. False when the page is malformed.
[[nodiscard]] bool first_key_of_page(ByteView page, ByteView& user_key);

// Decodes a page; reusable for the next. Owned by one thread.
class PlainPageReader {
 public:
  // `page` stays where it is while the entries are used; `prefix` is the namespace's. False when it
  // is malformed; there are no entries then.
  [[nodiscard]] bool open(ByteView page, ByteView prefix, SequenceNumber largest);
  // All of them, until the next open(): at least one.
  std::span<const EntryView> entries() const { return entries_; }
  // The first at or after `full_key`; their number if there is none.
  std::size_t lower_bound(ByteView full_key) const;

 private:
  [[nodiscard]] bool decode(ByteView page, ByteView prefix, SequenceNumber largest);

  std::vector<EntryView> entries_;  // their keys view keys_
  std::vector<std::size_t> ends_;   // of the keys, in keys_
  std::vector<char> keys_;
};

}  // namespace edgecase::engine
