#include "tiers/tier_maker.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "query/cursors.h"
#include "wire/reading.h"

namespace edgecase::tiers {
namespace {

using retention::TierMark;

// The beginning of the coarsest window that holds the time.
std::optional<std::int64_t> coarsest_begin_ns(const wire::Keeping& keeping, std::int64_t time_ns) {
  std::int64_t into = time_ns % keeping.tiers.back().every_ns;
  if (into < 0) into += keeping.tiers.back().every_ns;
  std::int64_t begin_ns = 0;
  if (__builtin_sub_overflow(time_ns, into, &begin_ns)) return std::nullopt;
  return begin_ns;
}

}  // namespace

TierMaker::TierMaker(Engine& engine, catalog::Catalog& catalog,
                     retention::RetentionService& retention, erase::Fences& fences,
                     TierEvents events)
    : engine_(engine),
      catalog_(catalog),
      retention_(retention),
      fences_(fences),
      events_(std::move(events)),
      windows_(engine, catalog, retention, fences, events_.made) {}

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
  if (is_damaged) return stays_for_damage(series);
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
    EC_TRY(windows_.follow_rule(task.series, task.keeping, mark));
  while (task.before_ns != INT64_MIN && !is_stopping()) {
    EC_ASSIGN_OR_RETURN(const SeriesWindows::Piece piece,
                        windows_.make_piece({task.series, task.keeping, tiers, task.before_ns}));
    if (!piece.is_written) break;
    held_ = engine_.held_snapshots();
    hidden_ns_ = engine_.expiry_now_ns();
    {
      const MutexLock lock(mutex_);
      status_.windows += piece.windows;
      status_.readings += piece.readings;
    }
    if (!piece.has_more) break;
  }
  return ok();
}

// TierMaker on a full drive: storage.on-full = "thin-oldest".

// When the first window of all is whole: before that time there is something to make room with.
// None: there is nothing.
std::optional<std::int64_t> TierMaker::first_due_ns(std::int64_t limit_ns, std::string& why) {
  std::optional<std::int64_t> first_due_ns;
  why = "no rule of retention has tiers that readings could become windows of";
  each_series([&](const catalog::SeriesEntry& series) {
    const wire::Keeping keeping = retention_.keeping(series);
    if (keeping.tiers.empty() || series.id.sensor > catalog::kTierSensorMax) return;
    if (!first_due_ns) why = "all readings whose rule has tiers are windows, but for the newest";
    const auto first = first_ns(series, limit_ns);
    if (!first.ok()) {
      why = first.status().message();
      return;
    }
    const std::int64_t every_ns = keeping.tiers.back().every_ns;
    std::int64_t end_ns = 0;
    if (!*first ||
        __builtin_add_overflow(query::window_start(**first, every_ns), every_ns, &end_ns))
      return;
    if (end_ns <= limit_ns) first_due_ns = std::min(first_due_ns.value_or(end_ns), end_ns);
  });
  return first_due_ns;
}

// Readings of rules without tiers are as old, and stay: then later ones have to go.
retention::Thinned TierMaker::thin_oldest(std::uint64_t value_bytes, std::int64_t limit_ns) {
  const MutexLock passing(pass_mutex_);
  retention::Thinned thinned;
  const auto first_due_ns = this->first_due_ns(limit_ns, thinned.left);
  if (!first_due_ns) return thinned;
  EvictionRequest request;
  request.limit_ns = limit_ns;
  for (const std::string& name : catalog_.namespaces()) {
    const auto info = engine_.find_namespace(name);
    if (info.ok() && !name.starts_with('_')) request.namespaces.push_back(info->id);
  }
  const TierStatus before = status();
  Status problem;
  std::uint64_t going_bytes = 0;
  for (request.value_bytes = value_bytes;; request.value_bytes *= 2) {
    const Eviction plan = engine_.plan_eviction(request);
    const bool is_all = plan.value_bytes < request.value_bytes / 2 || plan.before_ns >= limit_ns;
    thinned.before_ns = is_all ? limit_ns : plan.before_ns;
    if (thinned.before_ns >= *first_due_ns)
      problem = do_due({.thin_ns = thinned.before_ns}, going_bytes);
    const bool is_enough = status().readings > before.readings && going_bytes >= value_bytes / 2;
    if (is_all || is_stopping() || is_enough) break;
  }
  retention_.tell_marks();
  const TierStatus after = status();
  thinned.readings = after.readings - before.readings;
  thinned.windows = after.windows - before.windows;
  thinned.value_bytes = going_bytes;
  if (!problem.ok()) thinned.left = problem.message();
  return thinned;
}

bool TierMaker::is_going(bool is_urgent) {
  const MutexLock passing(pass_mutex_);
  static_cast<void>(erase_hidden(!is_urgent).ok());  // it is tried again
  return !retention_.marks().waiting(1).empty() || engine_.stats().erasure.pending_ranges > 0;
}

}  // namespace edgecase::tiers
