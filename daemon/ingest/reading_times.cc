#include "ingest/reading_times.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "edgecase/machine.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::ingest {
namespace {

constexpr std::size_t kWays = 8;
constexpr std::size_t kSlotsAtFirst = 1u << 10;

// A series whose newest time cannot be read, for this once: then each time is looked at.
constexpr std::int64_t kUnreadable = INT64_MAX;

// Stands for the namespace of series that have no number yet: these count from 1 within a call.
constexpr NamespaceId kNoNamespace = ~NamespaceId{0};

std::uint64_t hash_of(const catalog::SeriesId& id) {
  std::uint64_t hash = (std::uint64_t{id.device} << 32 | id.sensor) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 29 ^ id.namespace_id) * 0xbf58476d1ce4e5b9;
  return hash ^ hash >> 32;
}

struct HashOfId {
  std::size_t operator()(const catalog::SeriesId& id) const { return hash_of(id); }
};

// Never 0.
std::uint64_t hash_of(const wire::Value& value) {
  std::uint64_t bits = 0;
  switch (value.type) {
    case wire::ValueType::Float64: bits = std::bit_cast<std::uint64_t>(value.float64 + 0.0); break;
    case wire::ValueType::Int64: bits = static_cast<std::uint64_t>(value.int64); break;
    case wire::ValueType::Bool: bits = value.boolean ? 1 : 0; break;
    case wire::ValueType::Text:
    case wire::ValueType::Bytes:
      bits = std::hash<std::string_view>{}(value.text) ^
             std::hash<std::string_view>{}(value.content_type) * 31;
      break;
  }
  bits = (bits ^ static_cast<std::uint64_t>(value.type)) * 0x9e3779b97f4a7c15;
  return (bits ^ bits >> 31) | 1;
}

}  // namespace

bool is_believable_time(std::int64_t time_ns, std::optional<std::int64_t> trusted_now_ns,
                        std::int64_t ahead_ns) {
  if (time_ns < kFirstBelievableNs || time_ns >= wire::kUndatedFromNs) return false;
  if (!trusted_now_ns || time_ns <= *trusted_now_ns) return true;
  return time_ns - *trusted_now_ns <= ahead_ns;
}

// One call of settle(): the states of the series it meets, copied out of the table, since looking
// into the engine must not keep others from it.
class DeviceTimes::Decision {
 public:
  Decision(DeviceTimes& times, std::span<const Asked> asked) : times_(times), asked_(asked) {}

