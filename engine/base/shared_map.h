// A map whose copies share what they have in common: entries lie in the order of their numbers in
// pieces of up to kPieceEntries, and whoever changes an entry copies its piece alone, once. So a
// store of many files may have a version of its list for each edit (path copying: Driscoll,
// Sarnak, Sleator, Tarjan, "Making data structures persistent", 1989; with one level of pieces).
//
// Threads: as of a standard container. Copies are independent of each other, and several threads
// may copy one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::engine {

template <typename Value>
class SharedMap {
 public:
  static constexpr std::size_t kPieceEntries = 64;
  using Number = std::uint64_t;
  using Entry = std::pair<Number, Value>;

  class Iterator;

  SharedMap() = default;
  SharedMap(const SharedMap& other) : pieces_(other.pieces_), size_(other.size_) {
    other.owner_.store(new_owner(), std::memory_order_relaxed);
  }
  SharedMap(SharedMap&& other) noexcept
      : pieces_(std::move(other.pieces_)),
        size_(std::exchange(other.size_, 0)),
        owner_(other.owner_.exchange(new_owner(), std::memory_order_relaxed)) {
    other.pieces_.clear();
  }
  // What it takes over it copies before it changes it.
  SharedMap& operator=(SharedMap other) noexcept {
    pieces_.swap(other.pieces_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SharedMap() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // About as much, what it shares with others included.
  std::uint64_t memory_bytes() const { return size_ * sizeof(Entry); }
  Iterator begin() const { return {pieces_.data(), 0}; }
  Iterator end() const { return {pieces_.data() + pieces_.size(), 0}; }
  Iterator find(Number number) const {
    const Place place = place_of(number);
    return place.is_there ? Iterator{pieces_.data() + place.piece, place.entry} : end();
  }
  bool contains(Number number) const { return place_of(number).is_there; }
  // The value of a number that is there.
  const Value& at(Number number) const {
    const Place place = place_of(number);
    EC_CHECK(place.is_there);
    return entries(place.piece)[place.entry].second;
  }

  // To be changed, until the next call of anything; null if there is none.
  Value* change(Number number) {
    const Place place = place_of(number);
    return place.is_there ? &own(place.piece)[place.entry].second : nullptr;
  }
  // False, and nothing is done, if there is one.
  bool emplace(Number number, Value value) {
    Place place = place_of(number);
    if (place.is_there) return false;
    ++size_;
    const bool is_behind_all = pieces_.empty() || (place.piece + 1 == pieces_.size() &&
                                                   place.entry == entries(place.piece).size());
    if (is_behind_all && (pieces_.empty() || place.entry == kPieceEntries)) {
      pieces_.push_back({number, new_piece({{number, std::move(value)}})});
      return true;
    }
    if (entries(place.piece).size() == kPieceEntries) place = split(place);
    Entries& all = own(place.piece);
    all.emplace(all.begin() + static_cast<std::ptrdiff_t>(place.entry), number, std::move(value));
    pieces_[place.piece].first = all.front().first;
    return true;
  }
  // How many there were: none or one.
  std::size_t erase(Number number) {
    const Place place = place_of(number);
    if (!place.is_there) return 0;
    --size_;
    Entries& all = own(place.piece);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(place.entry));
    if (all.empty()) {
      pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(place.piece));
      return 1;
    }
    join(place.piece);
    if (place.piece > 0) join(place.piece - 1);
    return 1;
  }
  void clear() {
    pieces_.clear();
    size_ = 0;
  }

  friend bool operator==(const SharedMap& a, const SharedMap& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  using Entries = std::vector<Entry>;
  struct Piece {
    std::uint64_t owner = 0;  // the map that may change it
    Entries entries;
  };
  struct Slot {
    Number first = 0;  // or less; more than the last of the piece before
    std::shared_ptr<Piece> piece;
  };
  // Where a number is, or would come.
  struct Place {
    std::size_t piece = 0;
    std::size_t entry = 0;
    bool is_there = false;
  };

  static std::uint64_t new_owner() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  const Entries& entries(std::size_t piece) const { return pieces_[piece].piece->entries; }

  std::shared_ptr<Piece> new_piece(Entries entries) const {
    return std::make_shared<Piece>(
        Piece{owner_.load(std::memory_order_relaxed), std::move(entries)});
  }

  // A copy of it, unless it was made by this map since this was copied.
  Entries& own(std::size_t piece) {
    std::shared_ptr<Piece>& shared = pieces_[piece].piece;
    if (shared->owner != owner_.load(std::memory_order_relaxed))
      shared = new_piece(shared->entries);
    return shared->entries;
  }

  Place place_of(Number number) const {
    auto slot = std::partition_point(pieces_.begin(), pieces_.end(),
                                     [&](const Slot& each) { return each.first <= number; });
    if (slot == pieces_.begin()) return {};
    --slot;
    const Entries& all = slot->piece->entries;
    const auto entry = std::partition_point(all.begin(), all.end(),
                                            [&](const Entry& each) { return each.first < number; });
    return {static_cast<std::size_t>(slot - pieces_.begin()),
            static_cast<std::size_t>(entry - all.begin()),
            entry != all.end() && entry->first == number};
  }

  // In halves; answers where the place is then.
  Place split(Place place) {
    Entries& all = own(place.piece);
    const std::size_t half = all.size() / 2;
    Entries rest(std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(half)),
                 std::make_move_iterator(all.end()));
    all.resize(half);
    const Number first = rest.front().first;
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(place.piece) + 1,
                   {first, new_piece(std::move(rest))});
    return place.entry <= half ? place : Place{place.piece + 1, place.entry - half};
  }

  // With the one behind it, if both are small.
  void join(std::size_t piece) {
    if (piece + 1 >= pieces_.size()) return;
    const Entries& next = entries(piece + 1);
    if (entries(piece).size() + next.size() > kPieceEntries / 2) return;
    Entries& all = own(piece);
    all.insert(all.end(), next.begin(), next.end());
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(piece) + 1);
  }

  std::vector<Slot> pieces_;  // none is empty
  std::size_t size_ = 0;
  // Another one for each copy that is made of it: what both have neither changes.
  mutable std::atomic<std::uint64_t> owner_{new_owner()};
};

template <typename Value>
class SharedMap<Value>::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Entry;
  using difference_type = std::ptrdiff_t;
  using pointer = const Entry*;
  using reference = const Entry&;

  Iterator() = default;

  reference operator*() const { return slot_->piece->entries[entry_]; }
  pointer operator->() const { return &**this; }
  Iterator& operator++() {
    if (++entry_ == slot_->piece->entries.size()) *this = {slot_ + 1, 0};
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  friend class SharedMap;
  Iterator(const Slot* slot, std::size_t entry) : slot_(slot), entry_(entry) {}

  const Slot* slot_ = nullptr;
  std::size_t entry_ = 0;
};

}  // namespace edgecase::engine
