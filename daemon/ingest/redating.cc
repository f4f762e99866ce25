#include "ingest/redating.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::ingest {
namespace {

using State = UndatedPeriod::State;

KeyRange times_of(const catalog::SeriesId& id, std::int64_t from_ns, std::int64_t to_ns) {
  return {wire::make_reading_key({id.device, id.sensor, from_ns}),
          wire::make_reading_key({id.device, id.sensor, to_ns})};
}

ReadOptions once() {
  ReadOptions options;
  options.fill_cache = false;
  return options;
}

// Calls `each` with every series; memory for those of one device.
template <typename Each>
Status for_each_series(const catalog::Catalog& catalog, const Each& each) {
  const std::uint32_t rows = catalog.device_rows();
  for (std::uint32_t row = 0; row < rows; ++row) {
    const auto device = catalog.device_at(row);
    if (!device.ok()) continue;  // gone
    const wire::Selector selector{wire::escape_name(device->device), "*"};
    for (const catalog::SeriesEntry& entry : catalog.select(device->namespace_name, selector))
      EC_TRY(each(entry));
  }
  return ok();
}

// Which times of one series are taken already.
class TakenTimes {
 public:
  TakenTimes(const catalog::SeriesId& id, std::unique_ptr<Iterator> at)
      : id_(id), at_(std::move(at)) {}

  Result<std::int64_t> first_free(std::int64_t time_ns) {
    for (;; ++time_ns) {
      const Bytes key = wire::make_reading_key({id_.device, id_.sensor, time_ns});
      at_->seek(key);
      EC_TRY(at_->status());
      if (!at_->valid() || at_->key() != key) return time_ns;
    }
  }

 private:
  const catalog::SeriesId id_;
  const std::unique_ptr<Iterator> at_;
};

}  // namespace

// Readings of one series that are moved together.
struct Redating::Slice {
  struct Move {
    std::int64_t from_ns = 0;
    std::size_t period = 0;  // of `dated`
    Bytes value;
  };
  const Periods& dated;
  std::int64_t from_ns = 0;  // what lies before has been looked at
  std::int64_t to_ns = 0;
  bool is_last = true;
  std::vector<Move> moves;
};

void Redating::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "redate");
}

void Redating::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Redating::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Redating::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const Status status = look();
    if (!status.ok() && !is_stopping() && parts_.events.failed) parts_.events.failed(status);
    lock.lock();
    const auto until = CondVar::deadline_in(status.ok() ? kRedateLookNs : kRedateRetryNs);
    while (!stopping_ && changed_.wait_until(mutex_, until)) continue;
  }
}

Status Redating::look() {
  if (parts_.clock.trust() != ClockTrust::Trusted) return ok();
  EC_TRY(copies_.load());
  EC_TRY(date_periods());
  EC_TRY(move_readings());
  return copies_.erase();
}

// From the newest boot back: each tells the latest moment of the one before it.
Status Redating::date_periods() {
  EC_TRY(parts_.periods.date_this_boot(parts_.fences));
  const std::string& this_boot = parts_.periods.boot_id();
  Periods periods = parts_.periods.periods();
  if (std::none_of(periods.begin(), periods.end(), [&this_boot](const UndatedPeriod& each) {
        return each.state == State::Waits && each.boot_id != this_boot;
      })) {
    return ok();
  }
  std::int64_t next_boot_at_ns = parts_.clock.wall_ns() - parts_.clock.boot_ns();
  for (std::size_t end = periods.size(); end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && periods[begin - 1].boot_id == periods[end - 1].boot_id) --begin;
    const std::span boot(periods.begin() + static_cast<std::ptrdiff_t>(begin), end - begin);
    if (boot.front().boot_id != this_boot) {
      EC_TRY(date_boot(boot, next_boot_at_ns));
    } else if (boot.front().state != State::Waits) {
      next_boot_at_ns = boot.front().boot_at_ns;
    }
    end = begin;
  }
  return ok();
}

