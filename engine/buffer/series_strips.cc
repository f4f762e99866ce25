#include "buffer/memtable.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/engine.h"
#include "edgecase/status.h"

namespace edgecase::engine {

char* Arena::allocate(std::size_t size) {
  size = rounded(size);
  if (size > free_bytes_) {
    // The rest of the current block stays in use: a large entry between small ones wastes nothing.
    if (size > next_block_bytes_ / kLargeFraction) return new_block(size);
    free_bytes_ = next_block_bytes_;
    free_ = new_block(free_bytes_);
    next_block_bytes_ = std::min(2 * next_block_bytes_, kBlockMaxBytes);
  }
  char* taken = free_;
  free_ += size;
  free_bytes_ -= size;
  return taken;
}

void Arena::take_back(std::size_t size) {
  EC_CHECK(size <= kSmallMaxBytes);
  free_ -= rounded(size);
  free_bytes_ += rounded(size);
}

char* Arena::new_block(std::size_t size) {
  blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
  used_.fetch_add(size, std::memory_order_relaxed);
  return blocks_.back().get();
}

namespace {

constexpr std::uint32_t kChunkMinEntries = 4;
constexpr std::uint32_t kChunkMaxEntries = 512;
constexpr std::size_t kTableMinSlots = 64;
constexpr std::size_t kPrefixMaxBytes = 16;  // what two words of 8 bytes cover

// A value that is no tagged number lies in the arena: its size, then its bytes.
std::uint64_t keep_value(Arena& arena, ByteView value, ByteView end) {
  const std::uint64_t size = value.size() + end.size();
  char* memory = arena.allocate(sizeof size + size);
  std::memcpy(memory, &size, sizeof size);
  char* const bytes = memory + sizeof size;
  if (!value.empty()) std::memcpy(bytes, value.data(), value.size());
  if (!end.empty()) std::memcpy(bytes + value.size(), end.data(), end.size());
  return reinterpret_cast<std::uint64_t>(memory);
}

SeriesClass class_of(const BatchEntry& entry) {
  const ByteView value = entry.value;
  if (entry.kind == EntryKind::Delete) return SeriesClass::Delete;
  if (!entry.end.empty()) return SeriesClass::Other;
  if (value.size() == kTaggedBytes && value[0] == kFloatTag) return SeriesClass::Float;
  if (value.size() == kTaggedBytes && value[0] == kIntegerTag) return SeriesClass::Integer;
  return SeriesClass::Other;
}

std::uint64_t word_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

StripPrefix words_of(ByteView prefix) {
  if (prefix.size() < 8) {
    StripPrefix words;
    std::memcpy(&words.first_word, prefix.data(), prefix.size());
    words.size = prefix.size();
    return words;
  }
  return {word_at(prefix.data()), word_at(prefix.data() + prefix.size() - 8), prefix.size()};
}

// The same of a full key's prefix that lies in two parts. The usual one is not put together first:
// reading words from bytes that were just written one by one stalls.
StripPrefix words_of(NamespaceId namespace_id, ByteView key_prefix) {
  if constexpr (std::endian::native == std::endian::little) {
    if (key_prefix.size() == 8) {
      const std::uint64_t last = word_at(key_prefix.data());
      return {__builtin_bswap32(namespace_id) | last << 32, last, kNamespacePrefixBytes + 8};
    }
  }
  char bytes[kPrefixMaxBytes];
  std::size_t size = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes[size++] = static_cast<char>(namespace_id >> shift);
  }
  std::memcpy(bytes + size, key_prefix.data(), key_prefix.size());
  return words_of(ByteView(bytes, size + key_prefix.size()));
}

std::uint64_t hash_of(const StripPrefix& words) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  return mix64(words.first_word * kOdd + words.last_word);
}

// Where the writer will write next is mostly known before it gets there, and mostly not in the
// cache of the processor that the commit's thread runs on.
void prefetch_for_writing(const Strip* strip) {
  if (strip == nullptr) return;
  const StripChunk* chunk = strip->lanes[0].last.load(std::memory_order_relaxed);
  if (chunk == nullptr) return;
  __builtin_prefetch(chunk, 1);
  __builtin_prefetch(strip->lanes[0].place, 1);
  __builtin_prefetch(strip->successor, 1);
}

