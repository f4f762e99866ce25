// Limits how many connections each address has open. An IPv6 network of 64 bits counts as one
// address. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "auth/token_store.h"
#include "edgecase/mutex.h"

namespace edgecase::net {

class AddressLimit {
 public:
  explicit AddressLimit(std::uint32_t most) : most_(most) {}
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

  std::uint32_t most() const { return most_; }
  std::uint32_t open(const std::string& address) const EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = open_.find(auth::network_of(address));
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
      : limit_(limit), network_(auth::network_of(address)) {
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
