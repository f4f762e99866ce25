#include "check/inspect_logs.h"

#include "base/write_batch_reader.h"
#include "check/facts.h"
#include "check/manifest_look.h"
#include "core/identity.h"
#include "file/file_names.h"
#include "file/table_file.h"
#include "file/whole_file.h"
#include "log/log_format.h"

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

}  // namespace

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

}  // namespace edgecase::engine
