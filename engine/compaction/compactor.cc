#include "compaction/compactor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compaction/purge.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// One slice of work: what else the lane has to do waits no longer than that takes.
constexpr std::uint64_t kSliceBytes = 1u << 20;
constexpr std::uint64_t kSliceTurns = 1u << 13;

// While writes come at more than this rate, only what the budget allows is relocated.
constexpr std::uint64_t kIdleBytesPerSecond = 1u << 20;
constexpr std::int64_t kIdleCheckNs = 1'000'000'000;
// Of the bytes that flushes write, this part may be written once more by relocation under load. As
// they lie on the drive: a reading takes 25 bytes of keys and values and a byte there, and what a
// relocation costs grows with the latter.
constexpr std::uint64_t kBudgetShare = 4;
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

bool is_level0(const MergePlan& plan) {
  const auto& inputs = plan.groups.empty() ? plan.singles : plan.groups;
  return inputs.front().front()->level == 0;
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
    : context_(std::move(context)),
      writer_context_{context_.environment.file_system,
                      context_.options,
                      context_.store_id,
                      [this] { return numbers_.take(); },
                      [this](NamespaceId id) {
                        const auto info = context_.versions.find_namespace(id);
                        return info.ok() ? info->options : NamespaceOptions{};
                      },
                      [this](NamespaceId id) {
                        const auto info = context_.versions.find_namespace(id);
                        return info.ok() ? info->name : Bytes();
                      }},
      rate_since_ns_(context_.environment.clock.boot_ns()) {
  // An erasure that an earlier process did not end may have left zeros that its sync refused.
  const VersionState state = context_.versions.state();
  if (state.erasures.empty()) return;
  for (const auto& [number, file] : state.version->value_files)
    if (file.has_blanks) uncertain_blanks_.insert(number);
}

Compactor::~Compactor() {
  discard_job();
}

void Compactor::wake() {
  schedule_run(0);
}

void Compactor::retry_at_once() {
  {
    MutexLock lock(mutex_);
    retry_not_before_ns_ = 0;
  }
  schedule_run(0);
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

void Compactor::run() {
  remove_obsolete_files();
  remove_some();
  if (removes_expired_ && !erasure_asked_) return schedule_run(0);
  std::int64_t wait_ns = 0;
  {
    MutexLock lock(mutex_);
    if (!failure_.ok() && requests_.empty())
      wait_ns = retry_not_before_ns_ - context_.environment.clock.boot_ns();
  }
  // A run that was due for another reason may have stood in for the one that was to try again. Who
  // waits for an erasure does not wait for that.
  paused_ = wait_ns > 0;
  const bool removes = context_.remover.has_waiting(FileRemover::Urgency::Whenever);
  if (paused_ && !erasure_asked_) {
    works_ = false;
    return schedule_run(removes ? 0 : wait_ns);
  }
  const Result<bool> worked = work();
  works_ = worked.ok() && *worked;
  if (!worked.ok()) return give_up(worked.status());
  schedule_expiry();
  if (works_ || removes) return schedule_run(0);
  if (paused_) return schedule_run(wait_ns);
  // What had failed is no longer wanted, as a merge that compact() asked for.
  if (!waits_for_quiet_) note_success();
  // Somebody may be reading what was removed; and what must wait for quiet is tried again.
  if (waits_for_quiet_ || context_.versions.has_obsolete_files()) schedule_run(kIdleCheckNs);
}

Result<bool> Compactor::work() {
  make_way_for_erasure();
  make_way_for_expiry();
  if (job_ != nullptr) {
    const bool erases = job_erases_, expires = job_expires_;
    auto done = job_->step(kSliceBytes, kSliceTurns);
    Status status = done.status();
    if (status.ok() && *done) status = commit();
    if (status.ok() || (expires && finds_room(status))) return true;
    if (!erases) return status;
    if (sets_apart(status)) {
      discard_job();
    } else {
      fail_erasure(status);
    }
    return true;
  }
  if (survey_ != nullptr) return survey();
  return pick();
}

Result<bool> Compactor::pick() {
  waits_for_quiet_ = false;
  // An erasure is of all there is, damaged or not.
  const std::shared_ptr<const Version> all = context_.versions.current();
  const std::shared_ptr<const Version> version = mergeable(all);
  follow_garbage(*version);
  if (paused_) return pick_pending(all);
  if (erasure_asked_) {
    EC_ASSIGN_OR_RETURN(const bool asked, pick_pending(all));
    if (asked) return true;
  }
  // Something may expire at any time: they take turns.
  if (!std::exchange(expired_last_, false) || !is_asked()) {
    expired_last_ = true;  // if it fails, too
    const Result<bool> expires = pick_expired(*version);
    if (!expires.ok() && !finds_room(expires.status())) return expires.status();
    expired_last_ = !expires.ok() || *expires;
    if (expired_last_) return true;
  }
  EC_ASSIGN_OR_RETURN(const bool requested, pick_requested(*version));
  if (requested) return true;
  EC_ASSIGN_OR_RETURN(const bool erases, pick_pending(all));
  if (erases) return true;
  EC_ASSIGN_OR_RETURN(const bool probed, probe_growth(*version));
  if (probed) return true;
  EC_ASSIGN_OR_RETURN(const bool sinks, pick_sink(*version));
  if (sinks) return true;
  const bool grows = garbage_grace() > 0;
  if (auto plan = grows ? pick_singles(*version, kWindowMinRecords, kSimilarSize)
                        : pick_singles(*version, kSingleRunsMax))
    return start(*std::move(plan));
  if (slicing_ && is_idle()) {
    EC_ASSIGN_OR_RETURN(const bool goes_on, start_slice(*version));
    if (goes_on) return true;
  }
  if (!to_probe_.empty()) return probe(*version);
  auto plan = pick_evacuation(*version, evacuation_limits(*version));
  if (!plan) plan = pick_cleaning(*version);
  idle_garbage_ = plan ? 0 : garbage_share(*version, suspected_bytes_);
  if (plan) return start(*std::move(plan));
  if (slicing_) {
    EC_ASSIGN_OR_RETURN(const bool goes_on, start_slice(*version));
    if (goes_on) return true;
  }
  EC_ASSIGN_OR_RETURN(const bool picked, pick_window(*version));
  if (picked) return true;
  EC_ASSIGN_OR_RETURN(const bool covered, pick_covered(*version));
  if (covered) return true;
  return pick_settling(*version);
}

Result<bool> Compactor::pick_sink(const Version& version) {
  auto plan = pick_level0(version, kLevel0TablesMax);
  if (!plan) return false;
  if (is_in_pieces(version, *plan)) {
    if (plan->groups.size() < kLevel0PiecesMin && plan->singles.empty()) return false;
    plan->mode = MergeMode::Relocate;
  }
  return start(*std::move(plan));
}

// In quiet garbage is worth less of a trigger.
Result<bool> Compactor::pick_settling(const Version& version) {
  FileNumber newest = 0;
  for (const TablePointer& table : version.tables) newest = std::max(newest, table->number);
  if (newest == settled_up_to_) return false;
  if (!is_idle()) {
    waits_for_quiet_ = true;
    return false;
  }
  if (auto plan = pick_level0(version, 1)) return start(*std::move(plan));
  if (auto plan = pick_singles(version, kWindowMinIdle, kSinglesShareQuiet))
    return start(*std::move(plan));
  if (auto plan = pick_evacuation(version, kQuietEvacuation)) return start(*std::move(plan));
  settled_up_to_ = newest;
  follow_garbage(version);
  list_probes(version, 0);
  settles_garbage_ = true;
  return true;
}

Result<bool> Compactor::pick_window(const Version& version) {
  // Where much is dead, cleaning frees it for less.
  const WindowLimits limits{is_idle(), has_garbage(version) ? 0 : budget_bytes(),
                            scan_runs() - scan_runs_spent_};
  std::uint64_t scan_runs_wanted = UINT64_MAX;
  Overlaps known;
  for (Window& window : find_windows(version, kWindowMinIdle)) {
    const auto surveyed = find_surveyed(window);
    const bool exact = surveyed != overlaps_.end() && surveyed->first == window.runs;
    const Overlap overlap = surveyed != overlaps_.end() ? surveyed->second : Overlap{};
    if (!exact && may_be_used(window, overlap, limits)) {
      surveyed_ = window;
      read_version_ = context_.versions.current();
      survey_ = std::make_unique<Survey>(context_.tables,
                                         plan_window(version, window, MergeMode::Sink).groups);
      return true;
    }
    if (surveyed != overlaps_.end()) known.insert(*surveyed);
    const WindowUse use = exact ? use_of(window, overlap, limits) : WindowUse::Wait;
    switch (use) {
      case WindowUse::Nothing: break;
      case WindowUse::Sink: return start(plan_window(version, window, MergeMode::Sink));
      case WindowUse::Relocate:
        if (!limits.idle) relocated_bytes_ += overlap.overlapping_bytes;
        return start_slices(version, plan_window(version, window, MergeMode::Relocate), false);
      case WindowUse::RelocateForScans:
        scan_runs_spent_ = scan_runs();  // nothing is saved up for others
        return start_slices(version, plan_window(version, window, MergeMode::Relocate), true);
      case WindowUse::Wait:
        if (window.runs.size() >= kWindowMinScans)
          scan_runs_wanted = std::min(scan_runs_wanted, scan_runs_spent_ + scan_runs_for(overlap));
        waits_for_quiet_ = true;
    }
  }
  overlaps_ = std::move(known);  // forgets windows that are no more
  scan_runs_wanted_.store(scan_runs_wanted, std::memory_order_relaxed);
  return false;
}

// What is known of it, or of the most of its runs: all of them overlap no less. Each new run makes
// another window; while writes come, not each is surveyed.
Compactor::Overlaps::const_iterator Compactor::find_surveyed(const Window& window) const {
  auto best = overlaps_.find(window.runs);
  if (best != overlaps_.end()) return best;
  for (auto at = overlaps_.begin(); at != overlaps_.end(); ++at) {
    const bool is_part =
        std::includes(window.runs.begin(), window.runs.end(), at->first.begin(), at->first.end());
    if (is_part && (best == overlaps_.end() || at->first.size() > best->first.size())) best = at;
  }
  return best;
}

std::uint64_t Compactor::budget_bytes() const {
  const std::uint64_t earned = context_.host.flushed_bytes() / kBudgetShare;
  return earned > relocated_bytes_ ? earned - relocated_bytes_ : 0;
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

Result<bool> Compactor::survey() {
  EC_ASSIGN_OR_RETURN(const bool done, survey_->step(kSliceTurns));
  if (done) {
    overlaps_[surveyed_.runs] = survey_->overlap();
    survey_.reset();
    read_version_.reset();
  }
  return true;
}

Result<bool> Compactor::start(MergePlan plan) {
  if (plan.empty()) return false;
  EC_TRY(context_.host.check_values());
  TableWriterContext writer = writer_context_;
  writer.expiry = context_.host.expiry();
  writer.value_file_bytes = plan.value_file_bytes();
  EC_TRY(numbers_.reserve(context_.versions, file_numbers_for(plan, !writer.expiry.empty())));
  if (plan.mode == MergeMode::Relocate) {
    // It asks the rule of everything.
    plan.purged_sequence = context_.versions.flushed_sequence();
    plan.rule_epoch = writer.expiry.epoch();
  }
  writer.remover = &context_.remover;
  writer.keys = context_.keys;
  read_version_ = context_.versions.current();
  job_erases_ = false;
  job_expires_ = false;
  job_ = std::make_unique<MergeJob>(context_.tables, std::move(writer), std::move(plan),
                                    context_.rule);
  return true;
}

Status Compactor::commit() {
  TableOutput output = job_->take_output();
  VersionEdit edit;
  edit.added_value_files = output.value_files;
  edit.added_tables = output.tables;
  edit.removed_tables = job_->replaced_tables();
  const std::shared_ptr<const Version> before = context_.versions.current();
  remove_unused_value_files(*before, edit);
  const bool from_level0 = is_level0(job_->plan());
  const MergeCounters counters = job_->counters();
  if (!from_level0) note_singles(job_->plan(), counters);
  const bool relocates = job_->plan().mode != MergeMode::Sink;
  const bool slices = job_->plan().slice_bytes != 0;
  const bool is_range = slices && !slicing_;
  // Of what was merged nothing is dead.
  const bool cleans = job_->plan().mode == MergeMode::Clean || is_range;
  const bool leaves_rest = job_->leaves_rest();
  const auto merged = job_->merged(output);
  const std::vector<TableMetadata> cleaned(merged.begin(), merged.end());
  if (is_range) note_range(job_->plan(), merged);
  if (leaves_rest) note_rests(*job_, output);
  const ExpiryView expiry = context_.host.expiry();
  const std::int64_t expired_by_ns =
      expiry.empty() ? std::numeric_limits<std::int64_t>::min() : expiry.now_ns();
  job_.reset();
  read_version_.reset();
  // Before the edit: once it is current, whoever publishes next shows these files to readers.
  for (const ValueFileMetadata& file : output.value_files) context_.tables.add_value_file(file);
  if (Status applied = context_.versions.apply(edit); !applied.ok()) {
    // The manifest may hold the edit all the same: the files stay until a later edit succeeds.
    given_up_.push_back(std::move(output));
    return applied;
  }
  context_.host.publish();
  if (job_expires_) context_.host.revoke();
  for (const TableOutput& abandoned : given_up_) remove_output(abandoned);
  given_up_.clear();
  {
    MutexLock lock(mutex_);
    ++(relocates ? stats_.relocations : stats_.merges);
    add(stats_, counters);
    stats_.value_bytes += output.value_bytes;
    stats_.metadata_bytes += output.metadata_bytes;
    for (const FileNumber number : edit.removed_value_files) {
      const ValueFileMetadata& file = before->value_files.at(number);
      if (expired_by_ns <= due_ns(file, is_exact())) continue;
      ++expiry_stats_.dropped_files;
      expiry_stats_.dropped_bytes += file.size_bytes;
    }
  }
  note_success();
  if (slices) note_slice(output, leaves_rest);
  note_commit(cleans ? cleaned : std::vector<TableMetadata>(), from_level0);
  return ok();
}

void Compactor::remove_output(const TableOutput& output) {
  const Options& options = context_.options;
  for (const TableMetadata& table : output.tables) {
    const auto path = metadata_table_path(options.metadata_directory, table.number);
    static_cast<void>(context_.remover.remove(path).ok());
  }
  for (const ValueFileMetadata& file : output.value_files) {
    context_.tables.forget(file.number);
    const auto path = value_table_path(options.metadata_directory, options.values_directory,
                                       file.placement, file.number);
    static_cast<void>(context_.remover.remove(path, file.namespace_id).ok());
  }
}

void Compactor::discard_job() {
  if (job_ != nullptr) job_->discard();
  job_.reset();
  read_version_.reset();
}

void Compactor::give_up(const Status& cause) {
  // As of a flush: what works on value files says so.
  const Status failure = cause.on(Drive::Metadata);
  const bool sets_some_apart = sets_apart(failure);
  discard_job();
  survey_.reset();
  if (sets_some_apart) {
    slicing_.reset();
    to_probe_.clear();
    if (current_ != nullptr) finish_request(failure);
    return schedule_run(0);
  }
  std::int64_t delay_ns = 0;
  bool others_wait = false;
  {
    MutexLock lock(mutex_);
    failure_ = failure;
    ++stats_.failures;
    retry_delay_ns_ = std::clamp(2 * retry_delay_ns_, kRetryDelayMinNs, kRetryDelayMaxNs);
    retry_not_before_ns_ = context_.environment.clock.boot_ns() + retry_delay_ns_;
    delay_ns = retry_delay_ns_;
    others_wait = requests_.size() > (current_ != nullptr ? 1 : 0) || erasure_asked_;
  }
  context_.host.report(failure);
  if (current_ != nullptr) finish_request(failure);
  // Whoever asked for a merge or an erasure is not kept waiting by one that nobody asked for.
  schedule_run(others_wait ? 0 : delay_ns);
}

void Compactor::note_success() {
  bool resumed = false;
  {
    MutexLock lock(mutex_);
    resumed = !failure_.ok();
    failure_ = ok();
    retry_delay_ns_ = 0;
  }
  if (resumed) context_.host.report(ok());
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
