// ValueFileUses: how many bytes a table's items take of each value file they point into. In a store
// of terabytes a table points into tens of thousands of files, and the list of each table is kept.
// As differences they take two to six bytes a file.
//
//   For each: how far its number is from the one before (modulo 2^64), then its bytes, as varint64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/coding.h"
#include "base/entry.h"

namespace edgecase::engine {

class ValueFileUses {
 public:
  class Iterator;

  ValueFileUses() = default;
  ValueFileUses(std::initializer_list<ValueFileUse> uses) {
    for (const ValueFileUse& use : uses) push_back(use);
  }

  // In ascending order of numbers they take least.
  void push_back(const ValueFileUse& use) {
    append_varint64(encoded_, use.file_number - last_number_);
    append_varint64(encoded_, use.bytes);
    last_number_ = use.file_number;
    total_bytes_ += use.bytes;
    ++size_;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::uint64_t total_bytes() const { return total_bytes_; }
  std::uint64_t memory_bytes() const { return encoded_.capacity(); }  // beside itself
  Iterator begin() const;
  Iterator end() const;

  // How many there were of those that `is_gone` says.
  template <typename Predicate>
  std::size_t erase_if(const Predicate& is_gone);

  friend bool operator==(const ValueFileUses& a, const ValueFileUses& b) {
    return a.encoded_ == b.encoded_;
  }

 private:
  Bytes encoded_;
  std::uint64_t last_number_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::size_t size_ = 0;
};

class ValueFileUses::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = ValueFileUse;
  using difference_type = std::ptrdiff_t;
  using pointer = const ValueFileUse*;
  using reference = const ValueFileUse&;

  // Views hold until it moves.
  reference operator*() const { return use_; }
  pointer operator->() const { return &use_; }
  Iterator& operator++() {
    take();
    return *this;
  }
  void operator++(int) { take(); }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

 private:
  friend class ValueFileUses;
  Iterator(ByteView encoded, std::size_t left) : rest_(encoded), left_(left) {
    if (left_ > 0) decode();
  }

  void take() {
    if (--left_ > 0) decode();
  }
  void decode() {
    std::uint64_t distance = 0;
    take_varint64(rest_, distance);
    take_varint64(rest_, use_.bytes);
    use_.file_number += distance;
  }

  ByteView rest_;
  std::size_t left_;  // with the one it stands on
  ValueFileUse use_;
};

inline ValueFileUses::Iterator ValueFileUses::begin() const {
  return {encoded_, size_};
}

inline ValueFileUses::Iterator ValueFileUses::end() const {
  return {{}, 0};
}

template <typename Predicate>
std::size_t ValueFileUses::erase_if(const Predicate& is_gone) {
  ValueFileUses kept;
  for (const ValueFileUse& use : *this)
    if (!is_gone(use)) kept.push_back(use);
  const std::size_t gone = size_ - kept.size_;
  *this = std::move(kept);
  return gone;
}

}  // namespace edgecase::engine
