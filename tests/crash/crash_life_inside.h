// One life: what crash_life.h runs. Its steps lie in crash_life.cc, what time and erasure take away
// and what views must still show in crash_life_views.cc, crashes and what follows them in
// crash_life_crash.cc.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <string>

#include "crash/crash_expiry.h"
#include "crash/crash_history.h"
#include "crash/crash_life.h"
#include "crash/crash_needles.h"
#include "crash/held_view.h"

namespace edgecase::test {

// What the store is known to have at its next open.
enum class Presence : unsigned char { Absent, Present, Unsure };

class Life {
 public:
  Life(const Plan& plan, const WrapDrives& wrap)
      : plan_(plan),
        has_times_(has_step(plan, StepKind::Retain)),
        store_(plan, wrap),
        expiry_(expiry_mode(plan), store_.trusted_ns()) {}

  LifeReport run();

 private:
  // An error of any of these is a broken promise; what the drives may cause is handled within.
  Status start();
  Status end();

  // --- steps ---

  Status take(const Step& step);
  Status ail(const Step& step);
  Status excuse(const Status& status) const;
  Status note(const Status& status);
  Status conclude(const Changes& changes, const Status& status, Durability durability);
  Status write(SeededRandom& detail, bool sync);
  Status ingest(SeededRandom& detail);
  Status forget(SeededRandom& detail);
  Status read(SeededRandom& detail);
  Status compare_place(std::size_t place, Direction direction);
  Status compare();

  // --- expiry ---

  Status stamp(SeededRandom& detail, bool sync);
  Status retain(SeededRandom& detail);
  Status rest(std::int64_t seconds);
  Status time_has_passed();
  void hide_expired();
  Status compare_timed();

  // --- views ---

  Status take_view(SeededRandom& detail);
  Status release_view();

  // --- erasure ---

  Status erase(SeededRandom& detail, std::uint64_t how);
  Status erase_range(const Change& range);

  // --- namespaces ---

  Status create(std::size_t place);
  Status note_creation(std::size_t place, const Status& status);
  void forget_place(std::size_t place);
  Status note_new_id(std::size_t place);
  Status drop(std::size_t place);
  Status compact(SeededRandom& detail);

  // --- the drives are well again ---

  void cure();
  Status heal();
  Status look_at_drives();
  Status write_all_places();

  // --- the end of a process, and the next one ---

  Status reopen();
  Status make_rules_sure();
  void end_process(bool power_goes, std::uint64_t seed, CutPolicy policy);
  Status crash(const Step& step);
  Status open_again(std::uint64_t seed);
  Status check_sometimes(std::uint64_t seed);
  Status settle(const std::function<std::string(const State&)>& settle);
  Status probe_rules(State& shown, Changes& probes);
  Status settle_place(std::size_t place);

  const Plan& plan_;
  const bool has_times_;
  bool has_mark_ = false;  // the store knows durably what time it was
  CrashStore store_;
  ExpiryOracle expiry_;
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

}  // namespace edgecase::test
