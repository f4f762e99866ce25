#include "value/value_table.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "file/file_names.h"
#include "value/packing.h"
#include "value/value_format.h"
#include "value/value_item.h"

namespace edgecase::engine {
namespace {

void append_value_table_head(Bytes& out, const ValueTableHead& head, const FileCipher* cipher) {
  append_table_head(out, kValueTableFormat, {head.identity, salt_of(cipher)});
  const std::size_t start = out.size();
  append_fixed32(out, head.namespace_id);
  out.push_back(static_cast<char>(head.placement));
  out.push_back(static_cast<char>(head.codec));
  out.append(kValueTableHeadBytes - 4 - 2 - 4, '\0');
  append_fixed32(out, crc32c(ByteView(out).substr(start)));
}

// An end of an item that is as long is written where it lies, sooner than copied; to seal it twice,
// sooner than to copy it, takes a longer one.
constexpr std::size_t kApartMinBytes = 64u << 10;
constexpr std::size_t kSealedApartMinBytes = 1u << 20;

}  // namespace

ValueTableWriter::ValueTableWriter(FileSystem& file_system, std::string path,
                                   std::unique_ptr<WritableFile> file, const ValueTableHead& head,
                                   std::unique_ptr<FileCipher> cipher)
    : file_system_(file_system),
      path_(std::move(path)),
      file_(std::move(file)),
      head_(head),
      cipher_(std::move(cipher)) {}

Result<std::unique_ptr<ValueTableWriter>> ValueTableWriter::create(FileSystem& file_system,
                                                                   const std::string& path,
                                                                   const ValueTableHead& head,
                                                                   KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                      file_system.create_file(path).on(drive_of(head.placement)));
  std::unique_ptr<ValueTableWriter> writer(
      new ValueTableWriter(file_system, path, std::move(file), head,
                           new_cipher(keys, {kValueTablePurpose, head.identity.file_number})));
  Bytes encoded;
  append_value_table_head(encoded, head, writer->cipher_.get());
  EC_TRY(writer->append(encoded));
  return writer;
}

Status ValueTableWriter::append(ByteView bytes) {
  checksum_ = crc32c_extend(checksum_, bytes);
  return file_->append(bytes).on(drive_of(head_.placement));
}

Result<ValuePointer> ValueTableWriter::append_group(std::span<const EntryView> entries,
                                                    SequenceColumn sequences) {
  item_.assign(kItemChecksumBytes, '\0');
  item_.push_back(static_cast<char>(item_type_of(head_.codec)));
  engine::append_group(item_, head_.codec, entries, sequences, packer());
  page_index_.clear();
  if (head_.codec == GroupCodec::Plain)
    append_page_index(page_index_, item_, entries, overhead_of(cipher_.get()));
  return append_item(summary_of(entries));
}

Result<ValuePointer> ValueTableWriter::append_group(SeriesColumns& columns) {
  item_.assign(kItemChecksumBytes, '\0');
  item_.push_back(static_cast<char>(ItemType::SeriesGroup));
  engine::append_group(item_, columns, packer());
  return append_item(columns.summary());
}

Result<ValuePointer> ValueTableWriter::append_single(const EntryView& entry) {
  const ItemSummary summary = summary_of(std::span(&entry, 1));
  const auto begin = [&](SingleKind kind) {
    item_ = SingleHead(kind, entry.sequence, entry.full_key).bytes();
  };
  if (entry.kind == EntryKind::Delete) {
    begin(SingleKind::Delete);
    return append_item(summary);
  }
  const ByteView packed = pack_single(entry.value);
  begin(packed.empty() ? SingleKind::Put : SingleKind::PackedPut);
  if (packed.empty()) return append_item(summary, entry.value);
  append_varint64(item_, entry.value.size());
  return append_item(summary, packed);
}

// Empty: it stays as it is.
ByteView ValueTableWriter::pack_single(ByteView value) {
  if (!head_.packs || value.size() > kPackedSingleMaxBytes || !single_packer_.wants_sample() ||
      !single_packer_.pays(value.substr(0, kPackedPageBytes)))
    return {};
  return single_packer_.pack(value);
}

Result<ValuePointer> ValueTableWriter::append_copy(ByteView item, const ItemSummary& summary) {
  const bool is_plain = item[kItemChecksumBytes] == static_cast<char>(ItemType::PlainGroup);
  const std::size_t begin =
      is_plain ? item.size() : std::min<std::size_t>(item.size(), kItemHeadBytes);
  item_.assign(item.substr(0, begin));
  return append_item(summary, item.substr(begin));
}

