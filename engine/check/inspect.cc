#include "edgecase/inspect.h"

#include "check/facts.h"
#include "check/inspect_logs.h"
#include "core/identity.h"
#include "file/file_names.h"
#include "metadata/umeta_reader.h"
#include "value/group.h"
#include "value/value_table_reader.h"

namespace edgecase {
namespace {

using namespace std::string_view_literals;

using engine::add_fact;
using engine::shown_key;

void identity_lines(std::string& out, const engine::TableIdentity& identity) {
  add_fact(out, "store", engine::to_text(identity.store_id));
  add_fact(out, "file number", identity.file_number);
}

struct Decoded {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of keys, without their namespace, and values

  void add(const engine::EntryView& entry) {
    ++entries;
    bytes += engine::user_key_of(entry.full_key).size() + entry.value.size();
  }
};

// All entries of an item; false when it is malformed.
bool decode(const engine::Item& item, Decoded& decoded) {
  if (item.type() == engine::ItemType::Single) {
    Bytes room;
    const auto entry = engine::parse_single(item.contents(), room);
    if (entry) decoded.add(*entry);
    return entry.has_value();
  }
  engine::GroupReader group;
  if (!group.open(item.type(), item.contents())) return false;
  for (std::size_t i = 0; i < group.entry_count(); ++i) {
    if (!group.move_to(i)) return false;
    decoded.add(group.entry());
  }
  return true;
}

Result<std::string> inspect_value_table(std::unique_ptr<RandomAccessFile> file,
                                        engine::KeyRing* keys) {
  const std::uint64_t size = file->size_bytes();
  EC_ASSIGN_OR_RETURN(const auto table, engine::ValueTableReader::open_any(std::move(file), keys));
  EC_ASSIGN_OR_RETURN(const engine::ValueTableSummary summary, table->summary());
  Decoded decoded;
  std::uint64_t singles = 0;
  std::uint64_t blanks = 0;
  for (const engine::ValuePointer& pointer : summary.items) {
    const Result<engine::Item> item = table->read(pointer);
    if (!item.ok() && table->reads_blank(pointer)) {
      ++blanks;
      continue;
    }
    if (!item.ok()) return item.status();
    if (!decode(item.value(), decoded)) return table->damaged(pointer, "item is malformed");
    if (item.value().type() == engine::ItemType::Single) ++singles;
  }
  if (blanks == 0 ? decoded.entries != summary.entries : decoded.entries > summary.entries)
    return corruption_in(table->file().path(),
                         ": summary counts other entries than the items hold");

  std::string out;
  add_fact(out, "kind", "value table, version 1");
  add_fact(out, "encrypted", keys == nullptr ? "no"sv : "yes"sv);
  identity_lines(out, table->head().identity);
  add_fact(out, "namespace", table->head().namespace_id);
  if (!summary.namespace_name.empty()) add_fact(out, "namespace name", summary.namespace_name);
  add_fact(out, "placement",
           table->head().placement == Placement::Values ? "values"sv : "metadata"sv);
  add_fact(out, "group codec", table->head().codec == GroupCodec::Plain ? "plain"sv : "series"sv);
  add_fact(out, "bytes", size);
  add_fact(out, "groups", summary.items.size() - singles - blanks);
  add_fact(out, "single items", singles);
  if (blanks > 0) add_fact(out, "erased items", blanks);
  add_fact(out, "entries", decoded.entries);
  add_fact(out, "key and value bytes", decoded.bytes);
  add_fact(out, "deletes", summary.deletes);
  add_fact(out, "smallest sequence", summary.sequence_min);
  add_fact(out, "largest sequence", summary.sequence_max);
  add_fact(out, "smallest key", shown_key(summary.smallest));
  add_fact(out, "largest key", shown_key(summary.largest));
  return out;
}

Result<std::string> inspect_metadata_table(std::unique_ptr<RandomAccessFile> file,
                                           engine::KeyRing* keys) {
  const std::uint64_t size = file->size_bytes();
  EC_ASSIGN_OR_RETURN(const auto table, engine::UMetaReader::open_any(std::move(file), keys));
  engine::UMetaTotals totals;
  std::uint64_t filter_bytes = 0;
  std::uint64_t page_index_bytes = 0;
  std::uint64_t summarized_groups = 0;
  std::uint64_t summary_bytes = 0;
  for (std::size_t i = 0; i < table->blocks().size(); ++i) {
    EC_ASSIGN_OR_RETURN(auto block, table->read_block(i));
    filter_bytes += block->filter_bytes();
    totals.items += block->size();
    engine::UMetaCursor records;
    records.open(std::move(block));
    while (records.next()) {
      const engine::UMetaRecord& record = records.record();
      totals.entries += record.entries;
      page_index_bytes += record.pages.size();
      summarized_groups += record.numbers.empty() ? 0U : 1U;
      summary_bytes += record.numbers.size();
    }
  }
  const engine::UMetaProperties& properties = table->properties();
  if (totals.items != properties.totals.items || totals.entries != properties.totals.entries)
    return corruption_in(table->file().path(),
                         ": properties count other items than the blocks hold");

  std::string out;
  add_fact(out, "kind", "metadata table, version 1");
  add_fact(out, "encrypted", keys == nullptr ? "no"sv : "yes"sv);
  identity_lines(out, table->identity());
  add_fact(out, "bytes", size);
  add_fact(out, "blocks", table->blocks().size());
  add_fact(out, "filter bytes", filter_bytes);
  add_fact(out, "page index bytes", page_index_bytes);
  add_fact(out, "groups with a summary of numbers", summarized_groups);
  add_fact(out, "summary bytes", summary_bytes);
  add_fact(out, "items", properties.totals.items);
  add_fact(out, "entries", properties.totals.entries);
  add_fact(out, "deletes", properties.totals.deletes);
  add_fact(out, "smallest sequence", properties.sequence_min);
  add_fact(out, "largest sequence", properties.sequence_max);
  std::string files;
  for (const engine::ValueFileUse& use : properties.value_files)
    files.append(files.empty() ? "" : " ").append(std::to_string(use.file_number));
  add_fact(out, "value files", files);
  for (const engine::UMetaNamespace& ns : table->namespaces())
    add_fact(out, "namespace " + std::to_string(ns.id),
             std::to_string(ns.totals.entries) + " entries in " + std::to_string(ns.totals.items) +
                 " items, keys " + shown_key(ns.smallest) + " to " + shown_key(ns.largest));
  return out;
}

enum class FileKind : unsigned char {
  Unknown,
  Identity,
  Current,
  Log,
  KeyRing,
  Lock,
  MetadataTable,
  ValueTable,
  Reserve,
};

FileKind kind_of_name(std::string_view name) {
  if (name.ends_with(".val")) return FileKind::ValueTable;
  if (name.ends_with(".meta")) return FileKind::MetadataTable;
  const auto parsed = engine::parse_file_name(name);
  if (!parsed) return FileKind::Unknown;
  switch (parsed->type) {
    case engine::FileType::Identity:
    case engine::FileType::IdentityCopy:
    case engine::FileType::IdentityNew: return FileKind::Identity;
    case engine::FileType::Lock: return FileKind::Lock;
    case engine::FileType::Current:
    case engine::FileType::CurrentCopy:
    case engine::FileType::CurrentNew: return FileKind::Current;
    case engine::FileType::Manifest:
    case engine::FileType::WalSlot: return FileKind::Log;
    case engine::FileType::KeyRing: return FileKind::KeyRing;
    case engine::FileType::MetadataTable: return FileKind::MetadataTable;
    case engine::FileType::ValueTable: return FileKind::ValueTable;
    case engine::FileType::Reserve: return FileKind::Reserve;
  }
  return FileKind::Unknown;
}

// By its name, else by what it begins with.
Result<FileKind> kind_of(FileSystem& file_system, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const FileKind named =
      kind_of_name(std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1));
  EC_ASSIGN_OR_RETURN(const auto file, file_system.open_file(path));
  if (named != FileKind::Unknown) return named;
  Bytes magic(8, '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(0, magic.size(), magic.data()));
  magic.resize(size);
  if (magic == engine::kValueTableFormat.magic) return FileKind::ValueTable;
  if (magic == engine::kUMetaFormat.magic) return FileKind::MetadataTable;
  if (magic == "ECIDENT1") return FileKind::Identity;
  if (magic.starts_with("ECLOG\r\n")) return FileKind::Log;
  if (magic == "ECKEYS\r\n") return FileKind::KeyRing;
  return FileKind::Unknown;
}

}  // namespace

namespace {

// Null without a key: then only what is not encrypted can be looked at.
Result<std::unique_ptr<engine::KeyRing>> open_keys(FileSystem& file_system,
                                                   const Options& options) {
  if (!options.encryption) return std::unique_ptr<engine::KeyRing>();
  const std::string& directory = options.metadata_directory;
  EC_ASSIGN_OR_RETURN(const auto identity, engine::read_identity(file_system, directory));
  if (!identity) return not_found(directory + ": there is no store");
  return engine::KeyRing::open_if_encrypted(file_system, options, identity->store_id,
                                            system_random());
}

}  // namespace

Result<std::string> inspect_file(FileSystem& file_system, const std::string& path,
                                 const Options& options) {
  EC_ASSIGN_OR_RETURN(const FileKind kind, kind_of(file_system, path));
  const bool has_contents =
      kind == FileKind::Log || kind == FileKind::MetadataTable || kind == FileKind::ValueTable;
  std::unique_ptr<engine::KeyRing> keys;
  if (has_contents) {
    EC_ASSIGN_OR_RETURN(keys, open_keys(file_system, options));
  }
  switch (kind) {
    case FileKind::Identity: return engine::inspect_identity(file_system, path);
    case FileKind::Current: return engine::inspect_current(file_system, path);
    case FileKind::Log: return engine::inspect_log(file_system, path, keys.get());
    case FileKind::KeyRing: return engine::inspect_key_ring(file_system, path);
    case FileKind::Lock: return std::string("kind: lock; held while the store is open\n");
    case FileKind::Reserve:
      return std::string("kind: reserve; let go when the drive is full and something is erased\n");
    case FileKind::MetadataTable:
    case FileKind::ValueTable: break;
    case FileKind::Unknown: return invalid_argument(path + " is no file of a store");
  }
  EC_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, file_system.open_file(path));
  return kind == FileKind::ValueTable ? inspect_value_table(std::move(file), keys.get())
                                      : inspect_metadata_table(std::move(file), keys.get());
}

}  // namespace edgecase
