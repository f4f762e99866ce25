#include "compaction/due_sources.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "compaction/merge_plan.h"

namespace edgecase::engine {
namespace {

// Between two merges that make way for what has expired: some merge comes to an end.
constexpr std::int64_t kInterruptsEveryNs = 1'000'000'000;
// What is due at a time has expired when that has passed.
constexpr std::int64_t kPastDueNs = 1'000'000;

}  // namespace

Urgency ExpirySource::urgency() {
  return context_.versions.retention() == nullptr ? Urgency::None : Urgency::Due;
}

Result<Offer> ExpirySource::next(const LaneView& view) {
  const PurgeContext purge{context_.host.expiry(), context_.is_exact()};
  if (purge.expiry.empty()) return Offer::none();
  // What has expired goes unread, damaged or not.
  if (const auto edit = pick_drop(*view.all, purge.expiry)) {
    EC_TRY(drop(*view.all, *edit));
    return Offer::step();
  }
  if (auto plan = pick_purge(*view.mergeable, purge)) {
    {
      MutexLock lock(mutex_);
      ++stats_.purges;
    }
    manifest_names_expired_ = true;
    return Offer::merge(*std::move(plan));
  }
  if (!context_.is_exact() || !manifest_names_expired_) return Offer::none();
  // The manifest tells of tables that are gone by their first and last keys.
  EC_TRY(context_.versions.forget_past());
  manifest_names_expired_ = false;
  return Offer::step();
}

Status ExpirySource::drop(const Version& version, const VersionEdit& edit) {
  EC_TRY(context_.host.check_drives());  // or the files would stay on a drive that comes back
  EC_TRY(context_.versions.apply(edit));
  context_.host.publish();
  context_.host.revoke();
  manifest_names_expired_ = true;
  if (context_.is_exact()) removals_.hurry();
  MutexLock lock(mutex_);
  ++stats_.drops;
  stats_.dropped_files += edit.removed_value_files.size();
  for (const FileNumber number : edit.removed_value_files)
    stats_.dropped_bytes += version.value_files.at(number).size_bytes;
  return ok();
}

bool ExpirySource::frees_more_than(std::uint64_t written_bytes) {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  if (!context_.is_exact() || now_ns < interrupts_not_before_ns_) return false;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty() || due_bytes(*context_.versions.current(), expiry, true) <= written_bytes)
    return false;
  interrupts_not_before_ns_ = now_ns + kInterruptsEveryNs;
  return true;
}

void ExpirySource::committed(const FinishedMerge& merge, bool own) {
  if (own) context_.host.revoke();
  if (merge.edit.removed_value_files.empty()) return;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty()) return;
  MutexLock lock(mutex_);
  for (const FileNumber number : merge.edit.removed_value_files) {
    const ValueFileMetadata& file = merge.before.value_files.at(number);
    if (expiry.now_ns() <= due_ns(file, context_.is_exact())) continue;
    ++stats_.dropped_files;
    stats_.dropped_bytes += file.size_bytes;
  }
}

bool ExpirySource::settles(const Status& failure) {
  return failure.code() == StatusCode::OutOfSpace && context_.host.release_reserve();
}

// In Exact the next look is when something is due, if that is sooner.
std::optional<std::int64_t> ExpirySource::look_again_in_ns() {
  if (context_.versions.retention() == nullptr) return std::nullopt;
  if (!context_.is_exact()) return log_is_behind_ ? kExactExpiryCheckNs : kExpiryCheckNs;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty()) return kExactExpiryCheckNs;
  const std::int64_t due = next_expiry_ns(*context_.versions.current(), true);
  if (due < expiry.now_ns() || due - expiry.now_ns() >= kExactExpiryCheckNs)
    return kExactExpiryCheckNs;
  return due - expiry.now_ns() + kPastDueNs;
}

Status ExpirySource::look_again() {
  removals_.retry();
  const Result<bool> cleared = context_.host.clear_expired_log();
  log_is_behind_ = !cleared.ok() || !*cleared;
  return cleared.status();
}

ExpiryStats ExpirySource::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

namespace {

// Life classes: each has runs of its own in a namespace.
constexpr std::size_t kLives = kLifeForever + 1;
// A single-threaded executor does its work in here; how long to wait before it is asked again.
constexpr std::int64_t kStallNs = 100'000'000;

}  // namespace

