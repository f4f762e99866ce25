#include "table/record_cursor.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "edgecase/status.h"
#include "metadata/umeta_block.h"

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
    if (!group_.open(record.type, item->contents(), item->marks.get()) ||
        group_.entry_count() != record.entries)
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

std::uint64_t SoughtKey::hash_for(ItemType type) const {
  std::optional<std::uint64_t>& hash = hashes_[type == ItemType::SeriesGroup ? 1 : 0];
  if (!hash) hash = filter_hash(type, full_key_);
  return *hash;
}

RecordCursor::RecordCursor(std::shared_ptr<TableFiles> files,
                           std::vector<std::shared_ptr<const TableMetadata>> tables, ByteView from)
    : files_(std::move(files)), tables_(std::move(tables)) {
  if (tables_.empty()) return;
  if (from.empty()) {
    if (open_table(0) && load_block(0)) select(0);
    return;
  }
  std::size_t table = 0;
  while (table < tables_.size() && ByteView(tables_[table]->largest) < from) ++table;
  if (table < tables_.size()) seek_table(table, from);
}

void RecordCursor::close_searched() {
  searched_.close();
  if (searched_page_ != nullptr) searched_page_->number.reset();
}

void RecordCursor::select(std::size_t record_index) {
  close_searched();
  valid_ = records_.select(record_index);
  if (!valid_) fail_block();
}

bool RecordCursor::fail(Status status) {
  status_ = std::move(status);
  valid_ = false;
  return false;
}

// The one it stands in.
bool RecordCursor::fail_block() {
  return fail(corruption_at(table_->file().path(), table_->blocks()[block_index_].offset,
                            "block of metadata records is malformed"));
}

bool RecordCursor::open_table(std::size_t index) {
  auto table = files_->table(*tables_[index]);
  if (!table.ok()) return fail(table.status());
  table_ = *std::move(table);
  table_index_ = index;
  return true;
}

bool RecordCursor::load_block(std::size_t index) {
  auto block = files_->walked_block(*table_, index);
  if (!block.ok()) return fail(block.status());
  records_.open(*std::move(block));
  block_index_ = index;
  return true;
}

void RecordCursor::next_record() {
  item_.close();
  if (records_.index() + 1 < records_.size()) return select(records_.index() + 1);
  if (block_index_ + 1 < table_->blocks().size()) {
    if (load_block(block_index_ + 1)) select(0);
  } else if (table_index_ + 1 < tables_.size()) {
    if (open_table(table_index_ + 1) && load_block(0)) select(0);
  } else {
    valid_ = false;
  }
}

void RecordCursor::seek_record(ByteView full_key) {
  if (!valid_ || record().last >= full_key) return;
  item_.close();
  // A caller that walks along stands one before.
  if (records_.index() + 1 < records_.size()) {
    select(records_.index() + 1);
    if (record().last >= full_key) return;
  }
  std::size_t table = table_index_;
  while (table < tables_.size() && ByteView(tables_[table]->largest) < full_key) ++table;
  if (table == tables_.size()) {
    close_searched();
    valid_ = false;
    return;
  }
  seek_table(table, full_key);
}

std::uint64_t RecordCursor::entries_up_to(ByteView full_key) const {
  if (!valid_) return 0;
  std::uint64_t entries = 0;
  const std::size_t end = std::min(table_->find_block(full_key) + 1, table_->blocks().size());
  for (std::size_t block = block_index_; block < end; ++block)
    entries += table_->blocks()[block].totals.entries;
  for (std::size_t table = table_index_ + 1; table < tables_.size(); ++table)
    if (ByteView(tables_[table]->smallest) <= full_key) entries += tables_[table]->entry_count;
  return entries;
}

