#include "ingest/reading_times.h"

#include <algorithm>
#include <utility>

#include "ingest/redating.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::ingest {
namespace {

using State = UndatedPeriod::State;

constexpr char kPeriodRecord = 'P';
constexpr char kRecordVersion = 1;
constexpr std::size_t kKeyBytes = 1 + 4;
constexpr std::size_t kHeadBytes = 3 + 4 * 8;
// A burst of readings that arrive at one moment ends in the same slot.
constexpr std::int64_t kSlotMarginNs = 1'000'000'000;
// The first slot of a store is one of so many: what another store left undated and is imported here
// is hardly taken for this one's.
constexpr std::uint32_t kFirstSlots = wire::kUndatedSlots / 4;
constexpr std::uint32_t kLateSlots = wire::kUndatedSlots / 2;

Bytes key_of(std::uint32_t slot) {
  Bytes key(1, kPeriodRecord);
  wire::append_big_endian(slot, key, 4);
  return key;
}

Bytes encode(const UndatedPeriod& period) {
  Bytes value(1, kRecordVersion);
  value.push_back(static_cast<char>(period.state));
  value.push_back(static_cast<char>(period.is_estimate ? 1 : 0));
  for (const std::int64_t time_ns :
       {period.first_boot_ns, period.not_before_ns, period.boot_at_ns, period.not_after_ns}) {
    wire::append_big_endian(static_cast<std::uint64_t>(time_ns), value);
  }
  return value + period.boot_id;
}

// False: nothing but the slot is known.
bool decode(ByteView value, UndatedPeriod& period) {
  if (value.size() <= kHeadBytes || value.size() > kHeadBytes + kBootIdMaxBytes) return false;
  const auto state = static_cast<unsigned char>(value[1]);
  const auto is_estimate = static_cast<unsigned char>(value[2]);
  if (value[0] != kRecordVersion || state > static_cast<unsigned char>(State::Done) ||
      is_estimate > 1) {
    return false;
  }
  period.state = static_cast<State>(state);
  period.is_estimate = is_estimate == 1;
  std::size_t at = 3;
  for (std::int64_t* const time_ns :
       {&period.first_boot_ns, &period.not_before_ns, &period.boot_at_ns, &period.not_after_ns}) {
    *time_ns = static_cast<std::int64_t>(wire::read_big_endian(value.substr(at, 8)));
    at += 8;
  }
  period.boot_id = std::string(value.substr(at));
  return true;
}

bool is_over(const UndatedPeriod& period) {
  return period.state == State::Done;
}

}  // namespace

std::int64_t UndatedPeriod::first_ns() const {
  return wire::undated_slot_first_ns(slot);
}

std::int64_t UndatedPeriod::end_ns() const {
  return first_ns() + wire::kUndatedSlotNs;
}

std::int64_t UndatedPeriod::moment_ns(std::int64_t time_ns) const {
  return time_ns - first_ns() + first_boot_ns;
}

std::int64_t UndatedPeriod::dated_ns(std::int64_t time_ns) const {
  return boot_at_ns + moment_ns(time_ns);
}

UndatedPeriods::UndatedPeriods(Engine& engine, Clock& clock, Random& random, std::string boot_id)
    : engine_(engine), clock_(clock), random_(random), boot_id_(std::move(boot_id)) {}

Result<std::unique_ptr<UndatedPeriods>> UndatedPeriods::open(Engine& engine, Clock& clock,
                                                             Random& random, std::string boot_id) {
  if (boot_id.empty() || boot_id.size() > kBootIdMaxBytes)
    return invalid_argument("a boot is told by 1 to " + std::to_string(kBootIdMaxBytes) + " bytes");
  std::unique_ptr<UndatedPeriods> periods(
      new UndatedPeriods(engine, clock, random, std::move(boot_id)));
  EC_TRY(periods->load());
  return periods;
}

