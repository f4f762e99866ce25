#include "value/value_table_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "file/file_names.h"
#include "value/number_blocks.h"
#include "value/value_format.h"
#include "value/value_item.h"
#include "value/value_table_reader.h"

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

}  // namespace edgecase::engine
