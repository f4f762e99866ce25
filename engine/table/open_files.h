// Open readers by file number, the least recently used closed first. Thread-safe; a reader that was
// handed out lives on after it left.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "edgecase/mutex.h"

namespace edgecase::engine {

template <typename Reader>
class OpenFiles {
 public:
  // Keeps at least one, whatever the limits.
  OpenFiles(std::size_t count_max, std::uint64_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  // Null when it is not open.
  std::shared_ptr<const Reader> find(std::uint64_t number) EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found == place_of_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->reader;
  }

  // Returns the reader that is kept: another thread may have been first.
  std::shared_ptr<const Reader> insert(std::uint64_t number, std::shared_ptr<const Reader> reader,
                                       std::uint64_t bytes) EC_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<const Reader>> closed;  // destroyed after the lock is gone
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found != place_of_.end()) {
      closed.push_back(std::move(reader));
      auto kept = found->second->reader;
      lock.unlock();
      return kept;
    }
    recent_.push_front({number, reader, bytes});
    place_of_.emplace(number, recent_.begin());
    bytes_ += bytes;
    while (recent_.size() > 1 && (recent_.size() > count_max_ || bytes_ > bytes_max_)) {
      closed.push_back(std::move(recent_.back().reader));
      bytes_ -= recent_.back().bytes;
      place_of_.erase(recent_.back().number);
      recent_.pop_back();
    }
    lock.unlock();
    return reader;
  }

  void erase(std::uint64_t number) EC_EXCLUDES(mutex_) {
    std::shared_ptr<const Reader> closed;
    MutexLock lock(mutex_);
    const auto found = place_of_.find(number);
    if (found != place_of_.end()) {
      closed = std::move(found->second->reader);
      bytes_ -= found->second->bytes;
      recent_.erase(found->second);
      place_of_.erase(found);
    }
    lock.unlock();
  }

  std::uint64_t used_bytes() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return bytes_;
  }

  std::size_t count() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return recent_.size();
  }

 private:
  struct Open {
    std::uint64_t number = 0;
    std::shared_ptr<const Reader> reader;
    std::uint64_t bytes = 0;
  };

  const std::size_t count_max_;
  const std::uint64_t bytes_max_;
  mutable Mutex mutex_;
  std::list<Open> recent_ EC_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<std::uint64_t, typename std::list<Open>::iterator> place_of_
      EC_GUARDED_BY(mutex_);
  std::uint64_t bytes_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
