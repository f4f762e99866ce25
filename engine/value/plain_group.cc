#include "value/group.h"

#include <algorithm>

#include "base/coding.h"
#include "edgecase/status.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// Fills in the offsets, from the start of the first page, and where the last one ends.
bool take_directory(ByteView& input, std::uint64_t entries, std::vector<PlainPage>& pages,
                    std::size_t& end) {
  std::uint64_t count = 0;
  if (!take_varint64(input, count) || count == 0 || count > entries || count > kPlainPagesMax)
    return false;
  pages.resize(count);
  std::size_t first_entry = 0;
  std::size_t offset = 0;
  for (PlainPage& page : pages) {
    std::uint32_t of_page = 0;
    std::uint32_t size = 0;
    if (!take_varint32(input, of_page) || !take_varint32(input, size) || of_page == 0 ||
        of_page > entries - first_entry || size <= kPageChecksumBytes)
      return false;
    page = {first_entry, of_page, offset, size};
    first_entry += of_page;
    offset += size;
  }
  end = offset;
  return first_entry == entries;
}

std::size_t raw_bytes(const EntryView& entry) {
  return user_key_of(entry.full_key).size() +
         (entry.kind == EntryKind::Delete ? 0 : entry.value.size());
}

// All of a group but the bytes of its pages.
bool take_pages(ByteView group, GroupHead& head, std::vector<PlainPage>& pages) {
  ByteView rest = group;
  if (!take_group_head(rest, head) || head.flags != 0) return false;
  std::size_t end = 0;
  if (!take_directory(rest, head.entries, pages, end) || end != rest.size()) return false;
  for (PlainPage& page : pages) page.offset += group.size() - rest.size();
  return true;
}

// Calls `take` for the entries of each page. Pages of one size, rather than a short one at the end.
template <typename Take>
void divide(std::span<const EntryView> entries, std::size_t page_bytes, const Take& take) {
  std::size_t total = 1;
  for (const EntryView& entry : entries) total += raw_bytes(entry);
  const std::size_t wanted = std::clamp<std::size_t>(total / page_bytes, 1, kPlainPagesMax);
  std::size_t passed = 0;
  std::size_t boundary = 1;  // where the open page ends, in parts of total / wanted
  for (std::size_t i = 0, first = 0; i < entries.size(); ++i) {
    passed += raw_bytes(entries[i]);
    if (i + 1 < entries.size() && passed * wanted < total * boundary) continue;
    take(entries.subspan(first, i + 1 - first));
    first = i + 1;
    boundary = passed * wanted / total + 1;  // a large entry may have filled several
  }
}

// What it says of pages, as they come.
struct Directory {
  std::size_t count = 0;
  Bytes told;

  void add(std::size_t entries, std::size_t bytes) {
    ++count;
    append_varint64(told, entries);
    append_varint64(told, bytes);
  }
  void append_to(Bytes& out) const {
    append_varint64(out, count);
    out.append(told);
  }
};

bool packing_pays(Packer& packer, std::span<const EntryView> entries) {
  if (!packer.wants_sample()) return false;
  Bytes sample;
  for (const EntryView& entry : entries) {
    if (sample.size() >= kPackedPageBytes) break;
    sample.append(user_key_of(entry.full_key));
    sample.append(entry.value.substr(0, kPackedPageBytes));
  }
  return packer.pays(sample);
}

void append_packed_pages(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                         SequenceColumn sequences, Packer& packer) {
  Directory directory;
  Bytes heads;
  Bytes page;
  Bytes body;
  divide(entries, kPackedPageBytes, [&](std::span<const EntryView> of_page) {
    heads.clear();
    page.clear();
    append_page_heads(heads, of_page, largest, sequences);
    append_page(page, heads, of_page, sequences);
    const std::size_t begin = body.size();
    append_packed_page(body, page, packer);
    directory.add(of_page.size(), body.size() - begin);
  });
  directory.append_to(out);
  out.append(body);
}

}  // namespace