// Dates all periods of an earlier boot.
Status Redating::date_boot(std::span<UndatedPeriod> boot, std::int64_t& next_boot_at_ns) {
  const auto waits = [](const UndatedPeriod& each) { return each.state == State::Waits; };
  const auto known = std::find_if_not(boot.begin(), boot.end(), waits);
  for (const UndatedPeriod& each : boot) {
    if (each.state == State::Waits && each.not_after_ns != 0)
      next_boot_at_ns = std::min(next_boot_at_ns, each.not_after_ns);
  }
  std::int64_t boot_at_ns = next_boot_at_ns;
  bool is_estimate = known != boot.end() && known->is_estimate;
  if (known != boot.end()) {
    boot_at_ns = known->boot_at_ns;
  } else {
    EC_ASSIGN_OR_RETURN(const auto last_ns, last_of(boot.front(), boot.back()));
    if (last_ns) {
      const auto its = std::find_if(boot.begin(), boot.end(), [&](const UndatedPeriod& each) {
        return *last_ns < each.end_ns();
      });
      boot_at_ns = next_boot_at_ns - 1 - its->moment_ns(*last_ns);
      is_estimate = true;
      // Restored on a machine that had been started before they came.
      if (std::any_of(boot.begin(), boot.end(), [boot_at_ns](const UndatedPeriod& each) {
            return boot_at_ns + each.first_boot_ns < each.not_before_ns;
          })) {
        next_boot_at_ns = parts_.clock.wall_ns();
        boot_at_ns = next_boot_at_ns - 1 - its->moment_ns(*last_ns);
      }
    }
  }
  Periods dated;
  for (UndatedPeriod& period : boot) {
    if (period.state != State::Waits) continue;
    period.state = State::Dated;
    period.is_estimate = is_estimate;
    period.boot_at_ns = boot_at_ns;
    period.not_after_ns = next_boot_at_ns;
    dated.push_back(period);
  }
  next_boot_at_ns = boot_at_ns;
  return dated.empty() ? ok() : parts_.periods.change(dated);
}

// The last undated time that a reading has from the one period to the other.
Result<std::optional<std::int64_t>> Redating::last_of(const UndatedPeriod& first,
                                                      const UndatedPeriod& last) const {
  std::optional<std::int64_t> last_ns;
  ReadOptions options = once();
  options.direction = Direction::Reverse;
  const auto look_at = [&](const catalog::SeriesEntry& entry) -> Status {
    if (is_stopping()) return unavailable("the daemon stops");
    EC_ASSIGN_OR_RETURN(
        const auto at,
        parts_.engine.scan(entry.id.namespace_id,
                           times_of(entry.id, first.first_ns(), last.end_ns()), options));
    EC_TRY(at->status());
    if (!at->valid()) return ok();
    last_ns = std::max(last_ns.value_or(INT64_MIN), wire::time_of_reading_key(at->key().data()));
    return ok();
  };
  EC_TRY(for_each_series(parts_.catalog, look_at));
  return last_ns;
}

Status Redating::move_readings() {
  Periods dated = parts_.periods.periods();
  std::erase_if(dated, [](const UndatedPeriod& each) { return each.state != State::Dated; });
  if (dated.empty()) return ok();
  std::vector<RedatedPeriod> moved;
  for (const UndatedPeriod& period : dated) moved.push_back({period, 0, 0});
  const auto move = [&](const catalog::SeriesEntry& entry) {
    return move_series(entry, dated, moved);
  };
  EC_TRY(for_each_series(parts_.catalog, move));
  for (UndatedPeriod& period : dated) period.state = State::Done;
  EC_TRY(parts_.periods.change(dated));  // its sync covers what was moved
  for (const RedatedPeriod& each : moved) {
    if (parts_.events.done) parts_.events.done(each);
  }
  return ok();
}

Status Redating::move_series(const catalog::SeriesEntry& entry, Periods& dated,
                             std::vector<RedatedPeriod>& moved) {
  Slice slice{dated, dated.front().first_ns(), dated.back().end_ns(), true, {}};
  EC_ASSIGN_OR_RETURN(const auto any,
                      parts_.engine.scan(entry.id.namespace_id,
                                         times_of(entry.id, slice.from_ns, slice.to_ns), once()));
  EC_TRY(any->status());
  if (!any->valid()) return ok();
  do {
    if (is_stopping()) return unavailable("the daemon stops");
    slice.moves.clear();
    EC_TRY(move_some(entry, slice, moved));
  } while (!slice.is_last);
  return ok();
}

