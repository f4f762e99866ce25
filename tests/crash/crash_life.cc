#include "crash/crash_life.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "crash/crash_history.h"
#include "crash/crash_needles.h"
#include "crash/held_view.h"

namespace edgecase::test {
namespace {

// What the store is known to have at its next open.
enum class Presence : unsigned char { Absent, Present, Unsure };

class Life {
 public:
  Life(const Plan& plan, const WrapDrives& wrap) : plan_(plan), store_(plan, wrap) {}

  LifeReport run() {
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

 private:
  // Faults that a plan begins with meet the making of the store.
  Status start() {
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

  // --- steps ---

  // An error is a broken promise; what the drives may cause is handled in the step.
  Status take(const Step& step) {
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
      case StepKind::Rest: return store_.rest(static_cast<std::int64_t>(with[0]));
      case StepKind::Create: return create(with[0] % kPlaces);
      case StepKind::Drop: return drop(with[0] % kPlaces);
      case StepKind::Erase: return erase(detail, with[1] % 3);
      case StepKind::Heal: return heal();
      case StepKind::Reopen: return reopen();
      default: return ail(step);
    }
  }

  Status ail(const Step& step) {
    ailing_ = true;
    store_.ail(step);
    return ok();
  }

  // What failed must be what an ailing drive explains, and never Corruption.
  Status excuse(const Status& status) const {
    if (status.ok()) return status;
    if (status.code() == StatusCode::Corruption || !ailing_) return status;
    const bool documented =
        status.code() == StatusCode::IoError || status.code() == StatusCode::OutOfSpace ||
        status.code() == StatusCode::Busy || status.code() == StatusCode::Unavailable;
    return documented ? ok() : status;
  }

  // After what makes everything durable when it succeeds.
  Status note(const Status& status) {
    if (status.ok()) history_.note_durable();
    return excuse(status);
  }

  Status conclude(const Changes& changes, const Status& status, Durability durability) {
    needles_.note_handed_in(changes);
    if (is_encrypted(plan_)) needles_.note_secret(changes);
    if (status.ok()) {
      history_.acknowledge(changes, durability);
      ++report_.acknowledged;
      return ok();
    }
    ++report_.refused;
    history_.refuse(changes);
    EC_TRY(excuse(status));
    return compare();  // what failed is not seen
  }

  Changes some_changes(SeededRandom& detail) {
    Changes changes;
    for (std::uint64_t n = 1 + detail.below(detail.below(8) == 0 ? 20 : 4); n > 0; --n) {
      Change change;
      change.place = detail.below(kEnginePlaces);
      change.key = detail.below(kKeysPerPlace);
      const std::uint64_t kind = detail.below(20);
      const ValueNumber number = ++written_;
      if (ids_[change.place] == 0) continue;
      if (kind == 0) {
        change.kind = Change::Kind::RemoveRange;
        change.key_end = change.key + 1 + detail.below(kKeysPerPlace - change.key);
      } else if (kind < 5) {
        change.kind = Change::Kind::Remove;
      } else {
        change.value = number;
      }
      changes.push_back(change);
    }
    return changes;
  }

  Status write(SeededRandom& detail, bool sync) {
    const Changes changes = some_changes(detail);
    if (changes.empty()) return ok();
    const Durability durability = sync ? Durability::Sync : Durability::Async;
    return conclude(changes, store_.write(changes, durability), durability);
  }

  Status ingest(SeededRandom& detail) {
    Changes changes;
    const std::size_t place = kEnginePlaces + detail.below(kPlaces - kEnginePlaces);
    for (std::uint64_t n = 1 + detail.below(6); n > 0; --n)
      changes.push_back({Change::Kind::Put, place, detail.below(kKeysPerPlace), 0, ++written_});
    const bool was_there = ids_[place] != 0;
    const Status status = store_.ingest(changes);
    if (!was_there) EC_TRY(note_creation(place, status));
    return conclude(changes, status, Durability::Sync);
  }

  Status forget(SeededRandom& detail) {
    const std::size_t place = kEnginePlaces + detail.below(kPlaces - kEnginePlaces);
    const std::size_t key = detail.below(kKeysPerPlace);
    if (ids_[place] == 0) return ok();
    const Status status = store_.forget(place, key);
    if (status.code() == StatusCode::NotFound) return ok();
    return conclude({{Change::Kind::Remove, place, key, 0, 0}}, status, Durability::Async);
  }

  Status read(SeededRandom& detail) {
    const std::size_t place = detail.below(kPlaces);
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

  Status compare_place(std::size_t place, Direction direction) {
    State found = history_.now();
    const Status status = store_.read_place(place, direction, nullptr, found);
    if (!status.ok()) return excuse(status);
    if (found == history_.now()) return ok();
    return corruption("the store answers otherwise than it was told: " +
                      difference(history_.now(), found));
  }

  Status compare() {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (ids_[place] != 0) EC_TRY(compare_place(place, Direction::Forward));
    }
    return ok();
  }

  // --- views ---

  Status take_view(SeededRandom& detail) {
    if (views_.size() >= kSnapshotsMax) return ok();
    HeldView view{store_.engine().snapshot(),
                  history_.now(),
                  ids_,
                  history_.now(),
                  detail.below(kEnginePlaces),
                  {}};
    if (ids_[view.iterated] != 0) {
      auto iterator = store_.engine().scan(ids_[view.iterated], {}, {});
      EC_TRY(excuse(iterator.status()));
      if (iterator.ok()) view.iterator = std::move(iterator).value();
    }
    views_.push_back(std::move(view));
    return ok();
  }

  Status release_view() {
    if (views_.empty()) return ok();
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
    EC_TRY(excuse(status));
    if (status.ok() && found != view.iterated_state)
      return corruption("an iterator saw later changes: " + difference(view.iterated_state, found));
    return ok();
  }

  // --- erasure ---

  Status erase(SeededRandom& detail, std::uint64_t how) {
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
    return needles_.find(store_.disk());
  }

  // Snapshots that are held show nothing of it either.
  Status erase_range(const Change& range) {
    const Status status = store_.write({range}, Durability::Async);
    for (HeldView& view : views_) {
      if (!status.ok() || view.ids[range.place] != ids_[range.place]) continue;
      apply({range}, view.state);
    }
    if (status.ok()) needles_.note_erased(range);
    return conclude({range}, status, Durability::Async);
  }

  // --- namespaces ---

  Status create(std::size_t place) {
    if (ids_[place] != 0) return ok();
    const Status status = store_.create_place(place);
    EC_TRY(excuse(status));
    return note_creation(place, status);
  }

  Status note_creation(std::size_t place, const Status& status) {
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

  void forget_place(std::size_t place) {
    history_.forget_place(place);
    needles_.forget_place(place);
  }

  Status note_new_id(std::size_t place) {
    if (ids_[place] <= last_id_) return corruption("a namespace has the id of an earlier one");
    last_id_ = ids_[place];
    return ok();
  }

  Status drop(std::size_t place) {
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

  Status compact(SeededRandom& detail) {
    std::vector<NamespaceId> ids;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (ids_[place] != 0 && detail.below(2) == 0) ids.push_back(ids_[place]);
    }
    return note(store_.engine().compact(ids, {}));
  }

  // --- the drives are well again ---

  void cure() {
    store_.cure();
    ailing_ = false;
  }

  // Delays between attempts reach 60 s.
  Status heal() {
    cure();
    EC_TRY(store_.rest(120));
    EC_TRY(compare());
    EC_TRY(write_all_places());
    EC_TRY(note(store_.engine().flush()));
    const Stats stats = store_.engine().stats();
    EC_TRY(stats.metadata.degraded);
    return stats.values.degraded;
  }

  Status write_all_places() {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (ids_[place] == 0) continue;
      const Changes changes{{Change::Kind::Put, place, written_ % kKeysPerPlace, 0, written_ + 1}};
      ++written_;
      const Status status =
          is_site(place) ? store_.ingest(changes) : store_.write(changes, Durability::Sync);
      EC_TRY(conclude(changes, status, Durability::Sync));
    }
    return ok();
  }

  // --- the end of a process, and the next one ---

  Status reopen() {
    views_.clear();
    const bool was_ailing = ailing_;
    store_.close();
    if (was_ailing) {
      needles_.forget_erased();
    } else {
      history_.note_durable();
    }
    const Status opened = store_.open();
    EC_TRY(excuse(opened));
    cure();
    if (!opened.ok()) {
      store_.close();
      EC_TRY(store_.open());
    }
    return settle([this](const State& found) { return history_.settle_after_kill(found); });
  }

  // Ends the process, or the machine at the moment.
  void end_process(bool power_goes, std::uint64_t seed, CutPolicy policy) {
    MemoryFileSystem& disk = store_.disk();
    views_.clear();
    needles_.forget_erased();
    report_.stops += disk.stopped() ? 1u : 0u;
    if (power_goes) {
      if (!disk.stopped()) disk.stop_at(1);
      store_.close();
      disk.power_cut(seed, policy);
    } else {
      disk.kill_process(seed);
      store_.close();
    }
    ++report_.crashes;
  }

  Status crash(const Step& step) {
    const auto& with = step.arguments;
    const bool cut = step.kind == StepKind::Cut;
    const auto policy = static_cast<CutPolicy>(with[1] % 6);
    end_process(cut, with[0], policy);
    cure();
    bool lost_power = cut;
    if (with[2] != 0) {
      store_.disk().stop_at(with[2]);
      const Status opened = store_.open();
      if (opened.code() == StatusCode::Corruption) return opened;
      const bool cut_again = cut || with[0] % 2 == 0;
      end_process(cut_again, with[0] + 1, policy);
      lost_power = lost_power || cut_again;
    }
    EC_TRY(check_sometimes(with[0]));
    EC_TRY(store_.open());
    EC_TRY(settle([&](const State& found) {
      return lost_power ? history_.settle_after_power_cut(found)
                        : history_.settle_after_kill(found);
    }));
    if (with[0] % 8 != 3) return ok();
    store_.close();
    history_.note_durable();
    EC_TRY(store_.check());
    EC_TRY(store_.open());
    return compare();
  }

  // What a crash leaves behind is no damage.
  Status check_sometimes(std::uint64_t seed) {
    const bool is_made = store_.counters().opened > 0;
    return is_made && seed % 8 == 5 ? store_.check() : ok();
  }

  template <typename Settle>
  Status settle(const Settle& settle) {
    for (std::size_t place = 0; place < kPlaces; ++place) EC_TRY(settle_place(place));
    State found;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (ids_[place] != 0) EC_TRY(store_.read_place(place, Direction::Forward, nullptr, found));
    }
    const std::string broken = settle(found);
    return broken.empty() ? needles_.find(store_.disk()) : corruption(broken);
  }

