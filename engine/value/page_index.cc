#include "value/page_index.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"
#include "value/plain_group.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// As tail < separator: separators are short, and mostly differ in their first byte.
bool lies_before(ByteView tail, ByteView separator) {
  if (tail.empty() || separator.empty() || tail.front() == separator.front())
    return tail < separator;
  return static_cast<unsigned char>(tail.front()) < static_cast<unsigned char>(separator.front());
}

// Calls `visit(place, separator)` for each page but the last, until it answers false, then
// `visit_last(place)`. False when the index does not fit.
template <typename Visit, typename VisitLast>
bool for_each_page(ByteView index, std::size_t item_bytes, const Visit& visit,
                   const VisitLast& visit_last) {
  std::uint64_t offset = 0;
  if (!take_varint64(index, offset) || offset >= item_bytes) return false;
  PagePlace place{0, static_cast<std::size_t>(offset), 0};
  while (!index.empty()) {
    std::uint64_t change = 0;
    ByteView separator;
    if (!take_varint64(index, change) || !take_length_prefixed(index, kFullKeyMaxBytes, separator))
      return false;
    place.size += static_cast<std::size_t>(unzigzag(change));
    if (place.size <= kPageChecksumBytes || place.size >= item_bytes - place.offset) return false;
    if (!visit(place, separator)) return true;
    place.offset += place.size;
    ++place.number;
  }
  place.size = item_bytes - place.offset;
  if (place.size <= kPageChecksumBytes) return false;
  visit_last(place);
  return true;
}

// What of a key separators are compared with.
ByteView separated_part(ByteView first, ByteView last, ByteView full_key) {
  return full_key.substr(std::min(shared_bytes(first, last), full_key.size()));
}

}  // namespace

void append_page_index(Bytes& out, ByteView item, std::span<const EntryView> entries,
                       const SealOverhead& overhead) {
  const auto pages = plain_pages(item.substr(kItemHeadBytes));
  EC_CHECK(pages.has_value() && pages->back().first_entry < entries.size());
  if (pages->size() == 1) return;
  const std::size_t common = shared_bytes(entries.front().full_key, entries.back().full_key);
  append_varint64(out, kItemHeadBytes + overhead.head_bytes + pages->front().offset);
  std::size_t size_before = 0;
  for (std::size_t i = 0; i + 1 < pages->size(); ++i) {
    const PlainPage& page = (*pages)[i];
    const std::size_t size = page.size + overhead.page_bytes;
    append_varint64(out, zigzag(static_cast<std::int64_t>(size - size_before)));
    size_before = size;
    const std::size_t next = (*pages)[i + 1].first_entry;
    const ByteView key = entries[next].full_key;
    const std::size_t enough = shared_bytes(entries[next - 1].full_key, key) + 1;
    append_length_prefixed(out, key.substr(common, enough - common));
  }
}

std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, ByteView first,
                                   ByteView last, ByteView full_key) {
  return find_page(index, item_bytes, shared_bytes(first, last), full_key);
}

std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, std::size_t shared,
                                   ByteView full_key) {
  const ByteView tail = full_key.substr(std::min(shared, full_key.size()));
  std::optional<PagePlace> found;
  const auto take = [&found](const PagePlace& place) { found = place; };
  const bool fits = for_each_page(
      index, item_bytes,
      [&](const PagePlace& place, ByteView separator) {
        if (!lies_before(tail, separator)) return true;
        take(place);
        return false;
      },
      take);
  return fits ? found : std::nullopt;
}

bool list_pages(ByteView index, std::size_t item_bytes, std::vector<PagePlace>& pages) {
  pages.clear();
  const auto take = [&pages](const PagePlace& place) { pages.push_back(place); };
  return for_each_page(
      index, item_bytes,
      [&](const PagePlace& place, ByteView) {
        take(place);
        return true;
      },
      take);
}

bool list_pages(ByteView index, std::size_t item_bytes, ByteView first, ByteView last,
                ByteView full_key, std::vector<PagePlace>& pages, std::size_t& number) {
  pages.clear();
  number = 0;
  const ByteView tail = separated_part(first, last, full_key);
  return for_each_page(
      index, item_bytes,
      [&](const PagePlace& place, ByteView separator) {
        pages.push_back(place);
        if (number == place.number && tail >= separator) ++number;
        return true;
      },
      [&](const PagePlace& place) { pages.push_back(place); });
}

}  // namespace edgecase::engine