// `full_key` is at most the last one of the table.
void RecordCursor::seek_table(std::size_t table, ByteView full_key) {
  const bool other_table = table_ == nullptr || table != table_index_;
  if (other_table && !open_table(table)) return;
  const std::size_t block = table_->find_block(full_key);
  const bool in_table = block < table_->blocks().size();
  if (in_table && (other_table || block != block_index_) && !load_block(block)) return;
  close_searched();
  valid_ = in_table && records_.find(full_key);
  if (!valid_) fail(corruption_at(table_->file().path(), 0, "ends before the key its index says"));
}

Status RecordCursor::open_item() {
  if (item_.is_open()) return ok();
  auto item = files_->walked_item(record(), &ahead_);
  if (engine::is_destroyed(item.status())) {
    item_.open_destroyed(record());
    move_to(0);
  } else if (!item.ok()) {
    fail(item.status());
  } else if (!item_.open(record(), *std::move(item))) {
    item_.close();
    fail(files_->disagreement(record()));
  } else if (move_to(0) && item_.entry().full_key != record().first) {
    fail(files_->disagreement(record()));
  }
  return status_;
}

bool RecordCursor::move_to(std::size_t index) {
  if (!item_.move_to(index)) return fail(files_->disagreement(record()));
  entry_index_ = index;
  return true;
}

void RecordCursor::next_entry() {
  EC_CHECK(is_open());
  if (entry_index_ + 1 == item_.entry_count()) return next_record();
  move_to(entry_index_ + 1);
}

Result<std::optional<SequenceNumber>> RecordCursor::find_entry(const SoughtKey& key) {
  if (!record().filter.empty() && !filter_may_contain(record().filter, key.hash_for(record().type)))
    return {std::nullopt};
  if (!record().pages.empty()) return find_in_pages(key);
  if (!searched_.is_open()) {
    auto item = files_->walked_item(record(), &ahead_);
    if (engine::is_destroyed(item.status())) return {std::nullopt};
    if (!item.ok()) return item.status();
    if (!searched_.open(record(), *std::move(item))) {
      searched_.close();
      return files_->disagreement(record());
    }
  }
  std::size_t index = 0;
  const bool found = searched_.lower_bound(key.full_key(), index) &&
                     index < searched_.entry_count() && searched_.move_to(index);
  if (!found) return files_->disagreement(record());
  if (searched_.entry().full_key != key.full_key()) return {std::nullopt};
  return {searched_.entry().sequence};
}

Result<std::optional<SequenceNumber>> RecordCursor::find_in_pages(const SoughtKey& key) {
  const UMetaRecord& group = record();
  const auto place =
      find_page(group.pages, group.pointer.size_bytes, group.first, group.last, key.full_key());
  if (!place) return files_->disagreement(group);
  if (searched_page_ == nullptr) searched_page_ = std::make_unique<SearchedPage>();
  SearchedPage& searched = *searched_page_;
  if (searched.number != place->number) {
    searched.number.reset();
    const auto page = files_->page(group, *place, false, searched.buffer);
    if (engine::is_destroyed(page.status())) return {std::nullopt};
    if (!page.ok()) return page.status();
    searched.bytes = *page;
    searched.number = place->number;
  }
  EntryView entry;
  bool found = false;
  if (!find_in_page(searched.bytes, user_key_of(key.full_key()), group.sequence_max, entry, found))
    return files_->disagreement(group);
  if (!found) return {std::nullopt};
  return {entry.sequence};
}

Result<bool> RecordCursor::supersedes(const SoughtKey& key, SequenceNumber sequence) {
  seek_record(key.full_key());
  EC_TRY(status_);
  if (!valid_ || record().first > key.full_key() || record().sequence_max <= sequence) return false;
  if (record().type == ItemType::Single) return true;  // its record tells all of it but the value
  EC_ASSIGN_OR_RETURN(const auto found, find_entry(key));
  return found && *found > sequence;
}

void RecordCursor::select_any(std::uint64_t random) {
  if (!valid_) return;
  item_.close();
  if (load_block(static_cast<std::size_t>(random % table_->blocks().size())))
    select(static_cast<std::size_t>((random >> 32) % records_.size()));
}

Status RecordCursor::rewind_item() {
  move_to(0);
  return status_;
}

