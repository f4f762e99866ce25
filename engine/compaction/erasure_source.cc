#include "compaction/erasure_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compaction/merge_plan.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// While readers hold old files, or a flush is on its way.
constexpr std::int64_t kHeldCheckNs = 20'000'000;
// Bytes of value files that are looked at in one slice; files whose live items are listed at once;
// items that are overwritten in one slice.
constexpr std::uint64_t kBytesOfOneLook = 8u << 20;
constexpr std::size_t kFilesOfOneLook = 512;
constexpr std::size_t kFilesOfOneBlanking = 16;
// One part in so many of a file is overwritten where it lies; of a file with more, the rest moves.
constexpr std::uint64_t kBlankedShareMax = 4;

}  // namespace

ErasureSource::ErasureSource(const CompactorContext& context, MergeFiles& files, Removals& removals)
    : context_(context), removals_(removals), damage_(context, files, removals) {
  // An erasure that an earlier process did not end may have left zeros that its sync refused.
  const VersionState state = context_.versions.state();
  if (state.erasures.empty()) return;
  for (const auto& [number, file] : state.version->value_files)
    if (file.has_blanks) uncertain_blanks_.insert(number);
}

void ErasureSource::erase_now() {
  {
    MutexLock lock(mutex_);
    retry_.end_wait();
  }
  asked_ = true;
}

Urgency ErasureSource::urgency() {
  if (!context_.versions.has_erasures()) {
    round_.reset();
    asked_ = false;
    return Urgency::None;
  }
  if (wait_left_ns() > 0) return Urgency::None;
  return asked_ ? Urgency::Awaited : Urgency::Due;
}

std::int64_t ErasureSource::wait_left_ns() const {
  MutexLock lock(mutex_);
  return retry_.left_ns(context_.environment.clock.boot_ns());
}

std::optional<std::int64_t> ErasureSource::look_again_in_ns() {
  if (!context_.versions.has_erasures()) return std::nullopt;
  const std::int64_t left_ns = wait_left_ns();
  if (left_ns > 0) return left_ns;
  return held_ ? std::optional(kHeldCheckNs) : std::nullopt;
}

// A flush may make a range pending at any time: the ranges and the version are of one moment, or
// the round would look for them in tables that know nothing of them, and find nothing.
bool ErasureSource::begin_round() {
  const VersionState state = context_.versions.state();
  Round fresh;
  // What is newer is in the log: tables that a flush makes of what is older are to come.
  std::copy_if(state.erasures.begin(), state.erasures.end(),
               std::back_inserter(fresh.targets.ranges),
               [&](const RangeDelete& each) { return each.sequence <= state.flushed_sequence; });
  if (fresh.targets.ranges.empty() && !state.erasures.empty()) return false;
  std::set<NamespaceId> namespaces;
  for (const RangeDelete& each : fresh.targets.ranges) {
    fresh.through = std::max(fresh.through, each.sequence);
    fresh.purge.within.push_back({each.lower, each.upper});
    namespaces.insert(namespace_of(each.lower));
  }
  fresh.purge.upto = fresh.through;
  for (const auto& [number, file] : state.version->value_files)
    if (namespaces.contains(file.namespace_id)) fresh.to_look_at.insert(number);
  damage_.begin_round();
  round_ = std::move(fresh);
  return true;
}

// An erasure is of all there is, damaged or not.
Result<Offer> ErasureSource::next(const LaneView& view) {
  const bool begins = !round_;
  if (begins && !begin_round()) return Offer::none();
  const std::shared_ptr<const Version> version = begins ? context_.versions.current() : view.all;
  if (round_->purged.lock() != version) {
    EC_ASSIGN_OR_RETURN(Offer mends, damage_.next(*version, round_->targets));
    if (mends.kind != Offer::Kind::None) return mends;
    const Version whole = without_tables(*version, context_.host.lost_files());
    if (auto plan = pick_purge(whole, round_->purge)) return Offer::merge(*std::move(plan));
    round_->purged = version;
  }
  EC_ASSIGN_OR_RETURN(const bool looked, look_at_values(*version));
  if (looked) return Offer::step();
  EC_ASSIGN_OR_RETURN(Offer empties, empty_values(*version));
  if (empties.kind != Offer::Kind::None) return empties;
  return finish_round();
}