std::shared_ptr<CompactionRequest> RequestSource::add(const std::vector<NamespaceId>& ids,
                                                      ByteView lower, ByteView upper) {
  auto request = std::make_shared<CompactionRequest>();
  request->ids = ids;
  std::sort(request->ids.begin(), request->ids.end());
  request->ids.erase(std::unique(request->ids.begin(), request->ids.end()), request->ids.end());
  request->lower = lower;
  request->upper = upper;
  request->upto = context_.versions.flushed_sequence();
  MutexLock lock(mutex_);
  requests_.push_back(request);
  return request;
}

Status RequestSource::wait(const CompactionRequest& request) {
  MutexLock lock(mutex_);
  while (!request.done) {
    lock.unlock();
    const bool ran = context_.environment.executor.run_one();
    lock.lock();
    if (ran || request.done) continue;
    static_cast<void>(done_.wait_for(mutex_, kStallNs));
  }
  return request.status;
}

bool RequestSource::has_any() const {
  MutexLock lock(mutex_);
  return !requests_.empty();
}

Result<Offer> RequestSource::next(const LaneView& view) {
  for (;;) {
    if (current_ == nullptr) {
      MutexLock lock(mutex_);
      if (requests_.empty()) return Offer::none();
      current_ = requests_.front();
      step_ = 0;
    }
    EC_ASSIGN_OR_RETURN(Offer offer, next_of(*current_, *view.mergeable));
    if (offer.kind != Offer::Kind::None) return offer;
    finish(ok());
  }
}

