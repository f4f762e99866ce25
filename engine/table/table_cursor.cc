#include "table/table_cursor.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "edgecase/status.h"
#include "metadata/number_summary.h"

namespace edgecase::engine {
namespace {

Bytes behind(ByteView full_key) {
  Bytes next(full_key);
  next.push_back('\0');
  return next;
}

}  // namespace

void TableCursor::open(TableFiles& files, std::span<const Table> tables,
                       const TableCursorOptions& options) {
  close();
  files_ = &files;
  tables_ = tables;
  options_ = options;
  start();
}

void TableCursor::close() {
  status_ = ok();
  valid_ = false;
  at_entry_ = false;
  table_.reset();
  records_.close();
  item_.close_for_reuse(kKeptBytes);
  read_page_ = kNoPage;
  read_.kept.reset();
  for (Bytes* const bytes : {&read_.opened, &read_.unpacked})
    if (bytes->capacity() > kKeptBytes) *bytes = Bytes();
  if (single_.value.capacity() > kKeptBytes) single_.value = Bytes();
  Bytes memory = std::move(ahead_.bytes);
  ahead_ = ReadAhead();
  if (memory.capacity() <= kKeptBytes) ahead_.bytes = std::move(memory);
}

// `index` is that of the table or block. A table that is not open tells nothing but its bounds;
// those of a block stand in the index.
bool TableCursor::fail(Status status, Reading reading, std::size_t index) {
  status_ = std::move(status);
  valid_ = false;
  if (reading == Reading::Item) {
    damaged_first_ = record().first;
    damaged_last_ = record().last;
  } else {
    const std::size_t table = reading == Reading::Table ? index : table_index_;
    damaged_first_ = tables_[table]->smallest;
    damaged_last_ = tables_[table]->largest;
  }
  if (reading == Reading::Block) {
    if (index > 0) damaged_first_ = behind(table_->blocks()[index - 1].last);
    damaged_last_ = table_->blocks()[index].last;
  }
  return false;
}

bool TableCursor::damaged_keys(Bytes& first, Bytes& last) const {
  if (status_.ok()) return false;
  first = damaged_first_;
  last = damaged_last_;
  return true;
}

bool TableCursor::end() {
  valid_ = false;
  return false;
}

// The first table that reaches to `full_key`; their number if there is none.
std::size_t TableCursor::find_table(ByteView full_key) const {
  const auto found =
      std::partition_point(tables_.begin(), tables_.end(),
                           [full_key](const Table& table) { return table->largest < full_key; });
  return static_cast<std::size_t>(found - tables_.begin());
}

bool TableCursor::open_table(std::size_t table_index) {
  if (table_ != nullptr && table_index == table_index_) return true;
  records_.close();
  item_.close();
  auto table = files_->table(*tables_[table_index]);
  if (!table.ok()) return fail(table.status(), Reading::Table, table_index);
  table_ = *std::move(table);
  table_index_ = table_index;
  return true;
}

void TableCursor::start() {
  if (forward()) {
    settle_forward(options_.lower);
  } else if (options_.upper.empty()) {
    settle_last();
  } else {
    settle_reverse(options_.upper, false);
  }
}

bool TableCursor::load_block(std::size_t block_index) {
  if (records_.is_open() && block_index == block_index_) return true;
  item_.close();
  auto block = files_->block(*table_, block_index, options_.fill_cache);
  if (!block.ok()) return fail(block.status(), Reading::Block, block_index);
  records_.open(*std::move(block));
  block_index_ = block_index;
  return true;
}

bool TableCursor::select(std::size_t block_index, std::size_t record_index) {
  if (!load_block(block_index)) return false;
  at_entry_ = false;
  if (record_index == records_.index()) return true;
  EC_CHECK(records_.select(record_index));  // the block was parsed
  enter_record();
  return true;
}

bool TableCursor::select_last(std::size_t block_index) {
  return load_block(block_index) && select(block_index, records_.size() - 1);
}

// What is known is of another record.
void TableCursor::enter_record() {
  item_.close();
  pages_known_ = false;
  read_page_ = kNoPage;
  check_bound_ = forward() ? !options_.upper.empty() && record().last >= options_.upper
                           : record().first < options_.lower;
}

// The open table reaches to `full_key`.
bool TableCursor::find_record(ByteView full_key) {
  const std::size_t block_index = table_->find_block(full_key);
  if (block_index == table_->blocks().size())
    return fail(
        corruption_at(table_->file().path(), 0, "table ends before the key its manifest says"),
        Reading::Table, table_index_);
  if (!load_block(block_index)) return false;
  at_entry_ = false;
  const std::size_t before = records_.index();
  if (!records_.find(full_key))
    return fail(corruption_at(table_->file().path(), table_->blocks()[block_index].offset,
                              "block ends before the key its index says"),
                Reading::Block, block_index);
  if (records_.index() != before) enter_record();
  return true;
}

bool TableCursor::list_pages_of_record() {
  if (pages_known_) return true;
  pages_.clear();
  if (!record().pages.empty() && !list_pages(record().pages, record().pointer.size_bytes, pages_))
    return fail(files_->disagreement(record()));
  pages_known_ = true;
  return true;
}

// A key that was destroyed: there is an item without pages in place of what it sealed.
bool TableCursor::open_destroyed() {
  item_.open_destroyed(record());
  pages_.clear();
  page_ = 0;
  is_whole_ = true;
  return true;
}

Result<ByteView> TableCursor::read_page(std::size_t page) {
  if (page == read_page_) return read_bytes_;
  read_page_ = kNoPage;
  EC_ASSIGN_OR_RETURN(read_bytes_, files_->page(record(), pages_[page], options_.fill_cache, read_,
                                                ahead_, options_.direction));
  read_page_ = page;
  ++counted_thread_reads().groups;
  return read_bytes_;
}

bool TableCursor::is_large() const {
  return record().type == ItemType::Single &&
         record().pointer.size_bytes >= options_.large_value_bytes;
}

// Opens a large value by its record alone, which tells all but the value, and whether its key was
// destroyed.
bool TableCursor::open_large() {
  const auto opens = files_->opens(record());
  if (!opens.ok()) return fail(opens.status());
  if (*opens) {
    item_.open_unread(record());
  } else {
    // The value's head may be damaged, too: all of it is looked at before it counts as deleted.
    const Status status = files_->large_value(record()).status();
    if (!is_destroyed(status)) return fail(status.ok() ? files_->disagreement(record()) : status);
    return open_destroyed();
  }
  return true;
}

bool TableCursor::open_single() {
  const auto is_there = files_->single(record(), record().first, false, single_);
  if (!is_there.ok()) return fail(is_there.status());
  if (!*is_there) return open_destroyed();
  item_.open_entry(record(), single_);
  return true;
}

Result<std::unique_ptr<LargeValue>> TableCursor::large_value() {
  if (item_.is_unread()) return files_->large_value(record());
  return std::unique_ptr<LargeValue>();
}

// Page `page`, or the whole item where it has no pages.
bool TableCursor::open_part(std::size_t page) {
  if (item_.is_open() && is_whole_ && page == page_) return true;
  item_.close();
  is_whole_ = true;
  page_ = page;
  if (is_large()) return open_large();
  if (files_->reads_in_place(record())) return open_single();
  if (pages_.empty()) {
    auto item = files_->item(record(), options_.fill_cache, forward() ? &ahead_ : nullptr);
    if (is_destroyed(item.status())) return open_destroyed();
    if (!item.ok()) return fail(item.status());
    ++counted_thread_reads().groups;
    return item_.open(record(), *std::move(item)) || fail(files_->disagreement(record()));
  }
  const auto bytes = read_page(page);
  if (is_destroyed(bytes.status())) return open_destroyed();
  if (!bytes.ok()) return fail(bytes.status());
  return item_.open_page(record(), *bytes) || fail(files_->disagreement(record()));
}

// Opens what of page `page` lies at or after `full_key`, as far as one decodes at first.
bool TableCursor::open_page_from(std::size_t page, ByteView full_key) {
  item_.close();
  is_whole_ = false;
  page_ = page;
  const auto bytes = read_page(page);
  if (is_destroyed(bytes.status())) return open_destroyed();
  if (!bytes.ok()) return fail(bytes.status());
  return item_.open_page_from(record(), *bytes, full_key) || fail(files_->disagreement(record()));
}

bool TableCursor::move_to(std::size_t index) {
  if (index >= item_.entry_count() || !item_.move_to(index))
    return fail(files_->disagreement(record()));
  index_ = index;
  at_entry_ = true;
  return true;
}

bool TableCursor::move_to_first() {
  return list_pages_of_record() && open_part(0) && move_to(0);
}

bool TableCursor::move_to_last() {
  return list_pages_of_record() && open_part(pages_.empty() ? 0 : pages_.size() - 1) &&
         move_to(item_.entry_count() - 1);
}

// Where the first entry at or after `full_key` lies, in the part that is then open; the number of
// its entries when it is the first of the next page. The item has such an entry.
bool TableCursor::search(ByteView full_key, std::size_t& index) {
  std::size_t page = 0;
  if (!record().pages.empty()) {
    const UMetaRecord& of = record();
    if (!list_pages(of.pages, of.pointer.size_bytes, of.first, of.last, full_key, pages_, page))
      return fail(files_->disagreement(of));
    pages_known_ = true;
    if (forward()) {
      if (!open_page_from(page, full_key)) return false;
      return item_.lower_bound(full_key, index) || fail(files_->disagreement(record()));
    }
  }
  if (!list_pages_of_record() || !open_part(page)) return false;
  return item_.lower_bound(full_key, index) || fail(files_->disagreement(record()));
}

// To entry `index` of the open part, or, behind its last, to the first of the next page.
bool TableCursor::move_to_next(std::size_t index) {
  if (index < item_.entry_count() || page_ + 1 >= pages_.size()) return move_to(index);
  return open_part(page_ + 1) && move_to(0);
}

// To the entry before `index` of the open part, or, before its first, to the last of the page
// before.
bool TableCursor::move_to_before(std::size_t index) {
  if (index > 0) return move_to(index - 1);
  if (page_ == 0) return fail(files_->disagreement(record()));
  return open_part(page_ - 1) && move_to(item_.entry_count() - 1);
}

ByteView TableCursor::full_key() const {
  if (at_entry_) return item_.entry().full_key;
  return forward() ? record().first : record().last;
}

void TableCursor::accept() {
  if (is_old()) return next_record();
  valid_ =
      !check_bound_ || (forward() ? full_key() < options_.upper : full_key() >= options_.lower);
}

// The first entry at or after `target`.
void TableCursor::settle_forward(ByteView target) {
  const std::size_t table_index = find_table(target);
  if (table_index == tables_.size()) {
    end();
    return;
  }
  if (!open_table(table_index) || !find_record(target)) return;
  if (!is_old() && record().first < target) {
    std::size_t index = 0;
    if (!search(target, index) || !move_to_next(index)) return;
  }
  accept();
}

void TableCursor::settle_last() {
  if (!open_table(tables_.size() - 1)) return;
  if (select_last(table_->blocks().size() - 1)) accept();
}

// The last entry before `bound`, or at it when that is included.
void TableCursor::settle_reverse(ByteView bound, bool bound_included) {
  const std::size_t table_index = find_table(bound);
  if (table_index == tables_.size()) {
    settle_last();
    return;
  }
  if (!open_table(table_index)) return;
  if (!bound_included) {
    // The block that reaches to the bound may hold nothing before it, and be what a scan steps
    // over.
    const std::size_t at = table_->find_block(bound);
    if (at > 0 && at < table_->blocks().size() &&
        ByteView(behind(table_->blocks()[at - 1].last)) >= bound) {
      if (select_last(at - 1)) accept();
      return;
    }
  }
  if (!find_record(bound)) return;
  const bool some_qualify = bound_included ? record().first <= bound : record().first < bound;
  if (!some_qualify || is_old()) {
    next_record();
    return;
  }
  if (bound_included && record().last == bound) {
    accept();
    return;
  }
  std::size_t index = 0;
  if (!search(bound, index)) return;
  const bool at_bound = bound_included && index < item_.entry_count() && move_to(index) &&
                        item_.entry().full_key == bound;
  if (!status_.ok()) return;
  if (!at_bound && !move_to_before(index)) return;
  accept();
}

void TableCursor::next_record() {
  do {
    if (!step_record()) return;
  } while (is_old());
  accept();
}

bool TableCursor::step_record() {
  if (forward()) {
    if (records_.index() + 1 < records_.size()) {
      if (!select(block_index_, records_.index() + 1)) return false;
    } else if (block_index_ + 1 < table_->blocks().size()) {
      // A block behind the bound may be what a scan steps over, since it is damaged.
      if (!options_.upper.empty() && ByteView(behind(record().last)) >= options_.upper)
        return end();
      if (!select(block_index_ + 1, 0)) return false;
    } else if (table_index_ + 1 < tables_.size()) {
      if (!open_table(table_index_ + 1) || !select(0, 0)) return false;
    } else {
      return end();
    }
    return options_.upper.empty() || record().first < options_.upper || end();
  }
  if (records_.index() > 0) return select(block_index_, records_.index() - 1);
  if (block_index_ > 0) {
    if (ByteView(table_->blocks()[block_index_ - 1].last) < options_.lower) return end();
    return select_last(block_index_ - 1);
  }
  if (table_index_ == 0) return end();
  return open_table(table_index_ - 1) && select_last(table_->blocks().size() - 1);
}

void TableCursor::next_in_item() {
  if (forward()) {
    if (index_ + 1 == item_.entry_count() && item_.has_more()) {
      is_whole_ = false;
      if (!item_.decode_more()) {
        fail(files_->disagreement(record()));
        return;
      }
      if (!move_to(0)) return;
    } else {
      if (index_ + 1 == item_.entry_count() && page_ + 1 >= pages_.size()) return next_record();
      if (!move_to_next(index_ + 1)) return;
    }
  } else {
    if (index_ == 0 && page_ == 0) return next_record();
    if (!move_to_before(index_)) return;
  }
  if (check_bound_) accept();
}

void TableCursor::next() {
  if (!valid_) return;
  if (!at_entry_) {
    if (record().entries == 1) return next_record();
    if (!load().ok()) return;
  }
  next_in_item();
}

std::span<const EntryView> TableCursor::loaded_run() {
  if (!at_entry_ || !forward()) return {};
  std::span<const EntryView> run = item_.decoded_from(index_);
  if (run.empty() || !check_bound_ || run.back().full_key < options_.upper) return run;
  const auto end = std::partition_point(run.begin(), run.end(), [this](const EntryView& entry) {
    return entry.full_key < options_.upper;
  });
  return run.first(static_cast<std::size_t>(end - run.begin()));
}

std::size_t TableCursor::take_numbers(ByteView until, NumberRun& run) {
  if (!valid_ || !at_entry_) return 0;
  Bytes lowest;
  if (!forward()) {
    if (!until.empty()) lowest = behind(until);
    if (check_bound_ && options_.lower > lowest) lowest = options_.lower;
  } else if (check_bound_ && (until.empty() || options_.upper < until)) {
    until = options_.upper;
  }
  const std::size_t count =
      item_.add_numbers(index_, options_.direction, lowest, forward() ? until : ByteView(), run);
  skip(count);
  return count;
}

bool TableCursor::whole_group(WholeGroup& group) {
  if (at_entry_ || check_bound_) return false;
  const UMetaRecord& of = record();
  if (of.numbers.empty() || of.deletes != 0 || of.last.size() != of.first.size() ||
      of.first.size() < kNamespacePrefixBytes + sizeof(std::uint64_t) ||
      !parse_number_summary(of.numbers, group.numbers))
    return false;
  group.numbers.count = of.entries;
  group.numbers.first_ordinal = ordinal_in(of.first);
  group.numbers.last_ordinal = ordinal_in(of.last);
  group.first = of.first;
  group.last = of.last;
  group.sequence_max = of.sequence_max;
  group.file_number = of.pointer.file_number;
  group.offset_bytes = of.pointer.offset_bytes;
  return true;
}

// A run lies within one item, and within one page of it.
void TableCursor::skip(std::size_t count) {
  if (count == 0) return;
  index_ = forward() ? index_ + (count - 1) : index_ - (count - 1);
  next_in_item();
}

Status TableCursor::load() {
  if (at_entry_) return ok();
  if (forward() ? !move_to_first() : !move_to_last()) return status_;
  if (item_.entry().full_key != (forward() ? record().first : record().last))
    fail(files_->disagreement(record()));
  return status_;
}

void TableCursor::seek(ByteView full_key) {
  if (!status_.ok()) return;
  if (forward()) {
    settle_forward(std::max(full_key, options_.lower));
  } else if (!options_.upper.empty() && full_key >= options_.upper) {
    settle_reverse(options_.upper, false);
  } else {
    settle_reverse(full_key, true);
  }
}

}  // namespace edgecase::engine
