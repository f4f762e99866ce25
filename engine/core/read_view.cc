#include "core/read_view.h"

#include <algorithm>
#include <utility>

#include "base/range_deletes.h"

namespace edgecase::engine {

Views::Views(const VersionSet& versions, std::shared_ptr<Memtable> active) : versions_(versions) {
  auto view = std::make_shared<ReadView>();
  view->active = std::move(active);
  view->version = versions_.current();
  MutexLock lock(mutex_);
  set_view(std::move(view));
}

void Views::set_view(std::shared_ptr<const ReadView> view) {
  immutables_.store(view->immutables.size(), std::memory_order_release);
  view_ = std::move(view);
}

VisibleView Views::now() const {
  MutexLock lock(mutex_);
  return {view_, visible(), nullptr};
}

void Views::rotate(std::shared_ptr<Memtable> fresh, SequenceNumber last_sequence) {
  MutexLock lock(mutex_);
  show(last_sequence);
  auto view = std::make_shared<ReadView>(*view_);
  view->immutables.insert(view->immutables.begin(), view->active);
  view->active = std::move(fresh);
  set_view(std::move(view));
}

std::uint64_t Views::immutable_bytes() const {
  const std::shared_ptr<const ReadView> view = now().view;
  std::uint64_t bytes = 0;
  for (const auto& memtable : view->immutables) bytes += memtable->memory_bytes();
  return bytes;
}

std::shared_ptr<Memtable> Views::oldest_immutable() const {
  MutexLock lock(mutex_);
  return view_->immutables.empty() ? nullptr : view_->immutables.back();
}

void Views::retire_oldest() {
  MutexLock lock(mutex_);
  auto view = std::make_shared<ReadView>(*view_);
  view->immutables.back()->set_written_out();
  retired_.push_back(view->immutables.back());
  std::erase_if(retired_, [](const auto& retired) { return retired.expired(); });
  view->immutables.pop_back();
  view->version = versions_.current();
  set_view(std::move(view));
}

void Views::publish() {
  MutexLock lock(mutex_);
  auto view = std::make_shared<ReadView>(*view_);
  view->version = versions_.current();
  set_view(std::move(view));
}

std::vector<std::shared_ptr<const Memtable>> Views::kept_memtables() const {
  std::vector<std::shared_ptr<const Memtable>> kept;
  MutexLock lock(mutex_);
  for (const auto& retired : retired_)
    if (auto memtable = retired.lock()) kept.push_back(std::move(memtable));
  return kept;
}

std::uint64_t Views::kept_memtable_bytes() const {
  // Whoever lets go of one last frees it: not under the lock.
  std::uint64_t bytes = 0;
  for (const auto& memtable : kept_memtables()) bytes += memtable->memory_bytes();
  return bytes;
}

void Views::hide_for_good(const RangeDelete& erased) {
  MutexLock lock(mutex_);
  erased_log_.add(erased);
  // The same ranges may be erased again and again while they are pending.
  if (erased_log_.list().size() >= 2 * erased_log_min_) {
    erased_log_.set(RangeDeletes(erased_log_.list()).newest());
    erased_log_min_ = std::max(kErasedLogMin, erased_log_.list().size());
  }
  has_erased_.store(true, std::memory_order_release);
}

void Views::forget_erased(SequenceNumber through) {
  MutexLock lock(mutex_);
  std::vector<RangeDelete> left = erased_log_.list();
  std::erase_if(left, [&](const RangeDelete& each) { return each.sequence <= through; });
  has_erased_.store(!left.empty(), std::memory_order_release);
  erased_log_.set(std::move(left));
}

std::shared_ptr<const RangeDeleteLayers> Views::erased() const {
  MutexLock lock(mutex_);
  return erased_log_.layers();
}

std::vector<RangeDelete> Views::erased_ranges() const {
  MutexLock lock(mutex_);
  return erased_log_.list();
}

void Views::add_to(Stats& stats) const {
  const VisibleView at = now();
  stats.last_sequence = at.visible;
  stats.immutable_memtables = at.view->immutables.size();
  stats.memtable_bytes = at.view->active->memory_bytes();
  for (const auto& memtable : at.view->immutables) stats.memtable_bytes += memtable->memory_bytes();
  stats.kept_memtable_bytes = kept_memtable_bytes();
}

}  // namespace edgecase::engine
