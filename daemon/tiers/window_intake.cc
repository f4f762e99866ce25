#include "tiers/window_intake.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "query/cursors.h"
#include "query/series_scan.h"
#include "query/tier_windows.h"
#include "tiers/series_windows.h"
#include "wire/json_text.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::tiers {
namespace {

using query::TierWindows;
using retention::TierMark;

// In the audit log it is what readings are.
constexpr std::string_view kOperation = "ingest";
// What cannot be stored is found in so many rounds, as of readings.
constexpr int kRoundsMax = 3;

std::int64_t last_ns(const wire::Window& window) {
  return window.begin_ns + window.every_ns - 1;
}

}  // namespace

// Up to kWindowsAtOnce windows, which become durable at once. The gate is closed.
class WindowIntake::Chunk {
 public:
  Chunk(const Parts& parts, const auth::Principal& principal,
        std::span<const wire::Reading> windows, std::size_t first, WindowOutcome& outcome)
      : parts_(parts),
        principal_(principal),
        windows_(windows),
        first_(first),
        outcome_(outcome),
        is_left_(windows.size()),
        keepings_(windows.size()) {}

  Status run(erase::Copied copied) {
    leave_gone(copied);
    check_rules();
    EC_TRY(resolve());
    options_.snapshot = parts_.engine.snapshot();
    options_.fill_cache = false;
    for (const std::size_t i : places_) EC_TRY(look(i));
    for (auto& [key, series] : series_) EC_TRY(compare_tiers(series));
    return write();
  }

 private:
  // One of the chunk, of which its tier has nothing yet: its number.
  using Pending = std::map<std::int64_t, std::size_t>;  // by begin
  struct Series {
    catalog::SeriesId id;
    std::vector<catalog::TierSpace> tiers;  // of its rule, the finest first
    TierMark mark;
    std::optional<std::int64_t> first_ns;  // its oldest reading
    Status problem;                        // none of its windows can be taken
    std::vector<std::unique_ptr<TierWindows>> there;
    std::vector<Pending> pending;
  };

  const wire::Window& window(std::size_t i) const { return *windows_[i].window; }
  void refuse(std::size_t i, const Status& why) {
    is_left_[i] = true;
    outcome_.refused.push_back(
        {first_ + i, why.with_context("window of " + wire::format_duration(window(i).every_ns) +
                                      " at " + wire::time_text(window(i).begin_ns) + ": ")});
  }
  void leave_gone(erase::Copied copied);
  void check_rules();
  Status check_rule(std::size_t i);
  Status resolve();
  Result<Series*> series_of(std::size_t i);
  Status find_readings(Series& series) const;
  Status look(std::size_t i);
  Status compare_tiers(Series& series);
  Status compare(Series& series, std::size_t fine, std::size_t coarse, std::int64_t begin_ns);
  Result<std::uint64_t> stored_count(const Series& series, std::size_t tier, std::int64_t begin_ns,
                                     std::int64_t end_ns) const;
  Status write();
  std::vector<audit::Draft> drafts() const;

  const Parts& parts_;
  const auth::Principal& principal_;
  const std::span<const wire::Reading> windows_;
  const std::size_t first_;
  WindowOutcome& outcome_;
  std::vector<bool> is_left_;            // out
  std::vector<wire::Keeping> keepings_;  // of each
  std::vector<std::size_t> places_;      // of those that have a number of their series, ...
  std::vector<wire::Reading> good_;      // ... themselves, ...
  std::vector<catalog::SeriesId> ids_;   // ... and these
  catalog::CatalogAdditions additions_;
  std::uint64_t generation_ = 0;  // of the rules
  ReadOptions options_;
  std::map<std::tuple<NamespaceId, std::uint32_t, std::uint32_t>, Series> series_;
  std::map<std::size_t, const Series*> of_window_;
};

void WindowIntake::Chunk::leave_gone(erase::Copied copied) {
  const std::vector<bool> erased = parts_.fences.refused(windows_, copied, &parts_.catalog);
  std::vector<bool> evicted;
  if (parts_.eviction != nullptr) evicted = parts_.eviction->refused(windows_);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const bool is_erased = !erased.empty() && erased[i];
    const bool is_evicted = !evicted.empty() && evicted[i];
    is_left_[i] = is_erased || is_evicted;
    if (is_left_[i]) (is_erased ? outcome_.erased : outcome_.evicted).push_back(first_ + i);
  }
  parts_.fences.count_refused(
      static_cast<std::uint64_t>(std::count(erased.begin(), erased.end(), true)));
}

