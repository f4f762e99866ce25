// Shares of many connections: of a number of bytes (ByteBudget), and of connections by address
// (AddressLimit). Both are thread-safe; a share is one thread's at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "edgecase/mutex.h"
#include "wire/authority.h"

namespace edgecase::net {

// A number of bytes that many holders share, and one holder's part of it.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  bool take(std::uint64_t bytes) {
    std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::uint64_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> used_bytes_{0};
};

class BudgetShare {
 public:
  explicit BudgetShare(ByteBudget& budget) : budget_(&budget) {}
  BudgetShare(BudgetShare&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetShare& operator=(BudgetShare&& other) noexcept {
    release();
    budget_ = other.budget_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~BudgetShare() { release(); }

  bool grow(std::uint64_t bytes) {
    if (!budget_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  void shrink(std::uint64_t bytes) {
    budget_->give_back(bytes);
    bytes_ -= bytes;
  }
  void release() { shrink(bytes_); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  ByteBudget* budget_;
  std::uint64_t bytes_ = 0;
};

// Limits how many connections each address has open. An IPv6 network of 64 bits counts as one
// address. Thread-safe.
class AddressLimit {
 public:
  explicit AddressLimit(std::uint32_t most) : most_(most) {}
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

  std::uint32_t most() const { return most_; }
  std::uint32_t open(const std::string& address) const EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = open_.find(wire::network_of(address));
    return found == open_.end() ? 0 : found->second;
  }

 private:
  friend class AddressShare;
  void enter(const std::string& network) EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++open_[network];
  }
  void leave(const std::string& network) EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = open_.find(network);
    if (found != open_.end() && --found->second == 0) open_.erase(found);
  }

  const std::uint32_t most_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> open_ EC_GUARDED_BY(mutex_);
};

// One connection of an address, for as long as it lives. The limit must outlive it.
class AddressShare {
 public:
  AddressShare(AddressLimit& limit, const std::string& address)
      : limit_(limit), network_(wire::network_of(address)) {
    limit_.enter(network_);
  }
  ~AddressShare() { limit_.leave(network_); }
  AddressShare(const AddressShare&) = delete;
  AddressShare& operator=(const AddressShare&) = delete;

  const std::string& network() const { return network_; }

 private:
  AddressLimit& limit_;
  const std::string network_;
};

}  // namespace edgecase::net