// Steps: one for each namespace and life class, one to purge, one to empty files.
Result<Offer> RequestSource::next_of(const CompactionRequest& request, const Version& version) {
  const bool waits =
      std::any_of(version.level0.begin(), version.level0.end(),
                  [&](const TablePointer& table) { return table->sequence_min <= request.upto; });
  if (step_ == 0 && waits) {
    if (auto plan = pick_level0(version, 1)) return Offer::merge(*std::move(plan));
  }
  PurgeContext purge;
  purge.upto = request.upto;
  for (const NamespaceId id : request.ids)
    purge.within.push_back(
        {make_full_key(id, request.lower),
         request.upper.empty() ? make_full_key(id + 1, {}) : make_full_key(id, request.upper)});
  const std::size_t steps = request.ids.size() * kLives;
  while (step_ < steps) {
    const std::size_t step = step_++;
    const KeyBounds& bounds = purge.within[step / kLives];
    const auto life = static_cast<LifeClass>(step % kLives);
    if (auto plan =
            plan_everything(version, request.ids[step / kLives], life, bounds.lower, bounds.upper))
      return Offer::merge(*std::move(plan));
  }
  if (step_ == steps) {
    if (auto plan = pick_purge(version, purge)) return Offer::merge(*std::move(plan));
    ++step_;
    to_empty_.clear();
    for (const auto& [number, file] : version.value_files) to_empty_.insert(number);
  }
  EvacuationLimits limits = kQuietEvacuation;
  limits.among = &to_empty_;
  auto plan = pick_evacuation(version, limits);
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

void RequestSource::finish(const Status& status) {
  if (current_ == nullptr) return;
  MutexLock lock(mutex_);
  current_->done = true;
  current_->status = status;
  requests_.pop_front();
  current_.reset();
  done_.notify_all();
}

namespace {

constexpr std::uint64_t kSmallRunBytes = 4u << 20;
// What is written anew of a run for each of many bounds: an item or two, and as much again.
constexpr std::uint64_t kWorthOfBoundBytes = 16u << 10;

bool is_used(const Version& version, FileNumber number) {
  const auto live = version.live_bytes.find(number);
  return live != version.live_bytes.end() && live->second > 0;
}

// Files whose bytes must go: something in them has expired or lies in the wrong bucket.
std::set<FileNumber> files_to_leave(const Version& version, const PurgeContext& context) {
  std::set<FileNumber> files;
  if (context.expiry.empty()) return files;
  for (const auto& [number, file] : version.value_files) {
    if (!is_used(version, number)) continue;
    // Left behind by what a rule that changed moved away.
    const bool outdated = file.rule_epoch < context.expiry.epoch() &&
                          version.live_bytes.at(number) < file.item_bytes &&
                          context.expiry.rules()->has_namespace(file.namespace_id);
    if (outdated || due_ns(file, context.exact) < context.expiry.now_ns() ||
        given_up_permille(file, context.expiry) >= kGivenUpPermille ||
        context.expiry.is_coarse(file.expiry_min_ns, file.expiry_max_ns))
      files.insert(number);
  }
  return files;
}

// What an entry of a group may supersede of `table`: `since` is what it was last merged with.
bool may_be_superseded(const Version& version, const TableMetadata& table, SequenceNumber since) {
  return table.kind == TableKind::Singles &&
         std::any_of(version.tables.begin(), version.tables.end(), [&](const TablePointer& other) {
           return other->kind == TableKind::Groups && other->sequence_max > since &&
                  other->smallest <= table.largest && other->largest >= table.smallest;
         });
}

bool may_hold_dead(const Version& version, const TableMetadata& table, const KeyBounds& within,
                   SequenceNumber since) {
  const ByteView first = std::max(ByteView(table.smallest), ByteView(within.lower));
  const ByteView last = within.upper.empty()
                            ? ByteView(table.largest)
                            : std::min(ByteView(table.largest), ByteView(within.upper));
  if (last < first) return false;
  if (version.range_deletes != nullptr && version.range_deletes->touches(first, last, since))
    return true;
  if (table.kind != TableKind::Singles) return false;
  return std::any_of(version.tables.begin(), version.tables.end(), [&](const TablePointer& other) {
    return other->kind == TableKind::Groups && other->sequence_max > since &&
           ByteView(other->smallest) <= last && ByteView(other->largest) >= first;
  });
}

// There may be thousands of bounds: only those that meet the table are looked at, and none where
// nothing in the table can be dead.
bool holds_dead(const Version& version, const TableMetadata& table,
                const std::vector<KeyBounds>& within, SequenceNumber since) {
  const bool deleted = version.range_deletes != nullptr &&
                       version.range_deletes->touches(table.smallest, table.largest, since);
  if (!deleted && !may_be_superseded(version, table, since)) return false;
  auto each = std::partition_point(within.begin(), within.end(), [&](const KeyBounds& bounds) {
    return !bounds.upper.empty() && bounds.upper <= table.smallest;
  });
  for (; each != within.end() && each->lower <= table.largest; ++each) {
    if (may_hold_dead(version, table, *each, since)) return true;
  }
  return false;
}

bool must_purge(const Version& version, const TableMetadata& table, const PurgeContext& context,
                const std::set<FileNumber>& files) {
  const bool left =
      std::any_of(table.value_files.begin(), table.value_files.end(),
                  [&](const ValueFileUse& use) { return files.contains(use.file_number); });
  if (left) return true;
  if (!context.expiry.empty() &&
      context.expiry.rules()->changed_since(table.smallest, table.largest, table.rule_epoch))
    return true;
  const SequenceNumber since = std::max(table.sequence_min, table.purged_sequence);
  return since < context.upto && holds_dead(version, table, context.within, since);
}

std::size_t count_in(const std::vector<KeyBounds>& within, NamespaceId id) {
  const auto first = std::partition_point(within.begin(), within.end(), [&](const KeyBounds& each) {
    return each.lower.empty() || namespace_of(each.lower) < id;
  });
  const auto end = std::partition_point(
      first, within.end(), [&](const KeyBounds& each) { return namespace_of(each.lower) == id; });
  return static_cast<std::size_t>(end - first);
}

// Small runs of a namespace, and of one life class, are merged into one where bounds are so many
// that most of them would be written anew anyway: that takes fewer merges, in what comes after,
// too. Nothing when fewer than two of them hold something that is to go.
std::optional<MergePlan> purge_together(const Version& version, NamespaceId id, const Tree& tree,
                                        const PurgeContext& context,
                                        const std::function<bool(const TablePointer&)>& matters) {
  const std::uint64_t worth_bytes = count_in(context.within, id) * kWorthOfBoundBytes;
  Window window;
  window.namespace_id = id;
  LifeClass life = 0;
  for (const Run& run : tree) {
    const bool is_small = run.kind == TableKind::Groups &&
                          run.item_bytes <= std::min(kSmallRunBytes, worth_bytes) &&
                          window.item_bytes + run.item_bytes <= kPurgeBytesMax &&
                          (window.runs.empty() || run.life == life);
    if (!is_small || std::none_of(run.tables.begin(), run.tables.end(), matters)) continue;
    life = run.life;
    window.runs.push_back(run.number);
    window.item_bytes += run.item_bytes;
  }
  if (window.runs.size() < 2) return std::nullopt;
  std::sort(window.runs.begin(), window.runs.end());
  return plan_window(version, window, MergeMode::Relocate);
}

}  // namespace

std::int64_t due_ns(const ValueFileMetadata& file, bool exact) {
  if (!exact) return file.bucket.end_ns;
  std::int64_t end_ns = 0;
  if (__builtin_add_overflow(file.expiry_min_ns, kExactSpanMaxNs, &end_ns)) return kNeverNs;
  return std::min(file.expiry_max_ns, end_ns);
}

bool is_over(const ValueFileMetadata& file, ByteView first, ByteView last,
             const ExpiryView& expiry) {
  if (expiry.empty()) return false;
  if (given_up_permille(file, expiry) == 1000) return true;
  return file.expiry_max_ns < expiry.now_ns() &&
         !expiry.rules()->changed_since(first, last, file.rule_epoch);
}

std::uint64_t given_up_permille(const ValueFileMetadata& file, const ExpiryView& expiry) {
  if (expiry.empty() || file.time_min_ns == kNeverNs || file.time_max_ns == kNeverNs) return 0;
  const std::int64_t before_ns = expiry.given_up_before_ns(file.namespace_id);
  if (before_ns <= file.time_min_ns) return 0;
  if (file.time_max_ns < before_ns) return 1000;
  // In floating point: the two may lie further apart than integers reach.
  const double span_ns =
      static_cast<double>(file.time_max_ns) - static_cast<double>(file.time_min_ns);
  const double gone_ns = static_cast<double>(before_ns) - static_cast<double>(file.time_min_ns);
  return span_ns <= 0
             ? 0
             : std::min<std::uint64_t>(999, static_cast<std::uint64_t>(gone_ns / span_ns * 1000));
}

std::uint64_t given_up_waiting_bytes(const Version& version, const ExpiryView& expiry) {
  std::uint64_t bytes = 0;
  for (const auto& [number, file] : version.value_files)
    if (given_up_permille(file, expiry) >= kGivenUpPermille) bytes += file.size_bytes;
  return bytes;
}

std::optional<VersionEdit> pick_drop(const Version& version, const ExpiryView& expiry) {
  if (expiry.empty()) return std::nullopt;
  VersionEdit edit;
  for (const TablePointer& table : version.tables) {
    const bool over = std::all_of(table->value_files.begin(), table->value_files.end(),
                                  [&](const ValueFileUse& use) {
                                    return is_over(version.value_files.at(use.file_number),
                                                   table->smallest, table->largest, expiry);
                                  });
    if (over && !table->value_files.empty()) edit.removed_tables.push_back(table->number);
  }
  if (edit.removed_tables.empty()) return std::nullopt;
  remove_unused_value_files(version, edit);
  edit.expiry_mark_ns = expiry.now_ns();
  return edit;
}

std::optional<MergePlan> pick_purge(const Version& version, const PurgeContext& context) {
  const std::set<FileNumber> files = files_to_leave(version, context);
  const auto matters = [&](const TablePointer& table) {
    return must_purge(version, *table, context, files);
  };
  // First into the trees, where each namespace is by itself.
  if (std::any_of(version.level0.begin(), version.level0.end(), matters))
    return pick_level0(version, 1);
  for (const auto& [id, tree] : version.trees) {
    if (files.empty()) {
      if (auto plan = purge_together(version, id, tree, context, matters)) return plan;
    }
    for (const Run& run : tree) {
      MergePlan plan;
      MergeInput input;
      std::uint64_t bytes = 0;
      for (const TablePointer& table : run.tables) {
        if (bytes >= kPurgeBytesMax || !matters(table)) continue;
        bytes += table->item_bytes();
        input.push_back(table);
      }
      if (input.empty()) continue;
      plan.mode = MergeMode::Relocate;
      plan.output_level = run.level;
      plan.output_run = run.number;
      plan.evacuated = files;
      (run.kind == TableKind::Groups ? plan.groups : plan.singles).push_back(std::move(input));
      plan.set_surroundings(version);
      return plan;
    }
  }
  return std::nullopt;
}

std::uint64_t due_bytes(const Version& version, const ExpiryView& expiry, bool exact) {
  std::uint64_t bytes = 0;
  for (const auto& [number, file] : version.value_files)
    if (is_used(version, number) && due_ns(file, exact) < expiry.now_ns()) bytes += file.size_bytes;
  return bytes;
}

std::int64_t next_expiry_ns(const Version& version, bool exact) {
  std::int64_t next_ns = kNeverNs;
  for (const auto& [number, file] : version.value_files)
    if (is_used(version, number)) next_ns = std::min(next_ns, due_ns(file, exact));
  return next_ns;
}

}  // namespace edgecase::engine
