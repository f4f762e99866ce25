// Reads the entries of an item, whichever type it is.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "metadata/umeta_reader.h"
#include "value/group.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {

// Opens the item of a record, or a page of it, for reading entries from it, whichever type it is.
class ItemReader {
 public:
  // False when the item is malformed or is not what the record says.
  [[nodiscard]] bool open(const UMetaRecord& record, std::shared_ptr<const Item> item);
  // The same of a page, which stays where it is: its entries alone are there then.
  [[nodiscard]] bool open_page(const UMetaRecord& record, ByteView page);
  // Opens only some entries of a page, from the first at or after `full_key` on. There may be none.
  [[nodiscard]] bool open_page_from(const UMetaRecord& record, ByteView page, ByteView full_key);
  // Whether the page has others behind those, and: these in their place.
  bool has_more() const { return form_ == Form::Page && page_.has_more(); }
  [[nodiscard]] bool decode_more() { return page_.decode_more(); }
  // In place of the item of a single, whose entry is there already: it stays where it is.
  void open_entry(const UMetaRecord& record, const FoundEntry& entry);
  // In place of the item of a single, which is not read: its value is empty. The key is the
  // record's.
  void open_unread(const UMetaRecord& record);
  bool is_unread() const { return is_open_ && form_ == Form::Unread; }
  // In place of an item whose key was destroyed, since all of it was erased: its first and its last
  // key, deleted. They view the record.
  void open_destroyed(const UMetaRecord& record);
  void close() {
    item_.reset();
    is_open_ = false;
  }
  // As close(). Keeps memory for other pages, if that is no more.
  void close_for_reuse(std::size_t kept_bytes_max);
  bool is_open() const { return is_open_; }
  // What is open is open_destroyed().
  bool is_destroyed() const { return is_open_ && form_ == Form::Destroyed; }

  std::size_t entry_count() const;
  // As those of GroupReader.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  [[nodiscard]] bool move_to(std::size_t index);
  const EntryView& entry() const { return entry_; }
  std::span<const EntryView> decoded_from(std::size_t index) const;
  std::size_t add_numbers(std::size_t index, Direction direction, ByteView lower, ByteView upper,
                          NumberRun& run) const {
    return form_ == Form::Group ? group_.add_numbers(index, direction, lower, upper, run) : 0;
  }

 private:
  enum class Form : unsigned char { Single, Unread, Group, Page, Destroyed };

  std::shared_ptr<const Item> item_;
  bool is_open_ = false;
  bool had_group_ = false;
  std::array<EntryView, 2> destroyed_;
  std::size_t destroyed_count_ = 0;
  Form form_ = Form::Single;
  Bytes unpacked_;  // the value of a packed single
  GroupReader group_;
  PlainPageReader page_;
  EntryView entry_;
};

}  // namespace edgecase::engine