// Some files at a time. What merges wrote since the round began holds nothing of the ranges, nor
// does a file of which all lives.
Result<bool> ErasureSource::look_at_values(const Version& version) {
  const auto may_hold = [&](FileNumber number) {
    const auto file = version.value_files.find(number);
    if (file == version.value_files.end()) return false;
    const auto live = version.live_bytes.find(number);
    return live == version.live_bytes.end() || live->second < file->second.item_bytes;
  };
  std::uint64_t bytes = 0;
  while (!round_->to_look_at.empty() && bytes < kBytesOfOneLook) {
    const FileNumber number = *round_->to_look_at.begin();
    if (may_hold(number)) {
      EC_TRY(look_at(version, number));
      bytes += version.value_files.at(number).size_bytes;
    }
    round_->to_look_at.erase(number);
    round_->live.erase(number);
  }
  return bytes > 0;
}

Status ErasureSource::look_at(const Version& version, FileNumber number) {
  auto found = find_erased(version, number);
  if (!found.ok() && damage_.finds_damage_at(version, number)) {
    round_->live.erase(number);
    found = find_erased(version, number);
  }
  // What cannot be told of is emptied of what lives in it.
  const bool damaged = !found.ok();
  if (damaged) {
    EC_ASSIGN_OR_RETURN(const bool destroyed, damage_.destroy_unreadable(version, number));
    if (destroyed) return ok();
    const StatusCode code = found.status().code();
    if (code != StatusCode::Corruption && code != StatusCode::IoError) return found.status();
  }
  const std::uint64_t file_bytes = version.value_files.at(number).size_bytes;
  // A sealed summary is never written twice: its place tells its nonce.
  const bool stays = !damaged && found->bytes * kBlankedShareMax <= file_bytes &&
                     (context_.keys == nullptr || !found->summary_names_range);
  if (!stays) {
    round_->targets.to_empty.insert(number);
  } else if (!found->items.empty() || found->summary_names_range) {
    round_->to_blank[number] = std::move(*found);
  }
  return ok();
}

Result<ErasedItems> ErasureSource::find_erased(const Version& version, FileNumber number) {
  const ValueFilePlace place = place_of(context_, number, version.value_files.at(number).placement);
  FileSystem& file_system = context_.environment.file_system;
  const Blanks blanks = uncertain_blanks_.contains(number) ? Blanks::Uncertain : Blanks::Durable;
  if (blanks == Blanks::Durable) {
    EC_ASSIGN_OR_RETURN(auto searched,
                        search_erased_items(file_system, place, context_.tables, version,
                                            context_.host.lost_files(), round_->targets.ranges));
    if (searched) return std::move(*searched);
  }
  if (!round_->live.contains(number)) {
    std::set<FileNumber> next;
    for (auto it = round_->to_look_at.begin();
         it != round_->to_look_at.end() && next.size() < kFilesOfOneLook; ++it)
      next.insert(*it);
    EC_ASSIGN_OR_RETURN(
        round_->live, find_live_items(context_.tables, version, next, context_.host.lost_files()));
  }
  return find_erased_items(file_system, place, round_->live.at(number), round_->targets.ranges,
                           blanks);
}

