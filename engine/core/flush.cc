// From an immutable memtable to tables: value tables, metadata tables, one manifest edit; then WAL
// segments come free. A failure keeps the memtable and is tried again, later and later.
#include <algorithm>
#include <utility>

#include "core/engine_impl.h"
#include "core/live_cursor.h"
#include "file/file_names.h"
#include "table/bucket_files.h"

namespace edgecase::engine {
namespace {

// Immutable memtables beside the active one; the next writer waits.
constexpr std::size_t kImmutablesMax = 2;
// Of one flush: tables of groups, one a life class, and of single values.
constexpr std::uint64_t kTablesPerFlushMax = 2 + kLifeForever;
constexpr std::int64_t kRetryDelayMinNs = 500'000'000;
constexpr std::int64_t kRetryDelayMaxNs = 10'000'000'000;
// A flush that takes longer than this is a drive that hangs: the writer is told.
constexpr std::int64_t kStallMaxNs = 10'000'000'000;
constexpr std::int64_t kStallSliceNs = 100'000'000;

// A flush cuts its values into pieces of one part in so many of all that value tables hold, but no
// more than so many pieces: what is relocated range by range then goes range by range.
constexpr std::uint64_t kPiecePart = 256;
constexpr std::uint64_t kPiecesPerFlush = 4;
constexpr std::uint64_t kPieceBytesMin = 32u << 10;
static_assert(2 * kPiecesPerFlush <= kPiecesPerFlushMax);

constexpr SequenceNumber kEverySequence = UINT64_MAX >> 2;

}  // namespace

Status EngineImpl::rotate_memtable() {
  if (active_->entry_count() == 0) return ok();
  for (;;) {
    MutexLock lock(mutex_);
    if (view_->immutables.size() < kImmutablesMax) break;
    EC_TRY(wait_for_flush(flushes_));
  }
  auto fresh = std::make_shared<Memtable>(memtable_bytes());
  {
    MutexLock lock(mutex_);
    // What becomes immutable is visible from here on: flushed tables keep no older entries.
    visible_.store(last_sequence_);
    auto view = std::make_shared<ReadView>(*view_);
    view->immutables.insert(view->immutables.begin(), view->active);
    view->active = fresh;
    view_ = std::move(view);
    count_waiting();
  }
  active_ = std::move(fresh);
  set_pace();
  schedule_flush();
  return ok();
}

// Who waits for a flush does not wait for the delay of its retry: the first failure may be over
// already, later ones are tried again as often as the shortest delay allows. False: not now.
bool EngineImpl::try_flush_again() {
  if (flush_asked_) return true;
  if (environment_.clock.boot_ns() < flush_again_not_before_ns_) return false;
  flush_asked_ = true;
  mutex_.unlock();
  environment_.executor.schedule(Lane::Flush, [this, gate = gate_] {
    if (!gate->enter()) return;
    run_flush();
    gate->leave();
  });
  mutex_.lock();
  return true;
}

// Returns when a flush has succeeded since `flushes_before`. Busy when flushes fail or hang. The
// mutex is free while it waits.
Status EngineImpl::wait_for_flush(std::uint64_t flushes_before) {
  const std::int64_t begin_ns = environment_.clock.boot_ns();
  std::int64_t waited_ns = 0;
  Status status;
  while (flushes_ == flushes_before) {
    if (!flush_failure_.ok() && !try_flush_again()) {
      status = flush_failure_.as(StatusCode::Busy)
                   .with_context("writes wait for a flush, and flushes fail: " +
                                 std::string(status_code_name(flush_failure_.code())) + ": ");
      break;
    }
    if (waited_ns >= kStallMaxNs) {
      status = busy("writes wait for a flush that takes over 10 s");
      break;
    }
    mutex_.unlock();
    const bool ran = environment_.executor.run_one();
    mutex_.lock();
    if (ran || flushes_ != flushes_before) continue;
    if (!flush_changed_.wait_for(mutex_, kStallSliceNs)) waited_ns += kStallSliceNs;
  }
  const std::int64_t stalled_ns = environment_.clock.boot_ns() - begin_ns;
  stall_ns_.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(stalled_ns, 0)));
  return status;
}

void EngineImpl::schedule_flush() {
  {
    MutexLock lock(mutex_);
    if (flush_scheduled_) return;
    flush_scheduled_ = true;
  }
  environment_.executor.schedule(Lane::Flush, [this, gate = gate_] {
    if (!gate->enter()) return;
    run_flush();
    gate->leave();
  });
}

// Of a store that was opened without its values drive: looks for that until it is there.
void EngineImpl::await_values() {
  {
    MutexLock lock(mutex_);
    flush_scheduled_ = true;
  }
  note_flush_failure(values_away_);
}

