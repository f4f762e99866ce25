#include "table/table_cursor.h"

#include <algorithm>

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
  if (block_ && block_index == block_index_) return true;
  item_.close();
  auto block = files_->block(*table_, block_index, options_.fill_cache);
  if (!block.ok()) return fail(block.status());
  block_ = *std::move(block);
  block_index_ = block_index;
  record_index_ = SIZE_MAX;
  return true;
}

bool TableCursor::select(std::size_t block_index, std::size_t record_index) {
  if (!load_block(block_index)) return false;
  at_entry_ = false;
  if (record_index == record_index_) return true;
  item_.close();
  record_index_ = record_index;
  record_ = block_->record(record_index);
  check_bound_ = forward() ? !options_.upper.empty() && record_.last >= options_.upper
                           : record_.first < options_.lower;
  return true;
}

bool TableCursor::open_item() {
  if (item_.is_open()) return true;
  auto item = files_->item(record_, options_.fill_cache, forward() ? &ahead_ : nullptr);
  if (!item.ok()) return fail(item.status());
  if (!item_.open(record_, *std::move(item))) return fail(files_->disagreement(record_));
  return true;
}

bool TableCursor::move_to(std::size_t index) {
  if (index >= item_.entry_count() || !item_.move_to(index))
    return fail(files_->disagreement(record_));
  index_ = index;
  at_entry_ = true;
  return true;
}

// Where in the item the first entry at or after `full_key` lies; there is one.
bool TableCursor::search(ByteView full_key, std::size_t& index) {
  if (!open_item()) return false;
  if (!item_.lower_bound(full_key, index) || index >= item_.entry_count())
    return fail(files_->disagreement(record_));
  return true;
}

ByteView TableCursor::full_key() const {
  if (at_entry_) return item_.entry().full_key;
  return forward() ? record_.first : record_.last;
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
  if (!load_block(block_index)) return;
  const std::size_t record_index = block_->find(target);
  if (record_index == block_->size()) {
    fail(corruption_at(table_->file().path(), table_->blocks()[block_index].offset,
                       "block ends before the key its index says"));
    return;
  }
  if (!select(block_index, record_index)) return;
  if (record_.first < target) {
    std::size_t index = 0;
    if (!search(target, index) || !move_to(index)) return;
  }
  accept();
}

void TableCursor::settle_last() {
  const std::size_t last = table_->blocks().size() - 1;
  if (load_block(last) && select(last, block_->size() - 1)) accept();
}

// The last entry before `bound`, or at it when that is included.
void TableCursor::settle_reverse(ByteView bound, bool bound_included) {
  const std::size_t block_index = table_->find_block(bound);
  if (block_index == table_->blocks().size()) {
    settle_last();
    return;
  }
  if (!load_block(block_index)) return;
  const std::size_t record_index = block_->find(bound);
  if (record_index == block_->size()) {
    fail(corruption_at(table_->file().path(), table_->blocks()[block_index].offset,
                       "block ends before the key its index says"));
    return;
  }
  if (!select(block_index, record_index)) return;
  const bool some_qualify = bound_included ? record_.first <= bound : record_.first < bound;
  if (!some_qualify) {
    next_record();
    return;
  }
  if (bound_included && record_.last == bound) {
    accept();
    return;
  }
  std::size_t index = 0;
  if (!search(bound, index) || !move_to(index)) return;
  if (!bound_included || item_.entry().full_key != bound) {
    if (index == 0) {
      fail(files_->disagreement(record_));
      return;
    }
    if (!move_to(index - 1)) return;
  }
  accept();
}

void TableCursor::next_record() {
  if (forward()) {
    if (record_index_ + 1 < block_->size()) {
      if (!select(block_index_, record_index_ + 1)) return;
    } else if (block_index_ + 1 < table_->blocks().size()) {
      if (!load_block(block_index_ + 1) || !select(block_index_, 0)) return;
    } else {
      end();
      return;
    }
    if (!options_.upper.empty() && record_.first >= options_.upper) {
      end();
      return;
    }
  } else {
    if (record_index_ > 0) {
      if (!select(block_index_, record_index_ - 1)) return;
    } else if (block_index_ > 0) {
      if (!load_block(block_index_ - 1) || !select(block_index_, block_->size() - 1)) return;
    } else {
      end();
      return;
    }
  }
  accept();
}

void TableCursor::next_in_item() {
  if (forward()) {
    if (index_ + 1 == item_.entry_count()) return next_record();
    if (!move_to(index_ + 1)) return;
  } else {
    if (index_ == 0) return next_record();
    if (!move_to(index_ - 1)) return;
  }
  if (check_bound_) accept();
}

void TableCursor::next() {
  if (!valid_) return;
  if (!at_entry_) {
    if (record_.entries == 1) return next_record();
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

// A run lies within one item.
void TableCursor::skip(std::size_t count) {
  if (count == 0) return;
  index_ += count - 1;
  next_in_item();
}

Status TableCursor::load() {
  if (at_entry_) return ok();
  if (!open_item() || !move_to(forward() ? 0 : item_.entry_count() - 1)) return status_;
  if (item_.entry().full_key != (forward() ? record_.first : record_.last))
    fail(files_->disagreement(record_));
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
