#include "check/store_files.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "core/drives.h"
#include "file/file_names.h"
#include "file/table_file.h"
#include "log/log.h"
#include "log/log_format.h"
#include "metadata/umeta_block.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// Empty when the directory is not there.
Result<std::vector<DirectoryEntry>> list(FileSystem& file_system, const std::string& directory) {
  auto entries = file_system.list_directory(directory);
  if (entries.status().code() == StatusCode::NotFound) return std::vector<DirectoryEntry>();
  return entries;
}

class Finder {
 public:
  Finder(FileSystem& file_system, const Options& options, Findings& findings)
      : file_system_(file_system), options_(options), findings_(findings) {
    files_.metadata_directory = options.metadata_directory;
    files_.values_directory = options.values_directory;
  }

  Result<StoreFiles> find() {
    EC_TRY(list_files());
    EC_TRY(read_identities());
    EC_TRY(lock());
    EC_ASSIGN_OR_RETURN(
        files_.key_ring,
        KeyRing::open_if_encrypted(file_system_, options_, files_.store_id, system_random()));
    note_key_ring();
    std::sort(files_.manifests.begin(), files_.manifests.end());
    files_.repair_begun =
        file_system_.file_size(repair_marker_path(files_.metadata_directory)).ok();
    return std::move(files_);
  }

 private:
  Status list_files() {
    const std::string& metadata = files_.metadata_directory;
    const std::string tables = tables_directory(metadata);
    for (const std::string& directory :
         {metadata, tables, wal_directory(metadata), files_.values_directory}) {
      EC_ASSIGN_OR_RETURN(const auto entries, list(file_system_, directory));
      for (const DirectoryEntry& entry : entries) {
        const auto parsed = parse_file_name(entry.name);
        if (!parsed || entry.is_directory) continue;
        if (directory == files_.values_directory) {
          values_in_use_ = true;
          if (parsed->type == FileType::ValueTable)
            files_.values.emplace(parsed->number, Placement::Values);
          continue;
        }
        metadata_in_use_ = true;
        note_metadata_file(*parsed);
      }
    }
    return ok();
  }

  void note_metadata_file(const ParsedFileName& file) {
    switch (file.type) {
      case FileType::Current: files_.has_current = true; break;
      case FileType::Manifest: files_.manifests.push_back(file.number); break;
      case FileType::MetadataTable: files_.tables.insert(file.number); break;
      case FileType::ValueTable: files_.values[file.number] = Placement::Metadata; break;
      case FileType::WalSlot: files_.wal_slots.insert(file.number); break;
      default: break;
    }
  }

  bool has_values_on_their_drive() const {
    return std::any_of(files_.values.begin(), files_.values.end(),
                       [](const auto& each) { return each.second == Placement::Values; });
  }

  // A damaged identity is a finding and counts as missing.
  Result<std::optional<Identity>> identity_of(const std::string& directory, bool in_use) {
    auto identity = read_identity(file_system_, directory);
    if (identity.status().code() == StatusCode::Corruption) {
      findings_.problem(identity.status().message());
      return std::optional<Identity>();
    }
    if (identity.ok() && *identity) {
      const Status damage = identity_damage(file_system_, directory, **identity);
      if (!damage.ok()) findings_.problem(damage.message() + "; its other copy is whole");
    }
    if (identity.ok() && !*identity && in_use)
      findings_.problem(identity_path(directory) + ": missing, but the directory holds a store");
    return identity;
  }

  Status read_identities() {
    const std::string& metadata_directory = files_.metadata_directory;
    const std::string& values_directory = files_.values_directory;
    EC_ASSIGN_OR_RETURN(const auto metadata, identity_of(metadata_directory, metadata_in_use_));
    EC_ASSIGN_OR_RETURN(const auto values, identity_of(values_directory, values_in_use_));
    files_.has_metadata_identity = metadata.has_value();
    files_.has_values_identity = values.has_value();
    if (!metadata_in_use_ && !values_in_use_)
      return not_found(metadata_directory + ": there is no store");
    if (metadata && metadata->role != DirectoryRole::Metadata)
      return unavailable(metadata_directory +
                         ": this is the values directory of a store, not its metadata directory; "
                         "are the two swapped?");
    // An empty mount point is no damage.
    if (metadata && !values && !has_values_on_their_drive())
      return check_values_identity(file_system_, values_directory, metadata->store_id);
    if (metadata && values)
      EC_TRY(check_values_identity(file_system_, values_directory, metadata->store_id));
    if (values && values->role != DirectoryRole::Values)
      return unavailable(values_directory +
                         ": this is the metadata directory of a store, not its values directory");
    if (!metadata_in_use_)
      findings_.problem(metadata_directory + ": holds no store; the values in " + values_directory +
                        " belong to one");
    if (metadata || values) {
      files_.store_id = metadata ? metadata->store_id : values->store_id;
      return ok();
    }
    return guess_store_id();
  }

