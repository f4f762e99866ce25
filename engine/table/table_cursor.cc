#include "table/table_cursor.h"

#include <algorithm>

#include "base/memory_value.h"

namespace edgecase::engine {

TableCursor::TableCursor(std::shared_ptr<TableFiles> files,
                         std::shared_ptr<const TableMetadata> table, TableCursorOptions options)
    : files_(std::move(files)), metadata_(std::move(table)), options_(std::move(options)) {
  if (open_table()) start();
}

bool TableCursor::fail(Status status) {
  status_ = std::move(status);
  valid_ = false;
  return false;
}

bool TableCursor::end() {
  valid_ = false;
  return false;
}

bool TableCursor::open_table() {
  auto table = files_->table(*metadata_);
  if (!table.ok()) return fail(table.status());
  table_ = *std::move(table);
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
  if (!block.ok()) return fail(block.status());
  records_.open(*std::move(block));
  block_index_ = block_index;
  return true;
}

bool TableCursor::select(std::size_t block_index, std::size_t record_index) {
  if (!load_block(block_index)) return false;
  at_entry_ = false;
  if (record_index == records_.index()) return true;
  records_.select(record_index);
  enter_record();
  return true;
}

// What is known is of another record.
void TableCursor::enter_record() {
  item_.close();
  pages_known_ = false;
  check_bound_ = forward() ? !options_.upper.empty() && record().last >= options_.upper
                           : record().first < options_.lower;
}

// The block reaches to `full_key`.
bool TableCursor::find_record(std::size_t block_index, ByteView full_key) {
  if (!load_block(block_index)) return false;
  at_entry_ = false;
  const std::size_t before = records_.index();
  if (!records_.find(full_key))
    return fail(corruption_at(table_->file().path(), table_->blocks()[block_index].offset,
                              "block ends before the key its index says"));
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

bool TableCursor::is_large() const {
  return record().type == ItemType::Single &&
         record().pointer.size_bytes >= options_.large_value_bytes;
}

// Of a large value its record tells all but the value, and whether its key was destroyed.
bool TableCursor::open_large() {
  const auto opens = files_->opens(record());
  if (!opens.ok()) return fail(opens.status());
  if (*opens) {
    item_.open_unread(record());
  } else {
    // Its head may be damaged, too: all of it is looked at before it counts as deleted.
    const Status status = files_->large_value(record()).status();
    if (!is_destroyed(status)) return fail(status.ok() ? files_->disagreement(record()) : status);
    item_.open_destroyed(record());
  }
  page_ = 0;
  return true;
}

Result<std::unique_ptr<LargeValue>> TableCursor::large_value() {
  if (item_.is_unread()) return files_->large_value(record());
  // A large one among small ones: stores may have been written with other thresholds.
  const ByteView value = item_.entry().value;
  if (value.size() < options_.large_value_bytes) return std::unique_ptr<LargeValue>();
  auto copy = std::make_shared<const Bytes>(value);
  return std::unique_ptr<LargeValue>(
      std::make_unique<MemoryValue>(*copy, item_.entry().sequence, copy));
}

// Page `page`, or the whole item where it has no pages.
bool TableCursor::open_part(std::size_t page) {
  if (item_.is_open() && page == page_) return true;
  item_.close();
  if (is_large()) return open_large();
  const bool whole = pages_.empty();
  auto part = whole ? files_->item(record(), options_.fill_cache, forward() ? &ahead_ : nullptr)
                    : files_->page(record(), pages_[page], options_.fill_cache, &ahead_,
                                   options_.direction);
  if (is_destroyed(part.status())) {
    item_.open_destroyed(record());
    pages_.clear();
    page_ = 0;
    return true;
  }
  if (!part.ok()) return fail(part.status());
  if (whole ? !item_.open(record(), *std::move(part))
            : !item_.open_page(record(), *std::move(part)))
    return fail(files_->disagreement(record()));
  page_ = page;
  return true;
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
  if (!list_pages_of_record()) return false;
  std::size_t page = 0;
  if (!pages_.empty()) {
    const auto place = find_page(record().pages, record().pointer.size_bytes, record().first,
                                 record().last, full_key);
    if (!place) return fail(files_->disagreement(record()));
    page = place->number;
  }
  if (!open_part(page)) return false;
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
  valid_ = !check_bound_ || (forward() ? full_key() < ByteView(options_.upper)
                                       : full_key() >= ByteView(options_.lower));
}

// The first entry at or after `target`.
void TableCursor::settle_forward(ByteView target) {
  const std::size_t block_index = table_->find_block(target);
  if (block_index == table_->blocks().size()) {
    end();
    return;
  }
  if (!find_record(block_index, target)) return;
  if (record().first < target) {
    std::size_t index = 0;
    if (!search(target, index) || !move_to_next(index)) return;
  }
  accept();
}

void TableCursor::settle_last() {
  const std::size_t last = table_->blocks().size() - 1;
  if (load_block(last) && select(last, records_.size() - 1)) accept();
}

// The last entry before `bound`, or at it when that is included.
void TableCursor::settle_reverse(ByteView bound, bool bound_included) {
  const std::size_t block_index = table_->find_block(bound);
  if (block_index == table_->blocks().size()) {
    settle_last();
    return;
  }
  if (!find_record(block_index, bound)) return;
  const bool some_qualify = bound_included ? record().first <= bound : record().first < bound;
  if (!some_qualify) {
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
  if (forward()) {
    if (records_.index() + 1 < records_.size()) {
      if (!select(block_index_, records_.index() + 1)) return;
    } else if (block_index_ + 1 < table_->blocks().size()) {
      if (!load_block(block_index_ + 1) || !select(block_index_, 0)) return;
    } else {
      end();
      return;
    }
    if (!options_.upper.empty() && record().first >= options_.upper) {
      end();
      return;
    }
  } else {
    if (records_.index() > 0) {
      if (!select(block_index_, records_.index() - 1)) return;
    } else if (block_index_ > 0) {
      if (!load_block(block_index_ - 1) || !select(block_index_, records_.size() - 1)) return;
    } else {
      end();
      return;
    }
  }
  accept();
}

void TableCursor::next_in_item() {
  if (forward()) {
    if (index_ + 1 == item_.entry_count() && page_ + 1 >= pages_.size()) return next_record();
    if (!move_to_next(index_ + 1)) return;
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

std::span<const EntryView> TableCursor::loaded_run(ByteView until) {
  if (!at_entry_ || !forward()) return {};
  std::span<const EntryView> run = item_.decoded_from(index_);
  if (run.empty()) return run;
  if (check_bound_ && (until.empty() || options_.upper < until)) until = options_.upper;
  if (until.empty() || run.back().full_key < until) return run;
  const auto end = std::partition_point(
      run.begin(), run.end(), [&](const EntryView& entry) { return entry.full_key < until; });
  return run.first(static_cast<std::size_t>(end - run.begin()));
}

// A run lies within one item, and within one page of it.
void TableCursor::skip(std::size_t count) {
  if (count == 0) return;
  index_ += count - 1;
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
    settle_forward(std::max<ByteView>(full_key, options_.lower));
  } else if (!options_.upper.empty() && full_key >= options_.upper) {
    settle_reverse(options_.upper, false);
  } else {
    settle_reverse(full_key, true);
  }
}

}  // namespace edgecase::engine
