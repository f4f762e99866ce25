// What the compactor does about erased ranges: merges until no table and no value file holds
// anything of them, waits for readers of old files, and hands over to the engine, which clears the
// log and the manifest. engine/README.md, "Erasure".
#include <algorithm>
#include <iterator>
#include <utility>

#include "compaction/compactor.h"
#include "compaction/erasure_look.h"
#include "compaction/purge.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// While readers hold old files, or a flush is on its way.
constexpr std::int64_t kErasureCheckNs = 20'000'000;
// Of value files that are looked at in one slice; files whose live items are listed at once; whose
// items are overwritten in one slice.
constexpr std::uint64_t kBytesOfOneLook = 8u << 20;
constexpr std::size_t kFilesOfOneLook = 512;
constexpr std::size_t kFilesOfOneBlanking = 16;
// One part in so many of a file is overwritten where it lies; of a file with more, the rest moves.
constexpr std::uint64_t kBlankedShareMax = 4;
// Of all that merges ever wrote may be lost to erasures, besides discarded_bytes_min.
constexpr std::uint64_t kDiscardedPart = 4;

}  // namespace

// A round is of the ranges that are pending when it begins; those that come meanwhile have the
// next. A flush may make one pending at any time: they and the version are of one moment, or the
// round would look for them in tables that know nothing of them, and find nothing.
void Compactor::begin_erasure() {
  const VersionState state = context_.versions.state();
  Erasure fresh;
  fresh.ranges = state.erasures;
  std::set<NamespaceId> namespaces;
  for (const RangeDelete& each : fresh.ranges) {
    fresh.through = std::max(fresh.through, each.sequence);
    fresh.purge.within.push_back({each.lower, each.upper});
    namespaces.insert(namespace_of(each.lower));
  }
  fresh.purge.upto = fresh.through;
  for (const auto& [number, file] : state.version->value_files)
    if (namespaces.contains(file.namespace_id)) fresh.to_look_at.insert(number);
  fresh.written_bytes = stats().value_bytes;
  erasure_ = std::move(fresh);
}

Result<bool> Compactor::pick_erasure(const std::shared_ptr<const Version>& seen) {
  const bool begins = !erasure_;
  if (begins) begin_erasure();
  const std::shared_ptr<const Version> version = begins ? context_.versions.current() : seen;
  Erasure& round = *erasure_;
  if (round.purged.lock() != version) {
    EC_ASSIGN_OR_RETURN(const bool damaged, pick_damaged(*version));
    if (damaged) return true;
    if (auto plan = pick_purge(without_tables(*version, context_.host.lost_files()), round.purge))
      return start_erasing(*std::move(plan));
    round.purged = version;
  }
  EC_ASSIGN_OR_RETURN(const bool looked, look_at_values(*version, round.ranges));
  if (looked) return true;
  EC_ASSIGN_OR_RETURN(const bool empties, empty_values(*version));
  if (empties) return true;
  return finish_erasure(round.ranges);
}

Result<bool> Compactor::start_erasing(MergePlan plan) {
  EC_ASSIGN_OR_RETURN(const bool started, start(std::move(plan)));
  job_erases_ = started;
  return started;
}

// Some files at a time. What merges wrote since the round began holds nothing of the ranges, nor
// does a file of which all lives.
Result<bool> Compactor::look_at_values(const Version& version,
                                       std::span<const RangeDelete> ranges) {
  Erasure& round = *erasure_;
  const auto may_hold = [&](FileNumber number) {
    const auto file = version.value_files.find(number);
    if (file == version.value_files.end()) return false;
    const auto live = version.live_bytes.find(number);
    return live == version.live_bytes.end() || live->second < file->second.item_bytes;
  };
  std::uint64_t bytes = 0;
  while (!round.to_look_at.empty() && bytes < kBytesOfOneLook) {
    const FileNumber number = *round.to_look_at.begin();
    if (may_hold(number)) {
      EC_TRY(look_at(version, number, ranges));
      bytes += version.value_files.at(number).size_bytes;
    }
    round.to_look_at.erase(number);
    round.live.erase(number);
  }
  return bytes > 0;
}

Status Compactor::look_at(const Version& version, FileNumber number,
                          std::span<const RangeDelete> ranges) {
  Erasure& round = *erasure_;
  auto found = find_erased(version, number, ranges);
  if (!found.ok() && finds_damage_at(version, number)) {
    round.live.erase(number);
    found = find_erased(version, number, ranges);
  }
  // What cannot be told of is emptied of what lives in it.
  const bool damaged = !found.ok();
  if (damaged) {
    EC_ASSIGN_OR_RETURN(const bool destroyed, destroy_unreadable(version, number));
    if (destroyed) return ok();
    const StatusCode code = found.status().code();
    if (code != StatusCode::Corruption && code != StatusCode::IoError) return found.status();
  }
  const std::uint64_t file_bytes = version.value_files.at(number).size_bytes;
  // A sealed summary is never written twice: its place tells its nonce.
  const bool stays = !damaged && found->bytes * kBlankedShareMax <= file_bytes &&
                     (context_.keys == nullptr || !found->summary_names_range);
  if (!stays) {
    round.to_empty.insert(number);
  } else if (!found->items.empty() || found->summary_names_range) {
    round.to_blank[number] = std::move(*found);
  }
  return ok();
}

