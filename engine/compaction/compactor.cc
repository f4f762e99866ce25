#include "compaction/compactor.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {
namespace {

// One slice of a merge: what else the lane has to do waits no longer than that takes.
constexpr std::uint64_t kSliceBytes = 1u << 20;
constexpr std::uint64_t kSliceTurns = 1u << 13;

// While writes come at more than this rate, only what is worth it under load is done.
constexpr std::uint64_t kIdleBytesPerSecond = 1u << 20;
constexpr std::int64_t kIdleCheckNs = 1'000'000'000;

// One part in this many of all that merges ever wrote may be lost when they make way, besides
// discarded_bytes_min.
constexpr std::uint64_t kDiscardedPart = 4;

// More numbers than a merge can use: of each namespace and run a table and a value table, those
// that are cut for their size, and tables that end before others of their run.
std::uint64_t file_numbers_for(const MergePlan& plan, bool expires) {
  std::uint64_t items = 0;
  for (const auto* inputs : {&plan.groups, &plan.singles})
    for (const MergeInput& input : *inputs)
      for (const TablePointer& table : input) items += table->item_count;
  const std::uint64_t runs = plan.groups.size() + plan.singles.size() + 2;
  const std::uint64_t namespaces = std::min<std::uint64_t>(kNamespaceCountMax, items);
  const std::uint64_t buckets = expires ? kOpenBucketsMax * namespaces : 0;
  return buckets + plan.barriers.size() + 2 * runs * namespaces + 2 * (items / kTableItemsMax + 1) +
         3 * (plan.item_bytes() / std::min(plan.table_item_bytes, plan.value_file_bytes()) + 1) +
         (plan.slice_bytes == 0 ? 0 : plan.item_bytes() / plan.rest_table_bytes() + 4 * runs);
}

void add(CompactionStats& sum, const MergeCounters& more) {
  sum.carried_items += more.carried_items;
  sum.rewritten_items += more.rewritten_items;
  sum.copied_items += more.copied_items;
  sum.dropped_items += more.dropped_items;
  sum.seen_entries += more.seen_entries;
  sum.superseded_entries += more.superseded_entries;
  sum.dropped_deletes += more.dropped_deletes;
}

}  // namespace

Compactor::Compactor(CompactorContext context)
    : context_(std::move(context)), rate_since_ns_(context_.environment.clock.boot_ns()) {}

Compactor::~Compactor() {
  discard_job();
}

void Compactor::retry_at_once() {
  {
    MutexLock lock(mutex_);
    retry_.end_wait();
  }
  wake();
}

Status Compactor::compact(const std::vector<NamespaceId>& ids, ByteView lower, ByteView upper) {
  const auto request = requests_.add(ids, lower, upper);
  wake();
  return requests_.wait(*request);
}

void Compactor::erase_now() {
  erasures_.erase_now();
  wake();
}

void Compactor::schedule_run(std::int64_t delay_ns) {
  {
    MutexLock lock(mutex_);
    bool& pending = delay_ns > 0 ? delayed_ : scheduled_;
    if (std::exchange(pending, true)) return;
  }
  context_.host.schedule(delay_ns, [this, delayed = delay_ns > 0] {
    {
      MutexLock lock(mutex_);
      (delayed ? delayed_ : scheduled_) = false;
    }
    run();
  });
}

// One turn of the lane: files that nobody needs any more, then a slice of work.
void Compactor::run() {
  removals_.collect();
  removals_.step(works_);
  if (removals_.is_hurried() && !erasures_.is_asked()) return schedule_run(0);
  std::int64_t wait_ns = 0;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) wait_ns = retry_.left_ns(context_.environment.clock.boot_ns());
  }
  // A run that was due for another reason may have stood in for the one that was to try again. Who
  // waits for a request or an erasure does not wait for that.
  paused_ = wait_ns > 0 && !requests_.has_any();
  const bool removes = removals_.has_waiting();
  if (paused_ && !erasures_.is_asked()) {
    works_ = false;
    return schedule_run(removes ? 0 : wait_ns);
  }
  const Result<bool> worked = work();
  works_ = worked.ok() && *worked;
  set_timers();
  if (!worked.ok()) return give_up(worked.status());
  if (works_ || removes) return schedule_run(0);
  if (paused_) return schedule_run(wait_ns);
  // What had failed is no longer wanted, as a merge that compact() asked for.
  if (!waits_for_quiet_) note_success();
  // Somebody may be reading what was removed; and what must wait for quiet is tried again.
  if (waits_for_quiet_ || context_.versions.has_obsolete_files()) schedule_run(kIdleCheckNs);
}

