#include "tiers/tier_maker.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "query/cursors.h"
#include "query/series_scan.h"
#include "query/tier_windows.h"
#include "wire/reading.h"

namespace edgecase::tiers {
namespace {

using retention::TierMark;

std::vector<std::int64_t> lengths_of(const std::vector<wire::Tier>& tiers) {
  std::vector<std::int64_t> lengths;
  for (const wire::Tier& tier : tiers) lengths.push_back(tier.every_ns);
  return lengths;
}

bool holds(const std::vector<std::int64_t>& lengths, std::int64_t every_ns) {
  return std::find(lengths.begin(), lengths.end(), every_ns) != lengths.end();
}

// The beginning of the coarsest window that holds the time.
std::optional<std::int64_t> coarsest_begin_ns(const wire::Keeping& keeping, std::int64_t time_ns) {
  std::int64_t into = time_ns % keeping.tiers.back().every_ns;
  if (into < 0) into += keeping.tiers.back().every_ns;
  std::int64_t begin_ns = 0;
  if (__builtin_sub_overflow(time_ns, into, &begin_ns)) return std::nullopt;
  return begin_ns;
}

KeyRange readings_before(const catalog::SeriesId& id, std::int64_t before_ns) {
  return {wire::make_reading_key({id.device, id.sensor, INT64_MIN}),
          wire::make_reading_key({id.device, id.sensor, before_ns})};
}

Status damaged(const catalog::SeriesEntry& series) {
  return corruption(series.device + "/" + series.sensor +
                    " stays as it is: some of its readings are damaged");
}

}  // namespace

TierMaker::TierMaker(Engine& engine, catalog::Catalog& catalog,
                     retention::RetentionService& retention, erase::Fences& fences,
                     TierEvents events)
    : engine_(engine),
      catalog_(catalog),
      retention_(retention),
      fences_(fences),
      events_(std::move(events)) {}

TierMaker::~TierMaker() {
  stop();
}

void TierMaker::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "tiers");
}

void TierMaker::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool TierMaker::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void TierMaker::run() {
  std::uint64_t generation = 0;
  std::int64_t waited_ns = kPassMaxNs;
  MutexLock lock(mutex_);
  while (!stopping_) {
    const std::int64_t pass_ns = std::min(retention_.shortest_tiered_ns() / kStepShare, kPassMaxNs);
    if (waited_ns >= pass_ns || generation != retention_.generation()) {
      generation = retention_.generation();
      waited_ns = 0;
      lock.unlock();
      static_cast<void>(pass().ok());  // status() says what is wrong
      lock.lock();
    }
    const CondVar::Deadline deadline = CondVar::deadline_in(kLookNs);
    while (!stopping_ && changed_.wait_until(mutex_, deadline)) {
    }
    waited_ns += kLookNs;
  }
}

TierStatus TierMaker::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

Status TierMaker::pass() {
  const MutexLock passing(pass_mutex_);
  Status problem;
  const auto note = [&problem](const Status& status) {
    if (problem.ok()) problem = status;
  };
  note(erase_hidden(true));
  if (retention_.has_tiers()) {
    const ExpiryStats expiry = engine_.stats().expiry;
    // What leapt with the clock may come back; what became a window does not.
    const bool is_sure = expiry.wait == ExpiryWait::None && expiry.held_bytes == 0;
    std::uint64_t value_bytes = 0;
    if (is_sure) note(do_due({engine_.expiry_now_ns()}, value_bytes));
    retention_.tell_marks();
  }
  if (is_stopping()) return ok();
  std::string told = problem.ok() ? std::string() : problem.message();
  {
    const MutexLock lock(mutex_);
    if (status_.problem == told) return problem;
    status_.problem = told;
  }
  if (events_.left && !told.empty()) events_.left(told);
  return problem;
}

void TierMaker::each_series(const SeriesTaker& take) {
  for (const std::string& name : catalog_.namespaces()) {
    if (name.starts_with('_')) continue;
    for (const catalog::SeriesRow row : catalog_.select_rows(name, wire::Selector())) {
      if (is_stopping()) return;
      const auto series = catalog_.series_at(row);
      if (series.ok()) take(*series);  // else erased meanwhile
    }
  }
}

Status TierMaker::do_due(const Due& due, std::uint64_t& value_bytes) {
  Status problem;
  std::vector<Task> tasks;
  const auto note = [&problem](const Status& status) {
    if (problem.ok()) problem = status;
  };
  each_series([&](const catalog::SeriesEntry& series) EC_REQUIRES(pass_mutex_) {
    auto task = task_of(series, due);
    note(task.status());
    if (!task.ok() || !*task) return;
    value_bytes += (*task)->value_bytes;
    tasks.push_back(**std::move(task));
    if (tasks.size() < kSeriesAtOnce) return;
    note(do_all(tasks));
    tasks.clear();
  });
  note(do_all(tasks));
  return problem;
}