  // Both identities are gone: what a table says of itself.
  Status guess_store_id() {
    for (const auto& [number, placement] : files_.values) {
      const auto file = file_system_.open_file(files_.value_path(number, placement));
      if (!file.ok()) continue;
      const auto head = read_table_head(**file, kValueTableFormat);
      if (!head.ok()) continue;
      files_.store_id = head->identity.store_id;
      return ok();
    }
    for (const FileNumber number : files_.tables) {
      const auto file = file_system_.open_file(files_.table_path(number));
      if (!file.ok()) continue;
      const auto head = read_table_head(**file, kUMetaFormat);
      if (!head.ok()) continue;
      files_.store_id = head->identity.store_id;
      return ok();
    }
    for (const std::uint64_t number : files_.manifests) {
      auto file = file_system_.open_file(manifest_path(files_.metadata_directory, number));
      if (!file.ok()) continue;
      const auto log = LogReader::open(std::move(file).value());
      if (!log.ok()) continue;
      files_.store_id = (*log)->identity().store_id;
      return ok();
    }
    return unavailable(files_.metadata_directory + " and " + files_.values_directory +
                       ": no file says which store it belongs to");
  }

  void note_key_ring() {
    if (files_.key_ring == nullptr) return;
    const std::string path = files_.key_ring->path();
    const auto look = look_at_key_ring(file_system_, path);
    if (look.ok() && look->whole_copies < 2)
      findings_.note(path + ": one of its two copies is damaged; the next start writes it anew");
  }

  Status lock() {
    for (const auto& [directory, in_use] : {std::pair(&files_.metadata_directory, metadata_in_use_),
                                            std::pair(&files_.values_directory, values_in_use_)}) {
      if (!in_use) continue;
      auto taken = file_system_.lock_file(lock_path(*directory));
      if (taken.status().code() == StatusCode::Locked)
        return locked(*directory + ": another process has this store open; stop the daemon first");
      if (!taken.ok()) return taken.status();
      files_.locks.push_back(std::move(taken).value());
    }
    return ok();
  }

  FileSystem& file_system_;
  const Options& options_;
  Findings& findings_;
  StoreFiles files_;
  bool metadata_in_use_ = false;
  bool values_in_use_ = false;
};

}  // namespace

std::string StoreFiles::table_path(FileNumber number) const {
  return metadata_table_path(metadata_directory, number);
}

std::string StoreFiles::value_path(FileNumber number, Placement placement) const {
  return value_table_path(metadata_directory, values_directory, placement, number);
}

Result<StoreFiles> find_store_files(FileSystem& file_system, const Options& options,
                                    Findings& findings) {
  return Finder(file_system, options, findings).find();
}

namespace {

constexpr std::size_t kShownKeyMaxBytes = 48;

}  // namespace

void add_fact(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).push_back('\n');
}

void add_fact(std::string& out, std::string_view name, std::uint64_t value) {
  add_fact(out, name, std::string_view(std::to_string(value)));
}

std::string shown_key(ByteView key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : key.substr(0, kShownKeyMaxBytes)) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  if (key.size() > kShownKeyMaxBytes) text += "...";
  return text;
}

