// What the compactor does about erased ranges: merges until no table and no value file holds
// anything of them, waits for readers of old files, and hands over to the engine, which clears the
// log and the manifest. engine/README.md, "Erasure".
#include <algorithm>
#include <utility>

#include "compaction/compactor.h"
#include "compaction/erasure_look.h"
#include "compaction/purge.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// While readers hold old files, or a flush is on its way.
constexpr std::int64_t kErasureCheckNs = 20'000'000;

}  // namespace

// A round is of the ranges that are pending when it begins; those that come meanwhile have the
// next.
Result<bool> Compactor::pick_erasure(const Version& version) {
  const std::vector<RangeDelete> pending = context_.versions.state().erasures;
  if (!erasure_) {
    Erasure fresh;
    for (const RangeDelete& each : pending) fresh.through = std::max(fresh.through, each.sequence);
    for (const auto& [number, file] : version.value_files) fresh.to_look_at.insert(number);
    fresh.written_bytes = stats().value_bytes;
    erasure_ = std::move(fresh);
  }
  std::vector<RangeDelete> ranges;
  PurgeContext purge;
  purge.upto = erasure_->through;
  for (const RangeDelete& each : pending) {
    if (each.sequence > erasure_->through) continue;
    ranges.push_back(each);
    purge.within.push_back({each.lower, each.upper});
  }
  if (auto plan = pick_purge(version, purge)) return start_erasing(*std::move(plan));
  EC_ASSIGN_OR_RETURN(const bool looked, look_at_values(version, ranges));
  if (looked) return true;
  EC_ASSIGN_OR_RETURN(const bool empties, empty_values(version));
  if (empties) return true;
  return finish_erasure(ranges.size());
}

Result<bool> Compactor::start_erasing(MergePlan plan) {
  EC_ASSIGN_OR_RETURN(const bool started, start(std::move(plan)));
  job_erases_ = started;
  return started;
}

// One file at a time. What merges wrote since the round began holds nothing of the ranges, nor does
// a file of which all lives.
Result<bool> Compactor::look_at_values(const Version& version,
                                       std::span<const RangeDelete> ranges) {
  std::set<FileNumber>& to_look_at = erasure_->to_look_at;
  while (!to_look_at.empty()) {
    const FileNumber number = *to_look_at.begin();
    const auto file = version.value_files.find(number);
    const auto live = version.live_bytes.find(number);
    const bool may_hold =
        file != version.value_files.end() &&
        (live == version.live_bytes.end() || live->second < file->second.item_bytes) &&
        std::any_of(ranges.begin(), ranges.end(), [&](const RangeDelete& each) {
          return namespace_of(each.lower) == file->second.namespace_id;
        });
    if (!may_hold) {
      to_look_at.erase(number);
      continue;
    }
    const std::string path =
        value_table_path(context_.options.metadata_directory, context_.options.values_directory,
                         file->second.placement, number);
    auto held = holds_any_of(context_.environment.file_system, path, context_.store_id, number,
                             ranges, context_.keys);
    // What cannot be told of is emptied of what lives in it.
    const bool damaged = held.status().code() == StatusCode::Corruption;
    if (!held.ok() && !damaged) return held.status();
    to_look_at.erase(number);
    if (damaged || *held) erasure_->to_empty.insert(number);
    return true;
  }
  return false;
}

Result<bool> Compactor::empty_values(const Version& version) {
  std::set<FileNumber>& files = erasure_->to_empty;
  std::erase_if(files, [&](FileNumber number) { return !version.value_files.contains(number); });
  if (files.empty()) return false;
  if (auto plan = pick_emptying(version, files)) return start_erasing(*std::move(plan));
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
  context_.publish();
  return true;
}

Result<bool> Compactor::finish_erasure(std::size_t ranges) {
  if (!given_up_.empty()) {
    // Files of edits that may have succeeded: after one that does they are nobody's.
    EC_TRY(context_.versions.apply(VersionEdit()));
    for (const TableOutput& abandoned : given_up_) remove_output(abandoned);
    given_up_.clear();
  }
  remove_obsolete_files();
  EC_TRY(context_.remover.retry());
  Result<bool> finished = false;
  const bool held = context_.versions.has_obsolete_files();
  if (!held) finished = context_.finish_erasure(erasure_->through);
  EC_TRY(finished.status());
  erasure_is_held_ = !*finished;
  erasure_asked_ = false;
  if (!*finished) {
    schedule_erasure(kErasureCheckNs);
    return false;
  }
  const std::uint64_t written_bytes = stats().value_bytes - erasure_->written_bytes;
  erasure_.reset();
  MutexLock lock(mutex_);
  erasure_failure_ = ok();
  erasure_delay_ns_ = 0;
  ++erasure_stats_.erasures;
  erasure_stats_.erased_ranges += ranges;
  erasure_stats_.rewritten_bytes += written_bytes;
  return true;
}

// Others go on meanwhile: it is no failure of theirs.
void Compactor::fail_erasure(const Status& failure) {
  if (job_ != nullptr && job_erases_) discard_job();
  erasure_.reset();
  if (failure.code() == StatusCode::OutOfSpace && context_.release_reserve())
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
Result<bool> Compactor::pick_pending(const Version& version) {
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
  context_.schedule(delay_ns, [this] {
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