// What earlier passes hid, also before the last start.
Status TierMaker::erase_hidden(bool waits) {
  if (waits && !held_.expired() && engine_.expiry_now_ns() - hidden_ns_ < kHeldMaxNs) return ok();
  const std::vector<catalog::SeriesId> waiting = retention_.marks().waiting(kErasedAtOnce);
  for (std::size_t begin = 0; begin < waiting.size() && !is_stopping();) {
    const erase::Fences::Pass pass = fences_.enter();
    const std::size_t end = std::min(waiting.size(), begin + kRangeDeletesPerBatchMax);
    std::vector<std::pair<catalog::SeriesId, TierMark>> erased;
    WriteBatch batch;
    for (; begin < end; ++begin) {
      TierMark mark = retention_.marks().find(waiting[begin]);
      if (mark.erased_ns >= mark.before_ns) continue;  // the series was erased meanwhile
      mark.erased_ns = mark.before_ns;
      const KeyRange hidden = readings_before(waiting[begin], mark.before_ns);
      batch.erase_range(waiting[begin].namespace_id, hidden.lower, hidden.upper);
      retention::TierMarks::append(retention_.records(), waiting[begin], mark, batch);
      erased.emplace_back(waiting[begin], std::move(mark));
    }
    if (erased.empty()) continue;
    EC_TRY(engine_.write(batch, Durability::Sync));
    for (auto& [id, mark] : erased) retention_.marks().set(id, std::move(mark));
  }
  // Also what a crash left pending: a round takes up what is flushed, and goes on by itself where a
  // drive is away or somebody still reads. Nobody waits for it here: the daemon may want to stop.
  if (retention_.marks().size() == 0 || engine_.stats().erasure.pending_ranges == 0) return ok();
  return engine_.flush();
}

// The first reading of a series; none: nothing lies before that time.
Result<std::optional<std::int64_t>> TierMaker::first_ns(const catalog::SeriesEntry& series,
                                                        std::int64_t before_ns) {
  std::optional<std::int64_t> time_ns;
  bool is_damaged = false;
  ReadOptions options;
  options.on_damage = [&is_damaged](const DamagedKeys&) { is_damaged = true; };
  EC_ASSIGN_OR_RETURN(
      const auto first,
      engine_.scan(series.id.namespace_id, readings_before(series.id, before_ns), options));
  EC_TRY(first->status());
  if (is_damaged) return damaged(series);
  if (first->valid()) time_ns = wire::time_of_reading_key(first->key().data());
  return time_ns;
}

// None: nothing of the series is due.
Result<std::optional<TierMaker::Task>> TierMaker::task_of(const catalog::SeriesEntry& series,
                                                          const Due& due) {
  std::optional<Task> none;
  Task task{series, retention_.keeping(series)};
  const TierMark mark = retention_.marks().find(series.id);
  if (task.keeping.tiers.empty() && mark.every_ns.empty()) return none;
  if (!task.keeping.tiers.empty() && series.id.sensor > catalog::kTierSensorMax) {
    return limit_reached(series.device + "/" + series.sensor +
                         " stays as it is: so many sensors of one device have no tiers");
  }
  const bool has_changed =
      !mark.every_ns.empty() && mark.every_ns != lengths_of(task.keeping.tiers);
  const Status is_set = task.keeping.tiers.empty() ? ok() : set_time(due, task);
  // Windows follow their rule whatever ails the readings.
  if (!is_set.ok() && !has_changed) return is_set;
  if (task.before_ns == INT64_MIN && !has_changed) return none;
  return std::optional<Task>(std::move(task));
}

// Which readings of it are to become windows.
Status TierMaker::set_time(const Due& due, Task& task) {
  const std::int64_t raw_ns = task.keeping.raw_ns;
  std::int64_t oldest_ns = due.thin_ns.value_or(INT64_MIN);
  if (!due.thin_ns &&
      (raw_ns == kRetentionForever || __builtin_sub_overflow(due.now_ns, raw_ns, &oldest_ns)))
    return ok();
  // Eviction has asked already what waits.
  if (!due.thin_ns && unsent_ != nullptr)
    oldest_ns = std::min(oldest_ns, unsent_->waits_from_ns(task.series));
  const auto before_ns = coarsest_begin_ns(task.keeping, oldest_ns);
  if (!before_ns) return ok();
  EC_ASSIGN_OR_RETURN(const auto first, first_ns(task.series, *before_ns));
  if (!first) return ok();
  if (due.thin_ns) {
    task.before_ns = *before_ns;
    task.is_for_room = true;
    const KeyRange going = readings_before(task.series.id, *before_ns);
    EC_ASSIGN_OR_RETURN(task.value_bytes,
                        engine_.approximate_size(task.series.id.namespace_id, going));
    return ok();
  }
  // Few steps rather than many: each takes a sync, and hides a range from whoever reads.
  std::int64_t late_ns = 0;
  const bool is_late =
      !__builtin_sub_overflow(*before_ns, raw_ns / kStepShare, &late_ns) && *first < late_ns;
  if (is_late) task.before_ns = *before_ns;
  return ok();
}