Status UndatedPeriods::load() {
  const MutexLock lock(mutex_);  // nobody else has it yet
  const auto found = engine_.find_namespace(wire::kUndatedNamespace);
  if (found.status().code() == StatusCode::NotFound) return ok();
  if (!found.ok()) return found.status();
  records_ = found->id;
  bool is_damaged = false;
  ReadOptions options;
  options.on_damage = [&is_damaged](const DamagedKeys&) { is_damaged = true; };
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(*records_, {}, options));
  bool has_copies = false;
  for (; each->valid(); each->next()) {
    const ByteView key = each->key();
    has_copies |= !key.empty() && key.front() == kCopiesRecord;
    if (key.size() != kKeyBytes || key.front() != kPeriodRecord) continue;
    const std::uint64_t slot = wire::read_big_endian(key.substr(1));
    if (slot >= wire::kUndatedSlots) continue;
    UndatedPeriod period;
    const ByteView value = each->value();
    if (!value.empty() && value.front() > kRecordVersion)
      return unsupported("the record of an undated period was written by a newer EdgeCase");
    if (!decode(value, period)) {
      period = {};
      period.boot_id = "unknown-" + std::to_string(slot);
    }
    period.slot = static_cast<std::uint32_t>(slot);
    entries_[period.slot] = {std::move(period), true};
  }
  EC_TRY(each->status());
  if (!has_copies && !is_damaged) begin_anew();
  for (const auto& [slot, entry] : entries_) {
    if (needs_moment(entry.period)) waits_here_ = true;
  }
  return ok();
}

// Whether a clock that is right says something of it that is not known yet.
bool UndatedPeriods::needs_moment(const UndatedPeriod& period) const {
  return period.state == State::Waits && (period.boot_id == boot_id_ || period.not_after_ns == 0);
}

// While the gate is closed nobody is between taking an undated time and writing under it: from then
// on nothing more is written into the periods that are dated here.
Status UndatedPeriods::date_this_boot(erase::Fences& fences) {
  if (!waits_here_ || clock_.trust() != ClockTrust::Trusted) return ok();
  const erase::Fences::Closed closed = fences.close();
  const std::int64_t boot_ns = clock_.boot_ns();
  const std::int64_t wall_ns = clock_.wall_ns();
  if (clock_.trust() != ClockTrust::Trusted) return ok();
  waits_here_ = false;
  std::vector<UndatedPeriod> dated = periods();
  std::erase_if(dated, [this](const UndatedPeriod& each) { return !needs_moment(each); });
  if (dated.empty()) return ok();
  for (UndatedPeriod& period : dated) {
    period.not_after_ns = wall_ns - boot_ns;
    if (period.boot_id != boot_id_) continue;
    period.state = State::Dated;
    period.boot_at_ns = wall_ns - boot_ns;
    period.not_after_ns = wall_ns;
  }
  const Status status = change(dated);
  if (!status.ok()) waits_here_ = true;
  return status;
}

std::optional<std::int64_t> UndatedPeriods::arrival_ns() {
  if (clock_.trust() == ClockTrust::Trusted) return std::nullopt;
  const MutexLock lock(mutex_);
  const std::int64_t boot_ns = clock_.boot_ns();
  Entry* current = entries_.empty() ? nullptr : &entries_.rbegin()->second;
  const auto holds = [this, boot_ns](const UndatedPeriod& period) {
    return period.state == State::Waits && period.boot_id == boot_id_ &&
           period.first_boot_ns <= boot_ns &&
           boot_ns - period.first_boot_ns < wire::kUndatedSlotNs - kSlotMarginNs;
  };
  if (current == nullptr || !holds(current->period)) current = begin_period(boot_ns);
  if (current == nullptr) return std::nullopt;
  return current->period.first_ns() + (boot_ns - current->period.first_boot_ns);
}

// Not at the start: that must go well on a drive that is full, and most stores never need it.
bool UndatedPeriods::make_namespace() {
  if (records_) return true;
  const auto made =
      engine_.create_namespace(wire::kUndatedNamespace, {.placement = Placement::Metadata});
  if (made.ok()) records_ = *made;
  return made.ok();
}

UndatedPeriods::Entry* UndatedPeriods::begin_period(std::int64_t boot_ns) {
  const std::uint32_t slot = entries_.empty()
                                 ? static_cast<std::uint32_t>(random_.next() % kFirstSlots)
                                 : entries_.rbegin()->first + 1;
  if (slot >= wire::kUndatedSlots || !make_namespace()) return nullptr;
  UndatedPeriod period;
  period.slot = slot;
  period.first_boot_ns = boot_ns;
  period.not_before_ns = engine_.expiry_now_ns();
  period.boot_id = boot_id_;
  waits_here_ = true;
  return &(entries_[slot] = {std::move(period), false});
}

