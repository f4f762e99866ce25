#include "metadata/umeta_writer.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c.h"
#include "metadata/umeta_reader.h"

namespace edgecase::engine {
namespace {

void count(UMetaTotals& totals, const UMetaRecord& record) {
  ++totals.items;
  totals.entries += record.entries;
  totals.deletes += record.deletes;
}

void append_totals(Bytes& out, const UMetaTotals& totals) {
  append_varint64(out, totals.items);
  append_varint64(out, totals.entries);
  append_varint64(out, totals.deletes);
}

// Seals `bytes` behind its first `clear` ones.
void seal_rest(const FileCipher& cipher, std::uint64_t place, std::size_t clear, Bytes& bytes) {
  const std::size_t size = bytes.size() - clear;
  bytes.resize(bytes.size() + kSealBytes);
  cipher.seal(kDatabaseKey, place, ByteView(bytes).substr(clear, size), bytes.data() + clear);
}

}  // namespace

UMetaWriter::UMetaWriter(FileSystem& file_system, std::string path,
                         std::unique_ptr<WritableFile> file, const TableIdentity& identity,
                         std::unique_ptr<FileCipher> cipher)
    : file_system_(file_system),
      path_(std::move(path)),
      file_(std::move(file)),
      identity_(identity),
      cipher_(std::move(cipher)) {}

Result<std::unique_ptr<UMetaWriter>> UMetaWriter::create(FileSystem& file_system,
                                                         const std::string& path,
                                                         const TableIdentity& identity,
                                                         KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.create_file(path));
  std::unique_ptr<UMetaWriter> writer(
      new UMetaWriter(file_system, path, std::move(file), identity,
                      new_cipher(keys, {kUMetaPurpose, identity.file_number})));
  Bytes head;
  append_table_head(head, kUMetaFormat, {identity, salt_of(writer->cipher_.get())});
  EC_TRY(writer->append(head));
  return writer;
}

Status UMetaWriter::append(ByteView bytes) {
  checksum_ = crc32c_extend(checksum_, bytes);
  return file_->append(bytes);
}

Status UMetaWriter::add(const UMetaRecord& record) {
  EC_CHECK(totals_.items == 0 || largest_ < record.first);
  if (totals_.items == 0) {
    smallest_ = record.first;
    namespace_smallest_ = record.first;
  } else if (namespace_of(largest_) != namespace_of(record.first)) {
    close_namespace();
    namespace_smallest_ = record.first;
  }
  block_.add(record);
  for (UMetaTotals* totals : {&totals_, &block_totals_, &namespace_totals_}) count(*totals, record);
  sequence_min_ = std::min(sequence_min_, record.sequence_min);
  sequence_max_ = std::max(sequence_max_, record.sequence_max);
  largest_ = record.last;
  value_files_[record.pointer.file_number] += record.pointer.size_bytes;
  return block_.full() ? close_block() : ok();
}

ValueFileUses UMetaWriter::value_files() const {
  ValueFileUses uses;
  for (const auto& [number, bytes] : value_files_) uses.push_back({number, bytes});
  return uses;
}

Status UMetaWriter::close_block() {
  const std::uint64_t offset = file_->size_bytes();
  ByteView block = block_.finish(identity_.file_number, offset);
  Bytes sealed;
  if (cipher_ != nullptr) {
    sealed.assign(block);
    seal_rest(*cipher_, offset, kUMetaChecksumBytes, sealed);
    encode_fixed32(sealed.data(), placed_crc32c(identity_.file_number, offset,
                                                ByteView(sealed).substr(kUMetaChecksumBytes)));
    block = sealed;
  }
  EC_CHECK(block.size() <= kUMetaBlockMaxBytes);
  EC_TRY(append(block));
  append_varint64(index_, block.size());
  const auto [end, ignored] = std::mismatch(
      largest_.begin(),
      largest_.begin() +
          static_cast<std::ptrdiff_t>(std::min(largest_.size(), previous_block_last_.size())),
      previous_block_last_.begin());
  const auto shared = static_cast<std::size_t>(end - largest_.begin());
  append_varint64(index_, shared);
  append_length_prefixed(index_, ByteView(largest_).substr(shared));
  append_totals(index_, block_totals_);
  previous_block_last_ = largest_;
  block_totals_ = UMetaTotals();
  ++block_count_;
  return ok();
}

void UMetaWriter::close_namespace() {
  namespaces_.append(largest_, 0, kNamespacePrefixBytes);
  append_totals(namespaces_, namespace_totals_);
  append_length_prefixed(namespaces_, user_key_of(namespace_smallest_));
  append_length_prefixed(namespaces_, user_key_of(largest_));
  namespace_totals_ = UMetaTotals();
  ++namespace_count_;
}

Status UMetaWriter::finish() {
  EC_TRY(end());
  return sync();
}

Status UMetaWriter::end() {
  EC_CHECK(totals_.items > 0);
  if (!block_.empty()) EC_TRY(close_block());
  close_namespace();

  std::array<std::uint64_t, 3> offsets{};
  offsets[0] = file_->size_bytes();
  Bytes sections;
  append_varint64(sections, block_count_);
  sections.append(index_);
  offsets[1] = offsets[0] + sections.size();
  append_varint64(sections, namespace_count_);
  sections.append(namespaces_);
  offsets[2] = offsets[0] + sections.size();
  append_totals(sections, totals_);
  append_varint64(sections, sequence_min_);
  append_varint64(sections, sequence_max_);
  append_varint64(sections, value_files_.size());
  for (const auto& [number, bytes] : value_files_) {
    append_varint64(sections, number);
    append_varint64(sections, bytes);
  }

  if (cipher_ != nullptr) seal_rest(*cipher_, offsets[0], 0, sections);
  Bytes tail;
  append_table_tail(tail, kUMetaFormat, identity_.file_number, offsets, sections);
  EC_TRY(append(sections));
  EC_TRY(append(tail));
  file_->begin_write_out();
  return ok();
}

Status UMetaWriter::sync() {
  EC_TRY(file_->sync());
  return cipher_ == nullptr ? ok() : read_back();
}

Status UMetaWriter::read_back() const {
  EC_ASSIGN_OR_RETURN(auto file, file_system_.open_file(path_));
  const auto reader = UMetaReader::open(std::move(file), identity_.store_id, identity_.file_number,
                                        &cipher_->ring());
  const Status opened = reader.ok() ? (*reader)->read_block(0).status() : reader.status();
  return judge_read_back(opened, path_);
}

}  // namespace edgecase::engine
