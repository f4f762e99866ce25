// Finds a place among sorted keys mostly without looking at them: of each it holds the eight bytes
// behind what all of them begin with, as one number. A search touches a few neighbouring cache
// lines where one among the keys themselves would miss the cache at every step. Immutable once
// built; thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "edgecase/bytes.h"

namespace edgecase::engine {

class KeyHeads {
 public:
  // All before `begin` lie before the key that was asked for, all from `end` on at or behind it;
  // between them only the keys tell.
  struct Candidates {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // `key_at(i)`, for i below `count`, are in ascending order.
  template <typename KeyAt>
  void build(std::size_t count, const KeyAt& key_at) {
    heads_.clear();
    prefix_.clear();
    if (count == 0) return;
    const ByteView first = key_at(0);
    const ByteView last = key_at(count - 1);
    const auto length = static_cast<std::ptrdiff_t>(std::min(first.size(), last.size()));
    prefix_.assign(first.begin(),
                   std::mismatch(first.begin(), first.begin() + length, last.begin()).first);
    heads_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) heads_.push_back(head_of(key_at(i)));
  }

  Candidates candidates(ByteView key) const {
    const int order = key.substr(0, prefix_.size()).compare(prefix_);
    if (order < 0) return {0, 0};
    if (order > 0) return {heads_.size(), heads_.size()};
    const std::uint64_t head = head_of(key);
    // Halves without a branch: which half it is, nobody could guess.
    const std::uint64_t* begin = heads_.data();
    for (std::size_t left = heads_.size(); left > 0;) {
      const std::size_t half = (left + 1) / 2;
      begin = begin[half - 1] < head ? begin + half : begin;
      left -= half;
    }
    const std::uint64_t* end = begin;
    const std::uint64_t* const last = heads_.data() + heads_.size();
    while (end != last && *end == head) ++end;
    return {static_cast<std::size_t>(begin - heads_.data()),
            static_cast<std::size_t>(end - heads_.data())};
  }

  // The first of `count` keys, as they were at build(), that is not before `key`; `count` for none.
  template <typename KeyAt>
  std::size_t lower_bound(ByteView key, const KeyAt& key_at) const {
    auto [begin, end] = candidates(key);
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      if (key_at(middle) < key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  // What a key and its head are known to share if their heads are equal: so many bytes of the key,
  // or all of it where it is shorter.
  std::size_t reach() const { return prefix_.size() + sizeof(std::uint64_t); }

  std::size_t memory_bytes() const {
    return heads_.capacity() * sizeof(std::uint64_t) + prefix_.capacity();
  }

 private:
  // Shorter keys are filled up with zeros: of two keys the smaller never has the larger head.
  std::uint64_t head_of(ByteView key) const {
    std::uint64_t head = 0;
    if (key.size() >= prefix_.size() + sizeof head) {
      std::memcpy(&head, key.data() + prefix_.size(), sizeof head);
      return std::endian::native == std::endian::little ? __builtin_bswap64(head) : head;
    }
    for (std::size_t i = prefix_.size(); i < prefix_.size() + sizeof head; ++i)
      head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
    return head;
  }

  Bytes prefix_;
  std::vector<std::uint64_t> heads_;
};

}  // namespace edgecase::engine