namespace {

// The reader is content with one copy of the head: the other one tells of a torn write or of rot.
Status look_at_head(const RandomAccessFile& file, LogLook& look) {
  const std::uint64_t head_bytes = std::min(kLogHeadBytes, file.size_bytes());
  EC_ASSIGN_OR_RETURN(const Bytes bytes, read_exactly(file, 0, head_bytes));
  const ByteView head = bytes;
  const std::uint64_t copy_bytes = look.is_sealed ? kSealedLogHeadCopyBytes : kLogHeadCopyBytes;
  const auto copy = [&](std::size_t i) {
    const std::uint64_t offset = kLogHeadCopyOffsets[i];
    return offset < head.size() ? head.substr(offset, copy_bytes) : ByteView();
  };
  if (copy(0) != copy(1))
    look.notes.push_back(file.path() + " at byte 0: the two copies of the head differ");
  const bool has_rest = head.size() > kLogRestOffset &&
                        decode_log_rest(head.substr(kLogRestOffset), look.identity.store_id,
                                        look.identity.number) != 0;
  const std::uint64_t rests[][2] = {
      {kLogHeadCopyOffsets[0] + copy_bytes - sizeof(std::uint32_t), kLogHeadCopyOffsets[1]},
      {kLogHeadCopyOffsets[1] + copy_bytes - sizeof(std::uint32_t), kLogLinkOffset},
      {kLogLinkOffset + (look.successor == 0 ? 0 : kLogLinkBytes), kLogRestOffset},
      {kLogRestOffset + (has_rest ? kLogRestBytes : 0), kLogHeadBytes}};
  for (const auto& [begin, end] : rests) {
    if (begin < head.size() && !all_zero(head.substr(begin, end - begin)))
      look.notes.push_back(file.path() + " at byte " + std::to_string(begin) +
                           ": the rest of the head is not zero");
  }
  return ok();
}

// Zeros between a payload and the next record; no checksum covers them.
Status look_at_padding(const RandomAccessFile& file, std::uint64_t offset, const LogRecord& record,
                       LogLook& look) {
  const std::uint64_t padding = log_aligned(record.stored_bytes) - record.stored_bytes;
  if (padding == 0) return ok();
  const std::uint64_t at = offset + record.stored_bytes;
  EC_ASSIGN_OR_RETURN(const Bytes bytes, read_exactly(file, at, padding));
  if (!all_zero(bytes))
    look.notes.push_back(file.path() + " at byte " + std::to_string(at) +
                         ": the bytes that fill up a record are not zero");
  return ok();
}

// A manifest's file is never used twice: behind its last record there are zeros, up to its second
// copy.
Status look_behind_end(const RandomAccessFile& file, std::uint64_t end, LogLook& look) {
  constexpr std::uint64_t kPieceBytes = 256u << 10;
  std::uint64_t at = kLogHeadBytes + look.end_bytes;
  while (at < end) {
    const std::uint64_t piece = std::min(kPieceBytes, end - at);
    EC_ASSIGN_OR_RETURN(const Bytes bytes, read_exactly(file, at, piece));
    const std::size_t first = first_nonzero(bytes);
    if (first < bytes.size()) {
      look.notes.push_back(file.path() + " at byte " + std::to_string(at + first) +
                           ": a last record that is not whole: a change that was never confirmed, "
                           "or damage");
      return ok();
    }
    at += piece;
  }
  return ok();
}

Status look(FileSystem& file_system, const std::string& path, KeyRing* keys,
            const LookAtRecord& look_at_record, std::uint64_t begin, LogLook& result) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                      open_copy(file_system, path, begin));
  result.file_bytes = file->size_bytes();
  EC_ASSIGN_OR_RETURN(auto second, open_copy(file_system, path, begin));
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                      LogReader::open(std::move(second), keys));
  result.identity = reader->identity();
  result.version = reader->version();
  result.is_sealed = reader->is_sealed();
  result.successor = reader->successor();
  EC_TRY(look_at_head(*file, result));
  while (true) {
    const std::uint64_t offset = kLogHeadBytes + reader->end_bytes();
    EC_ASSIGN_OR_RETURN(const std::optional<LogRecord> record, reader->next());
    result.end_bytes = reader->end_bytes();
    if (!record) break;
    ++result.records;
    EC_TRY(look_at_padding(*file, offset, *record, result));
    EC_TRY(look_at_record(*record, offset));
  }
  result.torn_tail = reader->torn_tail();
  if (result.identity.type == LogType::Manifest) {
    const bool is_first = begin == 0 && result.identity.salt == kDoubledLogSalt;
    return look_behind_end(
        *file, is_first ? begin_of_second_copy(file->size_bytes()) : file->size_bytes(), result);
  }
  if (result.torn_tail)
    result.notes.push_back(path + " at byte " + std::to_string(kLogHeadBytes + result.end_bytes) +
                           ": a last record that is not whole: a write that was never confirmed, "
                           "or damage");
  return ok();
}

}  // namespace

