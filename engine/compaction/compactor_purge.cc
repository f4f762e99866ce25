// What the compactor does of its own accord about what is to go: purge.h says what that is.
#include <utility>

#include "compaction/compactor.h"
#include "compaction/purge.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// So many range deletes are applied under load, too: writers of others get Busy at
// range_deletes_max().
constexpr std::size_t kRangeDeletesSoon = 256;
// Of files that are overwritten, beside merges and without.
constexpr std::uint64_t kRemovalSliceBytes = 4u << 20;
constexpr std::uint64_t kQuietRemovalSliceBytes = 16u << 20;
constexpr std::uint32_t kSlicesBetweenRemovals = 4;
// Between two merges that are interrupted for what has expired.
constexpr std::int64_t kWayNs = 1'000'000'000;
constexpr std::int64_t kRemovalRetryNs = 1'000'000'000;
// What is due at a time has expired when that has passed.
constexpr std::int64_t kPastDueNs = 1'000'000;

}  // namespace

// What is to be overwritten waits for its turn: remove_some().
void Compactor::remove_obsolete_files() {
  const Options& options = context_.options;
  using Urgency = FileRemover::Urgency;
  for (const ObsoleteFile& file : context_.versions.take_obsolete_files()) {
    context_.tables.forget(file.number);
    const bool is_table = file.kind == ObsoleteFile::Kind::Table;
    const std::string path =
        is_table ? metadata_table_path(options.metadata_directory, file.number)
                 : value_table_path(options.metadata_directory, options.values_directory,
                                    file.placement, file.number);
    const bool dropped = !is_table && !context_.versions.has_namespace(file.namespace_id);
    // What resists is tried again while there are rules of retention, at the next erasure, and at
    // the next open, like everything no manifest names.
    static_cast<void>(context_.remover
                          .remove(path, is_table ? FileRemover::kAnyNamespace : file.namespace_id,
                                  dropped ? Urgency::Whenever : Urgency::Soon)
                          .ok());
  }
  if (context_.keys == nullptr || context_.versions.has_obsolete_files()) return;
  // If the drive refuses, the next change of the ring takes them along.
  static_cast<void>(context_.keys->destroy_dropped().ok());
}

// A slice of what waits to be overwritten. What nobody is in a hurry for does not take more from
// merges than they take themselves. Of what has expired bytes go before anything else is done, and
// names after that: the manifest, which names keys of it, comes between.
void Compactor::remove_some() {
  using Urgency = FileRemover::Urgency;
  if (removes_expired_) {
    context_.remover.overwrite(kQuietRemovalSliceBytes, Urgency::Soon);
    removes_expired_ = context_.remover.has_bytes(Urgency::Soon);
    return;
  }
  const bool may_wait = works_ && ++slices_since_removal_ < kSlicesBetweenRemovals;
  if (!may_wait) slices_since_removal_ = 0;
  context_.remover.step(works_ ? kRemovalSliceBytes : kQuietRemovalSliceBytes,
                        may_wait ? Urgency::Soon : Urgency::Whenever);
}

// What has expired may be in files that resisted: of a drive that was away.
void Compactor::retry_removals() {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  if (now_ns < removals_not_before_ns_) return;
  removals_not_before_ns_ = now_ns + kRemovalRetryNs;
  context_.remover.queue_left();
}

// In Exact the next look is when something is due, if that is sooner.
std::int64_t Compactor::until_expiry_check_ns() const {
  if (!is_exact()) return log_is_behind_ ? kExactExpiryCheckNs : kExpiryCheckNs;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty()) return kExactExpiryCheckNs;
  const std::int64_t due = next_expiry_ns(*context_.versions.current(), true);
  if (due < expiry.now_ns() || due - expiry.now_ns() >= kExactExpiryCheckNs)
    return kExactExpiryCheckNs;
  return due - expiry.now_ns() + kPastDueNs;
}

