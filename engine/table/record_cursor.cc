#include "table/record_cursor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "metadata/bloom_filter.h"

namespace edgecase::engine {

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
  auto item = files_->item(record(), false, &ahead_);
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
    auto item = files_->item(record(), false, &ahead_);
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
  auto item = files_->item(record(), false);
  if (engine::is_destroyed(item.status())) return std::shared_ptr<const Item>();
  return item;
}

}  // namespace edgecase::engine
