#include "catalog/recent_records.h"

namespace edgecase::catalog {

std::optional<Bytes> RecentRecords::find(const Bytes& name) const {
  const ReaderLock lock(mutex_);
  const auto found = records_.find(name);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t RecentRecords::changes() const {
  const ReaderLock lock(mutex_);
  return changes_;
}

void RecentRecords::note(const Bytes& name, const Bytes& record, std::uint64_t changes_before) {
  if (record.size() > kRecordMaxBytes) return;
  const WriterLock lock(mutex_);
  if (changes_ != changes_before) return;
  if (bytes_ + bytes_of(name, record) > kBytesMax) {
    records_.clear();
    bytes_ = 0;
  }
  const auto [at, is_new] = records_.try_emplace(name, record);
  if (is_new) bytes_ += bytes_of(at->first, at->second);
}

void RecentRecords::forget(const Bytes& name) {
  const WriterLock lock(mutex_);
  ++changes_;
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  bytes_ -= bytes_of(found->first, found->second);
  records_.erase(found);
}

void RecentRecords::forget_all() {
  const WriterLock lock(mutex_);
  ++changes_;
  records_.clear();
  bytes_ = 0;
}

std::size_t RecentRecords::memory_bytes() const {
  const ReaderLock lock(mutex_);
  return bytes_;
}

}  // namespace edgecase::catalog
