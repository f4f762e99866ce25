#include "core/flush_lane.h"

#include <algorithm>
#include <utility>

#include "core/merge_cursor.h"
#include "file/file_names.h"
#include "table/bucket_files.h"

namespace edgecase::engine {
namespace {

// Tables of one flush: of groups, one a life class, and of single values.
constexpr std::uint64_t kTablesPerFlushMax = 2 + kLifeForever;
constexpr std::int64_t kRetryDelayMinNs = 500'000'000;
constexpr std::int64_t kRetryDelayMaxNs = 10'000'000'000;
// A flush that takes longer than this is a drive that hangs: the writer is told.
constexpr std::int64_t kStallMaxNs = 10'000'000'000;
constexpr std::int64_t kStallSliceNs = 100'000'000;
// The flush that runs when the reserve is let go may have begun before there was room.
constexpr int kReserveAttempts = 3;

// A flush cuts its values into pieces of one part in so many of all that value tables hold, but no
// more than so many pieces: what is relocated range by range then goes range by range.
constexpr std::uint64_t kPiecePart = 256;
constexpr std::uint64_t kPiecesPerFlush = 4;
constexpr std::uint64_t kPieceBytesMin = 32u << 10;
static_assert(2 * kPiecesPerFlush <= kPiecesPerFlushMax);

constexpr SequenceNumber kEverySequence = UINT64_MAX >> 2;

}  // namespace

void FlushLane::schedule() {
  {
    MutexLock lock(mutex_);
    if (scheduled_) return;
    scheduled_ = true;
  }
  schedule_run();
}

void FlushLane::schedule_run() {
  store_.tasks.schedule(Lane::Flush, [this] { run(); });
}

void FlushLane::await_values(const Status& why) {
  {
    MutexLock lock(mutex_);
    scheduled_ = true;
  }
  note_failure(why);
}

std::uint64_t FlushLane::flushes() const {
  MutexLock lock(mutex_);
  return course_.succeeded;
}

// Whoever waits for a flush does not wait for the delay of its retry: the first failure may be over
// already, later ones are tried again as often as the shortest delay allows. False: not now.
bool FlushLane::try_again() {
  if (course_.is_asked) return true;
  if (store_.environment.clock.boot_ns() < course_.not_before_ns) return false;
  course_.is_asked = true;
  mutex_.unlock();
  schedule_run();
  mutex_.lock();
  return true;
}

Status FlushLane::wait_for(std::uint64_t flushes_before) {
  const std::int64_t begin_ns = store_.environment.clock.boot_ns();
  std::int64_t waited_ns = 0;
  Status status;
  {
    MutexLock lock(mutex_);
    while (course_.succeeded == flushes_before) {
      if (!course_.failure.ok() && !try_again()) {
        status = course_.failure.as(StatusCode::Busy)
                     .with_context("writes wait for a flush, and flushes fail: " +
                                   std::string(status_code_name(course_.failure.code())) + ": ");
        break;
      }
      if (waited_ns >= kStallMaxNs) {
        status = busy("writes wait for a flush that takes over 10 s");
        break;
      }
      lock.unlock();
      const bool ran = store_.tasks.run_one();
      lock.lock();
      if (ran || course_.succeeded != flushes_before) continue;
      if (!changed_.wait_for(mutex_, kStallSliceNs)) waited_ns += kStallSliceNs;
    }
  }
  const std::int64_t stalled_ns = store_.environment.clock.boot_ns() - begin_ns;
  pacer_.add_stall(std::max<std::int64_t>(stalled_ns, 0));
  return status;
}

Status FlushLane::finish(SequenceNumber through) {
  if (store_.views.immutable_count() == 0) return ok();
  MutexLock lock(mutex_);
  const std::uint64_t failed_before = course_.failed;
  if (!course_.failure.ok()) {
    // Does not wait for the delay of the retry.
    lock.unlock();
    schedule_run();
    lock.lock();
  }
  while (course_.flushed_sequence < through) {
    if (course_.failed != failed_before) return course_.failure;
    lock.unlock();
    const bool ran = store_.tasks.run_one();
    lock.lock();
    if (ran || course_.flushed_sequence >= through) continue;
    static_cast<void>(changed_.wait_for(mutex_, kStallSliceNs));
  }
  return ok();
}

Status FlushLane::with_reserve(Status failure, const std::function<Status()>& attempt) {
  const bool lacks_space = failure.code() == StatusCode::OutOfSpace || store_.health.lacks_space();
  if (!lacks_space || !room_.release_reserve()) return failure;
  for (int attempts = 0; attempts < kReserveAttempts && !failure.ok(); ++attempts) {
    {
      MutexLock lock(mutex_);
      course_.not_before_ns = 0;
    }
    failure = attempt();
  }
  return failure;
}

void FlushLane::run() {
  const RoleScope on_lane(flushing);  // the executor runs the lane's tasks one after another
  if (!values_.is_admitted()) {
    if (const Status values = values_.check(); !values.ok()) return note_failure(values);
    note_success();
    compactor_.wake();
  }
  for (;;) {
    std::shared_ptr<Memtable> oldest;
    {
      MutexLock lock(mutex_);
      oldest = store_.views.oldest_immutable();
      if (oldest == nullptr || store_.tasks.closed()) {
        scheduled_ = false;
        return;
      }
    }
    if (const Status written = write_out(oldest); !written.ok()) return note_failure(written);
    note_success();
  }
}

TableWriterContext FlushLane::writer_context(ExpiryView expiry) {
  const auto info_of = [this](NamespaceId id) {
    const auto info = store_.versions.find_namespace(id);
    return info.ok() ? *info : NamespaceInfo{};
  };
  TableWriterContext context{store_.environment.file_system,
                             store_.options,
                             store_.id,
                             [this] {
                               const RoleScope on_lane(flushing);
                               return file_numbers_.take();
                             },
                             [info_of](NamespaceId id) { return info_of(id).options; },
                             [info_of](NamespaceId id) { return info_of(id).name; },
                             std::move(expiry),
                             &store_.remover,
                             store_.keys};
  // Flushes are cut in different places, so that pieces come free one after another.
  context.value_file_bytes =
      std::max({kPieceBytesMin, store_.budget.memtable_bytes() / kPiecesPerFlush,
                store_.versions.current()->value_bytes() / kPiecePart});
  const std::uint64_t place = 1 + cuts_++ % kPiecesPerFlush;
  context.raise_limits = store_.feed_bounds.limits();
  context.first_value_file_bytes = context.value_file_bytes * place / kPiecesPerFlush;
  return context;
}

Status FlushLane::write_out(const std::shared_ptr<Memtable>& memtable) {
  Clock& clock = store_.environment.clock;
  const std::int64_t begin_ns = clock.boot_ns();
  // An unmounted drive leaves an empty directory behind, which must not be filled.
  if (store_.uses_values_drive()) EC_TRY(values_.check());
  EC_TRY(store_.wal.sync_recovered());
  ExpiryView expiry = store_.expiry_of_bytes();
  // Besides the tables a value table a namespace, and a bucket where there are any.
  const std::uint64_t values_max =
      store_.versions.state().namespaces.size() * (expiry.empty() ? 1 : kOpenBucketsMax);
  EC_TRY(
      file_numbers_.reserve(store_.versions, values_max + kPiecesPerFlushMax + kTablesPerFlushMax));
  const TableWriterContext context = writer_context(std::move(expiry));
  std::unique_ptr<EntryCursor> input =
      Memtable::cursor(memtable, {}, {}, Direction::Forward, kEverySequence);
  std::shared_ptr<const RangeDeleteLayers> deletes = memtable->range_deletes();
  const DroppedIds& dropped = store_.versions.dropped();
  if (!dropped.empty() || deletes != nullptr)
    input = std::make_unique<LiveCursor>(std::move(input), dropped, deletes);
  EC_ASSIGN_OR_RETURN(const TableOutput output, write_tables(*input, context));
  value_bytes_.fetch_add(output.value_bytes);
  metadata_bytes_.fetch_add(output.metadata_bytes);
  EC_TRY(commit(output, *memtable));

  FlushEvent event;
  event.entries = memtable->entry_count();
  event.value_bytes = output.value_bytes;
  event.metadata_bytes = output.metadata_bytes;
  event.elapsed_ns = clock.boot_ns() - begin_ns;
  store_.environment.listener.on_flushed(event);
  return ok();
}

Status FlushLane::commit(const TableOutput& output, const Memtable& memtable) {
  const SequenceNumber last_sequence = memtable.last_sequence();
  VersionEdit edit;
  edit.added_value_files = output.value_files;
  edit.added_tables = output.tables;
  // What the memtable's own cover was left out.
  for (TableMetadata& table : edit.added_tables) table.purged_sequence = last_sequence;
  edit.range_deletes = memtable.range_delete_list();
  edit.erasures = erasures_among(edit.range_deletes);
  edit.flushed_sequence = last_sequence;
  const std::uint64_t oldest_wal_segment = store_.wal.oldest_needed(last_sequence);
  if (oldest_wal_segment != 0) edit.oldest_wal_segment = oldest_wal_segment;
  // With rules it is noted anyway; without any it tells the next start what time it is at least.
  const std::int64_t reached_ns = store_.expiry_clock.removal_ns();
  if (reached_ns != kNoMarkNs && store_.versions.retention() == nullptr)
    edit.expiry_mark_ns = reached_ns;
  // Before the edit: once it is current, whoever publishes next shows these files to readers.
  for (const ValueFileMetadata& file : output.value_files) store_.tables.add_value_file(file);
  if (Status applied = store_.versions.apply(edit); !applied.ok()) {
    // The manifest may hold the edit all the same: the files stay until a later edit succeeds.
    given_up_.push_back(output);
    return applied;
  }
  store_.views.retire_oldest();
  {
    MutexLock lock(mutex_);
    course_.flushed_sequence = last_sequence;
  }
  store_.wal.release_before(oldest_wal_segment);
  for (const TableOutput& abandoned : given_up_) remove_tables(abandoned);
  given_up_.clear();
  if (store_.keys != nullptr) store_.tables.set_aside(store_.keys->memory_bytes());
  store_.tables.resize(store_.budget.cache_bytes());
  pacer_.look(written_bytes());
  room_.look();
  compactor_.wake();
  return ok();
}

void FlushLane::remove_tables(const TableOutput& output) {
  // What resists is removed at the next open, like everything no manifest names.
  const Options& options = store_.options;
  for (const TableMetadata& table : output.tables) {
    const auto path = metadata_table_path(options.metadata_directory, table.number);
    static_cast<void>(store_.remover.remove(path).ok());
  }
  for (const ValueFileMetadata& file : output.value_files) {
    store_.tables.forget(file.number);
    const auto path = value_table_path(options.metadata_directory, options.values_directory,
                                       file.placement, file.number);
    static_cast<void>(store_.remover.remove(path, file.namespace_id).ok());
  }
}

// Whoever wakes up finds it in Health.
void FlushLane::note_failure(const Status& failure) {
  store_.health.fail(Work::Flush, failure);
  bool retry = false;
  std::int64_t delay_ns = 0;
  {
    MutexLock lock(mutex_);
    const bool first = course_.failure.ok();
    // What works on value files says when it failed on the values drive; all else of a flush is
    // written to the other one.
    course_.failure = failure.on(Drive::Metadata);
    course_.is_asked = false;
    course_.not_before_ns = store_.environment.clock.boot_ns() + (first ? 0 : kRetryDelayMinNs);
    ++course_.failed;
    course_.delay_ns = std::clamp(2 * course_.delay_ns, kRetryDelayMinNs, kRetryDelayMaxNs);
    delay_ns = course_.delay_ns;
    retry = !std::exchange(retry_scheduled_, true);
    changed_.notify_all();
  }
  if (!retry) return;
  // scheduled_ stays: this is the task that is scheduled.
  store_.tasks.schedule_after(Lane::Flush, delay_ns, [this] {
    {
      MutexLock lock(mutex_);
      retry_scheduled_ = false;
    }
    run();
  });
}

void FlushLane::note_success() {
  store_.health.succeed(Work::Flush);
  MutexLock lock(mutex_);
  course_.failure = ok();
  course_.is_asked = false;
  course_.delay_ns = 0;
  ++course_.succeeded;
  changed_.notify_all();
}

}  // namespace edgecase::engine