void append_plain_body(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                       SequenceColumn sequences, Packer* packer) {
  if (packer != nullptr && packing_pays(*packer, entries))
    return append_packed_pages(out, entries, largest, sequences, *packer);
  struct Page {
    std::span<const EntryView> entries;
    std::size_t heads_end = 0;
  };
  std::vector<Page> pages;
  Directory directory;
  Bytes heads;
  std::size_t pages_bytes = 0;
  divide(entries, kPlainPageBytes, [&](std::span<const EntryView> page) {
    const std::size_t page_bytes = append_page_heads(heads, page, largest, sequences);
    pages.push_back({page, heads.size()});
    directory.add(page.size(), page_bytes);
    pages_bytes += page_bytes;
  });
  directory.append_to(out);
  out.reserve(out.size() + pages_bytes);
  std::size_t heads_begin = 0;
  for (const Page& page : pages) {
    append_page(out, ByteView(heads).substr(heads_begin, page.heads_end - heads_begin),
                page.entries, sequences);
    heads_begin = page.heads_end;
  }
}

std::optional<std::vector<PlainPage>> plain_pages(ByteView group) {
  GroupHead head;
  std::vector<PlainPage> pages;
  if (!take_pages(group, head, pages)) return std::nullopt;
  return pages;
}

std::optional<std::vector<std::size_t>> plain_page_sizes(ByteView head) {
  GroupHead group;
  std::vector<PlainPage> pages;
  std::size_t end = 0;
  if (!take_group_head(head, group) || group.flags != 0 ||
      !take_directory(head, group.entries, pages, end) || !head.empty())
    return std::nullopt;
  std::vector<std::size_t> sizes;
  sizes.reserve(pages.size());
  for (const PlainPage& page : pages) sizes.push_back(page.size);
  return sizes;
}

bool PlainGroupReader::open(ByteView group) {
  loaded_ = SIZE_MAX;
  group_ = group;
  return take_pages(group, head_, pages_);
}

bool PlainGroupReader::load(std::size_t page) {
  if (page == loaded_) return true;
  loaded_ = SIZE_MAX;
  ByteView bytes;
  if (!unpack_page(bytes_of(page), unpacked_, bytes) ||
      !page_.open(bytes, head_.prefix, head_.sequence_max) ||
      page_.entries().size() != pages_[page].entries)
    return false;
  loaded_ = page;
  return true;
}

bool PlainGroupReader::first_key_of(std::size_t page, ByteView& user_key) {
  const ByteView bytes = bytes_of(page);
  if (!is_packed_page(bytes)) return first_key_of_page(bytes, user_key);
  if (!load(page)) return false;
  user_key = user_key_of(page_.entries().front().full_key);
  return true;
}

bool PlainGroupReader::find_page(ByteView user_key, std::size_t& page) {
  std::size_t low = 0;
  std::size_t high = pages_.size() - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    ByteView first;
    if (!first_key_of(middle, first)) return false;
    if (first <= user_key) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  page = low;
  return true;
}

bool PlainGroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  const ByteView prefix = full_key.substr(0, head_.prefix.size());
  if (prefix != head_.prefix) {
    index = prefix < head_.prefix ? 0 : head_.entries;
    return true;
  }
  std::size_t page = 0;
  if (!find_page(full_key.substr(prefix.size()), page) || !load(page)) return false;
  index = pages_[page].first_entry + page_.lower_bound(full_key);
  return true;
}

bool PlainGroupReader::move_to(std::size_t index, EntryView& entry) {
  const bool is_loaded = loaded_ != SIZE_MAX && index >= pages_[loaded_].first_entry &&
                         index - pages_[loaded_].first_entry < pages_[loaded_].entries;
  if (!is_loaded) {
    const auto after = std::upper_bound(
        pages_.begin(), pages_.end(), index,
        [](std::size_t wanted, const PlainPage& page) { return wanted < page.first_entry; });
    if (!load(static_cast<std::size_t>(after - pages_.begin()) - 1)) return false;
  }
  entry = page_.entries()[index - pages_[loaded_].first_entry];
  return true;
}

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