std::int64_t UndatedPeriods::dated_ns(std::int64_t time_ns) const {
  if (!wire::is_undated_time(time_ns)) return time_ns;
  const MutexLock lock(mutex_);
  const auto found = entries_.find(wire::undated_slot_of(time_ns));
  if (found == entries_.end() || found->second.period.state == State::Waits) return time_ns;
  return found->second.period.dated_ns(time_ns);
}

bool UndatedPeriods::is_dated(const wire::Reading& reading) const {
  return reading.time_ns && wire::is_undated_time(*reading.time_ns) &&
         dated_ns(*reading.time_ns) != *reading.time_ns;
}

std::vector<std::uint32_t> UndatedPeriods::append_records(std::span<const std::int64_t> times,
                                                          WriteBatch& batch) const {
  std::vector<std::uint32_t> slots;
  for (const std::int64_t time_ns : times) {
    if (!wire::is_undated_time(time_ns)) continue;
    const std::uint32_t slot = wire::undated_slot_of(time_ns);
    if (std::find(slots.begin(), slots.end(), slot) != slots.end()) continue;
    const MutexLock lock(mutex_);
    const auto found = entries_.find(slot);
    if (found == entries_.end() || found->second.is_durable) continue;
    slots.push_back(slot);
    batch.put(*records_, key_of(slot), encode(found->second.period));
  }
  return slots;
}

void UndatedPeriods::confirm(std::span<const std::uint32_t> slots) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t slot : slots) {
    if (const auto found = entries_.find(slot); found != entries_.end())
      found->second.is_durable = true;
  }
}

std::vector<UndatedPeriod> UndatedPeriods::periods() const {
  const MutexLock lock(mutex_);
  std::vector<UndatedPeriod> all;
  all.reserve(entries_.size());
  for (const auto& [slot, entry] : entries_) all.push_back(entry.period);
  return all;
}

// The oldest of too many that are done.
void UndatedPeriods::forget_done(Entries& entries, std::vector<std::uint32_t>& forgotten) {
  const auto done = std::count_if(entries.begin(), entries.end(),
                                  [](const auto& each) { return is_over(each.second.period); });
  std::size_t surplus = static_cast<std::size_t>(done);
  surplus -= std::min(surplus, kDonePeriodsMax);
  for (auto at = entries.begin(); at != entries.end() && surplus > 0;) {
    if (!is_over(at->second.period)) {
      ++at;
      continue;
    }
    forgotten.push_back(at->first);
    at = entries.erase(at);
    --surplus;
  }
}

// Once half of the slots are used up and nothing waits, nor any copy in them to be erased, the next
// period begins at the front again. At the start only, when nobody holds a time that was handed
// out.
void UndatedPeriods::begin_anew() {
  if (entries_.empty() || entries_.rbegin()->first < kLateSlots) return;
  if (!std::all_of(entries_.begin(), entries_.end(),
                   [](const auto& each) { return is_over(each.second.period); })) {
    return;
  }
  WriteBatch batch;
  for (const auto& [slot, entry] : entries_) batch.remove(*records_, key_of(slot));
  // A drive that takes no writes now: the next start does it.
  if (engine_.write(batch, Durability::Sync).ok()) entries_.clear();
}

Status UndatedPeriods::change(std::span<const UndatedPeriod> changed) {
  const MutexLock one_at_a_time(change_mutex_);
  Entries next;
  {
    const MutexLock lock(mutex_);
    next = entries_;
  }
  WriteBatch batch;
  for (const UndatedPeriod& period : changed) {
    next[period.slot] = {period, true};
    batch.put(*records_, key_of(period.slot), encode(period));
  }
  std::vector<std::uint32_t> forgotten;
  forget_done(next, forgotten);
  for (const std::uint32_t slot : forgotten) batch.remove(*records_, key_of(slot));
  EC_TRY(engine_.write(batch, Durability::Sync));
  const MutexLock lock(mutex_);
  for (const UndatedPeriod& period : changed) entries_[period.slot] = {period, true};
  for (const std::uint32_t slot : forgotten) entries_.erase(slot);
  changes_.fetch_add(1);
  return ok();
}

}  // namespace edgecase::ingest
