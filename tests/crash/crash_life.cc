#include "crash/crash_life.h"

#include <optional>
#include <utility>

#include "crash/crash_draw.h"
#include "crash/crash_life_inside.h"

namespace edgecase::test {

// --- steps ---

LifeReport Life::run() {
  Status status = start();
  for (; status.ok() && report_.step < plan_.steps.size(); ++report_.step)
    status = take(plan_.steps[report_.step]);
  if (status.ok()) status = end();
  if (!status.ok()) {
    report_.broken = status.to_string();
    ++report_.step;
  }
  views_.clear();
  store_.close();
  report_.faults = store_.disk().faults();
  report_.operations = store_.disk().operations();
  report_.store = store_.counters();
  return std::move(report_);
}

// Faults that a plan begins with meet the making of the store.
Status Life::start() {
  for (; report_.step < plan_.steps.size(); ++report_.step) {
    const Step& step = plan_.steps[report_.step];
    const bool ails = (step.kind >= StepKind::Fail && step.kind <= StepKind::Unplug) ||
                      step.kind == StepKind::Stop;
    if (!ails) break;
    EC_TRY(ail(step));
  }
  const Status opened = store_.open();
  if (!opened.ok()) store_.close();
  return excuse(opened);
}

// An error is a broken promise; what the drives may cause is handled in the step.
Status Life::take(const Step& step) {
  const auto& with = step.arguments;
  if (step.kind == StepKind::Cut || step.kind == StepKind::Kill) return crash(step);
  if (store_.disk().stopped() || !store_.is_open()) return ok();
  SeededRandom detail(with[0]);
  switch (step.kind) {
    case StepKind::Write: return write(detail, with[1] != 0);
    case StepKind::Ingest: return ingest(detail);
    case StepKind::Forget: return forget(detail);
    case StepKind::Read: return read(detail);
    case StepKind::Snapshot: return take_view(detail);
    case StepKind::Release: return release_view();
    case StepKind::Flush: return note(store_.engine().flush());
    case StepKind::Compact: return compact(detail);
    case StepKind::Work:
      for (std::uint64_t tasks = with[0]; tasks > 0; --tasks) store_.executor().run_one();
      return ok();
    case StepKind::Rest: return rest(static_cast<std::int64_t>(with[0]));
    case StepKind::Stamp: return stamp(detail, with[1] != 0);
    case StepKind::Retain: return retain(detail);
    case StepKind::Pass:
      EC_TRY(make_rules_sure());
      store_.pass(static_cast<std::int64_t>(with[0]) * kRestedSecondNs / 2);
      return time_has_passed();
    case StepKind::Clock:
      EC_TRY(make_rules_sure());
      store_.set_clock(with[0], static_cast<std::int64_t>(with[1] % 60));
      return time_has_passed();
    case StepKind::Create: return create(with[0] % kPlaces);
    case StepKind::Drop: return drop(with[0] % kPlaces);
    case StepKind::Erase: return erase(detail, with[1] % 3);
    case StepKind::Heal: return heal();
    case StepKind::Reopen: return reopen();
    default: return ail(step);
  }
}

Status Life::ail(const Step& step) {
  ailing_ = true;
  expiry_.disturb();
  store_.ail(step);
  return ok();
}

// What failed must be what an ailing drive explains, and never Corruption.
Status Life::excuse(const Status& status) const {
  if (status.ok()) return status;
  if (status.code() == StatusCode::Corruption || !ailing_) return status;
  const bool documented =
      status.code() == StatusCode::IoError || status.code() == StatusCode::OutOfSpace ||
      status.code() == StatusCode::Busy || status.code() == StatusCode::Unavailable;
  return documented ? ok() : status;
}

// After what makes everything durable when it succeeds.
Status Life::note(const Status& status) {
  if (status.ok()) history_.note_durable();
  return excuse(status);
}

Status Life::conclude(const Changes& changes, const Status& status, Durability durability) {
  needles_.note_handed_in(changes);
  expiry_.note_handed_in(changes);
  if (is_encrypted(plan_)) needles_.note_secret(changes);
  if (status.ok()) {
    history_.acknowledge(changes, durability);
    ++report_.acknowledged;
    hide_expired();
    return ok();
  }
  ++report_.refused;
  history_.refuse(changes);
  hide_expired();
  EC_TRY(excuse(status));
  return compare();  // what failed is not seen
}

Status Life::write(SeededRandom& detail, bool sync) {
  const Changes changes = draw_changes(detail, ids_, written_);
  if (changes.empty()) return ok();
  const Durability durability = sync ? Durability::Sync : Durability::Async;
  return conclude(changes, store_.write(changes, durability), durability);
}

Status Life::ingest(SeededRandom& detail) {
  const Changes changes = draw_readings(detail, written_);
  const std::size_t place = changes.front().place;
  const bool was_there = ids_[place] != 0;
  const Status status = store_.ingest(changes);
  if (!was_there) EC_TRY(note_creation(place, status));
  return conclude(changes, status, Durability::Sync);
}

Status Life::forget(SeededRandom& detail) {
  const std::size_t place = kEnginePlaces + detail.below(kSites);
  const std::size_t key = detail.below(kKeysPerPlace);
  if (ids_[place] == 0) return ok();
  const Status status = store_.forget(place, key);
  if (status.code() == StatusCode::NotFound) return ok();
  return conclude({{Change::Kind::Remove, place, key, 0, 0}}, status, Durability::Async);
}

Status Life::read(SeededRandom& detail) {
  const std::size_t place = detail.below(has_times_ ? kPlaces : kTimedPlace);
  const Direction direction = detail.below(2) == 0 ? Direction::Forward : Direction::Reverse;
  if (ids_[place] == 0) return ok();
  EC_TRY(compare_place(place, direction));
  if (is_site(place)) return ok();
  for (int i = 0; i < 3; ++i) {
    const std::size_t key = detail.below(kKeysPerPlace);
    const auto got = store_.get(place, key);
    const bool missing = got.status().code() == StatusCode::NotFound;
    if (!got.ok() && !missing) {
      EC_TRY(excuse(got.status()));
      continue;
    }
    if ((missing ? 0 : *got) != history_.now().places[place][key])
      return corruption("a get of " + std::string(place_name(place)) + "/" + std::to_string(key) +
                        " found something else than was written last");
  }
  return ok();
}

Status Life::compare_place(std::size_t place, Direction direction) {
  State found = history_.now();
  const Status status = store_.read_place(place, direction, nullptr, found);
  if (!status.ok()) return excuse(status);
  if (found == history_.now()) return ok();
  return corruption("the store answers otherwise than it was told: " +
                    difference(history_.now(), found));
}

Status Life::compare() {
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (ids_[place] != 0) EC_TRY(compare_place(place, Direction::Forward));
  }
  return ok();
}