LogLook look_at_log(FileSystem& file_system, const std::string& path, KeyRing* keys,
                    const LookAtRecord& look_at_record, std::uint64_t begin) {
  LogLook result;
  result.status = look(file_system, path, keys, look_at_record, begin, result);
  return result;
}

namespace {

constexpr std::size_t kShownRangesMax = 32;

void note_namespaces(const VersionEdit& edit, std::vector<NamespaceInfo>& known) {
  for (const NamespaceInfo& info : edit.namespaces) {
    const auto place =
        std::lower_bound(known.begin(), known.end(), info.id,
                         [](const NamespaceInfo& each, NamespaceId id) { return each.id < id; });
    if (place == known.end() || place->id != info.id) known.insert(place, info);
  }
}

void look_at_other_copy(FileSystem& file_system, const std::string& path, KeyRing* keys,
                        const LogCopies& copies, ManifestLook& look) {
  look.copies = copies.doubled ? 2 : 1;
  look.whole_copies = look.log.status.ok() ? 1 : 0;
  if (!copies.doubled) return;
  std::vector<std::string>& notes = look.log.notes;
  const LogCopy& other = copies.copies[1 - copies.best];
  if (!copies.damage.ok()) {
    notes.push_back(copies.damage.message() + "; the next start writes both anew");
    return;
  }
  if (copies.ends_differ) {
    notes.push_back(path +
                    ": the last edit is in one copy only: a change that was never "
                    "confirmed, or damage");
  } else if (copies.status.ok()) {
    look.whole_copies = 2;
  }
  const LogLook log = look_at_log(
      file_system, path, keys, [](const LogRecord&, std::uint64_t) { return ok(); }, other.begin);
  look.log.file_bytes = std::max(look.log.file_bytes, log.file_bytes);
  notes.insert(notes.end(), log.notes.begin(), log.notes.end());
}

}  // namespace

ManifestLook look_at_manifest(FileSystem& file_system, const std::string& path, KeyRing* keys) {
  ManifestLook look;
  const auto copies = look_at_copies(file_system, path, keys);
  if (!copies.ok()) {
    look.log.status = copies.status();
    return look;
  }
  look.log = look_at_log(
      file_system, path, keys,
      [&](const LogRecord& record, std::uint64_t offset) -> Status {
        const auto edit = VersionEdit::decode(record.payload);
        if (edit.status().code() == StatusCode::Corruption)
          return corruption_at(path, offset, edit.status().message());
        if (!edit.ok()) return edit.status();
        note_namespaces(*edit, look.namespaces);
        if ((look.edits == 0) != edit->format_version.has_value())
          return corruption_at(path, offset, "the state does not begin with its format version");
        if (const Status fits = look.state.apply(*edit); !fits.ok())
          return corruption_at(path, offset, fits.message());
        ++look.edits;
        return ok();
      },
      copies->best_copy().begin);
  if (look.log.status.ok()) look.log.status = copies->status;
  look_at_other_copy(file_system, path, keys, *copies, look);
  if (look.log.status.ok() && look.log.identity.type != LogType::Manifest)
    look.log.status = corruption_in(path, ": is no manifest");
  if (look.log.status.ok() && look.edits == 0)
    look.log.status = corruption_in(path, ": holds no state");
  return look;
}

void erasure_lines(std::string& out, const VersionState& state) {
  std::size_t blanked = 0;
  for (const auto& [number, file] : state.version->value_files) blanked += file.has_blanks ? 1 : 0;
  add_fact(out, "value tables with overwritten items", blanked);
  add_fact(out, "erased ranges that are pending", state.erasures.size());
  for (std::size_t i = 0; i < state.erasures.size() && i < kShownRangesMax; ++i) {
    const RangeDelete& each = state.erasures[i];
    add_fact(out, "  erased",
             shown_key(each.lower) + " to before " + shown_key(each.upper) + ", sequences below " +
                 std::to_string(each.sequence));
  }
  if (state.erasures.size() > kShownRangesMax)
    add_fact(out, "  and more", state.erasures.size() - kShownRangesMax);
  if (state.retention == nullptr) return;
  for (const GivenUp& each : state.retention->given_up())
    add_fact(out, "evicted",
             "of namespace " + std::to_string(each.namespace_id) + " before " +
                 std::to_string(each.before_ns) + " ns");
}

}  // namespace edgecase::engine