Status TierMaker::do_all(std::vector<Task>& tasks) {
  if (tasks.empty()) return ok();
  {
    // Whoever is inside has left: what it wrote is in the snapshots that are taken from here on.
    const erase::Fences::Closed closed = fences_.close();
    const bool takes_copies = retention_.marks().takes_copies(engine_.expiry_now_ns());
    for (Task& task : tasks) {
      if (takes_copies && !task.is_for_room) task.before_ns = INT64_MIN;
      if (task.before_ns != INT64_MIN) retention_.marks().announce(task.series.id, task.before_ns);
    }
  }
  Status problem;
  for (const Task& task : tasks) {
    if (is_stopping()) break;
    const Status made = make(task);
    if (problem.ok()) problem = made;
  }
  retention_.marks().withdraw_all();
  return problem;
}

Result<std::vector<catalog::TierSpace>> TierMaker::spaces_of(const Task& task) {
  std::vector<catalog::TierSpace> spaces;
  for (const wire::Tier& tier : task.keeping.tiers) {
    EC_ASSIGN_OR_RETURN(const catalog::TierSpace space,
                        retention_.tier_space(task.series.id.namespace_id, tier.every_ns));
    spaces.push_back(space);
  }
  return spaces;
}

Status TierMaker::make(const Task& task) {
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::TierSpace> tiers, spaces_of(task));
  const TierMark mark = retention_.marks().find(task.series.id);
  if (!mark.every_ns.empty() && mark.every_ns != lengths_of(task.keeping.tiers))
    EC_TRY(follow_rule(task, mark));
  while (task.before_ns != INT64_MIN && !is_stopping()) {
    EC_ASSIGN_OR_RETURN(const bool is_more, make_piece(task, tiers));
    if (!is_more) break;
  }
  return ok();
}

// The rule has other tiers than what lies before the mark is in: a tier that it has not any more
// goes, and a new one is made of the finest that fits, before that may go.
Status TierMaker::follow_rule(const Task& task, const TierMark& mark) {
  const catalog::SeriesId& id = task.series.id;
  const std::vector<std::int64_t> wanted = lengths_of(task.keeping.tiers);
  const erase::Fences::Pass pass = fences_.enter();
  if (!catalog_.find(task.series.namespace_name, task.series.device, task.series.sensor).ok())
    return ok();  // erased meanwhile
  const std::vector<catalog::TierSpace> spaces = catalog::tier_spaces_of(engine_, id.namespace_id);
  const auto space_of = [&](std::int64_t every_ns) {
    return std::find_if(spaces.begin(), spaces.end(),
                        [=](const catalog::TierSpace& each) { return each.every_ns == every_ns; });
  };
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  options.fill_cache = false;
  const TierMark next{mark.before_ns, mark.erased_ns, wanted};
  for (const std::int64_t every_ns : wanted) {
    if (holds(mark.every_ns, every_ns)) continue;
    const auto source = std::find_if(mark.every_ns.begin(), mark.every_ns.end(),
                                     [=](std::int64_t each) { return every_ns % each == 0; });
    // Finer than all that is kept: it begins at the mark.
    if (source == mark.every_ns.end() || space_of(*source) == spaces.end()) continue;
    // To the last one, within which the mark may lie.
    EC_ASSIGN_OR_RETURN(const auto windows,
                        query::TierWindows::open(engine_, *space_of(*source), id, INT64_MIN,
                                                 std::nullopt, query::kAllTierColumns, options));
    WriteBatch made;
    const catalog::TierSpace target = *space_of(every_ns);
    WindowBatch batch(id, {&target, 1}, made);
    for (; windows->valid(); windows->next()) {
      batch.add(windows->window());
      if (made.size_bytes() < kBatchSizeMaxBytes / 4) continue;
      EC_TRY(engine_.write(made, Durability::Async));  // the mark's sync covers it
      made.clear();
    }
    EC_TRY(windows->status());
    batch.finish();
    EC_TRY(engine_.write(made, Durability::Async));
  }
  WriteBatch last;
  if (wanted.empty() && mark.erased_ns < mark.before_ns) {
    // Without a mark nobody knows of what is hidden.
    const KeyRange hidden = readings_before(id, mark.before_ns);
    last.erase_range(id.namespace_id, hidden.lower, hidden.upper);
  }
  for (const std::int64_t every_ns : mark.every_ns) {
    const auto space = space_of(every_ns);
    if (holds(wanted, every_ns) || space == spaces.end()) continue;
    const catalog::KeySpan windows = catalog::windows_span(*space, id);
    last.remove_range(space->id, windows.lower, windows.upper);
  }
  retention::TierMarks::append(retention_.records(), id, next, last);
  EC_TRY(engine_.write(last, Durability::Sync));
  retention_.marks().set(id, next);
  return ok();
}

