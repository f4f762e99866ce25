#include "table/cursor_pool.h"

#include <utility>

namespace edgecase::engine {

CursorPool::Cursors CursorPool::take() {
  MutexLock lock(mutex_);
  if (free_.empty()) return {};
  Cursors cursors = std::move(free_.back());
  free_.pop_back();
  return cursors;
}

void CursorPool::give_back(Cursors cursors) {
  if (cursors.size() > kCursorsMax) cursors.resize(kCursorsMax);
  MutexLock lock(mutex_);
  // Cursors that are not kept are destroyed after the lock is gone.
  if (free_.size() < kScansMax) free_.push_back(std::move(cursors));
  lock.unlock();
}

LentCursors::LentCursors(std::shared_ptr<TableFiles> files, std::shared_ptr<CursorPool> pool)
    : files_(std::move(files)), pool_(std::move(pool)), cursors_(pool_->take()) {}

LentCursors::~LentCursors() {
  if (used_ > 1) files_->counters().more_runs.fetch_add(used_ - 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < used_; ++i) cursors_[i]->close();
  pool_->give_back(std::move(cursors_));
}

TableCursor& LentCursors::open(std::span<const std::shared_ptr<const TableMetadata>> tables,
                               const TableCursorOptions& options) {
  if (used_ == cursors_.size()) cursors_.push_back(std::make_unique<TableCursor>());
  TableCursor& cursor = *cursors_[used_++];
  cursor.open(*files_, tables, options);
  return cursor;
}

}  // namespace edgecase::engine
