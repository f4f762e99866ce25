#include "check/store_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_block.h"
#include "value/group.h"

namespace edgecase::engine {
namespace {

bool take_entry(const EntryView& entry, NamespaceId namespace_id, const LookAtEntry& look,
                ItemFacts& facts) {
  if (entry.full_key.size() < kNamespacePrefixBytes || namespace_of(entry.full_key) != namespace_id)
    return false;
  if (facts.entries == 0) {
    facts.first = entry.full_key;
    facts.sequence_min = entry.sequence;
  } else if (entry.full_key <= ByteView(facts.last)) {
    return false;
  }
  facts.last = entry.full_key;
  facts.sequence_min = std::min(facts.sequence_min, entry.sequence);
  facts.sequence_max = std::max(facts.sequence_max, entry.sequence);
  ++facts.entries;
  if (entry.kind == EntryKind::Delete) ++facts.deletes;
  if (look) look(entry);
  return true;
}

}  // namespace

std::optional<ItemFacts> read_item(const Item& item, NamespaceId namespace_id,
                                   const LookAtEntry& look) {
  ItemFacts facts;
  facts.type = item.type();
  if (facts.type == ItemType::Single) {
    Bytes room;
    const auto entry = parse_single(item.contents(), room);
    if (!entry || !take_entry(*entry, namespace_id, look, facts)) return std::nullopt;
    return facts;
  }
  GroupReader group;
  if (!group.open(facts.type, item.contents())) return std::nullopt;
  for (std::size_t i = 0; i < group.entry_count(); ++i) {
    if (!group.move_to(i) || !take_entry(group.entry(), namespace_id, look, facts))
      return std::nullopt;
  }
  return facts;
}

namespace {

constexpr std::uint64_t kPieceBytes = 1u << 20;
constexpr std::size_t kOpenFilesMax = 64;

Status differs(const std::string& place, std::string_view what, std::uint64_t found,
               std::uint64_t expected) {
  return corruption(place + ": " + std::string(what) + " is " + std::to_string(found) +
                    ", expected " + std::to_string(expected));
}

// Whether a get that goes by the page index finds the key.
bool page_leads_to(const UMetaRecord& record, const Item& item, const SealOverhead& overhead,
                   ByteView full_key) {
  if (record.pages.empty()) return true;
  auto place =
      find_page(record.pages, record.pointer.size_bytes, record.first, record.last, full_key);
  if (place) {
    // The index counts what lies in the file.
    place->offset -= overhead.head_bytes + place->number * overhead.page_bytes;
    place->size -= overhead.page_bytes;
    if (place->offset > item.bytes.size()) return false;
  }
  if (!place || record.type != ItemType::PlainGroup) return false;
  Bytes unpacked;
  ByteView page;
  EntryView entry;
  bool found = false;
  return unpack_page(ByteView(item.bytes).substr(place->offset, place->size), unpacked, page) &&
         find_in_page(page, user_key_of(full_key), record.sequence_max, entry, found) && found;
}

// Whether the record's summary is that of these numbers.
bool tells_of(const UMetaRecord& record, const NumberGathering& numbers) {
  Bytes bytes;
  numbers.append_to(bytes);
  NumberSummary said;
  NumberSummary found;
  if (!parse_number_summary(record.numbers, said) || !parse_number_summary(bytes, found))
    return false;
  said.count = found.count = record.entries;
  return is_same_summary(said, found);
}

}  // namespace

struct TableCheck::Sums {
  UMetaTotals totals;
  std::map<NamespaceId, UMetaTotals> namespaces;
  std::map<FileNumber, std::uint64_t> uses;      // of namespaces that are there
  std::map<FileNumber, std::uint64_t> all_uses;  // as the table itself has it
  SequenceNumber sequence_min = UINT64_MAX;
  SequenceNumber sequence_max = 0;
  Bytes smallest;
  Bytes largest;
};

Result<std::uint32_t> checksum_of(const RandomAccessFile& file,
                                  const std::function<Status(std::uint64_t bytes)>& read) {
  Bytes piece(std::min(kPieceBytes, file.size_bytes()), '\0');
  std::uint32_t checksum = 0;
  for (std::uint64_t at = 0; at < file.size_bytes();) {
    EC_ASSIGN_OR_RETURN(const std::size_t size, file.read(at, piece.size(), piece.data()));
    if (size == 0) break;
    checksum = crc32c_extend(checksum, ByteView(piece).substr(0, size));
    at += size;
    EC_TRY(read(size));
  }
  return checksum;
}

TableCheck::TableCheck(FileSystem& file_system, const StoreFiles& files, const VersionState& state,
                       Findings& findings)
    : file_system_(file_system),
      files_(files),
      state_(state),
      findings_(findings),
      open_(kOpenFilesMax, UINT64_MAX) {}

Status TableCheck::check_whole_file(const RandomAccessFile& file, std::uint64_t size_bytes,
                                    std::uint32_t checksum, bool& is_whole) {
  if (file.size_bytes() != size_bytes) {
    is_whole = false;
    findings_.problem(corruption_at(file.path(), std::min(file.size_bytes(), size_bytes),
                                    "file has " + std::to_string(file.size_bytes()) +
                                        " bytes, the manifest says " + std::to_string(size_bytes))
                          .message());
  }
  const auto found =
      checksum_of(file, [this](std::uint64_t bytes) { return findings_.read_bytes(bytes); });
  if (found.status().code() == StatusCode::Cancelled) return found.status();
  const bool matches = findings_.accept(found.status()) && *found == checksum;
  if (found.ok() && !matches && is_whole)
    findings_.problem(file.path() + ": wrong checksum of the whole file");
  is_whole = is_whole && matches;
  return ok();
}

Status TableCheck::look_at_value_table(const ValueFileMetadata& expected, bool& is_whole) {
  const std::string path = files_.value_path(expected.number, expected.placement);
  auto file = file_system_.open_file(path);
  if (file.status().code() == StatusCode::NotFound)
    return corruption_in(path, ": missing, but the manifest names it");
  if (!file.ok()) return file.status();
  // Records tell of what is left of it, each with its item's checksum.
  if (!expected.has_blanks || (*file)->size_bytes() != expected.size_bytes)
    EC_TRY(check_whole_file(**file, expected.size_bytes, expected.checksum, is_whole));
  EC_ASSIGN_OR_RETURN(const auto table,
                      ValueTableReader::open(std::move(file).value(), files_.store_id,
                                             expected.number, files_.keys()));
  if (table->head().namespace_id != expected.namespace_id)
    return differs(path, "namespace", table->head().namespace_id, expected.namespace_id);
  if (table->head().placement != expected.placement)
    return corruption_in(path, ": lies on another drive than its head says");
  const auto said = table->summary();
  // An erasure that is pending may have stopped while it wrote a new one: it empties the file.
  if (expected.has_blanks && !state_.erasures.empty() &&
      said.status().code() == StatusCode::Corruption)
    return ok();
  EC_ASSIGN_OR_RETURN(const ValueTableSummary summary, said);
  if (summary.items.size() != expected.item_count)
    return differs(path, "count of items", summary.items.size(), expected.item_count);
  return ok();
}

Status TableCheck::check_value_table(const ValueFileMetadata& expected) {
  ++findings_.report().value_tables;
  bool is_whole = true;
  const Status looked = look_at_value_table(expected, is_whole);
  if (looked.code() == StatusCode::Cancelled) return looked;
  if (!findings_.accept(looked) || !is_whole) damaged_values_.insert(expected.number);
  return ok();
}

Status TableCheck::check_metadata_table(const TableMetadata& expected) {
  ++findings_.report().tables;
  bool is_whole = true;
  const Status looked = look_at_metadata_table(expected, is_whole);
  if (looked.code() == StatusCode::Cancelled) return looked;
  if (!findings_.accept(looked) || !is_whole) damaged_tables_.insert(expected.number);
  return ok();
}

Status TableCheck::look_at_metadata_table(const TableMetadata& expected, bool& is_whole) {
  const std::string path = files_.table_path(expected.number);
  auto file = file_system_.open_file(path);
  if (file.status().code() == StatusCode::NotFound)
    return corruption_in(path, ": missing, but the manifest names it");
  if (!file.ok()) return file.status();
  EC_TRY(check_whole_file(**file, expected.size_bytes, expected.checksum, is_whole));
  EC_ASSIGN_OR_RETURN(const auto table, UMetaReader::open(std::move(file).value(), files_.store_id,
                                                          expected.number, files_.keys()));
  Sums sums;
  EC_TRY(check_records(*table, expected, sums, is_whole));
  return is_whole ? check_sums(*table, expected, sums) : ok();
}

Status TableCheck::check_records(const UMetaReader& table, const TableMetadata& expected,
                                 Sums& sums, bool& is_whole) {
  const std::string& path = table.file().path();
  for (std::size_t b = 0; b < table.blocks().size(); ++b) {
    const UMetaReader::BlockHandle& handle = table.blocks()[b];
    auto block = table.read_block(b);
    if (!findings_.accept(block.status())) {
      is_whole = false;
      continue;
    }
    UMetaCursor records;
    records.open(*std::move(block));
    while (records.next()) {
      const UMetaRecord& record = records.record();
      const std::string place = path + " at byte " + std::to_string(handle.offset) + ", record " +
                                std::to_string(records.index());
      if (sums.totals.items > 0 && record.first <= ByteView(sums.largest))
        return corruption(place + ": keys do not follow those of the record before");
      const bool single = record.type == ItemType::Single;
      if (single != (expected.kind == TableKind::Singles))
        return corruption(place + ": is of another kind than the table");
      if (sums.totals.items == 0) sums.smallest = record.first;
      sums.largest = record.last;
      for (UMetaTotals* totals : {&sums.totals, &sums.namespaces[namespace_of(record.first)]}) {
        ++totals->items;
        totals->entries += record.entries;
        totals->deletes += record.deletes;
      }
      sums.all_uses[record.pointer.file_number] += record.pointer.size_bytes;
      if (knows_namespace(namespace_of(record.first)))
        sums.uses[record.pointer.file_number] += record.pointer.size_bytes;
      sums.sequence_min = std::min(sums.sequence_min, record.sequence_min);
      sums.sequence_max = std::max(sums.sequence_max, record.sequence_max);
      const Status checked = check_record(record, place);
      if (checked.code() == StatusCode::Cancelled) return checked;
      is_whole = findings_.accept(checked) && is_whole;
    }
    if (ByteView(handle.last) != ByteView(sums.largest))
      return corruption_at(path, handle.offset, "the index names another last key of the block");
  }
  return ok();
}

bool TableCheck::knows_namespace(NamespaceId id) const {
  return std::any_of(state_.namespaces.begin(), state_.namespaces.end(),
                     [id](const NamespaceInfo& info) { return info.id == id; });
}

Result<std::shared_ptr<const ValueTableReader>> TableCheck::open_values(FileNumber number) {
  if (auto open = open_.find(number)) return open;
  const ValueFileMetadata& known = state_.version->value_files.at(number);
  EC_ASSIGN_OR_RETURN(auto file,
                      file_system_.open_file(files_.value_path(number, known.placement)));
  EC_ASSIGN_OR_RETURN(
      std::shared_ptr<const ValueTableReader> reader,
      ValueTableReader::open(std::move(file), files_.store_id, number, files_.keys()));
  return open_.insert(number, std::move(reader), 0);
}

// The item is there, whole, and what the record says of it.
Status TableCheck::check_record(const UMetaRecord& record, const std::string& place) {
  const NamespaceId id = namespace_of(record.first);
  // The namespace was dropped: its values are gone, the record goes with the next merge.
  if (!knows_namespace(id)) return ok();
  if (!state_.version->value_files.contains(record.pointer.file_number))
    return corruption(place + ": points into file " + std::to_string(record.pointer.file_number) +
                      ", which the manifest does not name");
  const auto values = open_values(record.pointer.file_number);
  if (!values.ok()) {
    damaged_values_.insert(record.pointer.file_number);
    return values.status()
        .as(StatusCode::Corruption)
        .with_context(place + ": its values cannot be read: ");
  }
  const auto item = (*values)->read(record.pointer);
  EC_TRY(findings_.read_bytes(record.pointer.size_bytes));
  if (item.status().code() == StatusCode::NotFound) {
    findings_.note(item.status().message() + "; that its bytes go is pending");
    return ok();
  }
  if (!item.ok()) {
    damaged_values_.insert(record.pointer.file_number);
    return item.status().as(StatusCode::Corruption).with_context("", " (" + place + ")");
  }
  bool filtered_out = false;
  bool paged_out = false;
  NumberGathering numbers;
  const auto facts = read_item(*item, id, [&](const EntryView& entry) {
    paged_out =
        paged_out || !page_leads_to(record, *item, (*values)->seal_overhead(), entry.full_key);
    if (!record.numbers.empty()) numbers.add(entry);
    if (record.filter.empty()) return;
    const auto hash = filter_hash(record.type, entry.full_key);
    filtered_out = filtered_out || (hash && !filter_may_contain(record.filter, *hash));
  });
  if (!facts) {
    damaged_values_.insert(record.pointer.file_number);
    return (*values)
        ->damaged(record.pointer, "item is malformed")
        .with_context("", " (" + place + ")");
  }
  ++findings_.report().items;
  findings_.report().entries += facts->entries;
  if (facts->type != record.type || facts->first != record.first || facts->last != record.last)
    return corruption(place + ": its item is of another type or holds other keys");
  if (facts->entries != record.entries)
    return differs(place, "count of entries", record.entries, facts->entries);
  if (facts->deletes != record.deletes)
    return differs(place, "count of deletes", record.deletes, facts->deletes);
  if (facts->sequence_max != record.sequence_max || facts->sequence_min < record.sequence_min)
    return differs(place, "largest sequence", record.sequence_max, facts->sequence_max);
  if (paged_out) return corruption(place + ": the page index does not lead to a key of the item");
  if (filtered_out) return corruption(place + ": the filter does not know a key of the item");
  if (!record.numbers.empty() && !tells_of(record, numbers))
    return corruption(place + ": the summary of its numbers is not what the item holds");
  return ok();
}

Status TableCheck::check_sums(const UMetaReader& table, const TableMetadata& expected,
                              const Sums& sums) {
  const std::string& path = table.file().path();
  const UMetaProperties& properties = table.properties();
  const std::pair<std::uint64_t, std::uint64_t> pairs[] = {
      {properties.totals.items, sums.totals.items},
      {properties.totals.entries, sums.totals.entries},
      {properties.totals.deletes, sums.totals.deletes},
      {properties.sequence_min, sums.sequence_min},
      {properties.sequence_max, sums.sequence_max},
      {expected.item_count, sums.totals.items},
      {expected.entry_count, sums.totals.entries},
      {expected.delete_count, sums.totals.deletes},
      {expected.sequence_min, sums.sequence_min},
      {expected.sequence_max, sums.sequence_max},
      {table.namespaces().size(), sums.namespaces.size()}};
  for (const auto& [said, found] : pairs) {
    if (said != found) return differs(path, "a total", said, found);
  }
  if (expected.smallest != sums.smallest || expected.largest != sums.largest)
    return corruption_in(path, ": the manifest names other bounds of its keys");
  const auto list = [](const std::map<FileNumber, std::uint64_t>& sizes) {
    ValueFileUses uses;
    for (const auto& [number, bytes] : sizes) uses.push_back({number, bytes});
    return uses;
  };
  if (properties.value_files != list(sums.all_uses) || expected.value_files != list(sums.uses))
    return corruption_in(path, ": the records point into other value files than the table says");
  for (const UMetaNamespace& ns : table.namespaces()) {
    const auto found = sums.namespaces.find(ns.id);
    if (found == sums.namespaces.end() || found->second.items != ns.totals.items ||
        found->second.entries != ns.totals.entries || found->second.deletes != ns.totals.deletes)
      return corruption_in(
          path, ": the table of namespaces is wrong for namespace " + std::to_string(ns.id));
  }
  return ok();
}

}  // namespace edgecase::engine
