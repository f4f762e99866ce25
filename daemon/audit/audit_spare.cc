// Records of reads and changes while the log's drive takes no more: spare_pages.h.
#include <algorithm>
#include <utility>

#include "audit/audit_log.h"

namespace edgecase::audit {

// What an earlier run left there: the log takes it in before all else.
Status AuditLog::load_spare() {
  if (options_.spare_directory.empty()) return ok();
  Result<SparePages> opened =
      SparePages::open(parts_.file_system, options_.spare_directory, parts_.engine.sealer());
  if (opened.status().code() == StatusCode::NotFound) {
    make_spare();
    return ok();
  }
  if (!opened.ok()) return opened.status();
  const MutexLock file_lock(spare_mutex_);
  spare_.emplace(std::move(opened).value());
  if (spare_->dropped_bytes() > 0 && parts_.logger != nullptr) {
    parts_.logger->warning(
        "audit", std::string(kSpareFileName) + ": " + std::to_string(spare_->dropped_bytes()) +
                     " bytes of it are no whole page, and are overwritten: one that nobody was "
                     "told was durable, or they were damaged, or are not of this store");
  }
  take_in_spared(*spare_);
  spare_->forget_found();
  return ok();
}

void AuditLog::take_in_spared(SparePages& spare) {
  std::uint64_t missing_before = 0;
  {
    const MutexLock lock(mutex_);
    for (const Record& record : spare.found()) {
      const std::uint64_t next = last_sequence() + 1;
      if (record.sequence < next) continue;
      if (record.sequence > next) {
        missing_before = record.sequence;
        break;
      }
      Draft draft = draft_of(record);
      draft.time_ns = record.time_ns;
      draft.trust = record.trust;
      enqueue(std::move(draft));
      spared_sequence_ = record.sequence;
    }
    settled_sequence_ = std::max(durable_.sequence, spared_sequence_);
  }
  if (missing_before != 0)
    distrust("records before " + std::to_string(missing_before) + " are missing");
}

// Without room for it, the next minute tries again.
void AuditLog::make_spare() {
  if (mode() != Mode::Strict || options_.spare_directory.empty()) return;
  const MutexLock file_lock(spare_mutex_);
  if (spare_) return;
  Result<SparePages> made =
      SparePages::create(parts_.file_system, options_.spare_directory, parts_.engine.sealer());
  if (made.ok()) spare_.emplace(std::move(made).value());
}

// A page of what waits and is not there yet; empty: all up to `sequence` is durable.
AuditLog::SparedPage AuditLog::next_spared(std::uint64_t sequence) {
  const MutexLock lock(mutex_);
  SparedPage page;
  const std::uint64_t before = std::max(durable_.sequence, spared_sequence_);
  if (before >= sequence) return page;
  std::vector<const Draft*> drafts;
  std::size_t bytes = 0;
  page.last = before;
  while (page.last < last_sequence() && drafts.size() < kPageRecordsMax && bytes < kPageBytesMax) {
    drafts.push_back(&queue_[page.last - durable_.sequence].draft);
    bytes += drafts.back()->memory_bytes();
    ++page.last;
  }
  page.body = encode_page(drafts);
  page.is_first = durable_.sequence >= spared_sequence_;
  return page;
}

bool AuditLog::spare_until(std::uint64_t sequence) {
  const MutexLock file_lock(spare_mutex_);
  if (!spare_) return false;
  for (;;) {
    const SparedPage page = next_spared(sequence);
    if (page.body.empty()) return true;
    // What is in it by now is in the log.
    if (page.is_first && !spare_->clear().ok()) return false;
    if (!spare_->append(page.last, page.body).ok()) return false;
    const MutexLock lock(mutex_);
    spared_sequence_ = page.last;
    settled_sequence_.store(std::max(durable_.sequence, spared_sequence_),
                            std::memory_order_release);
  }
}

void AuditLog::clear_spare() {
  const MutexLock file_lock(spare_mutex_);
  if (!spare_ || spare_->empty()) return;
  {
    const MutexLock lock(mutex_);
    if (durable_.sequence < spared_sequence_) return;
  }
  if (const Status cleared = spare_->clear(); !cleared.ok()) report("clear the spare of", cleared);
}

}  // namespace edgecase::audit
