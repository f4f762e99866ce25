#include "metadata/umeta_reader.h"

#include <algorithm>

#include "base/coding.h"

namespace edgecase::engine {
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
