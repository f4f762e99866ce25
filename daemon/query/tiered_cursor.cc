#include "query/tiered_cursor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "catalog/tier_spaces.h"
#include "wire/reading_key.h"

namespace edgecase::query {

TieredCursor::TieredCursor(Engine& engine, const catalog::Catalog& catalog,
                           const retention::TierMarks& marks,
                           std::vector<catalog::SeriesRow> series, const TimeRange& range,
                           const ReadOptions& options, std::uint64_t limit,
                           std::vector<LeftOutReadings> left_out)
    : engine_(engine),
      catalog_(catalog),
      marks_(marks),
      rows_(std::move(series)),
      range_(range),
      options_(options),
      limit_(limit),
      given_(engine),
      left_out_(std::make_shared<LeftOut>()) {
  for (LeftOutReadings& each : left_out) left_out_->add(std::move(each));
}

Result<bool> TieredCursor::next(wire::Reading& reading) {
  gave_reading_ = false;
  while (limit_ > 0) {
    if (!has_series_) {
      EC_ASSIGN_OR_RETURN(const bool is_there, next_series());
      if (!is_there) break;
    }
    if (readings_ == nullptr) EC_TRY(open_series());
    if (!has_series_) continue;  // it is gone
    if (is_forward()) {
      if (Tier* const tier = next_tier(); tier != nullptr) {
        EC_TRY(give_window(*tier, reading));
        return true;
      }
    }
    if (has_readings_) {
      EC_ASSIGN_OR_RETURN(has_readings_, next_reading(reading));
      if (has_readings_) return true;
    }
    Tier* const tier = is_forward() ? nullptr : next_tier();
    if (tier != nullptr) {
      EC_TRY(give_window(*tier, reading));
      return true;
    }
    for (const Tier& each : tiers_) EC_TRY(each.windows->status());
    close_series();
    has_series_ = false;
  }
  limit_ = 0;
  close_series();
  options_.snapshot.reset();
  return false;
}

Result<bool> TieredCursor::next_series() {
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  while (next_row_ < rows_.size()) {
    auto entry = catalog_.series_at(rows_[next_row_++]);
    if (!entry.ok()) continue;
    series_ = *std::move(entry);
    has_series_ = true;
    has_readings_ = !only_ns_;
    tiers_.clear();
    told_ns_.reset();
    oldest_ns_.reset();
    return true;
  }
  return false;
}

// Behind what was told of the series.
Status TieredCursor::open_series() {
  const auto still = catalog_.series_at(rows_[next_row_ - 1]);
  if (!still.ok() || !(still->id == series_.id)) {
    has_series_ = false;
    return ok();
  }
  // Before the snapshot: what becomes windows in between is found to have moved.
  const std::int64_t marked_ns = marks_.find(series_.id).before_ns;
  if (!told_ns_) marked_ns_ = marked_ns;
  if (options_.snapshot == nullptr) options_.snapshot = engine_.snapshot();
  revocations_ = options_.snapshot->revocations();
  for (const catalog::TierSpace& space :
       catalog::tier_spaces_of(engine_, series_.id.namespace_id)) {
    if (!only_ns_ || *only_ns_ == space.every_ns) EC_TRY(open_windows(space));
  }
  TimeRange range = range_;
  if (told_ns_ && is_forward()) {
    if (*told_ns_ == std::numeric_limits<std::int64_t>::max()) has_readings_ = false;
    range.from_ns = has_readings_ ? *told_ns_ + 1 : *told_ns_;
  } else if (told_ns_) {
    range.to_ns = *told_ns_;
  }
  SeriesScan scan(engine_, catalog_, {rows_[next_row_ - 1]}, range, options_);
  readings_ = std::make_unique<StoredCursor>(std::move(scan), kNoLimit, kNoLimit);
  return check_moved();
}

Status TieredCursor::open_windows(const catalog::TierSpace& space) {
  auto tier = std::find_if(tiers_.begin(), tiers_.end(),
                           [&](const Tier& each) { return each.space.id == space.id; });
  if (tier == tiers_.end()) tier = tiers_.insert(tiers_.end(), Tier{space, {}, {}});
  TimeRange range = range_;
  if (tier->told_ns && is_forward()) range.from_ns = *tier->told_ns + 1;
  if (tier->told_ns && !is_forward()) range.to_ns = *tier->told_ns;
  // The last window that begins in the range may end behind it.
  const bool is_endless =
      !range.to_ns || __builtin_add_overflow(*range.to_ns, space.every_ns - 1, &*range.to_ns);
  if (is_endless) range.to_ns.reset();
  ReadOptions options = options_;
  options.on_damage = [series = series_, left_out = left_out_](const DamagedKeys& keys) {
    const auto time_of = [](const Bytes& key) -> std::optional<std::int64_t> {
      if (key.size() < wire::kReadingKeyBytes) return std::nullopt;
      return wire::time_of_reading_key(key.data());
    };
    left_out->add({series.namespace_name, series.device, series.sensor, time_of(keys.first),
                   keys.last ? time_of(*keys.last) : std::nullopt, keys.why});
  };
  EC_ASSIGN_OR_RETURN(tier->windows, TierWindows::open(engine_, space, series_.id, range.from_ns,
                                                       range.to_ns, kAllTierColumns, options));
  return ok();
}

// Whether readings of the series that were told, or are still to come, are windows by now.
Status TieredCursor::check_moved() const {
  if (marks_.find(series_.id).before_ns == marked_ns_) return ok();
  return busy("readings became windows while they were read: ask again");
}

Result<bool> TieredCursor::next_reading(wire::Reading& reading) {
  reading.window = nullptr;
  EC_ASSIGN_OR_RETURN(const bool is_there, readings_->next(reading));
  // The scan goes on with what is stored now where something was revoked.
  if (engine_.revocations() != revocations_) EC_TRY(check_moved());
  if (!is_there) return false;
  gave_reading_ = true;
  told_ns_ = reading.time_ns;
  --limit_;
  ++account_.readings_decoded;
  return true;
}

wire::Numbers TieredCursor::take_numbers(std::size_t most) {
  if (!gave_reading_) return {};
  const wire::Numbers taken =
      readings_->take_numbers(static_cast<std::size_t>(std::min<std::uint64_t>(most, limit_)));
  if (taken.empty()) return taken;
  limit_ -= taken.size();
  told_ns_ = taken.times_ns.back();
  account_.readings_decoded += taken.size();
  return taken;
}

// The one whose window comes next; null: no window is left.
TieredCursor::Tier* TieredCursor::next_tier() {
  Tier* next = nullptr;
  for (Tier& tier : tiers_) {
    if (!tier.windows->valid()) continue;
    if (next == nullptr) {
      next = &tier;
      continue;
    }
    const std::int64_t begin_ns = tier.windows->window().begin_ns;
    const std::int64_t next_ns = next->windows->window().begin_ns;
    if (is_forward() ? begin_ns < next_ns : begin_ns >= next_ns) next = &tier;
  }
  return next;
}

Status TieredCursor::give_window(Tier& tier, wire::Reading& reading) {
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  window_ = tier.windows->window();
  tier.told_ns = window_.begin_ns;
  // An erasure takes it there; that its readings go for good is none.
  given_.add(catalog::tier_series(tier.space.id, series_.id, catalog::TierColumn::Count),
             window_.begin_ns, window_.begin_ns);
  tier.windows->next();
  EC_TRY(tier.windows->status());
  reading = {};
  reading.namespace_name = series_.namespace_name;
  reading.device = series_.device;
  reading.sensor = series_.sensor;
  reading.time_ns = window_.begin_ns;
  reading.window = &window_;
  identity_.body = series_.identity;
  reading.identity = identity_.body.empty() ? nullptr : &identity_;
  ++account_.windows_from_tiers;
  --limit_;
  return ok();
}

void TieredCursor::close_series() {
  if (readings_ != nullptr) {
    given_.add(readings_->take_given());
    if (readings_->left_out() != nullptr) left_out_->add(*readings_->left_out());
  }
  readings_.reset();
  for (Tier& tier : tiers_) tier.windows.reset();
}

void TieredCursor::let_go() {
  if (readings_ == nullptr) return;
  if (large_text() != nullptr) return readings_->let_go();
  const bool is_overtaken = engine_.revocations() != revocations_;
  const bool is_short = options_.snapshot->keeps_memory() && engine_.is_short_of_memory();
  if (!is_overtaken && !is_short) return;
  close_series();
  gave_reading_ = false;
  options_.snapshot.reset();
}

GivenReadings TieredCursor::take_given() {
  if (readings_ != nullptr) given_.add(readings_->take_given());
  return std::exchange(given_, GivenReadings(engine_));
}

bool TieredCursor::is_given_revoked() {
  return given_.is_revoked() || (readings_ != nullptr && readings_->is_given_revoked());
}

const LeftOut* TieredCursor::left_out() const {
  all_left_out_ = *left_out_;
  if (readings_ != nullptr && readings_->left_out() != nullptr)
    all_left_out_.add(*readings_->left_out());
  return &all_left_out_;
}

}  // namespace edgecase::query