// Since the rule has other tiers than before, the mark may lie within a window of theirs.
Status TierMaker::go_on_behind(const TierMark& mark, const Task& task,
                               std::span<const catalog::TierSpace> tiers,
                               const ReadOptions& options, WindowBatch& windows) {
  if (mark.before_ns == INT64_MIN) return ok();
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const std::int64_t begin_ns = query::window_start(mark.before_ns, tiers[i].every_ns);
    std::int64_t end_ns = 0;
    if (begin_ns == mark.before_ns || __builtin_add_overflow(begin_ns, tiers[i].every_ns, &end_ns))
      continue;
    EC_ASSIGN_OR_RETURN(const auto begun,
                        query::TierWindows::open(engine_, tiers[i], task.series.id, begin_ns,
                                                 end_ns, query::kAllTierColumns, options));
    if (begun->valid()) windows.go_on(i, begun->window());
  }
  return ok();
}

// Whether there is more of the series to do.
Result<bool> TierMaker::make_piece(const Task& task, std::span<const catalog::TierSpace> tiers) {
  const erase::Fences::Pass pass = fences_.enter();
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  options.fill_cache = false;
  options.large_value_bytes = query::kLargeTextBytes;
  const auto row = catalog_.select_rows(
      task.series.namespace_name,
      wire::Selector{wire::escape_name(task.series.device), wire::escape_name(task.series.sensor)});
  const auto found = row.size() == 1 ? catalog_.series_at(row.front())
                                     : Result<catalog::SeriesEntry>(not_found("erased"));
  if (!found.ok() || !(found->id == task.series.id)) return false;  // erased meanwhile
  query::SeriesScan scan(engine_, catalog_, row, {INT64_MIN, task.before_ns}, options);
  EC_ASSIGN_OR_RETURN(const bool is_there, scan.next_series());
  if (!is_there || (!scan.valid() && scan.status().ok() && scan.damaged().of_series.empty()))
    return false;
  WriteBatch batch;
  batch.set_makes_room();
  std::vector<query::TierWindow> made;
  WindowBatch windows(task.series.id, tiers, batch, events_.made ? &made : nullptr);
  const TierMark before = retention_.marks().find(task.series.id);
  EC_TRY(go_on_behind(before, task, tiers, options, windows));
  std::uint64_t readings = 0;
  std::int64_t piece_last_ns = INT64_MIN;  // of the coarsest window that is open
  std::int64_t before_ns = task.before_ns;
  while (scan.valid()) {
    const std::int64_t time_ns = scan.time_ns();
    if (time_ns > piece_last_ns) {
      if (windows.windows() >= kPieceWindows || readings >= kPieceReadings) {
        before_ns = piece_last_ns + 1;
        break;
      }
      piece_last_ns = windows.coarsest_last_ns(time_ns);
    }
    const wire::Numbers numbers = scan.numbers();
    if (!scan.valid()) break;
    std::size_t count = 1;
    if (numbers.empty()) {
      wire::Value value;
      EC_TRY(scan.value(value));
      windows.add(scan.time_ns(), value);
    } else {
      count = numbers.count_within(INT64_MIN, windows.finest_last_ns(numbers.times_ns.front()));
      windows.add(numbers.first(count));
    }
    readings += count;
    scan.skip(count);
  }
  EC_TRY(scan.status());
  if (!scan.damaged().of_series.empty()) {
    return damaged(task.series);
  }
  windows.finish();
  const catalog::SeriesId& id = task.series.id;
  const TierMark mark{before_ns, before.erased_ns, lengths_of(task.keeping.tiers)};
  retention::TierMarks::append(retention_.records(), id, mark, batch);
  const KeyRange gone = readings_before(id, before_ns);
  batch.remove_range(id.namespace_id, gone.lower, gone.upper);
  if (unsent_ != nullptr) EC_TRY(unsent_->leave_thinned(*found, before_ns, batch));
  EC_TRY(engine_.write(batch, Durability::Sync));
  retention_.marks().set(id, mark);
  if (unsent_ != nullptr) unsent_->left_thinned();
  if (events_.made) events_.made(*found, made);
  held_ = engine_.held_snapshots();
  hidden_ns_ = engine_.expiry_now_ns();
  {
    const MutexLock lock(mutex_);
    status_.windows += windows.windows();
    status_.readings += readings;
  }
  return before_ns < task.before_ns;
}

}  // namespace edgecase::tiers
