// Keeps names, one behind the other. They are never moved: a process that takes in many would
// otherwise have them between all that it takes and gives back besides, and could return none of
// that. A name that is wiped leaves its room empty. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace edgecase::catalog {

class NameStore {
 public:
  // The view holds as long as the store.
  std::string_view keep(std::string_view name) {
    if (left_ < name.size()) {
      chunks_.emplace_back(new char[kChunkBytes]);
      next_ = chunks_.back().get();
      left_ = kChunkBytes;
    }
    char* const kept = next_;
    if (!name.empty()) std::memcpy(kept, name.data(), name.size());
    next_ += name.size();
    left_ -= name.size();
    used_bytes_ += name.size();
    return {kept, name.size()};
  }
  // Wipes a name that was kept: nothing of it is left in memory.
  static void wipe(std::string_view kept) {
    if (!kept.empty()) std::memset(const_cast<char*>(kept.data()), 0, kept.size());
  }
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  // Large enough that allocators map each chunk for itself; unused parts take no memory.
  static constexpr std::size_t kChunkBytes = 4u << 20;

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace edgecase::catalog