// item_ is whole but for its checksums and, of one that is no plain group, for `end`. Answers how
// many bytes lie in the file.
Result<std::size_t> ValueTableWriter::write_item(const ItemSummary& summary, std::uint64_t offset,
                                                 ByteView end) {
  const std::uint64_t number = head_.identity.file_number;
  if (cipher_ == nullptr) {
    if (end.size() < kApartMinBytes) item_.append(std::exchange(end, {}));
    place_checksums(item_, number, offset, end);
    EC_TRY(append(item_));
    if (!end.empty()) EC_TRY(append(end));
    return item_.size() + end.size();
  }
  const KeyId key = cipher_->ring().key_for(summary.first, head_.scope_bytes, summary.sequence_max);
  PartCipher cipher = cipher_->sealer(key);
  if (end.size() < kSealedApartMinBytes) {
    const ByteView sealed = seal_item(sealed_, item_, end, cipher, number, offset);
    EC_TRY(append(sealed));
    return sealed.size();
  }
  EC_TRY(seal_item_in_pieces(item_, end, cipher, number, offset,
                             [this](ByteView piece) { return append(piece); }));
  return item_.size() + end.size() + kItemSealBytes;
}

Result<ValuePointer> ValueTableWriter::append_item(const ItemSummary& summary, ByteView end) {
  const std::uint64_t offset = file_->size_bytes();
  EC_CHECK(item_.size() + end.size() <= kItemMaxBytes);
  EC_ASSIGN_OR_RETURN(const std::size_t stored_bytes, write_item(summary, offset, end));
  if (item_sizes_.empty()) first_offset_ = offset;
  item_sizes_.push_back(stored_bytes);
  item_bytes_ += stored_bytes;
  entries_ += summary.entries;
  deletes_ += summary.deletes;
  sequence_min_ = std::min(sequence_min_, summary.sequence_min);
  sequence_max_ = std::max(sequence_max_, summary.sequence_max);
  // Large items and groups may each be in order and still interleave.
  if (item_sizes_.size() > 1 && summary.first <= ByteView(largest_)) ascending_ = false;
  if (item_sizes_.size() == 1 || summary.first < smallest_) smallest_ = summary.first;
  if (summary.last > largest_) largest_ = summary.last;
  return ValuePointer{head_.identity.file_number, offset, static_cast<std::uint32_t>(stored_bytes)};
}

Status ValueTableWriter::finish() {
  EC_TRY(end());
  return sync();
}

Status ValueTableWriter::end() {
  const std::uint64_t index_offset = file_->size_bytes();
  Bytes rest;
  append_varint64(rest, item_sizes_.size());
  append_integers(rest, item_sizes_);
  const std::uint64_t summary_offset = index_offset + rest.size();
  append_varint64(rest, entries_);
  append_varint64(rest, deletes_);
  append_varint64(rest, sequence_min_);
  append_varint64(rest, sequence_max_);
  append_length_prefixed(rest, smallest_);
  append_length_prefixed(rest, largest_);
  append_varint64(rest, ascending_ ? 1 : 0);
  const std::uint64_t namespace_offset = index_offset + rest.size();
  if (!head_.namespace_name.empty()) {
    append_varint32(rest, head_.scope_bytes);
    append_length_prefixed(rest, head_.namespace_name);
  }
  if (cipher_ != nullptr) {
    const std::size_t size = rest.size();
    rest.resize(size + kSealBytes);
    cipher_->seal(kDatabaseKey, index_offset, ByteView(rest).substr(0, size), rest.data());
  }
  Bytes tail;
  append_table_tail(tail, kValueTableFormat, head_.identity.file_number,
                    {index_offset, summary_offset, namespace_offset}, rest);
  EC_TRY(append(rest));
  EC_TRY(append(tail));
  file_->begin_write_out();
  // Several may wait for their sync.
  Bytes().swap(item_);
  Bytes().swap(sealed_);
  packer_ = Packer();
  single_packer_ = Packer();
  return ok();
}

Status ValueTableWriter::sync() {
  if (cipher_ != nullptr) EC_TRY(cipher_->ring().persist());
  const Drive drive = drive_of(head_.placement);
  EC_TRY(file_->sync().on(drive));
  return cipher_ == nullptr ? ok() : read_back().on(drive);
}

Status ValueTableWriter::read_back() const {
  if (item_sizes_.empty()) return ok();
  EC_ASSIGN_OR_RETURN(auto file, file_system_.open_file(path_));
  const auto reader = ValueTableReader::open(std::move(file), head_.identity.store_id,
                                             head_.identity.file_number, &cipher_->ring());
  if (!reader.ok()) return judge_read_back(reader.status(), path_);
  const ValuePointer first{head_.identity.file_number, first_offset_,
                           static_cast<std::uint32_t>(item_sizes_.front())};
  return judge_read_back((*reader)->read(first).status(), path_);
}

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
