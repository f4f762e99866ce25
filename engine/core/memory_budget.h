// Shares of memory_limit_bytes: memtables, of which there are three at most, and the cache; the
// rest is for the log's mapping and for what a flush sorts and gathers. Others may set some of the
// limit aside. Thread-safe; holds no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "edgecase/options.h"
#include "version/version_set.h"

namespace edgecase::engine {

class MemoryBudget {
 public:
  // Both outlive it.
  MemoryBudget(const Options& options, const VersionSet& versions)
      : options_(options), versions_(versions) {}

  // What is not set aside, nor taken by the lists of files and rules.
  std::uint64_t bytes() const {
    const std::uint64_t limit = options_.memory_limit_bytes;
    const std::uint64_t others = set_aside_bytes() + versions_.memory_bytes();
    return std::max(limit - std::min(limit, others), kMemoryLimitMinBytes);
  }
  std::uint64_t memtable_bytes() const {
    return options_.memtable_bytes != 0 ? options_.memtable_bytes : bytes() / kMemtableShare;
  }
  std::uint64_t cache_bytes() const { return bytes() / kCacheShare; }
  // Memtables that snapshots and iterators alone keep: more is short of memory.
  std::uint64_t kept_bytes_max() const { return options_.memory_limit_bytes / kKeptShare; }

  // Engine::set_aside().
  void set_aside(std::uint64_t before, std::uint64_t now) {
    set_aside_bytes_.fetch_add(now - before, std::memory_order_relaxed);
  }
  std::uint64_t set_aside_bytes() const { return set_aside_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kMemtableShare = 8;
  static constexpr std::uint64_t kCacheShare = 5;
  static constexpr std::uint64_t kKeptShare = 8;

  const Options& options_;
  const VersionSet& versions_;
  std::atomic<std::uint64_t> set_aside_bytes_{0};
};

}  // namespace edgecase::engine