void EngineImpl::run_flush() {
  if (!values_admitted_.load(std::memory_order_acquire)) {
    if (const Status values = check_values(); !values.ok()) {
      note_flush_failure(values);
      return;
    }
    note_flush_success();
    compactor_->wake();
  }
  for (;;) {
    std::shared_ptr<Memtable> oldest;
    {
      MutexLock lock(mutex_);
      if (view_->immutables.empty() || gate_->closed()) {
        flush_scheduled_ = false;
        return;
      }
      oldest = view_->immutables.back();
    }
    if (const Status written = write_memtable(oldest); !written.ok()) {
      note_flush_failure(written);
      return;
    }
    note_flush_success();
  }
}

bool EngineImpl::values_layer_is_used() const {
  const auto all = versions_->state().namespaces;
  return std::any_of(all.begin(), all.end(), [](const NamespaceInfo& info) {
    return info.options.placement == Placement::Values;
  });
}

// Flushes are cut in different places, so that pieces come free one after another.
void EngineImpl::cut_values(TableWriterContext& context) {
  context.value_file_bytes = std::max({kPieceBytesMin, memtable_bytes() / kPiecesPerFlush,
                                       versions_->current()->value_bytes() / kPiecePart});
  const std::uint64_t place = 1 + flush_cuts_++ % kPiecesPerFlush;
  context.first_value_file_bytes = context.value_file_bytes * place / kPiecesPerFlush;
}

Status EngineImpl::write_memtable(const std::shared_ptr<Memtable>& memtable) {
  const std::int64_t begin_ns = environment_.clock.boot_ns();
  // An unmounted drive leaves an empty directory behind, which must not be filled.
  if (values_layer_is_used()) EC_TRY(check_values());
  EC_TRY(wal_->sync_recovered());
  ExpiryView expiry = expiry_of_bytes();
  // Besides the tables a value table a namespace, and a bucket where there are any.
  const std::uint64_t values_max =
      versions_->state().namespaces.size() * (expiry.empty() ? 1 : kOpenBucketsMax);
  EC_TRY(file_numbers_.reserve(*versions_, values_max + kPiecesPerFlushMax + kTablesPerFlushMax));
  TableWriterContext context{file_system_,
                             options_,
                             store_id_,
                             [this] { return file_numbers_.take(); },
                             [this](NamespaceId id) {
                               const auto info = versions_->find_namespace(id);
                               return info.ok() ? info->options : NamespaceOptions{};
                             },
                             [this](NamespaceId id) {
                               const auto info = versions_->find_namespace(id);
                               return info.ok() ? info->name : Bytes();
                             },
                             std::move(expiry),
                             &remover_,
                             keys_.get()};
  cut_values(context);
  std::unique_ptr<EntryCursor> input =
      Memtable::cursor(memtable, {}, {}, Direction::Forward, kEverySequence);
  std::shared_ptr<const RangeDeleteLayers> deletes = memtable->range_deletes();
  if (!versions_->dropped().empty() || deletes != nullptr)
    input = std::make_unique<LiveCursor>(std::move(input), versions_->dropped(), deletes);
  EC_ASSIGN_OR_RETURN(const TableOutput output, write_tables(*input, context));
  table_value_bytes_.fetch_add(output.value_bytes);
  table_metadata_bytes_.fetch_add(output.metadata_bytes);
  EC_TRY(commit_tables(output, *memtable));

  FlushEvent event;
  event.entries = memtable->entry_count();
  event.value_bytes = output.value_bytes;
  event.metadata_bytes = output.metadata_bytes;
  event.elapsed_ns = environment_.clock.boot_ns() - begin_ns;
  environment_.listener.on_flushed(event);
  return ok();
}

Status EngineImpl::commit_tables(const TableOutput& output, const Memtable& memtable) {
  const SequenceNumber last_sequence = memtable.last_sequence();
  VersionEdit edit;
  edit.added_value_files = output.value_files;
  edit.added_tables = output.tables;
  // What the memtable's own cover was left out.
  for (TableMetadata& table : edit.added_tables) table.purged_sequence = last_sequence;
  edit.range_deletes = memtable.range_delete_list();
  edit.erasures = erasures_among(edit.range_deletes);
  edit.flushed_sequence = last_sequence;
  const std::uint64_t oldest_wal_segment = wal_->oldest_needed(last_sequence);
  if (oldest_wal_segment != 0) edit.oldest_wal_segment = oldest_wal_segment;
  // With rules it is noted anyway; without any it tells the next start what time it is at least.
  const std::int64_t reached_ns = expiry_clock_->removal_ns();
  if (reached_ns != kNoMarkNs && versions_->retention() == nullptr)
    edit.expiry_mark_ns = reached_ns;
  // Before the edit: once it is current, whoever publishes next shows these files to readers.
  for (const ValueFileMetadata& file : output.value_files) tables_->add_value_file(file);
  if (Status applied = versions_->apply(edit); !applied.ok()) {
    // The manifest may hold the edit all the same: the files stay until a later edit succeeds.
    given_up_.push_back(output);
    return applied;
  }
  {
    MutexLock lock(mutex_);
    auto view = std::make_shared<ReadView>(*view_);
    view->immutables.back()->set_written_out();
    retired_memtables_.push_back(view->immutables.back());
    std::erase_if(retired_memtables_, [](const auto& retired) { return retired.expired(); });
    view->immutables.pop_back();
    view->version = versions_->current();
    view_ = std::move(view);
    count_waiting();
    flushed_sequence_ = last_sequence;
  }
  wal_->release_before(oldest_wal_segment);
  for (const TableOutput& abandoned : given_up_) remove_tables(abandoned);
  given_up_.clear();
  if (keys_ != nullptr) tables_->set_aside(keys_->memory_bytes());
  tables_->resize(memory_bytes() / kCacheShare);
  set_pace();
  look_for_space();
  compactor_->wake();
  return ok();
}