  void run() {
    std::vector<const wire::Reading*> readings(asked_.size());
    for (std::size_t i = 0; i < asked_.size(); ++i) readings[i] = asked_[i].reading;
    times_.catalog_.find_ids(readings, ids_);
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (ids_[i].sensor == 0) ids_[i] = id_of_new(*readings[i]);
    }
    copy_states();
    for (std::size_t i = 0; i < asked_.size(); ++i) decide(i);
  }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  void write_back() {
    const MutexLock lock(times_.mutex_);
    for (const auto& [id, state] : states_) {
      if (id.namespace_id == kNoNamespace || state.newest_ns == kUnreadable) continue;
      Slot* const slot = times_.find(id);
      if (slot == nullptr) continue;
      slot->state.stood_ns = state.stood_ns;
      if (slot->state.newest_ns > state.newest_ns) continue;
      slot->state.newest_ns = state.newest_ns;
      slot->state.newest_value = state.newest_value;
    }
    times_.set_aside_.tell(times_.slots_.capacity() * sizeof(Slot));
  }

 private:
  enum class There : std::uint8_t { Nothing, Same, Another, Unknown };

  catalog::SeriesId id_of_new(const wire::Reading& reading) {
    const auto [found, added] =
        new_.try_emplace({reading.namespace_name, reading.device, reading.sensor},
                         static_cast<std::uint32_t>(new_.size() + 1));
    return {kNoNamespace, 0, found->second};
  }

  void copy_states() {
    std::vector<catalog::SeriesId> missed;
    {
      const MutexLock lock(times_.mutex_);
      for (const catalog::SeriesId& id : ids_) {
        const auto [found, added] = states_.try_emplace(id);
        if (!added || id.namespace_id == kNoNamespace) continue;
        if (const Slot* const slot = times_.find(id)) {
          found->second = slot->state;
        } else {
          missed.push_back(id);
        }
      }
    }
    for (const catalog::SeriesId& id : missed) states_[id] = times_.load(id);
  }

  void decide(std::size_t i) {
    wire::Reading& reading = *asked_[i].reading;
    State& state = states_[ids_[i]];
    const std::int64_t said_ns = *reading.time_ns;
    Verdict& verdict = verdicts_.emplace_back(Verdict::Own);
    const bool is_last_heard = reading.time_source == wire::TimeSource::LastHeard;
    if (said_ns <= state.newest_ns) {
      const bool stood = said_ns == state.stood_ns;
      const bool is_late = is_last_heard && said_ns < state.newest_ns;
      const There there = stood || is_late ? There::Nothing
                          : said_ns == state.newest_ns && state.newest_value != 0
                              ? compare(state.newest_value, reading.value)
                              : look_at(i, said_ns);
      if (there == There::Another) state.stood_ns = said_ns;
      // What cannot be read may be another value, too.
      if (stood || there == There::Another || there == There::Unknown) {
        verdict = Verdict::Repeated;
      } else if (is_late) {
        verdict = Verdict::Stale;
      }
    }
    if (verdict != Verdict::Own) {
      fill_places(i);
      reading.time_ns = asked_[i].arrival_ns;
      while (places_.contains({ids_[i], *reading.time_ns})) ++*reading.time_ns;
    }
    reading.time_source = wire::TimeSource::Given;
    if (!wire::is_undated_time(*reading.time_ns) && *reading.time_ns >= state.newest_ns) {
      state.newest_ns = *reading.time_ns;
      state.newest_value = hash_of(reading.value);
    }
    if (has_places_) places_[{ids_[i], *reading.time_ns}] = i;
  }

  static There compare(std::uint64_t hash, const wire::Value& value) {
    return hash == hash_of(value) ? There::Same : There::Another;
  }
  // What the series holds at that time, or will once this call's readings are stored.
  There look_at(std::size_t i, std::int64_t time_ns) {
    fill_places(i);
    const wire::Value& value = asked_[i].reading->value;
    if (const auto found = places_.find({ids_[i], time_ns}); found != places_.end()) {
      return asked_[found->second].reading->value == value ? There::Same : There::Another;
    }
    if (ids_[i].namespace_id == kNoNamespace) return There::Nothing;
    char key[wire::kReadingKeyBytes];
    wire::encode_reading_key({ids_[i].device, ids_[i].sensor, time_ns}, key);
    const auto stored =
        times_.engine_.get(ids_[i].namespace_id, ByteView(key, sizeof key), ReadOptions{});
    if (!stored.ok()) {
      return stored.status().code() == StatusCode::NotFound ? There::Nothing : There::Unknown;
    }
    wire::Value there;
    if (!wire::decode_value(*stored, there)) return There::Unknown;
    return there == value ? There::Same : There::Another;
  }

  void fill_places(std::size_t count) {
    if (std::exchange(has_places_, true)) return;
    for (std::size_t k = 0; k < count; ++k) places_[{ids_[k], *asked_[k].reading->time_ns}] = k;
  }

  struct Place {
    catalog::SeriesId id;
    std::int64_t time_ns = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct HashOfPlace {
    KeyedHash hash;  // senders choose times
    std::size_t operator()(const Place& place) const {
      return hash(hash_of(place.id), static_cast<std::uint64_t>(place.time_ns));
    }
  };

  DeviceTimes& times_;
  const std::span<const Asked> asked_;
  std::vector<catalog::SeriesId> ids_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::uint32_t> new_;
  std::unordered_map<catalog::SeriesId, State, HashOfId> states_;
  // Where this call's readings went, from the first look on: most calls never look.
  std::unordered_map<Place, std::size_t, HashOfPlace> places_;
  bool has_places_ = false;
  std::vector<Verdict> verdicts_;
};

DeviceTimes::Replaced DeviceTimes::settle(std::span<const Asked> asked, std::uint64_t epoch) {
  if (asked.empty()) return {};
  {
    const MutexLock lock(mutex_);
    if (epoch != epoch_) slots_.clear();
    epoch_ = epoch;
    is_used_.store(true, std::memory_order_relaxed);
  }
  Decision decision(*this, asked);
  decision.run();
  Replaced replaced;
  for (const Verdict verdict : decision.verdicts()) {
    replaced.repeated += verdict == Verdict::Repeated ? 1 : 0;
    replaced.stale += verdict == Verdict::Stale ? 1 : 0;
  }
  decision.write_back();
  return replaced;
}

std::vector<DeviceTimes::Verdict> DeviceTimes::preview(std::span<const Asked> asked) {
  if (asked.empty()) return {};
  is_used_.store(true, std::memory_order_relaxed);
  Decision decision(*this, asked);
  decision.run();
  return decision.verdicts();
}

void DeviceTimes::note(std::span<const catalog::SeriesId> ids, std::span<const std::int64_t> times,
                       std::span<const wire::Reading> readings) {
  if (!is_used_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  ++notes_;
  if (slots_.empty()) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (times[i] >= wire::kUndatedFromNs) continue;
    if (Slot* const slot = find(ids[i])) {
      if (times[i] < slot->state.newest_ns) continue;
      slot->state.newest_ns = times[i];
      slot->state.newest_value = hash_of(readings[i].value);
    }
  }
}