Result<Offer> ErasureSource::empty_values(const Version& version) {
  std::set<FileNumber>& files = round_->targets.to_empty;
  std::erase_if(files, [&](FileNumber number) { return !version.value_files.contains(number); });
  if (files.empty()) return Offer::none();
  EC_ASSIGN_OR_RETURN(Offer mends, damage_.next(version, round_->targets));
  if (mends.kind != Offer::Kind::None) return mends;
  const Version whole = without_tables(version, context_.host.lost_files());
  if (auto plan = pick_emptying(whole, files)) return Offer::merge(*std::move(plan));
  // Nothing points into what is left.
  VersionEdit edit;
  remove_unused_value_files(version, edit);
  const auto goes = [&](FileNumber number) {
    return std::find(edit.removed_value_files.begin(), edit.removed_value_files.end(), number) !=
           edit.removed_value_files.end();
  };
  if (!std::all_of(files.begin(), files.end(), goes))
    return corruption("value file " + std::to_string(*files.begin()) + " cannot be emptied");
  EC_TRY(context_.versions.apply(edit));
  context_.host.publish();
  return Offer::step();
}

Result<Offer> ErasureSource::finish_round() {
  EC_TRY(remove_old_files());
  EC_ASSIGN_OR_RETURN(const bool held, readers_hold());
  // A reader that began between the erasure and now does not know yet that its files go.
  if (held) context_.host.revoke();
  if (!held && !round_->to_blank.empty()) {
    EC_TRY(blank_items());
    return Offer::step();
  }
  Result<bool> finished = false;
  if (!held) finished = context_.host.finish_erasure(round_->through);
  EC_TRY(finished.status());
  held_ = !*finished;
  asked_ = false;
  MutexLock lock(mutex_);
  // Each run of the lane tries again: a flush that had to come first wakes it.
  if (!*finished) return Offer::none();
  failure_ = ok();
  retry_.note_success();
  ++stats_.erasures;
  stats_.erased_ranges += round_->targets.ranges.size();
  stats_.rewritten_bytes += round_->rewritten_bytes;
  round_.reset();
  return Offer::step();
}

Status ErasureSource::remove_old_files() {
  if (removals_.has_kept()) {
    // Files of edits that may have succeeded: after one that does they are nobody's.
    EC_TRY(context_.versions.apply(VersionEdit()));
    removals_.remove_kept();
  }
  removals_.collect();
  std::vector<NamespaceId> namespaces;
  for (const RangeDelete& each : round_->targets.ranges)
    namespaces.push_back(namespace_of(each.lower));
  context_.remover.finish(namespaces);
  return context_.remover.retry();
}

// Files that edits removed and that somebody may still read, with something of the ranges in them.
// Whoever reads another one is no hindrance.
Result<bool> ErasureSource::readers_hold() {
  for (const ObsoleteFile& file : context_.versions.obsolete_files()) {
    if (file.kind == ObsoleteFile::Kind::Table) {
      if (!meeting(round_->targets.ranges, file.smallest, file.largest).empty()) return true;
      continue;
    }
    const auto beside =
        lies_beside(context_.environment.file_system,
                    place_of(context_, file.number, file.placement), round_->targets.ranges);
    if (!beside.ok() || !*beside) return true;
  }
  return false;
}

// Some files: items that nothing points to are overwritten where they lie, since nobody can come to
// them any more. First the manifest says so: after a crash they are whole, blank or in between.
Status ErasureSource::blank_items() {
  auto& to_blank = round_->to_blank;
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
    EC_TRY(blank_items_of(place_of(context_, number, version->value_files.at(number).placement),
                          erased));
    to_blank.erase(to_blank.begin());
  }
  return ok();
}

Status ErasureSource::blank_items_of(const ValueFilePlace& place, const ErasedItems& erased) {
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

void ErasureSource::committed(const FinishedMerge& merge, bool own) {
  if (own && round_) round_->rewritten_bytes += merge.output.value_bytes;
}

// Others go on meanwhile: it is no failure of theirs.
bool ErasureSource::settles(const Status& failure) {
  round_.reset();
  if (failure.code() == StatusCode::OutOfSpace && context_.host.release_reserve()) return true;
  asked_ = false;
  held_ = false;
  MutexLock lock(mutex_);
  failure_ = failure;
  ++stats_.failures;
  retry_.note_failure(context_.environment.clock.boot_ns());
  return true;
}

ErasureStats ErasureSource::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

Status ErasureSource::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

}  // namespace edgecase::engine