// Shows readers the tables as they are now.
void EngineImpl::publish_version() {
  set_pace();
  MutexLock lock(mutex_);
  auto view = std::make_shared<ReadView>(*view_);
  view->version = versions_->current();
  view_ = std::move(view);
  flush_changed_.notify_all();
}

Status EngineImpl::compact(const std::vector<NamespaceId>& ids, const KeyRange& range) {
  const auto attempt = [&]() -> Status {
    EC_TRY(flush());
    return compactor_->compact(ids, range.lower, range.upper);
  };
  Status done = attempt();
  if (done.ok() || pending_erasures() == 0) return done;
  return use_reserve(std::move(done), attempt);
}

void EngineImpl::remove_tables(const TableOutput& output) {
  // What resists is removed at the next open, like everything no manifest names.
  for (const TableMetadata& table : output.tables) {
    const auto path = metadata_table_path(options_.metadata_directory, table.number);
    static_cast<void>(remover_.remove(path).ok());
  }
  for (const ValueFileMetadata& file : output.value_files) {
    tables_->forget(file.number);
    const auto path = value_table_path(options_.metadata_directory, options_.values_directory,
                                       file.placement, file.number);
    static_cast<void>(remover_.remove(path, file.namespace_id).ok());
  }
}

void EngineImpl::note_flush_failure(const Status& cause) {
  // What works on value files says when it failed on the values drive; all else of a flush is
  // written to the other one.
  const Status failure = cause.on(Drive::Metadata);
  const Layer layer = layer_of(failure);
  bool first = false;
  bool retry = false;
  std::int64_t delay_ns = 0;
  {
    MutexLock lock(mutex_);
    first = flush_failure_.ok();
    if (first) flush_failed_since_ns_ = environment_.clock.wall_ns();
    flush_failure_ = failure;
    count_waiting();
    flush_failure_layer_ = layer;
    flush_asked_ = false;
    flush_again_not_before_ns_ = environment_.clock.boot_ns() + (first ? 0 : kRetryDelayMinNs);
    ++failed_flushes_;
    flush_delay_ns_ = std::clamp(2 * flush_delay_ns_, kRetryDelayMinNs, kRetryDelayMaxNs);
    delay_ns = flush_delay_ns_;
    retry = !std::exchange(retry_scheduled_, true);
    flush_changed_.notify_all();
  }
  if (first) environment_.listener.on_degraded(name_of(layer), failure);
  if (!retry) return;
  // flush_scheduled_ stays: this is the task that is scheduled.
  environment_.executor.schedule_after(Lane::Flush, delay_ns, [this, gate = gate_] {
    if (!gate->enter()) return;
    {
      MutexLock lock(mutex_);
      retry_scheduled_ = false;
    }
    run_flush();
    gate->leave();
  });
}

void EngineImpl::note_flush_success() {
  bool resumed = false;
  Layer layer = Layer::Values;
  {
    MutexLock lock(mutex_);
    resumed = !flush_failure_.ok();
    layer = flush_failure_layer_;
    flush_failure_ = ok();
    refused_ = ok();
    refuses_.store(false, std::memory_order_relaxed);
    count_waiting();
    flush_asked_ = false;
    flush_delay_ns_ = 0;
    ++flushes_;
    flush_changed_.notify_all();
  }
  if (resumed) environment_.listener.on_resumed(name_of(layer));
}

Status EngineImpl::flush() {
  Status rotated;
  SequenceNumber target = 0;
  lead([&] {
    rotated = rotate_memtable();
    target = visible_.load();
  });
  MutexLock lock(mutex_);
  EC_TRY(rotated);
  if (view_->immutables.empty()) return ok();

  const std::uint64_t failed_before = failed_flushes_;
  if (!flush_failure_.ok()) {
    // Does not wait for the delay of the retry.
    lock.unlock();
    environment_.executor.schedule(Lane::Flush, [this, gate = gate_] {
      if (!gate->enter()) return;
      run_flush();
      gate->leave();
    });
    lock.lock();
  }
  while (flushed_sequence_ < target) {
    if (failed_flushes_ != failed_before) return flush_failure_;
    lock.unlock();
    const bool ran = environment_.executor.run_one();
    lock.lock();
    if (ran || flushed_sequence_ >= target) continue;
    static_cast<void>(flush_changed_.wait_for(mutex_, kStallSliceNs));
  }
  return ok();
}

}  // namespace edgecase::engine