Result<ErasedItems> Compactor::find_erased(const Version& version, FileNumber number,
                                           std::span<const RangeDelete> ranges) {
  Erasure& round = *erasure_;
  const ValueFilePlace place = place_of(number, version.value_files.at(number).placement);
  FileSystem& file_system = context_.environment.file_system;
  const Blanks blanks = uncertain_blanks_.contains(number) ? Blanks::Uncertain : Blanks::Durable;
  if (blanks == Blanks::Durable) {
    EC_ASSIGN_OR_RETURN(auto searched,
                        search_erased_items(file_system, place, context_.tables, version,
                                            context_.host.lost_files(), ranges));
    if (searched) return std::move(*searched);
  }
  if (!round.live.contains(number)) {
    std::set<FileNumber> next;
    for (auto it = round.to_look_at.begin();
         it != round.to_look_at.end() && next.size() < kFilesOfOneLook; ++it)
      next.insert(*it);
    EC_ASSIGN_OR_RETURN(
        round.live, find_live_items(context_.tables, version, next, context_.host.lost_files()));
  }
  return find_erased_items(file_system, place, round.live.at(number), ranges, blanks);
}

ValueFilePlace Compactor::place_of(FileNumber number, Placement placement) const {
  return {value_table_path(context_.options.metadata_directory, context_.options.values_directory,
                           placement, number),
          context_.store_id, number, context_.keys};
}

// Some files: items that nothing points to are overwritten where they lie, since nobody can come to
// them any more. First the manifest says so: after a crash they are whole, blank or in between.
Status Compactor::blank_items() {
  auto& to_blank = erasure_->to_blank;
  const std::shared_ptr<const Version> version = context_.versions.current();
  VersionEdit edit;
  for (auto it = to_blank.begin(); it != to_blank.end();) {
    const auto file = version->value_files.find(it->first);
    const bool gone = file == version->value_files.end();
    if (!gone && !file->second.has_blanks) edit.blanked_value_files.push_back(it->first);
    it = gone ? to_blank.erase(it) : std::next(it);
  }
  if (!edit.blanked_value_files.empty()) EC_TRY(context_.versions.apply(edit));
  for (std::size_t i = 0; i < kFilesOfOneBlanking && !to_blank.empty(); ++i) {
    const auto& [number, erased] = *to_blank.begin();
    EC_TRY(blank_items_of(place_of(number, version->value_files.at(number).placement), erased));
    to_blank.erase(to_blank.begin());
  }
  return ok();
}

Status Compactor::blank_items_of(const ValueFilePlace& place, const ErasedItems& erased) {
  std::vector<FilePart> parts;
  for (const ValuePointer& item : erased.items) {
    if (!parts.empty() && parts.back().offset + parts.back().bytes == item.offset_bytes) {
      parts.back().bytes += item.size_bytes;
    } else {
      parts.push_back({item.offset_bytes, item.size_bytes});
    }
  }
  FileBytes end;
  if (erased.summary_names_range) {
    EC_ASSIGN_OR_RETURN(end, end_without_keys(context_.environment.file_system, place));
  }
  context_.tables.forget_items(place.number);
  uncertain_blanks_.insert(place.number);
  EC_TRY(context_.remover.blank(place.path, parts, end));
  uncertain_blanks_.erase(place.number);
  return ok();
}

// Files that edits removed and that somebody may still read, with something of the ranges in them.
// Whoever reads another one is no hindrance.
Result<bool> Compactor::readers_hold(std::span<const RangeDelete> ranges) {
  for (const ObsoleteFile& file : context_.versions.obsolete_files()) {
    if (file.kind == ObsoleteFile::Kind::Table) {
      if (!meeting(ranges, file.smallest, file.largest).empty()) return true;
      continue;
    }
    const auto beside = lies_beside(context_.environment.file_system,
                                    place_of(file.number, file.placement), ranges);
    if (!beside.ok() || !*beside) return true;
  }
  return false;
}

Result<bool> Compactor::empty_values(const Version& version) {
  std::set<FileNumber>& files = erasure_->to_empty;
  std::erase_if(files, [&](FileNumber number) { return !version.value_files.contains(number); });
  if (files.empty()) return false;
  EC_ASSIGN_OR_RETURN(const bool damaged, pick_damaged(version));
  if (damaged) return true;
  if (auto plan = pick_emptying(without_tables(version, context_.host.lost_files()), files))
    return start_erasing(*std::move(plan));
  // Nothing points into what is left.
  VersionEdit edit;
  remove_unused_value_files(version, edit);
  const auto all_of_it = [&](FileNumber number) {
    return std::find(edit.removed_value_files.begin(), edit.removed_value_files.end(), number) !=
           edit.removed_value_files.end();
  };
  if (!std::all_of(files.begin(), files.end(), all_of_it))
    return corruption("value file " + std::to_string(*files.begin()) + " cannot be emptied");
  EC_TRY(context_.versions.apply(edit));
  context_.host.publish();
  return true;
}

