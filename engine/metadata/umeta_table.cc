#include "metadata/umeta_table.h"

#include <algorithm>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/status.h"

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

namespace {

bool take_totals(ByteView& input, UMetaTotals& totals) {
  return take_varint64(input, totals.items) && take_varint64(input, totals.entries) &&
         take_varint64(input, totals.deletes);
}

}  // namespace

Result<std::unique_ptr<UMetaReader>> UMetaReader::open(std::unique_ptr<RandomAccessFile> file,
                                                       const StoreId& store_id,
                                                       std::uint64_t file_number, KeyRing* keys) {
  const TableIdentity identity{store_id, file_number};
  EC_ASSIGN_OR_RETURN(const TableHead head, check_table_head(*file, kUMetaFormat, identity));
  EC_ASSIGN_OR_RETURN(auto cipher,
                      cipher_for(keys, head.salt, {kUMetaPurpose, file_number}, file->path()));
  std::unique_ptr<UMetaReader> reader(
      new UMetaReader(std::move(file), identity, std::move(cipher)));
  EC_TRY(reader->load());
  return reader;
}

Result<std::unique_ptr<UMetaReader>> UMetaReader::open_any(std::unique_ptr<RandomAccessFile> file,
                                                           KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(const TableHead head, read_table_head(*file, kUMetaFormat));
  return open(std::move(file), head.identity.store_id, head.identity.file_number, keys);
}

Status UMetaReader::load() {
  EC_ASSIGN_OR_RETURN(TableSections sections,
                      read_table_sections(*file_, kUMetaFormat, identity_.file_number));
  if (cipher_ != nullptr)
    EC_TRY(open_sealed(*cipher_, sections.offsets[0], sections.bytes, file_->path(), "index"));
  if (!take_index(sections.section(0), sections.offsets[0]))
    return corruption_at(file_->path(), sections.offsets[0], "index is malformed");
  if (!take_namespaces(sections.section(1)))
    return corruption_at(file_->path(), sections.offsets[1], "table of namespaces is malformed");
  if (!take_properties(sections.section(2)))
    return corruption_at(file_->path(), sections.offsets[2], "properties are malformed");
  last_keys_.build(blocks_.size(), [&](std::size_t i) { return ByteView(blocks_[i].last); });
  memory_bytes_ = sizeof *this + last_keys_.memory_bytes();
  for (const BlockHandle& block : blocks_) memory_bytes_ += sizeof block + block.last.capacity();
  for (const UMetaNamespace& ns : namespaces_)
    memory_bytes_ += sizeof ns + ns.smallest.capacity() + ns.largest.capacity();
  return ok();
}

bool UMetaReader::take_index(ByteView section, std::uint64_t index_offset) {
  std::uint64_t count = 0;
  if (!take_varint64(section, count) || count == 0 || count > section.size()) return false;
  blocks_.reserve(count);
  std::uint64_t offset = cipher_ == nullptr ? kTableHeadBytes : kSealedTableHeadBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    BlockHandle block;
    std::uint64_t shared = 0;
    ByteView rest;
    block.offset = offset;
    if (!take_varint32(section, block.size) || block.size > kUMetaBlockMaxBytes ||
        !take_varint64(section, shared) || shared > kFullKeyMax ||
        shared > (i == 0 ? 0 : blocks_.back().last.size()) ||
        !take_length_prefixed(section, kFullKeyMax - shared, rest) ||
        !take_totals(section, block.totals))
      return false;
    if (i > 0) block.last = blocks_.back().last.substr(0, shared);
    block.last.append(rest);
    if (i > 0 && block.last <= blocks_.back().last) return false;
    offset += block.size;
    blocks_.push_back(std::move(block));
  }
  return section.empty() && offset == index_offset;
}

bool UMetaReader::take_namespaces(ByteView section) {
  std::uint64_t count = 0;
  if (!take_varint64(section, count) || count > section.size()) return false;
  namespaces_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    UMetaNamespace ns;
    ByteView id;
    ByteView smallest;
    ByteView largest;
    if (!take_bytes(section, kNamespacePrefixBytes, id) || !take_totals(section, ns.totals) ||
        !take_length_prefixed(section, kKeySizeMaxBytes, smallest) ||
        !take_length_prefixed(section, kKeySizeMaxBytes, largest))
      return false;
    ns.id = namespace_of(id);
    if (smallest > largest || (i > 0 && namespaces_.back().id >= ns.id)) return false;
    ns.smallest = smallest;
    ns.largest = largest;
    namespaces_.push_back(std::move(ns));
  }
  return section.empty();
}

bool UMetaReader::take_properties(ByteView section) {
  std::uint64_t files = 0;
  if (!take_totals(section, properties_.totals) ||
      !take_varint64(section, properties_.sequence_min) ||
      !take_varint64(section, properties_.sequence_max) || !take_varint64(section, files) ||
      files > section.size())
    return false;
  for (; files > 0; --files) {
    ValueFileUse use;
    if (!take_varint64(section, use.file_number) || !take_varint64(section, use.bytes))
      return false;
    properties_.value_files.push_back(use);
  }
  return section.empty();
}

bool UMetaReader::may_hold(ByteView full_key) const {
  const NamespaceId id = namespace_of(full_key);
  const auto line = std::ranges::lower_bound(namespaces_, id, {}, &UMetaNamespace::id);
  if (line == namespaces_.end() || line->id != id) return false;
  const ByteView key = user_key_of(full_key);
  return key >= ByteView(line->smallest) && key <= ByteView(line->largest);
}

std::size_t UMetaReader::find_block(ByteView full_key) const {
  return last_keys_.lower_bound(full_key, [&](std::size_t i) { return ByteView(blocks_[i].last); });
}

Result<Bytes> UMetaReader::read_block_bytes(const BlockHandle& handle) const {
  EC_ASSIGN_OR_RETURN(Bytes bytes, read_exactly(*file_, handle.offset, handle.size));
  if (!UMetaBlock::checksum_matches(bytes, identity_.file_number, handle.offset))
    return corruption_at(file_->path(), handle.offset,
                         "wrong checksum of a block of metadata records");
  if (cipher_ != nullptr) {
    Bytes rest = bytes.substr(kUMetaChecksumBytes);
    EC_TRY(open_sealed(*cipher_, handle.offset, rest, file_->path(), "block"));
    bytes.replace(kUMetaChecksumBytes, Bytes::npos, rest);
  }
  return bytes;
}

Result<std::shared_ptr<const UMetaBlock>> UMetaReader::well_formed(
    std::optional<UMetaBlock> block, const BlockHandle& handle) const {
  if (!block)
    return corruption_at(file_->path(), handle.offset, "block of metadata records is malformed");
  return std::make_shared<const UMetaBlock>(*std::move(block));
}

Result<std::shared_ptr<const UMetaBlock>> UMetaReader::read_block(std::size_t index) const {
  EC_ASSIGN_OR_RETURN(Bytes bytes, read_block_bytes(blocks_[index]));
  return well_formed(UMetaBlock::parse(std::move(bytes)), blocks_[index]);
}

Result<std::shared_ptr<const UMetaBlock>> UMetaReader::read_walked_block(std::size_t index) const {
  EC_ASSIGN_OR_RETURN(Bytes bytes, read_block_bytes(blocks_[index]));
  return well_formed(UMetaBlock::begin(std::move(bytes)), blocks_[index]);
}

}  // namespace edgecase::engine