// No erasure begins or ends meanwhile.
Status Redating::move_some(const catalog::SeriesEntry& entry, Slice& slice,
                           std::vector<RedatedPeriod>& moved) {
  const erase::Fences::Pass pass = parts_.fences.enter();
  slice.is_last = true;
  const auto now = parts_.catalog.find(entry.namespace_name, entry.device, entry.sensor);
  if (!now.ok() || now->id != entry.id) return ok();  // erased
  const MutexLock moves(parts_.periods.moves_mutex());
  EC_TRY(gather(entry, slice));
  return slice.moves.empty() ? ok() : write(entry, slice, moved);
}

Status Redating::gather(const catalog::SeriesEntry& entry, Slice& slice) const {
  EC_ASSIGN_OR_RETURN(const auto at,
                      parts_.engine.scan(entry.id.namespace_id,
                                         times_of(entry.id, slice.from_ns, slice.to_ns), once()));
  std::size_t bytes = 0;
  for (; at->valid(); at->next()) {
    const std::int64_t time_ns = wire::time_of_reading_key(at->key().data());
    if (slice.moves.size() == kMoveReadingsMax || bytes >= kMoveBytesMax) {
      slice.from_ns = time_ns;
      slice.is_last = false;
      break;
    }
    const auto period = std::find_if(slice.dated.begin(), slice.dated.end(), [&](const auto& each) {
      return each.first_ns() <= time_ns && time_ns < each.end_ns();
    });
    if (period == slice.dated.end()) continue;
    Bytes value(at->value());
    EC_TRY(at->status());
    bytes += value.size() + wire::kReadingKeyBytes;
    const auto which = static_cast<std::size_t>(period - slice.dated.begin());
    slice.moves.push_back({time_ns, which, std::move(value)});
  }
  return at->status();
}

Status Redating::write(const catalog::SeriesEntry& entry, const Slice& slice,
                       std::vector<RedatedPeriod>& moved) {
  std::vector<wire::Reading> readings;
  readings.reserve(slice.moves.size());
  for (const Slice::Move& move : slice.moves) {
    wire::Reading& reading = readings.emplace_back();
    reading.namespace_name = entry.namespace_name;
    reading.device = entry.device;
    reading.sensor = entry.sensor;
    reading.time_ns = slice.dated[move.period].dated_ns(move.from_ns);
  }
  // What is dated now was there before any erasure that its new time lies before.
  const std::vector<bool> erased = parts_.fences.refused(readings, {.is_copy = true});
  const std::vector<bool> evicted =
      parts_.eviction == nullptr ? std::vector<bool>() : parts_.eviction->refused(readings);
  const catalog::SeriesId& id = entry.id;
  EC_ASSIGN_OR_RETURN(
      auto at, parts_.engine.scan(id.namespace_id, times_of(id, INT64_MIN, INT64_MAX), once()));
  TakenTimes taken(id, std::move(at));
  WriteBatch batch;
  std::vector<std::uint64_t> stored(slice.dated.size()), refused(slice.dated.size());
  std::int64_t next_ns = INT64_MIN;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const Slice::Move& move = slice.moves[i];
    batch.remove(id.namespace_id, wire::make_reading_key({id.device, id.sensor, move.from_ns}));
    if ((!erased.empty() && erased[i]) || (!evicted.empty() && evicted[i])) {
      ++refused[move.period];
      continue;
    }
    EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                        taken.first_free(std::max(*readings[i].time_ns, next_ns)));
    next_ns = time_ns + 1;
    batch.put(id.namespace_id, wire::make_reading_key({id.device, id.sensor, time_ns}), move.value);
    ++stored[move.period];
  }
  const Periods& dated = slice.dated;
  copies_.append(id, times_of(id, dated.front().first_ns(), dated.back().end_ns()), batch);
  EC_TRY(parts_.engine.write(batch, Durability::Async));
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i].readings += stored[i];
    moved[i].refused += refused[i];
    redated_ += stored[i];
    refused_ += refused[i];
  }
  return ok();
}