// The usual entry: a number, behind the last of the strip that is expected, where its chunk has
// room. False: it is another one, nothing was changed.
bool append_number(Strip& strip, const BatchEntry& number, SequenceNumber sequence) {
  if (number.kind != EntryKind::Put || !number.end.empty()) return false;
  if (number.key.size() != 8 + kOrdinalKeyBytes || number.value.size() != kTaggedBytes)
    return false;
  const char* const key = number.key.data();
  const char* const value = number.value.data();
  if (strip.words != words_of(number.namespace_id, ByteView(key, 8))) return false;
  StripLane& lane = strip.lanes[0];
  const std::uint64_t ordinal = load_ordinal(key + 8);
  const bool is_float = value[0] == kFloatTag;
  const bool is_number = is_float || value[0] == kIntegerTag;
  if (!is_number || lane.place == lane.end || ordinal <= lane.ordinal_max) return false;
  prefetch_for_writing(strip.successor);
  SeriesEntry& entry = *lane.place++;
  const auto value_class = is_float ? SeriesClass::Float : SeriesClass::Integer;
  entry.ordinal = ordinal;
  entry.sequence_and_class = sequence << 2 | static_cast<std::uint64_t>(value_class);
  std::memcpy(&entry.payload, value + 1, sizeof entry.payload);
  lane.ordinal_max = ordinal;
  StripChunk* const chunk = lane.last.load(std::memory_order_relaxed);
  chunk->size.store(chunk->size.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return true;
}

}  // namespace

bool SeriesStrips::add(const BatchEntry& entry, SequenceNumber sequence) {
  if (entry.key.size() < kOrdinalKeyBytes) return false;
  Strip* const expected = used_last_ == nullptr ? nullptr : used_last_->successor;
  if (expected != nullptr && append_number(*expected, entry, sequence)) {
    used_last_ = expected;
    return true;
  }
  const NamespaceId namespace_id = entry.namespace_id;
  const ByteView key_prefix = entry.key.substr(0, entry.key.size() - kOrdinalKeyBytes);
  const std::size_t prefix_bytes = kNamespacePrefixBytes + key_prefix.size();
  if (prefix_bytes > kPrefixMaxBytes) return false;
  if (prefix_bytes_ != 0 && prefix_bytes != prefix_bytes_) return false;
  Strip& strip = strip_of(words_of(namespace_id, key_prefix), namespace_id, key_prefix);
  prefetch_for_writing(strip.successor);
  const std::uint64_t ordinal = load_ordinal(entry.key.data() + key_prefix.size());
  for (StripLane& lane : strip.lanes) {
    const bool is_new = lane.last.load(std::memory_order_relaxed) == nullptr;
    if (!is_new && ordinal <= lane.ordinal_max) continue;
    add_to(lane, ordinal, sequence, entry);
    return true;
  }
  return false;
}