void WindowIntake::Chunk::check_rules() {
  std::vector<const wire::Reading*> all;
  for (const wire::Reading& each : windows_) all.push_back(&each);
  parts_.catalog.find_ids(all, ids_);
  const std::int64_t now_ns = parts_.clock.wall_ns();
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    if (is_left_[i]) continue;
    if (const Status status = check_rule(i); !status.ok()) {
      refuse(i, status);
      continue;
    }
    const auto tier =
        std::find_if(keepings_[i].tiers.begin(), keepings_[i].tiers.end(),
                     [&](const wire::Tier& each) { return each.every_ns == window(i).every_ns; });
    std::int64_t until_ns = 0;
    const bool is_kept = tier->keep_ns == kRetentionForever ||
                         __builtin_add_overflow(window(i).begin_ns, tier->keep_ns, &until_ns) ||
                         until_ns > now_ns;
    if (is_kept) continue;
    is_left_[i] = true;
    outcome_.expired.push_back(first_ + i);
  }
}

Status WindowIntake::Chunk::check_rule(std::size_t i) {
  const wire::Reading& reading = windows_[i];
  const bool is_as_before = i > 0 && windows_[i - 1].sensor == reading.sensor &&
                            windows_[i - 1].device == reading.device &&
                            windows_[i - 1].namespace_name == reading.namespace_name;
  if (is_as_before) {
    keepings_[i] = keepings_[i - 1];
  } else {
    const catalog::SeriesEntry entry{std::string(reading.namespace_name),
                                     std::string(reading.device),
                                     parts_.catalog.sensor_name(reading), ids_[i]};
    keepings_[i] = parts_.retention.keeping(entry);
  }
  const std::vector<wire::Tier>& tiers = keepings_[i].tiers;
  if (std::none_of(tiers.begin(), tiers.end(),
                   [&](const wire::Tier& each) { return each.every_ns == window(i).every_ns; })) {
    return invalid_argument("no tier of its rule is of that length (it is kept " +
                            wire::keeping_text(keepings_[i]) +
                            "): edgecase retention set gives it one, with --then");
  }
  if (last_ns(window(i)) >= parts_.clock.wall_ns())
    return invalid_argument("it is not over yet, by the store's clock");
  return ok();
}

// The numbers of their series, which the first window makes.
Status WindowIntake::Chunk::resolve() {
  Status status;
  for (int round = 0; round < kRoundsMax; ++round) {
    places_.clear();
    good_.clear();
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      if (is_left_[i]) continue;
      places_.push_back(i);
      good_.push_back(windows_[i]);
    }
    if (good_.empty()) return ok();
    status = parts_.catalog.resolve(good_, ids_, additions_);
    if (status.ok()) break;
    const std::vector<catalog::Refusal> unfit = parts_.catalog.unfit(good_);
    if (unfit.empty()) return status;
    for (const catalog::Refusal& each : unfit) refuse(places_[each.reading], each.why);
  }
  EC_TRY(status);
  generation_ = parts_.retention.generation();
  return parts_.retention.cover(good_, ids_, !additions_.empty());
}

Result<WindowIntake::Chunk::Series*> WindowIntake::Chunk::series_of(std::size_t i) {
  const catalog::SeriesId& id = ids_[i];
  const auto [at, is_new] = series_.try_emplace({id.namespace_id, id.device, id.sensor});
  Series& series = at->second;
  if (!is_new) return &series;
  series.id = id;
  series.mark = parts_.retention.marks().find(id);
  if (id.sensor > catalog::kTierSensorMax) {
    series.problem = limit_reached("so many sensors of one device have no tiers");
    return &series;
  }
  std::vector<std::int64_t> lengths;
  for (const wire::Tier& tier : keepings_[places_[i]].tiers) {
    lengths.push_back(tier.every_ns);
    EC_ASSIGN_OR_RETURN(const catalog::TierSpace space,
                        parts_.retention.tier_space(id.namespace_id, tier.every_ns));
    series.tiers.push_back(space);
  }
  if (!series.mark.every_ns.empty() && series.mark.every_ns != lengths) {
    return busy("the tiers of " + std::string(good_[i].device) + "/" +
                std::string(good_[i].sensor) + " are being changed: again later");
  }
  series.there.resize(series.tiers.size());
  series.pending.resize(series.tiers.size());
  EC_TRY(find_readings(series));
  return &series;
}

