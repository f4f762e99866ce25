#include "check/manifest_look.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/zeros.h"
#include "file/table_file.h"
#include "log/doubled_log.h"
#include "log/log_format.h"

namespace edgecase::engine {
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
