// Finds table rows by name: an open-addressing hash table of row numbers, 8 bytes a slot. It does
// not hold the names: the caller, who does, tells whether a row is the one it looks for. Rows are
// never removed. Thread-compatible.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace edgecase::catalog {

inline constexpr std::uint32_t kNoRow = 0xffffffff;

// `seed` is random, so that nobody outside can choose names that collide. `parent` is the row or id
// that the name belongs to.
inline std::uint32_t hash_name(std::uint64_t seed, std::uint32_t parent, std::string_view name) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  const auto mix = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * kMultiplier;
    return state ^ state >> 29;
  };
  std::uint64_t state = mix(seed, std::uint64_t{parent} << 32 | name.size());
  const char* data = name.data();
  std::size_t left = name.size();
  for (; left >= 8; data += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    state = mix(state, word);
  }
  std::uint64_t tail = 0;
  for (std::size_t i = 0; i < left; ++i) {
    tail = tail << 8 | static_cast<unsigned char>(data[i]);
  }
  state = mix(state, tail);
  return static_cast<std::uint32_t>(state >> 32);
}

class NameIndex {
 public:
  NameIndex() : slots_(kFirstCapacity) {}

  // The row for which `matches(row)` holds, among those inserted with `hash`; kNoRow if none.
  template <typename Matches>
  std::uint32_t find(std::uint32_t hash, const Matches& matches) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask; slots_[i].row != kNoRow; i = (i + 1) & mask) {
      if (slots_[i].hash == hash && matches(slots_[i].row)) return slots_[i].row;
    }
    return kNoRow;
  }

  // With so many rows more.
  std::uint64_t memory_bytes(std::size_t more = 0) const {
    std::uint64_t slots = slots_.size();
    while ((count_ + more) * 2 > slots) slots *= 2;
    return slots * sizeof(Slot);
  }

  // `row` must not be there yet.
  void insert(std::uint32_t hash, std::uint32_t row) {
    if (++count_ * 2 > slots_.size()) grow();
    place({hash, row});
  }

 private:
  static constexpr std::size_t kFirstCapacity = 64;  // a power of two, always at least half empty

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t row = kNoRow;
  };

  void place(Slot slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = slot.hash & mask;
    while (slots_[i].row != kNoRow) i = (i + 1) & mask;
    slots_[i] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.row != kNoRow) place(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace edgecase::catalog