Status WindowIntake::Chunk::find_readings(Series& series) const {
  bool is_damaged = false;
  ReadOptions options = options_;
  options.large_value_bytes = query::kLargeTextBytes;
  options.on_damage = [&is_damaged](const DamagedKeys&) { is_damaged = true; };
  EC_ASSIGN_OR_RETURN(
      const auto first,
      parts_.engine.scan(series.id.namespace_id,
                         query::key_range(series.id, {INT64_MIN, std::nullopt}), options));
  EC_TRY(first->status());
  if (first->valid()) series.first_ns = wire::time_of_reading_key(first->key().data());
  if (is_damaged) series.problem = corruption("readings of its series are damaged");
  return ok();
}

// `i`: of good_.
Status WindowIntake::Chunk::look(std::size_t place) {
  const auto i = static_cast<std::size_t>(std::lower_bound(places_.begin(), places_.end(), place) -
                                          places_.begin());
  EC_ASSIGN_OR_RETURN(Series* const series, series_of(i));
  const wire::Window& given = window(place);
  if (!series->problem.ok()) {
    refuse(place, series->problem);
    return ok();
  }
  if (series->first_ns && *series->first_ns <= last_ns(given)) {
    refuse(place, invalid_argument("it overlaps readings, or is younger: the store has them from " +
                                   wire::time_text(*series->first_ns) + " on"));
    return ok();
  }
  const auto tier =
      static_cast<std::size_t>(std::find_if(series->tiers.begin(), series->tiers.end(),
                                            [&](const catalog::TierSpace& each) {
                                              return each.every_ns == given.every_ns;
                                            }) -
                               series->tiers.begin());
  std::unique_ptr<TierWindows>& there = series->there[tier];
  if (there == nullptr) {
    EC_ASSIGN_OR_RETURN(there,
                        TierWindows::open(parts_.engine, series->tiers[tier], series->id, INT64_MIN,
                                          std::nullopt, query::kAllTierColumns, options_));
  }
  if (!there->valid() || there->window().begin_ns != given.begin_ns) there->seek(given.begin_ns);
  EC_TRY(there->status());
  if (there->valid() && there->window().begin_ns == given.begin_ns) {
    if (!(there->window() == given))
      refuse(place, invalid_argument("the store has another one there, and keeps it"));
    return ok();
  }
  const auto [pending, is_first] = series->pending[tier].try_emplace(given.begin_ns, place);
  if (!is_first && !(window(pending->second) == given))
    refuse(place, invalid_argument("it comes twice, and differs"));
  return ok();
}

// What a finer tier has counted within a coarser one's window, that has counted, too.
Status WindowIntake::Chunk::compare_tiers(Series& series) {
  for (std::size_t coarse = 1; coarse < series.pending.size(); ++coarse) {
    const std::int64_t every_ns = series.tiers[coarse].every_ns;
    for (std::size_t fine = 0; fine < coarse; ++fine) {
      std::vector<std::int64_t> begins;
      for (const auto& [begin_ns, i] : series.pending[coarse]) begins.push_back(begin_ns);
      for (const auto& [begin_ns, i] : series.pending[fine])
        begins.push_back(query::window_start(begin_ns, every_ns));
      std::sort(begins.begin(), begins.end());
      begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
      for (const std::int64_t begin_ns : begins) EC_TRY(compare(series, fine, coarse, begin_ns));
    }
  }
  return ok();
}

Result<std::uint64_t> WindowIntake::Chunk::stored_count(const Series& series, std::size_t tier,
                                                        std::int64_t begin_ns,
                                                        std::int64_t end_ns) const {
  EC_ASSIGN_OR_RETURN(
      const auto windows,
      TierWindows::open(parts_.engine, series.tiers[tier], series.id, begin_ns, end_ns,
                        query::tier_bit(catalog::TierColumn::Count), options_));
  std::uint64_t count = 0;
  for (; windows->valid(); windows->next()) count += windows->window().count;
  EC_TRY(windows->status());
  return count;
}

Status WindowIntake::Chunk::compare(Series& series, std::size_t fine, std::size_t coarse,
                                    std::int64_t begin_ns) {
  const std::int64_t end_ns = begin_ns + series.tiers[coarse].every_ns;
  EC_ASSIGN_OR_RETURN(std::uint64_t whole, stored_count(series, coarse, begin_ns, end_ns));
  const auto given = series.pending[coarse].find(begin_ns);
  if (given != series.pending[coarse].end()) whole += window(given->second).count;
  if (whole == 0) return ok();  // there is none
  EC_ASSIGN_OR_RETURN(std::uint64_t parts, stored_count(series, fine, begin_ns, end_ns));
  Pending& finer = series.pending[fine];
  const auto from = finer.lower_bound(begin_ns), to = finer.lower_bound(end_ns);
  for (auto at = from; at != to; ++at) parts += window(at->second).count;
  if (parts <= whole) return ok();
  const Status why =
      invalid_argument("the window of " + wire::format_duration(series.tiers[coarse].every_ns) +
                       " at " + wire::time_text(begin_ns) + " has " + std::to_string(whole) +
                       " readings, those of " + wire::format_duration(series.tiers[fine].every_ns) +
                       " in it would have " + std::to_string(parts));
  for (auto at = from; at != to; ++at) refuse(at->second, why);
  finer.erase(from, to);
  if (given != series.pending[coarse].end()) {
    refuse(given->second, why);
    series.pending[coarse].erase(given);
  }
  return ok();
}

