// Cursors over runs, for one scan after another: what a short scan reads takes less time than
// getting memory for a cursor over each run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "edgecase/mutex.h"
#include "table/table_cursor.h"

namespace edgecase::engine {

// Keeps cursors that nobody uses. Thread-safe.
class CursorPool {
 public:
  using Cursors = std::vector<std::unique_ptr<TableCursor>>;

  // The cursors of an earlier scan, closed; or none.
  Cursors take() EC_EXCLUDES(mutex_);
  void give_back(Cursors cursors) EC_EXCLUDES(mutex_);

 private:
  // How many scans at once find cursors, and how many each. A cursor takes kKeptBytes at most
  // (TableCursor), and what it is itself.
  static constexpr std::size_t kScansMax = 2;
  static constexpr std::size_t kCursorsMax = 64;

  Mutex mutex_;
  std::vector<Cursors> free_ EC_GUARDED_BY(mutex_);
};

// The cursors of one scan. Owned by one thread.
class LentCursors {
 public:
  LentCursors(std::shared_ptr<TableFiles> files, std::shared_ptr<CursorPool> pool);
  LentCursors(const LentCursors&) = delete;
  LentCursors& operator=(const LentCursors&) = delete;
  ~LentCursors();

  // A cursor that lives as long as this; what TableCursor::open() wants does, too.
  TableCursor& open(std::span<const std::shared_ptr<const TableMetadata>> tables,
                    const TableCursorOptions& options);

 private:
  const std::shared_ptr<TableFiles> files_;
  const std::shared_ptr<CursorPool> pool_;
  CursorPool::Cursors cursors_;
  std::size_t used_ = 0;
};

}  // namespace edgecase::engine
