#include <map>

#include "base/entry.h"
#include "check/store_files.h"
#include "core/drives.h"
#include "core/wal.h"
#include "edgecase/store_check.h"
#include "file/file_names.h"
#include "file/table_file.h"
#include "log/log_format.h"
#include "metadata/umeta_table.h"
#include "value/group.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSmallFileMaxBytes = 4096;

void head_lines(std::string& out, std::string_view kind, const LogLook& look) {
  add_fact(out, "kind", std::string(kind) + ", version " + std::to_string(look.version));
  add_fact(out, "encrypted", look.is_sealed ? "yes"sv : "no"sv);
  add_fact(out, "store", to_text(look.identity.store_id));
  add_fact(out, "number", look.identity.number);
  if (look.identity.predecessor != 0) {
    add_fact(out, "number of the one before", look.identity.predecessor);
    add_fact(out, "bytes of records of the one before", look.identity.predecessor_bytes);
    add_fact(out, "all before it durable",
             look.identity.open_predecessor ? "not known"sv : "yes"sv);
  }
  if (look.successor != 0) add_fact(out, "number of the next one", look.successor);
  add_fact(out, "bytes", look.file_bytes);
  add_fact(out, "bytes of records", look.end_bytes);
  add_fact(out, "records", look.records);
}

void note_lines(std::string& out, const LogLook& look) {
  for (const std::string& note : look.notes) add_fact(out, "note", note);
}

std::string describe(const NamespaceInfo& info) {
  return "\"" + info.name + "\", values on the " +
         (info.options.placement == Placement::Values ? "values" : "metadata") + " drive, " +
         (info.options.codec == GroupCodec::Series ? "series" : "plain") + " groups, " +
         std::to_string(info.options.scope_bytes) + " bytes of scope";
}

Result<std::string> inspect_manifest(FileSystem& file_system, const std::string& path,
                                     KeyRing* keys) {
  const ManifestLook look = look_at_manifest(file_system, path, keys);
  if (look.log.status.code() == StatusCode::NotFound)
    return corruption_at(path, 0, "the head is damaged or was never written");
  if (!look.log.status.ok()) return look.log.status;
  std::string out;
  head_lines(out, "manifest", look.log);
  add_fact(out, "copies", look.copies);
  add_fact(out, "whole copies", look.whole_copies);
  const VersionState& state = look.state;
  std::uint64_t table_bytes = 0;
  std::uint64_t entries = 0;
  for (const auto& table : state.version->tables) {
    table_bytes += table->size_bytes;
    entries += table->entry_count;
  }
  std::uint64_t value_bytes = 0;
  for (const auto& [number, file] : state.version->value_files) value_bytes += file.size_bytes;
  add_fact(out, "metadata tables", state.version->tables.size());
  add_fact(out, "bytes of metadata tables", table_bytes);
  add_fact(out, "entries", entries);
  add_fact(out, "value tables", state.version->value_files.size());
  add_fact(out, "bytes of value tables", value_bytes);
  add_fact(out, "file numbers below", state.file_number_limit);
  add_fact(out, "largest sequence in tables", state.flushed_sequence);
  add_fact(out, "oldest WAL segment needed", state.oldest_wal_segment);
  add_fact(out, "range deletes", state.version->range_delete_list.size());
  erasure_lines(out, state);
  for (const NamespaceInfo& info : state.namespaces)
    add_fact(out, "namespace " + std::to_string(info.id), describe(info));
  note_lines(out, look.log);
  return out;
}

Result<std::string> inspect_wal(FileSystem& file_system, const std::string& path, KeyRing* keys) {
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber first = 0;
  SequenceNumber last = 0;
  const LogLook look = look_at_log(
      file_system, path, keys, [&](const LogRecord& record, std::uint64_t offset) -> Status {
        WriteBatchReader batch(record.payload);
        std::uint64_t count = 0;
        while (const auto entry = batch.next()) {
          ++count;
          if (entry->kind != EntryKind::Put) ++deletes;
        }
        if (!batch.status().ok()) return corruption_at(path, offset, batch.status().message());
        if (count == 0) return corruption_at(path, offset, "empty batch");
        if (record.sequence <= last)
          return corruption_at(path, offset, "sequence does not follow the one before");
        if (first == 0) first = record.sequence;
        last = record.sequence + count - 1;
        entries += count;
        return ok();
      });
  if (!look.status.ok()) return look.status;
  std::string out;
  head_lines(out, "write-ahead log segment", look);
  add_fact(out, "entries", entries);
  add_fact(out, "deletes", deletes);
  add_fact(out, "smallest sequence", first);
  add_fact(out, "largest sequence", last);
  note_lines(out, look);
  return out;
}

Result<std::string> inspect_identity(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const Bytes bytes, read_whole_file(file_system, path, kSmallFileMaxBytes));
  EC_ASSIGN_OR_RETURN(const Identity identity, decode_identity(bytes, path));
  std::string out;
  add_fact(out, "kind", "identity, version 1");
  add_fact(out, "store", to_text(identity.store_id));
  add_fact(out, "directory", identity.role == DirectoryRole::Metadata ? "metadata"sv : "values"sv);
  return out;
}