// True when there is more to do at once.
Result<bool> Compactor::work() {
  make_way();
  return job_ != nullptr ? step_job() : pick();
}

Result<bool> Compactor::step_job() {
  WorkSource& source = *worker_;
  const Result<bool> done = job_->step(kSliceBytes, kSliceTurns);
  Status status = done.status();
  if (status.ok() && *done) status = commit();
  if (status.ok()) return true;
  // A table that turns out to be damaged holds up no erasure: the round sees to it.
  const bool goes_on = &source == &erasures_ && sets_apart(status);
  if (!goes_on && !source.settles(status)) return status;
  discard_job();
  source.discarded();
  return true;
}

// What cannot wait goes before a merge that would be done later: that begins again. Within limits,
// so that one erasure after another does not keep merges from ever coming to an end.
void Compactor::make_way() {
  WorkSource* const worker = job_ != nullptr ? worker_ : busy_;
  if (worker == nullptr) return;
  const std::uint64_t written_bytes = job_ != nullptr ? job_->bytes_written() : 0;
  if (discarded_bytes_ + written_bytes >
      context_.discarded_bytes_min + stats().value_bytes / kDiscardedPart)
    return;
  // What writes nothing is soon done: only whoever waits does not wait for that.
  const bool is_preempted = job_ != nullptr ? turns_.has_sooner(*worker, written_bytes)
                                            : turns_.has_awaited_before(*worker);
  if (!is_preempted) return;
  discarded_bytes_ += written_bytes;
  discard_job();
  busy_ = nullptr;
  worker->discarded();
  turns_.begin_anew();
}

Result<bool> Compactor::pick() {
  waits_for_quiet_ = false;
  LaneView view;
  view.all = context_.versions.current();
  view.mergeable = mergeable_.of(view.all);
  view.idle = is_idle();
  garbage_.follow(*view.mergeable);
  if (busy_ != nullptr) {
    EC_ASSIGN_OR_RETURN(const bool works, ask(*busy_, view));
    if (works) return true;
  }
  for (const Urgency urgency : {Urgency::Awaited, Urgency::Due, Urgency::Useful}) {
    if (paused_ && urgency != Urgency::Awaited) break;
    for (WorkSource* const source : turns_.of(urgency)) {
      const Result<bool> works = ask(*source, view);
      if (urgency == Urgency::Due && (!works.ok() || *works)) turns_.note_turn(*source);
      EC_TRY(works.status());
      if (*works) return true;
    }
  }
  return false;
}

// False: it has nothing to do, or nothing that is worth it now.
Result<bool> Compactor::ask(WorkSource& source, const LaneView& view) {
  busy_ = nullptr;
  Result<Offer> offer = source.next(view);
  Status status = offer.status();
  if (status.ok()) {
    switch (offer->kind) {
      case Offer::Kind::None: return false;
      case Offer::Kind::Waits: waits_for_quiet_ = true; return false;
      case Offer::Kind::Step: return true;
      case Offer::Kind::GoesOn: busy_ = &source; return true;
      case Offer::Kind::Merge: status = start(std::move(offer->plan), source);
    }
  }
  if (!status.ok() && !source.settles(status)) return status;
  return true;
}

bool Compactor::is_idle() {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  const std::int64_t passed_ns = now_ns - rate_since_ns_;
  if (passed_ns < kIdleCheckNs) return idle_;
  const std::uint64_t bytes = context_.host.user_bytes();
  const double seconds = static_cast<double>(passed_ns) / 1e9;
  idle_ = static_cast<double>(bytes - rate_bytes_) <=
          static_cast<double>(kIdleBytesPerSecond) * seconds;
  rate_since_ns_ = now_ns;
  rate_bytes_ = bytes;
  return idle_;
}

Status Compactor::start(MergePlan plan, WorkSource& source) {
  EC_TRY(context_.host.check_drives());
  const ExpiryView expiry = context_.host.expiry();
  EC_ASSIGN_OR_RETURN(TableWriterContext writer,
                      files_.writer(file_numbers_for(plan, !expiry.empty())));
  writer.expiry = expiry;
  writer.raise_limits = context_.host.raise_limits();
  writer.value_file_bytes = plan.value_file_bytes();
  if (plan.mode == MergeMode::Relocate) {
    // It asks the rule of everything.
    plan.purged_sequence = context_.versions.flushed_sequence();
    plan.rule_epoch = expiry.epoch();
  }
  job_version_ = context_.versions.current();
  lost_at_start_ = context_.host.lost_files();
  worker_ = &source;
  job_ = std::make_unique<MergeJob>(context_.tables, std::move(writer), std::move(plan),
                                    context_.rule);
  return ok();
}