// Behind the undated times there is nothing that a device may have said.
DeviceTimes::State DeviceTimes::load(const catalog::SeriesId& id) {
  std::uint64_t notes_before = 0;
  {
    const MutexLock lock(mutex_);
    notes_before = notes_;
  }
  State state;
  KeyRange range;
  range.lower = wire::make_reading_key({id.device, id.sensor, INT64_MIN});
  range.upper = wire::make_reading_key({id.device, id.sensor, wire::kUndatedFromNs});
  ReadOptions options;
  options.direction = Direction::Reverse;
  const auto each = engine_.scan(id.namespace_id, range, options);
  if (!each.ok() || (!(*each)->valid() && !(*each)->status().ok())) {
    state.newest_ns = kUnreadable;
    return state;
  }
  wire::ReadingKey key;
  if ((*each)->valid() && wire::decode_reading_key((*each)->key(), key)) {
    state.newest_ns = key.time_ns;
  }
  const MutexLock lock(mutex_);
  if (notes_ == notes_before) put(id, state);
  return state;
}

DeviceTimes::Slot* DeviceTimes::find(const catalog::SeriesId& id) {
  if (slots_.empty()) return nullptr;
  Slot* const set = &slots_[(hash_of(id) & (slots_.size() / kWays - 1)) * kWays];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].id == id) return &set[i];
  }
  return nullptr;
}

void DeviceTimes::put(const catalog::SeriesId& id, const State& state) {
  if (Slot* const known = find(id)) {
    known->state = state;
    return;
  }
  while (true) {
    if (slots_.empty()) slots_.resize(kSlotsAtFirst);
    Slot* const set = &slots_[(hash_of(id) & (slots_.size() / kWays - 1)) * kWays];
    for (std::size_t i = 0; i < kWays; ++i) {
      if (set[i].id.sensor != 0) continue;
      set[i] = {id, state};
      return;
    }
    if (slots_.size() >= kSeriesMax) {
      set[next_victim_++ % kWays] = {id, state};
      return;
    }
    grow();
  }
}

void DeviceTimes::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id.sensor != 0) put(slot.id, slot.state);
  }
}
namespace {

// When the clock was set back by more than this, arrival times follow it; a smaller step back, or a
// clock too coarse to tell two batches apart, must not give one time twice.
constexpr std::int64_t kArrivalHoldNs = 1'000'000'000;

}  // namespace

bool ReadingTimes::is_believable(std::int64_t time_ns) const {
  std::optional<std::int64_t> trusted_now_ns;
  if (clock_.trust() == ClockTrust::Trusted) trusted_now_ns = clock_.wall_ns();
  return is_believable_time(time_ns, trusted_now_ns, ahead_ns_);
}

// What was erased, and what was dated, is no longer what was remembered of it.
DeviceTimes::Replaced ReadingTimes::settle(std::span<const DeviceTimes::Asked> asked) {
  if (asked.empty()) return {};
  std::uint64_t epoch = catalog_.generation();
  if (fences_ != nullptr) epoch += fences_->changes();
  if (undated_ != nullptr) epoch += undated_->changes();
  return device_times_.settle(asked, epoch);
}

std::int64_t ReadingTimes::arrival_clock_ns() {
  const bool is_trusted = clock_.trust() == ClockTrust::Trusted;
  if (!is_trusted && undated_ != nullptr) {
    if (const auto undated_ns = undated_->arrival_ns()) return *undated_ns;
  }
  // A clock that is behind must not date what arrives back to what was evicted, nor, while it is
  // known to be wrong, to what has expired: then the latest time that the store has known, and the
  // time since the machine was started, are nearer to the truth.
  std::int64_t now = clock_.wall_ns();
  if (!is_trusted) now = std::max(now, engine_.expiry_now_ns() + clock_.boot_ns());
  return eviction_ == nullptr ? now : std::max(now, eviction_->earliest_arrival_ns());
}

// Returns the first of `count` nanoseconds that no other batch gets.
std::int64_t ReadingTimes::take_arrival_times(std::int64_t count) {
  std::int64_t last = last_arrival_ns_.load(std::memory_order_relaxed);
  std::int64_t first = 0;
  do {
    const std::int64_t now = arrival_clock_ns();
    first = now > last || last - now > kArrivalHoldNs ? now : last + 1;
  } while (
      !last_arrival_ns_.compare_exchange_weak(last, first + count - 1, std::memory_order_relaxed));
  return first;
}

Status ReadingTimes::forget(const catalog::SeriesId& series,
                            std::span<const std::int64_t> times_ns) {
  // What is being moved would come back under its new time.
  std::optional<MutexLock> no_moves;
  if (undated_ != nullptr && std::any_of(times_ns.begin(), times_ns.end(), wire::is_undated_time)) {
    no_moves.emplace(undated_->moves_mutex());
  }
  WriteBatch batch;
  char key[wire::kReadingKeyBytes];
  for (const std::int64_t time_ns : times_ns) {
    wire::encode_reading_key({series.device, series.sensor, time_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
    const std::int64_t moved_ns = dated_ns(time_ns);
    if (moved_ns == time_ns) continue;
    wire::encode_reading_key({series.device, series.sensor, moved_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
  }
  return engine_.write(batch, Durability::Async);
}

}  // namespace edgecase::ingest