RedatingStatus Redating::status() const {
  RedatingStatus status;
  for (UndatedPeriod& period : parts_.periods.periods()) {
    if (period.state != State::Done) ++status.waiting_periods;
    if (period.state != State::Waits && period.is_estimate)
      status.estimates.push_back(std::move(period));
  }
  const MutexLock lock(mutex_);
  status.redated_readings = redated_;
  status.refused_readings = refused_;
  return status;
}

namespace {

constexpr char kCopiesVersion = 1;
constexpr std::size_t kNamespaceBytes = 4;
constexpr std::size_t kRecordKeyBytes = 1 + kNamespaceBytes + wire::kSeriesPrefixBytes;
constexpr std::size_t kRecordValueBytes = 1 + 2 * wire::kReadingKeyBytes;

// Nothing that is still read is among them: were it so, they would end before it.
Status append_erasure(Engine& engine, NamespaceId id, KeyRange copies, WriteBatch& batch) {
  EC_ASSIGN_OR_RETURN(const auto live, engine.scan(id, copies, {}));
  EC_TRY(live->status());
  if (live->valid()) copies.upper = Bytes(live->key());
  batch.erase_range(id, copies.lower, copies.upper);
  return ok();
}

}  // namespace

Status LeftCopies::load() {
  if (is_loaded_) return ok();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (records.status().code() == StatusCode::NotFound) return ok();
  if (!records.ok()) return records.status();
  const KeyRange of_copies{Bytes(1, kCopiesRecord), Bytes(1, kCopiesRecord + 1)};
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(records->id, of_copies, without_damaged()));
  for (; each->valid(); each->next()) {
    const ByteView key = each->key();
    const ByteView value = each->value();
    if (key.size() != kRecordKeyBytes || value.size() != kRecordValueBytes ||
        value.front() != kCopiesVersion) {
      continue;
    }
    Copies& copies = waiting_[Bytes(key)];
    copies.namespace_id =
        static_cast<NamespaceId>(wire::read_big_endian(key.substr(1, kNamespaceBytes)));
    copies.keys = {Bytes(value.substr(1, wire::kReadingKeyBytes)),
                   Bytes(value.substr(1 + wire::kReadingKeyBytes))};
  }
  EC_TRY(each->status());
  is_loaded_ = true;
  return ok();
}

void LeftCopies::append(const catalog::SeriesId& series, const KeyRange& copies,
                        WriteBatch& batch) {
  Bytes key(1, kCopiesRecord);
  wire::append_big_endian(series.namespace_id, key, kNamespaceBytes);
  wire::append_big_endian(series.device, key, 4);
  wire::append_big_endian(series.sensor, key, 4);
  const auto [found, is_new] = waiting_.try_emplace(key, Copies{series.namespace_id, copies, {}});
  Copies& known = found->second;
  if (!is_new) {
    known.keys = {std::min(known.keys.lower, copies.lower),
                  std::max(known.keys.upper, copies.upper)};
  }
  known.readers.reset();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (!records.ok()) return;
  batch.put(records->id, key, Bytes(1, kCopiesVersion) + known.keys.lower + known.keys.upper);
}

Status LeftCopies::erase() {
  if (waiting_.empty()) return ok();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (!records.ok()) return records.status();
  std::optional<std::weak_ptr<const void>> readers;
  for (auto& [key, copies] : waiting_) {
    if (copies.readers) continue;
    if (!readers) readers = engine_.held_snapshots();
    copies.readers = readers;
  }
  const std::vector<NamespaceInfo> namespaces = engine_.namespaces();
  WriteBatch batch;
  std::vector<Bytes> gone;
  for (const auto& [key, copies] : waiting_) {
    if (gone.size() == kEraseCopiesMax) break;
    if (!copies.readers->expired()) continue;
    gone.push_back(key);
    batch.remove(records->id, key);
    const bool is_there = std::any_of(
        namespaces.begin(), namespaces.end(),
        [id = copies.namespace_id](const NamespaceInfo& info) { return info.id == id; });
    if (is_there) EC_TRY(append_erasure(engine_, copies.namespace_id, copies.keys, batch));
  }
  if (gone.empty()) return ok();
  EC_TRY(engine_.write(batch, Durability::Async));
  for (const Bytes& key : gone) waiting_.erase(key);
  return ok();
}

}  // namespace edgecase::ingest