void SeriesStrips::add_to(StripLane& lane, std::uint64_t ordinal, SequenceNumber sequence,
                          const BatchEntry& added) {
  StripChunk* chunk = lane.last.load(std::memory_order_relaxed);
  if (chunk == nullptr || lane.place == lane.end) chunk = add_chunk(lane);
  SeriesEntry& entry = *lane.place++;
  const SeriesClass value_class = class_of(added);
  entry.ordinal = ordinal;
  entry.sequence_and_class = sequence << 2 | static_cast<std::uint64_t>(value_class);
  if (value_class == SeriesClass::Other) {
    entry.payload = keep_value(arena_, added.value, added.end);
  } else if (value_class == SeriesClass::Delete) {
    entry.payload = 0;
  } else {
    std::memcpy(&entry.payload, added.value.data() + 1, sizeof entry.payload);
  }
  lane.ordinal_max = ordinal;
  chunk->size.store(chunk->size.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Entries of a batch mostly come in the order of the batch before.
Strip& SeriesStrips::strip_of(const StripPrefix& words, NamespaceId namespace_id,
                              ByteView key_prefix) {
  Strip* strip = used_last_ == nullptr ? nullptr : used_last_->successor;
  if (strip == nullptr || strip->words != words) {
    const std::uint64_t hash = hash_of(words);
    strip = find(words, hash);
    if (strip == nullptr) strip = add_strip(words, hash, namespace_id, key_prefix);
    if (used_last_ != nullptr) used_last_->successor = strip;
  }
  used_last_ = strip;
  return *strip;
}

Strip* SeriesStrips::find(const StripPrefix& words, std::uint64_t hash) const {
  if (table_.empty()) return nullptr;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Strip* strip = table_[at];
    if (strip == nullptr || strip->words == words) return strip;
  }
}

Strip* SeriesStrips::add_strip(const StripPrefix& words, std::uint64_t hash,
                               NamespaceId namespace_id, ByteView key_prefix) {
  char* memory = arena_.allocate(sizeof(Strip) + words.size);
  Strip* strip = new (memory) Strip;
  char* kept = memory + sizeof(Strip);
  strip->prefix = ByteView(kept, words.size);
  for (int shift = 24; shift >= 0; shift -= 8) *kept++ = static_cast<char>(namespace_id >> shift);
  std::memcpy(kept, key_prefix.data(), key_prefix.size());
  strip->words = words;
  strip->hash = hash;

  MutexLock lock(mutex_);
  prefix_bytes_ = words.size;
  strips_.push_back(strip);
  if (2 * strips_.size() > table_.size()) {
    table_.assign(std::max(kTableMinSlots, 2 * table_.size()), nullptr);
    for (Strip* known : strips_) put_in_table(known);
  } else {
    put_in_table(strip);
  }
  used_.store((table_.capacity() + strips_.capacity()) * sizeof(Strip*), std::memory_order_relaxed);
  return strip;
}

void SeriesStrips::put_in_table(Strip* strip) {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = strip->hash & mask;
  while (table_[at] != nullptr) at = (at + 1) & mask;
  table_[at] = strip;
}

StripChunk* SeriesStrips::add_chunk(StripLane& lane) {
  StripChunk* before = lane.last.load(std::memory_order_relaxed);
  const std::uint32_t capacity =
      before == nullptr ? kChunkMinEntries : std::min(2 * before->capacity, kChunkMaxEntries);
  char* memory = arena_.allocate(sizeof(StripChunk) + capacity * sizeof(SeriesEntry));
  auto* chunk = new (memory) StripChunk;
  chunk->capacity = capacity;
  chunk->previous = before;
  lane.place = chunk->entries();
  lane.end = lane.place + capacity;
  if (before == nullptr) {
    lane.first = chunk;
  } else {
    before->next.store(chunk, std::memory_order_release);
  }
  lane.last.store(chunk, std::memory_order_release);
  return chunk;
}

std::optional<FoundEntry> SeriesStrips::get(ByteView full_key, SequenceNumber visible) const {
  if (used_bytes() == 0) return std::nullopt;  // it grows before the first entry is published
  if (full_key.size() < kNamespacePrefixBytes + kOrdinalKeyBytes) return std::nullopt;
  const std::size_t prefix_bytes = full_key.size() - kOrdinalKeyBytes;
  if (prefix_bytes > kPrefixMaxBytes) return std::nullopt;
  const StripPrefix words = words_of(full_key.substr(0, prefix_bytes));
  const Strip* strip = nullptr;
  {
    MutexLock lock(mutex_);
    strip = find(words, hash_of(words));
  }
  if (strip == nullptr) return std::nullopt;
  const std::uint64_t ordinal = load_ordinal(full_key.data() + prefix_bytes);
  for (std::size_t lane = kStripLanes; lane-- > 0;) {
    const SeriesEntry* entry = first_at_or_after(strip->lanes[lane], ordinal).entry();
    if (entry == nullptr || entry->ordinal != ordinal || entry->sequence() > visible) continue;
    char number[kTaggedBytes];
    return FoundEntry{entry->sequence(), strip_kind(*entry), Bytes(strip_value(*entry, number))};
  }
  return std::nullopt;
}

std::shared_ptr<const SeriesStrips::Strips> SeriesStrips::sorted() const {
  MutexLock lock(mutex_);
  if (sorted_ == nullptr || sorted_->size() != strips_.size()) {
    auto strips = std::make_shared<Strips>(strips_.begin(), strips_.end());
    std::sort(strips->begin(), strips->end(),
              [](const Strip* a, const Strip* b) { return a->prefix < b->prefix; });
    sorted_ = std::move(strips);
  }
  return sorted_;
}

std::unique_ptr<EntryCursor> SeriesStrips::cursor(std::shared_ptr<const void> owner, ByteView lower,
                                                  ByteView upper, Direction direction,
                                                  SequenceNumber visible,
                                                  SequenceNumber newer_than) const {
  auto strips = sorted();
  // A strip's keys begin with its prefix: those with a prefix below that of `lower` lie below it.
  const std::size_t prefix_bytes = strips->empty() ? 0 : strips->front()->prefix.size();
  const ByteView first_prefix = lower.substr(0, prefix_bytes);
  const auto begin =
      std::lower_bound(strips->begin(), strips->end(), first_prefix,
                       [](const Strip* strip, ByteView wanted) { return strip->prefix < wanted; });
  const auto end = upper.empty() ? strips->end()
                                 : std::lower_bound(begin, strips->end(), upper,
                                                    [](const Strip* strip, ByteView wanted) {
                                                      return strip->prefix < wanted;
                                                    });
  if (begin == end) return nullptr;
  const auto from = static_cast<std::size_t>(begin - strips->begin());
  const auto count = static_cast<std::size_t>(end - begin);
  return make_strip_cursor(std::move(owner), std::move(strips), from, count, lower, upper,
                           direction, visible, newer_than);
}

}  // namespace edgecase::engine
