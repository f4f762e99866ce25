#include "compaction/work_source.h"

#include <algorithm>
#include <utility>

#include "crypto/key_ring.h"
#include "file/file_names.h"

namespace edgecase::engine {

std::vector<WorkSource*> SourceTurns::of(Urgency urgency) const {
  std::vector<WorkSource*> sources;
  for (WorkSource* const source : order_)
    if (source->urgency() == urgency) sources.push_back(source);
  if (urgency != Urgency::Due) return sources;
  const auto last = std::find(sources.begin(), sources.end(), last_due_);
  if (last != sources.end()) std::rotate(sources.begin(), last + 1, sources.end());
  return sources;
}

bool SourceTurns::has_sooner(const WorkSource& worker, std::uint64_t written_bytes) const {
  const auto sources = before(worker);
  return std::any_of(sources.begin(), sources.end(),
                     [&](WorkSource* source) { return source->frees_more_than(written_bytes); });
}

bool SourceTurns::has_awaited_before(const WorkSource& worker) const {
  const auto sources = before(worker);
  return std::any_of(sources.begin(), sources.end(),
                     [](WorkSource* source) { return source->urgency() == Urgency::Awaited; });
}

std::span<WorkSource* const> SourceTurns::before(const WorkSource& worker) const {
  const auto at = std::find(order_.begin(), order_.end(), &worker);
  return order_.first(static_cast<std::size_t>(at - order_.begin()));
}

std::shared_ptr<const Version> Mergeable::of(std::shared_ptr<const Version> version) {
  std::set<FileNumber> lost = host_.lost_files();
  if (lost.empty()) {
    made_.reset();
    return version;
  }
  if (made_ == nullptr || made_of_.lock() != version || made_without_ != lost) {
    made_ = std::make_shared<const Version>(without_runs(*version, lost));
    made_of_ = version;
    made_without_ = std::move(lost);
  }
  return made_;
}

bool Mergeable::sets_apart(const Status& failure, const std::vector<TablePointer>& tables) {
  const StatusCode code = failure.code();
  const bool is_damage = code == StatusCode::Corruption || code == StatusCode::Unavailable ||
                         code == StatusCode::IoError;
  return is_damage && host_.check_drives().ok() && host_.look_for_damage(tables);
}

namespace {

// How much of files is overwritten at once: beside merges no more than a few slices of theirs,
// without them what a drive of 200 MB/s takes in a tenth of a second.
constexpr std::uint64_t kRemovedBytes = 4u << 20;
constexpr std::uint64_t kQuietRemovedBytes = 16u << 20;
// Slices of merges between two of files that nobody is in a hurry for: these take no more of the
// drive than merges do (4 of 1 MiB, then one of 4).
constexpr std::uint32_t kSlicesBetweenRemovals = 4;
constexpr std::int64_t kRemovalRetryNs = 1'000'000'000;

}  // namespace

void Removals::collect() {
  const Options& options = context_.options;
  using When = FileRemover::Urgency;
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
                                  dropped ? When::Whenever : When::Soon)
                          .ok());
  }
  if (context_.keys == nullptr || context_.versions.has_obsolete_files()) return;
  // If the drive refuses, the next change of the ring takes them along.
  static_cast<void>(context_.keys->destroy_dropped().ok());
}

void Removals::step(bool beside_merges) {
  using When = FileRemover::Urgency;
  // First all bytes of what has expired, names after that: the manifest, which names keys of it,
  // comes between.
  if (is_hurried_) {
    context_.remover.overwrite(kQuietRemovedBytes, When::Soon);
    is_hurried_ = context_.remover.has_bytes(When::Soon);
    return;
  }
  const bool may_wait = beside_merges && ++slices_since_step_ < kSlicesBetweenRemovals;
  if (!may_wait) slices_since_step_ = 0;
  context_.remover.step(beside_merges ? kRemovedBytes : kQuietRemovedBytes,
                        may_wait ? When::Soon : When::Whenever);
}

void Removals::retry() {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  if (now_ns < retry_not_before_ns_) return;
  retry_not_before_ns_ = now_ns + kRemovalRetryNs;
  context_.remover.queue_left();
}

void Removals::remove_kept() {
  for (const TableOutput& output : kept_) remove_output(output);
  kept_.clear();
}

void Removals::remove_output(const TableOutput& output) {
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

}  // namespace edgecase::engine
