#include "table/item_reader.h"

#include <utility>

namespace edgecase::engine {

void ItemReader::close_for_reuse(std::size_t kept_bytes_max) {
  close();
  if (had_group_ || page_.memory_bytes() + unpacked_.capacity() > kept_bytes_max)
    *this = ItemReader();
}

bool ItemReader::open(const UMetaRecord& record, std::shared_ptr<const Item> item) {
  close();
  if (item->type() != record.type) return false;
  if (record.type == ItemType::Single) {
    const auto entry = parse_single(item->contents(), unpacked_);
    if (!entry || entry->full_key != record.first) return false;
    entry_ = *entry;
    form_ = Form::Single;
  } else {
    had_group_ = true;
    if (!group_.open(record.type, item->contents()) || group_.entry_count() != record.entries)
      return false;
    form_ = Form::Group;
  }
  item_ = std::move(item);
  is_open_ = true;
  return true;
}

bool ItemReader::open_page(const UMetaRecord& record, ByteView page) {
  close();
  form_ = Form::Page;
  is_open_ = page_.open(page, record.first.substr(0, kNamespacePrefixBytes), record.sequence_max);
  return is_open_;
}

bool ItemReader::open_page_from(const UMetaRecord& record, ByteView page, ByteView full_key) {
  close();
  form_ = Form::Page;
  is_open_ = page_.open_from(page, record.first.substr(0, kNamespacePrefixBytes),
                             record.sequence_max, full_key);
  return is_open_;
}

void ItemReader::open_entry(const UMetaRecord& record, const FoundEntry& entry) {
  close();
  form_ = Form::Single;
  entry_ = {record.first, entry.sequence, entry.kind, entry.value};
  is_open_ = true;
}

void ItemReader::open_unread(const UMetaRecord& record) {
  close();
  form_ = Form::Unread;
  const EntryKind kind = record.deletes == 0 ? EntryKind::Put : EntryKind::Delete;
  entry_ = {record.first, record.sequence_max, kind, {}};
  is_open_ = true;
}

void ItemReader::open_destroyed(const UMetaRecord& record) {
  close();
  form_ = Form::Destroyed;
  destroyed_[0] = {record.first, record.sequence_max, EntryKind::Delete, {}};
  destroyed_[1] = {record.last, record.sequence_max, EntryKind::Delete, {}};
  destroyed_count_ = record.first == record.last ? 1 : 2;
  is_open_ = true;
}

std::size_t ItemReader::entry_count() const {
  switch (form_) {
    case Form::Single:
    case Form::Unread: return 1;
    case Form::Group: return group_.entry_count();
    case Form::Page: return page_.entries().size();
    case Form::Destroyed: return destroyed_count_;
  }
  return 0;
}

bool ItemReader::lower_bound(ByteView full_key, std::size_t& index) {
  switch (form_) {
    case Form::Single:
    case Form::Unread: index = entry_.full_key < full_key ? 1 : 0; return true;
    case Form::Group: return group_.lower_bound(full_key, index);
    case Form::Page: index = page_.lower_bound(full_key); return true;
    case Form::Destroyed: index = destroyed_[0].full_key < full_key ? 1 : 0; return true;
  }
  return false;
}

bool ItemReader::move_to(std::size_t index) {
  if (form_ == Form::Page) {
    entry_ = page_.entries()[index];
  } else if (form_ == Form::Destroyed) {
    entry_ = destroyed_[index];
  } else if (form_ == Form::Group) {
    if (!group_.move_to(index)) return false;
    entry_ = group_.entry();
  }
  return true;
}

std::span<const EntryView> ItemReader::decoded_from(std::size_t index) const {
  switch (form_) {
    case Form::Single:
    case Form::Unread:
    case Form::Destroyed: return {};
    case Form::Group: return group_.decoded_from(index);
    case Form::Page: return page_.entries().subspan(index);
  }
  return {};
}

}  // namespace edgecase::engine
