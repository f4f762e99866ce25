#include "value/value_table_reader.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/zeros.h"
#include "edgecase/options.h"
#include "value/number_blocks.h"
#include "value/packing.h"
#include "value/value_format.h"
#include "value/value_item.h"

namespace edgecase::engine {
namespace {

bool known_item_type(char type) {
  return type >= static_cast<char>(ItemType::Single) &&
         type <= static_cast<char>(ItemType::SeriesGroup);
}

Result<ValueTableHead> read_value_table_head(const RandomAccessFile& file, std::uint64_t offset) {
  EC_ASSIGN_OR_RETURN(const Bytes bytes, read_exactly(file, offset, kValueTableHeadBytes));
  const ByteView view = bytes;
  if (decode_fixed32(bytes.data() + kValueTableHeadBytes - 4) !=
      crc32c(view.substr(0, kValueTableHeadBytes - 4)))
    return corruption_at(file.path(), offset, "wrong checksum of the table head");
  const auto placement = static_cast<unsigned char>(bytes[4]);
  const auto codec = static_cast<unsigned char>(bytes[5]);
  if (bytes[7] != 0) return unsupported(file.path() + ": unknown kind of table");
  if (placement > static_cast<unsigned char>(Placement::Metadata) ||
      codec > static_cast<unsigned char>(GroupCodec::Series))
    return unsupported(file.path() + ": unknown placement or codec");
  ValueTableHead head;
  head.namespace_id = decode_fixed32(bytes.data());
  if (head.namespace_id == 0 || head.namespace_id > kNamespaceIdMax)
    return corruption_at(file.path(), offset, "a namespace that cannot be");
  head.placement = static_cast<Placement>(placement);
  head.codec = static_cast<GroupCodec>(codec);
  return head;
}

// Where the bounds of a summary lie.
struct KeyPlaces {
  ByteView smallest;
  ByteView largest;
};

bool take_summary(ByteView section, ValueTableSummary& summary, KeyPlaces& keys) {
  std::uint64_t ascending = 0;
  if (!take_varint64(section, summary.entries) || !take_varint64(section, summary.deletes) ||
      !take_varint64(section, summary.sequence_min) ||
      !take_varint64(section, summary.sequence_max) ||
      !take_length_prefixed(section, kFullKeyMaxBytes, keys.smallest) ||
      !take_length_prefixed(section, kFullKeyMaxBytes, keys.largest) ||
      !take_varint64(section, ascending))
    return false;
  summary.ascending = ascending == 1;
  return true;
}

// Unpacks a packed single: `value` becomes a view of `room`.
bool unpack_value(ByteView& value, Bytes& room) {
  std::uint64_t size = 0;
  if (!take_varint64(value, size) || size > kPackedSingleMaxBytes || !unpack(value, size, room))
    return false;
  value = ByteView(room).substr(0, static_cast<std::size_t>(size));
  return true;
}

}  // namespace

bool is_blank(ByteView item) {
  return all_zero(item);
}

std::optional<EntryView> parse_single(ByteView contents, Bytes& room) {
  if (contents.empty()) return std::nullopt;
  EntryView entry;
  const auto kind = static_cast<SingleKind>(contents.front());
  if (kind < SingleKind::Put || kind > SingleKind::PackedPut) return std::nullopt;
  entry.kind = kind == SingleKind::Delete ? EntryKind::Delete : EntryKind::Put;
  contents.remove_prefix(1);
  if (!take_varint64(contents, entry.sequence) ||
      !take_length_prefixed(contents, kFullKeyMaxBytes, entry.full_key) ||
      entry.full_key.size() < kNamespacePrefixBytes)
    return std::nullopt;
  if (entry.kind == EntryKind::Delete && !contents.empty()) return std::nullopt;
  if (kind == SingleKind::PackedPut && !unpack_value(contents, room)) return std::nullopt;
  entry.value = contents;
  return entry;
}

Result<std::unique_ptr<ValueTableReader>> ValueTableReader::open(
    std::unique_ptr<RandomAccessFile> file, const StoreId& store_id, std::uint64_t file_number,
    KeyRing* keys) {
  EC_TRY(check_table_head(*file, kValueTableFormat, {store_id, file_number}).status());
  return open_any(std::move(file), keys);
}

Result<std::unique_ptr<ValueTableReader>> ValueTableReader::open_any(
    std::unique_ptr<RandomAccessFile> file, KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(const TableHead table, read_table_head(*file, kValueTableFormat));
  EC_ASSIGN_OR_RETURN(ValueTableHead head, read_value_table_head(*file, table.size_bytes()));
  head.identity = table.identity;
  EC_ASSIGN_OR_RETURN(
      auto cipher,
      cipher_for(keys, table.salt, {kValueTablePurpose, table.identity.file_number}, file->path()));
  return std::unique_ptr<ValueTableReader>(
      new ValueTableReader(std::move(file), head, std::move(cipher)));
}

Status ValueTableReader::damaged(const ValuePointer& pointer, std::string_view what) const {
  return corruption_at(file_->path(), pointer.offset_bytes, what);
}

SealOverhead ValueTableReader::seal_overhead() const {
  return overhead_of(cipher_.get());
}

Status ValueTableReader::check_size(const ValuePointer& pointer) const {
  if (pointer.size_bytes > kItemHeadBytes && pointer.size_bytes <= kItemMaxBytes) return ok();
  return damaged(pointer, "item of impossible size");
}

Result<Item> ValueTableReader::read(const ValuePointer& pointer) const {
  EC_TRY(check_size(pointer));
  EC_ASSIGN_OR_RETURN(Bytes bytes, read_exactly(*file_, pointer.offset_bytes, pointer.size_bytes));
  return check(pointer, std::move(bytes));
}

Result<bool> ValueTableReader::read_put(const ValuePointer& pointer, SequenceNumber sequence,
                                        ByteView full_key, Bytes& value) const {
  EC_CHECK(cipher_ == nullptr);
  EC_TRY(check_size(pointer));
  const SingleHead wanted(SingleKind::Put, sequence, full_key);
  const std::size_t head_bytes = wanted.bytes().size();
  if (head_bytes > pointer.size_bytes) return false;
  char head[SingleHead::kMaxBytes];
  value.resize(pointer.size_bytes - head_bytes);
  EC_ASSIGN_OR_RETURN(const std::size_t got, file_->read_two(pointer.offset_bytes, head_bytes, head,
                                                             value.size(), value.data()));
  if (got != pointer.size_bytes) return damaged(pointer, "file ends within an item");
  const ByteView checked = ByteView(head, head_bytes).substr(kItemChecksumBytes);
  const std::uint32_t of_head =
      placed_crc32c(head_.identity.file_number, pointer.offset_bytes, checked);
  if (decode_fixed32(head) != crc32c_extend(of_head, value))
    return damaged(pointer, "wrong checksum of an item");
  if (checked == wanted.bytes().substr(kItemChecksumBytes)) return true;
  const SingleHead packed(SingleKind::PackedPut, sequence, full_key);
  if (checked != packed.bytes().substr(kItemChecksumBytes)) return false;
  Bytes room;
  ByteView unpacked = value;
  if (!unpack_value(unpacked, room)) return false;
  room.resize(unpacked.size());
  value.swap(room);
  return true;
}

Result<Item> ValueTableReader::check(const ValuePointer& pointer, Bytes bytes) const {
  EC_TRY(check_size(pointer));
  const std::uint64_t number = head_.identity.file_number;
  if (cipher_ != nullptr) {
    const SealProblem problem = open_sealed_item(bytes, *cipher_, number, pointer.offset_bytes);
    EC_TRY(explain(problem, pointer));
  } else if (!checksums_match(bytes, number, pointer.offset_bytes)) {
    return damaged(pointer, "wrong checksum of an item");
  }
  if (!known_item_type(bytes[kItemChecksumBytes])) return damaged(pointer, "unknown type of item");
  return Item{std::move(bytes)};
}

Status ValueTableReader::explain(const SealProblem& problem, const ValuePointer& pointer) const {
  if (problem.none()) return ok();
  if (problem.damage != nullptr) return damaged(pointer, problem.damage);
  return engine::explain(problem.opened, file_->path(), pointer.offset_bytes, "item");
}

bool ValueTableReader::reads_blank(const ValuePointer& pointer) const {
  const auto bytes = read_exactly(*file_, pointer.offset_bytes, pointer.size_bytes);
  return bytes.ok() && is_blank(*bytes);
}

Result<Item> ValueTableReader::read_page(const ValuePointer& page) const {
  EC_TRY(check_size(page));
  EC_ASSIGN_OR_RETURN(Bytes bytes, read_exactly(*file_, page.offset_bytes, page.size_bytes));
  EC_ASSIGN_OR_RETURN(const ByteView opened, open_page(page, bytes.data()));
  if (opened.size() == bytes.size()) return Item{std::move(bytes)};
  return Item{Bytes(opened)};
}

Result<ByteView> ValueTableReader::read_page(const ValuePointer& page, char* buffer) const {
  EC_TRY(check_size(page));
  EC_ASSIGN_OR_RETURN(const std::size_t got,
                      file_->read(page.offset_bytes, page.size_bytes, buffer));
  if (got != page.size_bytes) return damaged(page, "file ends within a page");
  return open_page(page, buffer);
}

// `bytes` are as many as `page` says.
Result<ByteView> ValueTableReader::take_page(const ValuePointer& page, ByteView bytes,
                                             Bytes& opened) const {
  EC_TRY(check_size(page));
  if (cipher_ == nullptr) {
    EC_TRY(check_page(page, bytes));
    return bytes;
  }
  opened = bytes;
  return open_page(page, opened.data());
}

// The same.
Result<ByteView> ValueTableReader::open_page(const ValuePointer& page, char* bytes) const {
  const std::uint64_t number = head_.identity.file_number;
  ByteView view(bytes, page.size_bytes);
  if (cipher_ == nullptr) {
    EC_TRY(check_page(page, view));
  } else {
    EC_TRY(explain(open_sealed_page(bytes, view, *cipher_, number, page.offset_bytes), page));
  }
  return view;
}

Status ValueTableReader::check_page(const ValuePointer& page, ByteView bytes) const {
  if (page_checksum_matches(bytes, head_.identity.file_number, page.offset_bytes)) return ok();
  return damaged(page, "wrong checksum of a page");
}

Result<ValueTableSummary> ValueTableReader::summary() const {
  EC_ASSIGN_OR_RETURN(TableSections sections,
                      read_table_sections(*file_, kValueTableFormat, head_.identity.file_number));
  if (cipher_ != nullptr)
    EC_TRY(open_sealed(*cipher_, sections.offsets[0], sections.bytes, file_->path(), "index"));
  const auto malformed = [&](std::size_t section, std::string_view what) {
    return corruption_at(file_->path(), sections.offsets[section], what);
  };
  ValueTableSummary summary;
  ByteView index = sections.section(0);
  std::uint64_t items = 0;
  if (!take_varint64(index, items) || items > file_->size_bytes() / kItemHeadBytes)
    return malformed(0, "item index is malformed");
  std::vector<std::uint64_t> sizes(items);
  if (!take_integers(index, sizes)) return malformed(0, "item index is malformed");
  std::uint64_t offset = items_offset();
  summary.items.reserve(items);
  for (const std::uint64_t size : sizes) {
    if (size > kItemMaxBytes) return malformed(0, "item index is malformed");
    summary.items.push_back({head_.identity.file_number, offset, static_cast<std::uint32_t>(size)});
    offset += size;
  }
  if (offset != sections.offsets[0]) return malformed(0, "items do not fill the file");

  KeyPlaces keys;
  if (!take_summary(sections.section(1), summary, keys))
    return malformed(1, "summary is malformed");
  summary.smallest = keys.smallest;
  summary.largest = keys.largest;
  ByteView owner = sections.section(2);
  ByteView name;
  if (!owner.empty()) {
    if (!take_varint32(owner, summary.scope_bytes) ||
        !take_length_prefixed(owner, kNamespaceNameMaxBytes, name))
      return malformed(2, "name of the namespace is malformed");
    summary.namespace_name = name;
  }
  return summary;
}

Result<Bytes> ValueTableReader::end_without_keys() const {
  EC_CHECK(cipher_ == nullptr);
  EC_ASSIGN_OR_RETURN(TableSections sections,
                      read_table_sections(*file_, kValueTableFormat, head_.identity.file_number));
  ValueTableSummary summary;
  KeyPlaces keys;
  if (!take_summary(sections.section(1), summary, keys) ||
      std::min(keys.smallest.size(), keys.largest.size()) < kNamespacePrefixBytes)
    return corruption_at(file_->path(), sections.offsets[1], "summary is malformed");
  const auto fill = [&](ByteView key, char byte) {
    const auto at = static_cast<std::size_t>(key.data() - sections.bytes.data());
    const std::size_t size = key.size() - kNamespacePrefixBytes;
    sections.bytes.replace(at + kNamespacePrefixBytes, size, size, byte);
  };
  fill(keys.smallest, '\0');
  fill(keys.largest, '\xff');
  Bytes end = sections.bytes.substr(sections.offsets[1] - sections.offsets[0]);
  append_table_tail(end, kValueTableFormat, head_.identity.file_number, sections.offsets,
                    sections.bytes);
  return end;
}

}  // namespace edgecase::engine