// --- namespaces ---

Status Life::create(std::size_t place) {
  if (ids_[place] != 0) return ok();
  const Status status = store_.create_place(place);
  EC_TRY(excuse(status));
  return note_creation(place, status);
}

Status Life::note_creation(std::size_t place, const Status& status) {
  forget_place(place);
  ids_[place] = store_.find_place(place);
  if (ids_[place] == 0) {
    if (status.ok()) return corruption("a namespace was made and is not there");
    presence_[place] = Presence::Unsure;
    return ok();
  }
  presence_[place] = Presence::Present;
  return note_new_id(place);
}

void Life::forget_place(std::size_t place) {
  history_.forget_place(place);
  needles_.forget_place(place);
  if (place == kTimedPlace) expiry_.forget();
}

Status Life::note_new_id(std::size_t place) {
  if (ids_[place] <= last_id_) return corruption("a namespace has the id of an earlier one");
  last_id_ = ids_[place];
  return ok();
}

Status Life::drop(std::size_t place) {
  if (ids_[place] == 0) return ok();
  const Status status = store_.drop_place(place);
  if (store_.find_place(place) == 0) {
    ids_[place] = 0;
    presence_[place] = Presence::Absent;
    forget_place(place);
  } else if (status.ok()) {
    return corruption("a namespace was dropped and is still there");
  } else {
    presence_[place] = Presence::Unsure;
  }
  return excuse(status);
}

Status Life::compact(SeededRandom& detail) {
  std::vector<NamespaceId> ids;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (ids_[place] != 0 && detail.below(2) == 0) ids.push_back(ids_[place]);
  }
  return note(store_.engine().compact(ids, {}));
}

LifeReport live(const Plan& plan, const WrapDrives& wrap) {
  return Life(plan, wrap).run();
}

}  // namespace edgecase::test
