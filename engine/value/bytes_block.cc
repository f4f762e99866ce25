#include "value/bytes_block.h"

#include <cstdint>
#include <unordered_map>

#include "base/coding.h"
#include "value/group_format.h"
#include "value/integers_block.h"

namespace edgecase::engine {
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

}  // namespace

void append_strings(Bytes& out, std::span<const ByteView> values) {
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
  out.append(raw);
}

bool take_strings(ByteView& input, std::size_t count, std::vector<ByteView>& values) {
  values.clear();
  if (count == 0) return true;
  if (input.empty()) return false;
  const auto encoding = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  switch (encoding) {
    case kBytesRaw: return take_raw(input, count, values);
    case kBytesDictionary: return take_dictionary(input, count, values);
    default: return false;
  }
}

}  // namespace edgecase::engine
