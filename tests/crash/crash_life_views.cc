// What goes without being deleted, and what is held on to: expiry, views, erasure.
#include <span>
#include <utility>

#include "crash/crash_draw.h"
#include "crash/crash_life_inside.h"

namespace edgecase::test {

// --- expiry ---

Status Life::stamp(SeededRandom& detail, bool sync) {
  if (ids_[kTimedPlace] == 0) return ok();
  const Changes changes = draw_timed_changes(detail, written_);
  const Durability durability = sync ? Durability::Sync : Durability::Async;
  return conclude(changes, store_.write(changes, durability), durability);
}

Status Life::retain(SeededRandom& detail) {
  if (ids_[kTimedPlace] == 0) return ok();
  const ScopedRule rule = draw_rule(detail);
  const RetentionRule set = to_retention_rule(rule, ids_[kTimedPlace]);
  const Status status = store_.engine().set_retention({set});
  if (status.ok()) {
    has_mark_ = true;
    expiry_.acknowledge(rule);
  } else {
    expiry_.refuse(rule);
  }
  hide_expired();
  EC_TRY(excuse(status));
  return compare_timed();
}

// Before time passes.
Status Life::make_rules_sure() {
  return expiry_.is_unsure() ? reopen() : ok();
}

Status Life::rest(std::int64_t seconds) {
  EC_TRY(make_rules_sure());
  EC_TRY(store_.rest(seconds));
  expiry_.note_rest(seconds * kRestedSecondNs, store_.trusted_ns());
  if (ailing_ || !views_.empty()) expiry_.disturb();
  EC_TRY(time_has_passed());
  needles_.note_expired(kTimedPlace, expiry_.take_gone());
  return look_at_drives();
}

Status Life::time_has_passed() {
  expiry_.reach(store_.trusted_ns());
  hide_expired();
  return compare_timed();
}

// Snapshots that are held show nothing of it either.
void Life::hide_expired() {
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    if (!expiry_.is_hidden(key)) continue;
    history_.hide(kTimedPlace, key);
    for (HeldView& view : views_) {
      view.state.places[kTimedPlace][key] = 0;
      if (view.iterated == kTimedPlace) view.erased[key] = true;
    }
  }
}

// Neither more nor less has expired than is due.
Status Life::compare_timed() {
  if (!has_times_) return ok();
  if (store_.engine().expiry_now_ns() != expiry_.now_ns())
    return corruption("things expire by another time than that of the clock that is trusted");
  return ids_[kTimedPlace] == 0 ? ok() : compare_place(kTimedPlace, Direction::Forward);
}

// --- views ---

Status Life::take_view(SeededRandom& detail) {
  if (views_.size() >= kSnapshotsMax) return ok();
  expiry_.disturb();
  HeldView view{store_.engine().snapshot(),
                history_.now(),
                ids_,
                history_.now(),
                {},
                detail.below(kEnginePlaces + (has_times_ ? 1 : 0)),
                {},
                ailing_};
  if (view.iterated == kEnginePlaces) view.iterated = kTimedPlace;
  if (ids_[view.iterated] != 0) {
    auto iterator = store_.engine().scan(ids_[view.iterated], {}, {});
    EC_TRY(excuse(iterator.status()));
    if (iterator.ok()) view.iterator = std::move(iterator).value();
  }
  views_.push_back(std::move(view));
  return ok();
}

Status Life::release_view() {
  if (views_.empty()) return ok();
  expiry_.disturb();
  const HeldView view = std::move(views_.front());
  views_.pop_front();
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (ids_[place] == 0 || ids_[place] != view.ids[place]) continue;
    State found = view.state;
    const Status status = store_.read_place(place, Direction::Forward, view.snapshot, found);
    EC_TRY(excuse(status));
    if (status.ok() && found != view.state)
      return corruption("a snapshot has changed: " + difference(view.state, found));
  }
  if (view.iterator == nullptr) return ok();
  State found = view.iterated_state;
  found.places[view.iterated].fill(0);
  const Status status = store_.read_rest(view.iterated, *view.iterator, found);
  const bool is_dropped = ids_[view.iterated] != view.ids[view.iterated];
  if (is_dropped && status.code() == StatusCode::NotFound) return ok();
  if (!view.began_ailing || status.code() == StatusCode::Corruption) EC_TRY(excuse(status));
  State expected = view.iterated_state;
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    if (view.erased[key] && found.places[view.iterated][key] == 0)
      expected.places[view.iterated][key] = 0;
  }
  if (status.ok() && found != expected)
    return corruption("an iterator saw later changes: " + difference(expected, found));
  return ok();
}

// --- erasure ---

Status Life::erase(SeededRandom& detail, std::uint64_t how) {
  const std::size_t place = detail.below(kEnginePlaces);
  const std::size_t key = detail.below(kKeysPerPlace);
  const std::size_t key_end = key + 1 + detail.below(kKeysPerPlace - key);
  if (how != 2 && ids_[place] != 0)
    EC_TRY(erase_range({Change::Kind::EraseRange, place, key, key_end, 0}));
  if (how == 0) return ok();
  const auto report = store_.engine().erase();
  const bool held = report.status().code() == StatusCode::Busy && !views_.empty();
  if (!report.ok()) return held ? ok() : excuse(report.status());
  if (report->ranges > 0) history_.note_durable();
  needles_.note_gone();
  return look_at_drives();
}

// Snapshots that are held show nothing of it either.
Status Life::erase_range(const Change& range) {
  const Status status = store_.write({range}, Durability::Async);
  for (HeldView& view : views_) {
    if (!status.ok() || view.ids[range.place] != ids_[range.place]) continue;
    apply({range}, view.state);
    if (range.place != view.iterated) continue;
    for (std::size_t key = range.key; key < range.key_end; ++key) view.erased[key] = true;
  }
  if (status.ok()) needles_.note_erased(range);
  return conclude({range}, status, Durability::Async);
}

}  // namespace edgecase::test
