#include "value/packing.h"

#include <lz4.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/coding.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// No byte of an LZ4 block stands for more.
constexpr std::uint64_t kRatioMax = 255;

}  // namespace

ByteView Packer::pack(ByteView bytes) {
  if (bytes.size() < kPackedMinBytes || bytes.size() > kUnpackedMaxBytes) return {};
  if (state_.empty()) state_.resize((static_cast<std::size_t>(LZ4_sizeofState()) + 7) / 8);
  // No room for more than what pays.
  const std::size_t room = bytes.size() - bytes.size() / kPackingPaysShare;
  if (packed_.size() < room) packed_.resize(room);
  const int size =
      LZ4_compress_fast_extState(state_.data(), bytes.data(), packed_.data(),
                                 static_cast<int>(bytes.size()), static_cast<int>(room), 1);
  return {packed_.data(), static_cast<std::size_t>(size)};
}

bool Packer::wants_sample() {
  if (passed_over_ == pass_over_) return true;
  ++passed_over_;
  return false;
}

bool Packer::pays(ByteView sample) {
  const bool does = !pack(sample).empty();
  pass_over_ = does ? 0 : std::min(2 * pass_over_ + 1, kPassedOverMax);
  passed_over_ = 0;
  return does;
}

bool unpack(ByteView packed, std::uint64_t unpacked_bytes, Bytes& room, std::size_t at) {
  if (unpacked_bytes == 0 || unpacked_bytes > kUnpackedMaxBytes ||
      unpacked_bytes / kRatioMax > packed.size() || packed.size() > kUnpackedMaxBytes)
    return false;
  const auto size = static_cast<std::size_t>(unpacked_bytes);
  if (room.size() < at + size) room.resize(at + size);
  return LZ4_decompress_safe(packed.data(), room.data() + at, static_cast<int>(packed.size()),
                             static_cast<int>(size)) == static_cast<int>(size);
}

namespace {

void append_raw(Bytes& out, std::span<const ByteView> values) {
  out.push_back(static_cast<char>(kBytesRaw));
  std::vector<std::uint64_t> sizes;
  sizes.reserve(values.size());
  for (const ByteView value : values) sizes.push_back(value.size());
  append_integers(out, sizes);
  for (const ByteView value : values) out.append(value);
}

bool take_raw(ByteView& input, std::size_t count, std::vector<ByteView>& values) {
  std::vector<std::uint64_t> sizes(count);
  if (!take_integers(input, sizes)) return false;
  values.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    if (!take_bytes(input, sizes[i], values[i])) return false;
  return true;
}

bool take_dictionary(ByteView& input, std::size_t count, std::vector<ByteView>& values) {
  std::uint64_t distinct = 0;
  if (!take_varint64(input, distinct) || distinct == 0 || distinct > count) return false;
  if (input.empty() || static_cast<unsigned char>(input.front()) != kBytesRaw) return false;
  input.remove_prefix(1);
  std::vector<ByteView> table;
  if (!take_raw(input, distinct, table)) return false;
  std::vector<std::uint64_t> indexes(count);
  if (!take_integers(input, indexes)) return false;
  values.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (indexes[i] >= distinct) return false;
    values[i] = table[indexes[i]];
  }
  return true;
}

bool take_unpacked(ByteView& input, std::size_t count, std::vector<ByteView>& values) {
  if (input.empty()) return false;
  const auto encoding = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  switch (encoding) {
    case kBytesRaw: return take_raw(input, count, values);
    case kBytesDictionary: return take_dictionary(input, count, values);
    default: return false;
  }
}

bool take_packed(ByteView& input, std::size_t count, std::vector<ByteView>& values, Bytes& room) {
  std::uint64_t unpacked_bytes = 0;
  ByteView packed;
  input.remove_prefix(1);
  if (!take_varint64(input, unpacked_bytes) ||
      !take_length_prefixed(input, kUnpackedMaxBytes, packed) ||
      !unpack(packed, unpacked_bytes, room))
    return false;
  ByteView block(room.data(), static_cast<std::size_t>(unpacked_bytes));
  return take_unpacked(block, count, values) && block.empty();
}

}  // namespace

void append_strings(Bytes& out, std::span<const ByteView> values, Packer* packer) {
  if (values.empty()) return;
  Bytes raw;
  append_raw(raw, values);

  std::unordered_map<ByteView, std::uint64_t> index_of;
  std::vector<ByteView> distinct;
  std::vector<std::uint64_t> indexes;
  indexes.reserve(values.size());
  for (const ByteView value : values) {
    const auto [place, added] = index_of.emplace(value, distinct.size());
    if (added) distinct.push_back(value);
    if (distinct.size() > values.size() / 2) break;
    indexes.push_back(place->second);
  }
  if (indexes.size() == values.size()) {
    Bytes dictionary;
    dictionary.push_back(static_cast<char>(kBytesDictionary));
    append_varint64(dictionary, distinct.size());
    append_raw(dictionary, distinct);
    append_integers(dictionary, indexes);
    if (dictionary.size() < raw.size()) raw = std::move(dictionary);
  }
  const ByteView packed = packer != nullptr ? packer->pack(raw) : ByteView();
  if (packed.empty()) {
    out.append(raw);
    return;
  }
  out.push_back(static_cast<char>(kBytesPacked));
  append_varint64(out, raw.size());
  append_length_prefixed(out, packed);
}

bool take_strings(ByteView& input, std::size_t count, std::vector<ByteView>& values,
                  Bytes& unpacked) {
  values.clear();
  if (count == 0) return true;
  const bool is_packed =
      !input.empty() && static_cast<unsigned char>(input.front()) == kBytesPacked;
  return is_packed ? take_packed(input, count, values, unpacked)
                   : take_unpacked(input, count, values);
}

}  // namespace edgecase::engine