Status WindowIntake::Chunk::write() {
  WriteBatch batch;
  additions_.append_to(batch);
  std::vector<std::pair<catalog::SeriesId, TierMark>> marks;
  for (const auto& [key, series] : series_) {
    TierMark mark = series.mark;
    for (std::size_t tier = 0; tier < series.pending.size(); ++tier) {
      for (const auto& [begin_ns, i] : series.pending[tier]) {
        put_window(series.tiers[tier], series.id, window(i), batch);
        mark.before_ns = std::max(mark.before_ns, last_ns(window(i)) + 1);
        of_window_[i] = &series;
      }
    }
    if (mark.before_ns == series.mark.before_ns && !mark.every_ns.empty()) continue;
    if (mark.before_ns == INT64_MIN) continue;  // nothing of it is left
    // No reading is hidden that was not before.
    const bool hides = !mark.every_ns.empty() && series.mark.erased_ns < series.mark.before_ns;
    if (!hides) mark.erased_ns = mark.before_ns;
    mark.every_ns.clear();
    for (const catalog::TierSpace& tier : series.tiers) mark.every_ns.push_back(tier.every_ns);
    retention::TierMarks::append(parts_.retention.records(), series.id, mark, batch);
    marks.emplace_back(series.id, std::move(mark));
  }
  if (of_window_.empty()) return ok();
  audit::Ticket ticket;
  if (parts_.audit != nullptr) {
    EC_ASSIGN_OR_RETURN(ticket, parts_.audit->append(drafts()));
  }
  const Status written = parts_.engine.write(batch, Durability::Sync);
  if (!written.ok()) {
    audit::Record failed = audit::record_of(kOperation, principal_);
    failed.count = of_window_.size();
    if (parts_.audit != nullptr) parts_.audit->amend(ticket, std::move(failed), written);
    return written;
  }
  const bool has_new = !additions_.empty();
  parts_.catalog.confirm(additions_);
  for (auto& [id, mark] : marks) parts_.retention.marks().set(id, std::move(mark));
  parts_.retention.tell_marks();
  if (parts_.audit != nullptr) EC_TRY(parts_.audit->settle(ticket));
  if (!has_new || parts_.retention.generation() == generation_) return ok();
  return parts_.retention.cover(good_, ids_, true);
}

std::vector<audit::Draft> WindowIntake::Chunk::drafts() const {
  std::vector<audit::Draft> drafts;
  std::vector<audit::Target> targets;
  const wire::Reading* last = nullptr;
  const auto finish = [&] {
    audit::Stored stored{kOperation, principal_.name, {}, last->namespace_name};
    if (principal_.grant != nullptr) stored.token = principal_.grant->token_id;
    drafts.push_back(audit::draft_of(stored, targets));
    targets.clear();
  };
  for (const auto& [i, series] : of_window_) {
    const wire::Reading& reading = windows_[i];
    const bool is_another_namespace =
        last != nullptr && last->namespace_name != reading.namespace_name;
    if (is_another_namespace || targets.size() == audit::kTargetsMax) finish();
    const bool is_same = last != nullptr && !targets.empty() && last->device == reading.device;
    if (!is_same) {
      targets.push_back({parts_.audit->device_pseudonym(series->id.namespace_id, series->id.device,
                                                        reading.namespace_name, reading.device),
                         0});
    }
    ++targets.back().count;
    last = &reading;
  }
  finish();
  return drafts;
}

Status WindowIntake::take(const auth::AuthorizedBatch& windows, erase::Copied copied,
                          WindowOutcome& outcome) {
  const std::span<const wire::Reading> all = windows.batch().readings;
  for (std::size_t first = 0; first < all.size(); first += kWindowsAtOnce) {
    const auto some = all.subspan(first, std::min(kWindowsAtOnce, all.size() - first));
    const erase::Fences::Closed closed = parts_.fences.close();
    EC_TRY(Chunk(parts_, windows.principal(), some, first, outcome).run(copied));
  }
  return ok();
}

}  // namespace edgecase::tiers