Status Compactor::commit() {
  // Whatever comes of the edit, the files of this job are not discarded with it any more.
  const std::unique_ptr<MergeJob> job = std::move(job_);
  const std::shared_ptr<const Version> read = std::move(job_version_);
  TableOutput output = job->take_output();
  VersionEdit edit;
  edit.added_value_files = output.value_files;
  edit.added_tables = output.tables;
  edit.removed_tables = job->replaced_tables();
  const std::shared_ptr<const Version> before = context_.versions.current();
  remove_unused_value_files(*before, edit);
  // Before the edit: once it is current, whoever publishes next shows these files to readers.
  for (const ValueFileMetadata& file : output.value_files) context_.tables.add_value_file(file);
  if (Status applied = context_.versions.apply(edit); !applied.ok()) {
    removals_.keep(std::move(output));
    return applied;
  }
  context_.host.publish();
  removals_.remove_kept();
  {
    MutexLock lock(mutex_);
    ++(job->plan().mode == MergeMode::Sink ? stats_.merges : stats_.relocations);
    add(stats_, job->counters());
    stats_.value_bytes += output.value_bytes;
    stats_.metadata_bytes += output.metadata_bytes;
  }
  note_success();
  const FinishedMerge merge{job->plan(),        job->counters(), output, job->merged(output),
                            job->leaves_rest(), *before,         edit};
  garbage_.note_merge(merge, *context_.versions.current());
  for (WorkSource* const source : order_) source->committed(merge, source == worker_);
  return ok();
}

void Compactor::discard_job() {
  if (job_ != nullptr) job_->discard();
  job_.reset();
  job_version_.reset();
}

void Compactor::give_up(const Status& cause) {
  // As of a flush: what works on value files says so.
  const Status failure = cause.on(Drive::Metadata);
  const bool sets_some_apart = sets_apart(failure);
  discard_job();
  busy_ = nullptr;
  for (WorkSource* const source : order_) source->interrupted(failure);
  if (sets_some_apart) return schedule_run(0);
  std::int64_t delay_ns = 0;
  {
    MutexLock lock(mutex_);
    failure_ = failure;
    ++stats_.failures;
    delay_ns = retry_.note_failure(context_.environment.clock.boot_ns());
  }
  context_.host.report(failure);
  // Whoever asked for a merge or an erasure is not kept waiting by one that nobody asked for.
  schedule_run(requests_.has_any() || erasures_.is_asked() ? 0 : delay_ns);
}

// Whether damage that nobody knew of made it fail: others go on without those runs.
bool Compactor::sets_apart(const Status& failure) {
  // A survey, or a sample, may have been of any.
  if (job_ == nullptr)
    return mergeable_.sets_apart(failure, mergeable_.of(context_.versions.current())->tables);
  std::vector<TablePointer> tables;
  const MergePlan& plan = job_->plan();
  for (const auto* inputs : {&plan.groups, &plan.singles, &plan.newer_groups})
    for (const MergeInput& input : *inputs) tables.insert(tables.end(), input.begin(), input.end());
  if (mergeable_.sets_apart(failure, tables)) return true;
  // Somebody else may have come to it while the merge ran.
  const std::set<FileNumber> now = context_.host.lost_files();
  return !std::includes(lost_at_start_.begin(), lost_at_start_.end(), now.begin(), now.end());
}

void Compactor::note_success() {
  bool resumed = false;
  {
    MutexLock lock(mutex_);
    resumed = !failure_.ok();
    failure_ = ok();
    retry_.note_success();
  }
  if (resumed) context_.host.report(ok());
}

// Sources that want to be asked at a time, whatever else happens.
void Compactor::set_timers() {
  for (std::size_t i = 0; i < kSources; ++i) {
    if (timer_is_set_[i]) continue;
    const std::optional<std::int64_t> delay_ns = order_[i]->look_again_in_ns();
    if (!delay_ns) continue;
    timer_is_set_[i] = true;
    context_.host.schedule(*delay_ns, [this, i] { on_timer(i); });
  }
}

void Compactor::on_timer(std::size_t source) {
  timer_is_set_[source] = false;
  const Status looked = order_[source]->look_again();
  if (looked.ok()) return run();
  set_timers();
  give_up(looked);
}

CompactionStats Compactor::stats() const {
  MutexLock lock(mutex_);
  CompactionStats stats = stats_;
  stats.removed_files = context_.remover.removed_files();
  return stats;
}

Status Compactor::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

}  // namespace edgecase::engine