  Status settle_place(std::size_t place) {
    const NamespaceId id = store_.find_place(place);
    const std::string name(place_name(place));
    switch (presence_[place]) {
      case Presence::Absent: return id == 0 ? ok() : corruption("namespace " + name + " is back");
      case Presence::Present:
        return id == ids_[place] ? ok() : corruption("namespace " + name + " is lost");
      case Presence::Unsure: break;
    }
    const bool is_the_same = id != 0 && id == ids_[place];
    if (!is_the_same) forget_place(place);
    ids_[place] = id;
    presence_[place] = id == 0 ? Presence::Absent : Presence::Present;
    return id == 0 || is_the_same ? ok() : note_new_id(place);
  }

  // Whatever happened: it takes writes, keeps them, and both drives are in order.
  Status end() {
    if (store_.disk().stopped() || !store_.is_open()) EC_TRY(crash({StepKind::Cut, {1, 0, 0}}));
    EC_TRY(heal());
    EC_TRY(crash({StepKind::Cut, {plan_.seed, 0, 0}}));
    std::vector<NamespaceId> ids;
    for (const NamespaceId id : ids_) {
      if (id != 0) ids.push_back(id);
    }
    EC_TRY(store_.engine().compact(ids, {}));
    EC_TRY(store_.engine().erase().status());
    EC_TRY(compare());
    EC_TRY(needles_.find(store_.disk()));
    store_.close();
    return store_.check();
  }

  const Plan& plan_;
  CrashStore store_;
  History history_;
  LifeReport report_;
  PlaceIds ids_{};  // what this process may use
  std::array<Presence, kPlaces> presence_{};
  NamespaceId last_id_ = 0;
  std::deque<HeldView> views_;
  Needles needles_;
  ValueNumber written_ = 0;
  bool ailing_ = false;
};

}  // namespace

LifeReport live(const Plan& plan, const WrapDrives& wrap) {
  return Life(plan, wrap).run();
}

}  // namespace edgecase::test