Result<std::string> inspect_current(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t number, read_current(file_system, path));
  std::string out;
  add_fact(out, "kind", "name of the current manifest");
  add_fact(out, "manifest", manifest_name(number));
  return out;
}

Result<std::string> inspect_key_ring(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const KeyRingLook look, look_at_key_ring(file_system, path));
  std::string out;
  add_fact(out, "kind", "key ring, version 1");
  add_fact(out, "store", to_text(look.store_id));
  add_fact(out, "generation", look.generation);
  add_fact(out, "bytes", look.bytes);
  add_fact(out, "whole copies", look.whole_copies);
  add_fact(out, "wrapped by master key", look.master_key);
  return out;
}

Result<std::string> inspect_log(FileSystem& file_system, const std::string& path, KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_file(path));
  const std::uint64_t size = file->size_bytes();
  const auto parsed = parse_file_name(path.substr(path.rfind('/') + 1));
  // The first copy of a manifest may be damaged.
  if (parsed && parsed->type == FileType::Manifest)
    return inspect_manifest(file_system, path, keys);
  const auto reader = LogReader::open(std::move(file), keys);
  if (reader.status().code() == StatusCode::NotFound) {
    if (!parsed || parsed->type != FileType::WalSlot)
      return corruption_at(path, 0, "the head is damaged or was never written");
    std::string out;
    add_fact(out, "kind", "write-ahead log slot, not in use: its head was never written whole");
    add_fact(out, "bytes", size);
    return out;
  }
  if (!reader.ok()) return reader.status();
  return (*reader)->identity().type == LogType::Manifest ? inspect_manifest(file_system, path, keys)
                                                         : inspect_wal(file_system, path, keys);
}

}  // namespace

}  // namespace edgecase::engine

namespace edgecase {

// A whole store at a glance, from its manifest and its log alone: no table is read.

namespace {

using engine::add_fact;

struct Amount {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t more_bytes) {
    ++files;
    bytes += more_bytes;
  }
  std::string text() const {
    return std::to_string(files) + " files, " + std::to_string(bytes) + " bytes";
  }
};

void layer_lines(std::string& out, const engine::VersionState& state) {
  Amount tables;
  std::uint64_t entries = 0;
  for (const auto& table : state.version->tables) {
    tables.add(table->size_bytes);
    entries += table->entry_count;
  }
  std::map<Placement, Amount> layers;
  std::map<NamespaceId, Amount> namespaces;
  for (const auto& [number, file] : state.version->value_files) {
    layers[file.placement].add(file.size_bytes);
    namespaces[file.namespace_id].add(file.size_bytes);
  }
  add_fact(out, "entries in tables, deletes and replaced ones too", entries);
  add_fact(out, "metadata tables", tables.text());
  add_fact(out, "value tables on the metadata drive", layers[Placement::Metadata].text());
  add_fact(out, "value tables on the values drive", layers[Placement::Values].text());
  for (const NamespaceInfo& info : state.namespaces)
    add_fact(out, "namespace " + std::to_string(info.id),
             "\"" + info.name + "\", " + namespaces[info.id].text());
}

}  // namespace

Result<std::string> inspect_store(FileSystem& file_system, const Options& options) {
  const std::string& metadata_directory = options.metadata_directory;
  const std::string& values_directory = options.values_directory;
  EC_ASSIGN_OR_RETURN(const auto identity, engine::read_identity(file_system, metadata_directory));
  if (!identity) return not_found(metadata_directory + ": there is no store");
  EC_TRY(engine::check_values_identity(file_system, values_directory, identity->store_id));
  EC_ASSIGN_OR_RETURN(const auto keys,
                      engine::KeyRing::open_if_encrypted(file_system, options, identity->store_id,
                                                         system_random()));
  EC_ASSIGN_OR_RETURN(const std::uint64_t number,
                      engine::read_current(file_system, engine::current_path(metadata_directory)));
  const auto manifest = engine::look_at_manifest(
      file_system, engine::manifest_path(metadata_directory, number), keys.get());
  EC_TRY(manifest.log.status);
  const engine::VersionState& state = manifest.state;
  EC_ASSIGN_OR_RETURN(const auto wal,
                      engine::find_wal(file_system, metadata_directory, identity->store_id,
                                       state.oldest_wal_segment, keys.get()));
  std::string out;
  add_fact(out, "store", engine::to_text(identity->store_id));
  add_fact(out, "encrypted", keys == nullptr ? "no" : "yes, AES-256-GCM");
  if (keys != nullptr) add_fact(out, "keys of scopes", keys->size());
  add_fact(out, "manifest", engine::manifest_name(number));
  add_fact(out, "largest sequence in tables", state.flushed_sequence);
  add_fact(out, "WAL segments needed", wal.chain.size());
  layer_lines(out, state);
  engine::erasure_lines(out, state);
  return out;
}

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