Result<std::shared_ptr<const Item>> RecordCursor::read_item() {
  auto item = files_->walked_item(record());
  if (engine::is_destroyed(item.status())) return std::shared_ptr<const Item>();
  return item;
}

namespace {

Result<bool> find_in_page_of(TableFiles& files, const UMetaPlace& at, ByteView full_key,
                             bool fill_cache, FoundEntry& entry) {
  const UMetaRecord& record = at.record;
  const auto place = find_page(record.pages, record.pointer.size_bytes, at.shared, full_key);
  if (!place) return files.disagreement(record);
  PageBuffer buffer;
  const auto page = files.page(record, *place, fill_cache, buffer);
  if (is_destroyed(page.status())) return false;
  if (!page.ok()) return page.status();
  EntryView found;
  bool is_there = false;
  if (!find_in_page(*page, user_key_of(full_key), record.sequence_max, found, is_there))
    return files.disagreement(record);
  if (!is_there) return false;
  entry.sequence = found.sequence;
  entry.kind = found.kind;
  entry.value = found.value;
  return true;
}

Result<bool> find_in_group(TableFiles& files, const UMetaRecord& record, ByteView full_key,
                           bool fill_cache, FoundEntry& entry) {
  auto item = files.item(record, fill_cache);
  if (is_destroyed(item.status())) return false;
  if (!item.ok()) return item.status();
  ItemReader reader;
  std::size_t index = 0;
  if (!reader.open(record, *std::move(item)) || !reader.lower_bound(full_key, index))
    return files.disagreement(record);
  if (index >= reader.entry_count()) return false;
  if (!reader.move_to(index)) return files.disagreement(record);
  const EntryView& found = reader.entry();
  if (found.full_key != full_key) return false;
  entry.sequence = found.sequence;
  entry.kind = found.kind;
  entry.value = found.value;
  return true;
}

// Asks no filter and reads one item, or one page of it.
Result<bool> find_in_item(TableFiles& files, const UMetaPlace& at, ByteView full_key,
                          bool fill_cache, FoundEntry& entry) {
  if (!at.record.pages.empty()) return find_in_page_of(files, at, full_key, fill_cache, entry);
  if (at.record.type == ItemType::Single)
    return files.single(at.record, full_key, fill_cache, entry);
  return find_in_group(files, at.record, full_key, fill_cache, entry);
}

bool filter_denies(TableFiles& files, const UMetaRecord& record, ByteView full_key) {
  if (record.filter.empty()) return false;
  files.counters().filter_probes.fetch_add(1, std::memory_order_relaxed);
  if (filter_may_contain(record.filter, *filter_hash(record.type, full_key))) return false;
  files.counters().filter_negatives.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

Result<bool> find_in_table(TableFiles& files, const TableMetadata& table, ByteView full_key,
                           bool fill_cache, FoundEntry& entry) {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<const UMetaReader> reader, files.table(table));
  if (table.level == 0 && !reader->may_hold(full_key)) {
    files.counters().level0_skips.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const std::size_t block_index = reader->find_block(full_key);
  if (block_index == reader->blocks().size()) return false;
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<const UMetaBlock> block,
                      files.block(*reader, block_index, fill_cache));
  UMetaPlace at;
  UMetaCursor records;  // whose keys `at` views then
  switch (block->locate(full_key, at)) {
    case UMetaBlock::Sought::Here: break;
    case UMetaBlock::Sought::Nowhere: return false;
    case UMetaBlock::Sought::Unknown:
      records.open(block);
      if (!records.find(full_key))
        return corruption_at(reader->file().path(), reader->blocks()[block_index].offset,
                             "block ends before the key its index says");
      at.record = records.record();
      at.shared = shared_bytes(at.record.first, at.record.last);
      if (full_key < at.record.first) return false;
      break;
  }
  if (filter_denies(files, at.record, full_key)) return false;
  return find_in_item(files, at, full_key, fill_cache, entry);
}

}  // namespace edgecase::engine
