// The end of a process, and the next one; drives that are well again.
#include <optional>
#include <utility>
#include <vector>

#include "crash/crash_life_inside.h"

namespace edgecase::test {

// --- the drives are well again ---

// Cures the drives and the clock, which may have been wrong.
void Life::cure() {
  store_.cure();
  store_.set_clock(0, 0);
  if (!expiry_.is_unsure()) {
    expiry_.reach(store_.trusted_ns());
    hide_expired();
  }
  expiry_.disturb();
  ailing_ = false;
}

// Delays between attempts reach 60 s.
Status Life::heal() {
  cure();
  EC_TRY(rest(120));
  expiry_.disturb();
  EC_TRY(compare());
  EC_TRY(write_all_places());
  EC_TRY(note(store_.engine().flush()));
  const Stats stats = store_.engine().stats();
  EC_TRY(stats.metadata.degraded);
  return stats.values.degraded;
}

Status Life::write_all_places() {
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

Status Life::reopen() {
  views_.clear();
  const bool was_ailing = ailing_;
  store_.close();
  if (was_ailing) {
    needles_.forget_erased();
  } else {
    history_.note_durable();
  }
  store_.set_clock(0, 0);
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
void Life::end_process(bool power_goes, std::uint64_t seed, CutPolicy policy) {
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

Status Life::crash(const Step& step) {
  const auto& with = step.arguments;
  const bool cut = step.kind == StepKind::Cut;
  const auto policy = static_cast<CutPolicy>(with[1] % 6);
  end_process(cut, with[0], policy);
  cure();
  bool lost_power = cut;
  bool lost_power_last = cut;
  if (with[2] != 0) {
    store_.disk().stop_at(with[2]);
    const Status opened = store_.open();
    if (opened.code() == StatusCode::Corruption) return opened;
    const bool cut_again = cut || with[0] % 2 == 0;
    end_process(cut_again, with[0] + 1, policy);
    lost_power = lost_power || cut_again;
    lost_power_last = cut_again;
  }
  EC_TRY(check_sometimes(with[0]));
  const bool rots = lost_power_last && with[0] % 4 == 0;
  if (rots) store_.rot_manifest(with[0]);
  const std::uint64_t damages = store_.counters().damages;
  EC_TRY(open_again(with[0]));
  if (!rots && store_.counters().damages != damages)
    return corruption("the engine tells of damage where there is none");
  EC_TRY(settle([&](const State& found) {
    return lost_power ? history_.settle_after_power_cut(found) : history_.settle_after_kill(found);
  }));
  if (with[0] % 8 != 3) return ok();
  store_.close();
  history_.note_durable();
  EC_TRY(store_.check());
  EC_TRY(store_.open());
  return compare();
}

// The machine's clock may have lost its time: some begin far ahead, and are set right afterwards.
Status Life::open_again(std::uint64_t seed) {
  if (!has_mark_ || seed % 4 != 2) return store_.open();
  store_.set_clock(2, 0);
  EC_TRY(store_.open());
  if (store_.engine().expiry_now_ns() > store_.trusted_ns())
    return corruption("a process that begins believes a clock that is far ahead");
  store_.set_clock(0, 0);
  return ok();
}

// What a crash leaves behind is no damage.
Status Life::check_sometimes(std::uint64_t seed) {
  const bool is_made = store_.counters().opened > 0;
  return is_made && seed % 8 == 5 ? store_.check() : ok();
}

Status Life::settle(const std::function<std::string(const State&)>& settle) {
  for (std::size_t place = 0; place < kPlaces; ++place) EC_TRY(settle_place(place));
  State found;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (ids_[place] != 0) EC_TRY(store_.read_place(place, Direction::Forward, nullptr, found));
  }
  Changes probes;
  if (ids_[kTimedPlace] != 0) {
    expiry_.reach(store_.trusted_ns());
    State shown = found;
    EC_TRY(probe_rules(shown, probes));
    std::string other = expiry_.settle(store_.engine().retention_rules(), shown);
    if (!other.empty()) return corruption(other);
    hide_expired();
  }
  const std::string broken = settle(found);
  if (!broken.empty()) return corruption(broken);
  if (!probes.empty()) EC_TRY(conclude(probes, ok(), Durability::Sync));
  return look_at_drives();
}

// Where nothing is stored, only a write tells whether what failed has left a rule that hides it.
Status Life::probe_rules(State& shown, Changes& probes) {
  for (const std::size_t key : expiry_.disputed(store_.engine().retention_rules())) {
    if (shown.places[kTimedPlace][key] == 0)
      probes.push_back({Change::Kind::Put, kTimedPlace, key, 0, ++written_});
  }
  if (probes.empty()) return ok();
  EC_TRY(store_.write(probes, Durability::Sync));
  return store_.read_place(kTimedPlace, Direction::Forward, nullptr, shown);
}

Status Life::settle_place(std::size_t place) {
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

// What must not be on them, and what must never have been.
Status Life::look_at_drives() {
  EC_TRY(needles_.find(store_.disk()));
  const std::string twice = store_.disk().written_twice();
  return twice.empty() ? ok() : corruption(twice);
}

// Whatever happened: it takes writes, keeps them, and both drives are in order.
Status Life::end() {
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
  EC_TRY(look_at_drives());
  store_.close();
  return store_.check();
}

}  // namespace edgecase::test