// While there are rules the lane looks for what has expired, whatever else happens.
void Compactor::schedule_expiry() {
  if (context_.versions.retention() == nullptr) return;
  {
    MutexLock lock(mutex_);
    if (std::exchange(expiry_scheduled_, true)) return;
  }
  context_.host.schedule(until_expiry_check_ns(), [this] {
    {
      MutexLock lock(mutex_);
      expiry_scheduled_ = false;
    }
    retry_removals();
    const Result<bool> cleared = context_.host.clear_expired_log();
    log_is_behind_ = !cleared.ok() || !*cleared;
    if (!cleared.ok()) {
      schedule_expiry();
      return give_up(cleared.status());
    }
    run();
  });
}

// What range deletes and newer small values hide would otherwise stay until something else asks for
// a merge there.
Result<bool> Compactor::pick_covered(const Version& version) {
  if (version.range_delete_list.size() < kRangeDeletesSoon && !is_idle()) {
    waits_for_quiet_ = true;
    return false;
  }
  PurgeContext purge;
  purge.within.push_back({});
  auto plan = pick_purge(version, purge);
  return plan ? start(*std::move(plan)) : Result<bool>(false);
}

// Whole files at once, the rest by merges.
Result<bool> Compactor::pick_expired(const Version& version) {
  const PurgeContext purge{context_.host.expiry(), is_exact()};
  if (purge.expiry.empty()) return false;
  // What has expired goes unread, damaged or not.
  if (const auto edit = pick_drop(*context_.versions.current(), purge.expiry)) {
    EC_TRY(context_.host.check_values());  // or the files would stay on a drive that comes back
    EC_TRY(context_.versions.apply(*edit));
    context_.host.publish();
    context_.host.revoke();
    note_success();
    manifest_names_expired_ = true;
    removes_expired_ = is_exact();
    MutexLock lock(mutex_);
    ++expiry_stats_.drops;
    expiry_stats_.dropped_files += edit->removed_value_files.size();
    for (const FileNumber number : edit->removed_value_files)
      expiry_stats_.dropped_bytes += version.value_files.at(number).size_bytes;
    return true;
  }
  auto plan = pick_purge(version, purge);
  if (!plan) return forget_expired_keys();
  {
    MutexLock lock(mutex_);
    ++expiry_stats_.purges;
  }
  manifest_names_expired_ = true;
  EC_ASSIGN_OR_RETURN(const bool started, start(*std::move(plan)));
  job_expires_ = started;
  return started;
}

// What has expired makes room, and may use what is kept for that.
bool Compactor::finds_room(const Status& failure) {
  if (failure.code() != StatusCode::OutOfSpace || !context_.host.release_reserve()) return false;
  discard_job();
  return true;
}

// Bytes that are to go within a second do not wait for a merge that would be done later: it begins
// again, when less was written for it than has expired, and within the limits of erasures.
void Compactor::make_way_for_expiry() {
  if (!is_exact() || job_ == nullptr || job_erases_ || job_expires_) return;
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  const std::uint64_t lost_bytes = job_->bytes_written();
  if (now_ns < way_not_before_ns_ || !may_discard(lost_bytes)) return;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty() || due_bytes(*context_.versions.current(), expiry, true) <= lost_bytes) return;
  way_not_before_ns_ = now_ns + kWayNs;
  discarded_bytes_ += lost_bytes;
  discard_job();
  if (current_ != nullptr) current_step_ = 0;
  expired_last_ = false;
}

// The manifest tells of tables that are gone by their first and last keys.
Result<bool> Compactor::forget_expired_keys() {
  if (!is_exact() || !manifest_names_expired_) return false;
  EC_TRY(context_.versions.forget_past());
  manifest_names_expired_ = false;
  return true;
}

ExpiryStats Compactor::expiry_stats() const {
  MutexLock lock(mutex_);
  return expiry_stats_;
}

}  // namespace edgecase::engine
