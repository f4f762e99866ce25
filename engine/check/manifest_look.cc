#include "check/manifest_look.h"

#include <algorithm>

#include "check/facts.h"
#include "file/table_file.h"
#include "log/doubled_log.h"

namespace edgecase::engine {
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