Result<bool> Compactor::finish_erasure(std::span<const RangeDelete> ranges) {
  if (!given_up_.empty()) {
    // Files of edits that may have succeeded: after one that does they are nobody's.
    EC_TRY(context_.versions.apply(VersionEdit()));
    for (const TableOutput& abandoned : given_up_) remove_output(abandoned);
    given_up_.clear();
  }
  remove_obsolete_files();
  std::vector<NamespaceId> namespaces;
  for (const RangeDelete& each : ranges) namespaces.push_back(namespace_of(each.lower));
  context_.remover.finish(namespaces);
  EC_TRY(context_.remover.retry());
  Result<bool> finished = false;
  EC_ASSIGN_OR_RETURN(const bool held, readers_hold(ranges));
  // Who began to read between the erasure and now, and does not know yet that its files go.
  if (held) context_.host.revoke();
  if (!held && !erasure_->to_blank.empty()) {
    EC_TRY(blank_items());
    return true;
  }
  if (!held) finished = context_.host.finish_erasure(erasure_->through);
  EC_TRY(finished.status());
  erasure_is_held_ = !*finished;
  erasure_asked_ = false;
  if (!*finished) {
    schedule_erasure(kErasureCheckNs);
    return false;
  }
  const std::uint64_t written_bytes = stats().value_bytes - erasure_->written_bytes;
  const std::size_t erased_ranges = ranges.size();
  erasure_.reset();
  MutexLock lock(mutex_);
  erasure_failure_ = ok();
  erasure_delay_ns_ = 0;
  ++erasure_stats_.erasures;
  erasure_stats_.erased_ranges += erased_ranges;
  erasure_stats_.rewritten_bytes += written_bytes;
  return true;
}

bool Compactor::may_discard(std::uint64_t lost_bytes) const {
  return discarded_bytes_ + lost_bytes <=
         context_.discarded_bytes_min + stats().value_bytes / kDiscardedPart;
}

// Who waits for an erasure does not wait for a merge: that begins again, within limits, so that one
// erasure after another does not keep merges from ever coming to an end.
void Compactor::make_way_for_erasure() {
  if (job_ == nullptr && survey_ == nullptr) return;
  if (job_erases_ && job_ != nullptr) return;
  if (!erasure_asked_ || !may_erase()) return;
  const std::uint64_t lost_bytes = job_ == nullptr ? 0 : job_->bytes_written();
  if (!may_discard(lost_bytes)) return;
  discarded_bytes_ += lost_bytes;
  discard_job();
  survey_.reset();
  if (current_ != nullptr) current_step_ = 0;
}

// Others go on meanwhile: it is no failure of theirs.
void Compactor::fail_erasure(const Status& failure) {
  if (job_ != nullptr && job_erases_) discard_job();
  erasure_.reset();
  if (failure.code() == StatusCode::OutOfSpace && context_.host.release_reserve())
    return schedule_run(0);
  erasure_asked_ = false;
  erasure_is_held_ = false;
  std::int64_t delay_ns = 0;
  {
    MutexLock lock(mutex_);
    erasure_failure_ = failure;
    ++erasure_stats_.failures;
    erasure_delay_ns_ = std::clamp(2 * erasure_delay_ns_, kRetryDelayMinNs, kRetryDelayMaxNs);
    erasure_not_before_ns_ = context_.environment.clock.boot_ns() + erasure_delay_ns_;
    delay_ns = erasure_delay_ns_;
  }
  schedule_erasure(delay_ns);
}

// A failure is the erasure's alone.
Result<bool> Compactor::pick_pending(const std::shared_ptr<const Version>& version) {
  if (!may_erase()) return false;
  const Result<bool> erases = pick_erasure(version);
  if (erases.ok()) return erases;
  fail_erasure(erases.status());
  return false;
}

bool Compactor::may_erase() {
  if (!context_.versions.has_erasures()) {
    erasure_.reset();
    return false;
  }
  std::int64_t wait_ns = 0;
  {
    MutexLock lock(mutex_);
    wait_ns = erasure_not_before_ns_ - context_.environment.clock.boot_ns();
  }
  if (wait_ns > 0) schedule_erasure(wait_ns);
  return wait_ns <= 0;
}

void Compactor::schedule_erasure(std::int64_t delay_ns) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(erasure_scheduled_, true)) return;
  }
  context_.host.schedule(delay_ns, [this] {
    {
      MutexLock lock(mutex_);
      erasure_scheduled_ = false;
    }
    schedule_run(0);
  });
}

void Compactor::erase_now() {
  {
    MutexLock lock(mutex_);
    erasure_not_before_ns_ = 0;
  }
  erasure_asked_ = true;
  wake();
}

ErasureStats Compactor::erasure_stats() const {
  MutexLock lock(mutex_);
  return erasure_stats_;
}

Status Compactor::erasure_failure() const {
  MutexLock lock(mutex_);
  return erasure_failure_;
}

}  // namespace edgecase::engine
