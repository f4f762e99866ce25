#include "crash/tiers_life.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "crash/crash_plan.h"
#include "crash/tiers_model.h"
#include "crash/tiers_store.h"
#include "wire/tiers.h"

namespace edgecase::test {
namespace {

using wire::Aggregate;

constexpr std::int64_t kMinute = 60 * kTierSecondNs;
constexpr const char* kTierSensors[] = {"x", "y", "z"};
constexpr std::size_t kSeries = std::size(kTierSensors);
constexpr const char* kRules[] = {
    "20m then 1m:1d then 10m:forever",
    "20m then 10m:forever",
    "30m then 1m:1d then 5m:2d then 30m:forever",
    "10m then 5m:forever",
    "forever",
};
constexpr std::int64_t kAsked[] = {kMinute, 5 * kMinute, 10 * kMinute, 30 * kMinute};
constexpr Aggregate kAggregates[] = {Aggregate::Count, Aggregate::Sum,   Aggregate::Min,
                                     Aggregate::Max,   Aggregate::First, Aggregate::Last};
// Nobody knows whether what failed has happened; once so many stores may be meant, no more is
// begun.
constexpr std::size_t kCandidatesMax = 256;

std::int64_t of_window(const ModelWindow& window, Aggregate aggregate) {
  switch (aggregate) {
    case Aggregate::Count: return window.count;
    case Aggregate::Sum: return window.sum;
    case Aggregate::Min: return window.min;
    case Aggregate::Max: return window.max;
    case Aggregate::First: return window.first;
    default: return window.last;
  }
}

using Model = std::array<ModelSeries, kSeries>;
using Rows = TierStore::Rows;

class TierLife {
 public:
  explicit TierLife(const TierPlan& plan)
      : plan_(plan), store_(plan.seed, plan.is_encrypted), models_(1) {}

  TierReport run() {
    std::string broken = settle(store_.open());
    for (std::size_t i = 0; broken.empty() && i < plan_.steps.size(); ++i) {
      broken = take(plan_.steps[i]);
      if (!broken.empty()) broken = "step " + std::to_string(i) + ": " + broken;
    }
    if (broken.empty()) broken = end();
    store_.close();
    report_.windows = store_.windows;
    report_.broken = std::move(broken);
    return report_;
  }

 private:
  // --- what is broken ---

  // What failed must be what an ailing drive explains.
  std::string excuse(const Status& status) const {
    if (status.ok()) return "";
    const bool documented =
        status.code() == StatusCode::IoError || status.code() == StatusCode::OutOfSpace ||
        status.code() == StatusCode::Busy || status.code() == StatusCode::Unavailable;
    return documented && (ailing_ || store_.disk.stopped()) ? "" : status.to_string();
  }

  // After an open that must succeed.
  std::string settle(const Status& opened) {
    if (!opened.ok()) return "the store does not open: " + opened.to_string();
    if (std::string broken = follow(); !broken.empty()) return broken;
    return compare(nullptr);
  }

  // Keeps those for which the test has nothing to say; else what it said of the last one.
  template <typename Test>
  std::string keep(const Test& test) {
    std::string said;
    std::erase_if(models_, [&](Model& model) {
      std::string why = test(model);
      if (why.empty()) return false;
      said = std::move(why);
      return true;
    });
    return models_.empty() ? said : "";
  }

  // What failed may have happened, or will have when the store is opened again.
  void may_be(std::vector<Model> others) {
    for (Model& each : others) {
      if (std::find(models_.begin(), models_.end(), each) == models_.end())
        models_.push_back(std::move(each));
    }
  }

  // Which marks the store has.
  std::string follow() {
    for (std::size_t i = 0; i < kSeries; ++i) {
      const retention::TierMark mark = store_.mark(kTierSensors[i]);
      if (!may_have(mark)) return "a mark is of tiers that no rule had";
      std::string broken = keep([&](Model& model) { return model[i].follow(mark); });
      if (!broken.empty()) return broken;
    }
    return "";
  }

  // A mark is of the rule that holds, or of one before that a pass has not followed from.
  bool may_have(const retention::TierMark& mark) const {
    if (mark.every_ns.empty()) return true;
    return std::any_of(std::begin(kRules), std::end(kRules), [&](const char* text) {
      std::vector<std::int64_t> lengths;
      const wire::Keeping keeping = wire::parse_keeping(text).value();
      for (const wire::Tier& tier : keeping.tiers) lengths.push_back(tier.every_ns);
      return lengths == mark.every_ns;
    });
  }

  // --- questions ---

  std::string compare_one(std::size_t series, std::int64_t every_ns,
                          std::optional<Aggregate> aggregate) {
    if (!store_.catalog->find("default", "board", kTierSensors[series]).ok()) {
      return keep([&](Model& model) {
        return model[series].raw().empty() && model[series].mark().every_ns.empty()
                   ? std::string()
                   : std::string("a series is gone");
      });
    }
    const Result<Rows> found = store_.ask(kTierSensors[series], every_ns, aggregate);
    ++report_.answers;
    if (!found.ok()) return excuse(found.status());
    return keep([&](Model& model) -> std::string {
      Rows expected;
      if (aggregate) {
        for (const auto& [begin_ns, window] : model[series].answer(every_ns))
          expected[begin_ns] = of_window(window, *aggregate);
      } else {
        expected = model[series].raw();
      }
      if (*found == expected) return "";
      return difference(expected, *found, series, every_ns, aggregate);
    });
  }

  static std::string difference(const Rows& expected, const Rows& found, std::size_t series,
                                std::int64_t every_ns, std::optional<Aggregate> aggregate) {
    std::string text = std::string(kTierSensors[series]) + ", " +
                       (aggregate ? std::string(wire::aggregate_name(*aggregate)) : "raw") +
                       " of " + std::to_string(every_ns / kTierSecondNs) +
                       " s: " + std::to_string(found.size()) + " rows, not " +
                       std::to_string(expected.size());
    const auto at = [&](const Rows& rows, std::int64_t time_ns) {
      const auto row = rows.find(time_ns);
      return row == rows.end() ? std::string("none") : std::to_string(row->second);
    };
    Rows all = expected;
    all.insert(found.begin(), found.end());
    for (const auto& [time_ns, value] : all) {
      if (at(expected, time_ns) == at(found, time_ns)) continue;
      return text + "; at " +
             std::to_string((time_ns - ManualClock::kStartWallNs) / kTierSecondNs) + " s " +
             at(found, time_ns) + " and not " + at(expected, time_ns);
    }
    return text;
  }

  // Every question, or with `detail` some.
  std::string compare(SeededRandom* detail) {
    for (std::size_t series = 0; series < kSeries; ++series) {
      if (std::string broken = compare_one(series, 0, std::nullopt); !broken.empty()) return broken;
      for (const std::int64_t every_ns : kAsked) {
        for (const Aggregate aggregate : kAggregates) {
          if (detail != nullptr && detail->below(4) != 0) continue;
          std::string broken = compare_one(series, every_ns, aggregate);
          if (!broken.empty()) return broken;
        }
      }
    }
    return "";
  }

  // --- steps ---

  std::string take(const TierStep& step) {
    const auto& with = step.arguments;
    if (step.kind == TierStepKind::Cut || step.kind == TierStepKind::Kill) return crash(step);
    if (!store_.is_open() || store_.disk.stopped() || models_.size() > kCandidatesMax) {
      return step.kind == TierStepKind::Heal && store_.is_open() && !store_.disk.stopped() ? heal()
                                                                                           : "";
    }
    SeededRandom detail(with[0]);
    store_.pass(kTierSecondNs / 3);
    switch (step.kind) {
      case TierStepKind::Write: return write(detail);
      case TierStepKind::Pass: return made(store_.maker->pass());
      case TierStepKind::Thin: return thin(with[0]);
      case TierStepKind::Time: store_.pass(static_cast<std::int64_t>(with[0]) * kMinute); return "";
      case TierStepKind::Rule: return rule(with[0]);
      case TierStepKind::Erase: return erase(detail);
      case TierStepKind::Ask: return ailing_ ? "" : compare(&detail);
      case TierStepKind::Flush: return excuse(store_.engine->flush());
      case TierStepKind::Compact: return excuse(store_.compact());
      case TierStepKind::Work:
        for (std::uint64_t tasks = with[0]; tasks > 0; --tasks) store_.executor.run_one();
        return "";
      case TierStepKind::Fail:
        ailing_ = true;
        store_.disk.fail_nth(kFailingOperations[with[0] % std::size(kFailingOperations)],
                             std::max<std::uint64_t>(with[1], 1), EIO, FaultMode::Once);
        return "";
      case TierStepKind::Unplug:
        ailing_ = true;
        store_.disk.set_gone("/v", true);
        return "";
      case TierStepKind::Heal: return heal();
      case TierStepKind::Stop: store_.disk.stop_at(std::max<std::uint64_t>(with[0], 1)); return "";
      case TierStepKind::Reopen: return reopen();
      default: return "";
    }
  }

  std::string made(const Status& status) {
    if (std::string broken = excuse(status); !broken.empty()) return broken;
    return follow();
  }

  std::string thin(std::uint64_t bytes) {
    const retention::Thinned thinned = store_.maker->thin_oldest(bytes, store_.clock.wall_ns());
    static_cast<void>(store_.maker->is_going(bytes % 2 == 0));
    if (thinned.readings == 0 && thinned.left.empty()) return "nobody says why no room is made";
    return follow();
  }

  // Times are on a grid, so that some are written over; some are late.
  std::string write(SeededRandom& detail) {
    const std::size_t series = detail.below(kSeries);
    const std::int64_t step_ns = static_cast<std::int64_t>(1 + detail.below(4)) * 5 * kTierSecondNs;
    const std::int64_t back_ns =
        static_cast<std::int64_t>(detail.below(detail.below(4) == 0 ? 180 : 25)) * kMinute;
    const std::int64_t end_ns = store_.clock.wall_ns() - back_ns;
    wire::ReadingBatch batch;
    std::vector<std::pair<std::int64_t, std::int64_t>> readings;
    for (std::uint64_t i = detail.below(60); i + 1 > 0; --i) {
      const std::int64_t time_ns = (end_ns / step_ns - static_cast<std::int64_t>(i)) * step_ns;
      const auto value = static_cast<std::int64_t>(detail.below(10'000));
      readings.emplace_back(time_ns, value);
      batch.readings.push_back(
          {"default", "board", kTierSensors[series], time_ns, wire::Value::of_int64(value)});
    }
    const auto authorized = auth::authorize_write(somebody(), batch);
    if (!authorized.ok()) return authorized.status().to_string();
    ingest::Outcome outcome;
    const Status stored = store_.pipeline->ingest(*authorized, &outcome);
    std::vector<Model> before;
    if (!stored.ok()) before = models_;
    std::string broken = keep([&](Model& model) -> std::string {
      std::uint64_t erased = 0, late = 0;
      ModelSeries& of_series = model[series];
      for (const auto& [time_ns, value] : readings) {
        if (of_series.is_erased(time_ns)) {
          ++erased;
        } else if (of_series.is_late(time_ns)) {
          ++late;
        } else {
          of_series.write(time_ns, value);
        }
      }
      if (!stored.ok()) return "";
      if (outcome.of(ingest::Loss::Erased) != erased)
        return "of erased times " + std::to_string(outcome.of(ingest::Loss::Erased)) +
               " readings were refused, not " + std::to_string(erased);
      if (outcome.of(ingest::Loss::Expired) != late)
        return std::to_string(outcome.of(ingest::Loss::Expired)) + " readings were late, not " +
               std::to_string(late);
      report_.late += late;
      report_.written += readings.size() - late - erased;
      return "";
    });
    if (!broken.empty()) return broken;
    may_be(std::move(before));
    return excuse(stored);
  }

  std::string rule(std::uint64_t which) {
    // The last one, which has no tiers, seldom.
    const char* const text =
        kRules[which == 15 ? std::size(kRules) - 1 : which % (std::size(kRules) - 1)];
    const wire::Keeping keeping = wire::parse_keeping(text).value();
    return excuse(store_.retention->set(
        {"", wire::parse_selector("*/*").value(), keeping.raw_ns, keeping.tiers}));
  }

  std::string erase(SeededRandom& detail) {
    const std::size_t series = detail.below(kSeries);
    const std::int64_t from_ns =
        store_.clock.wall_ns() - static_cast<std::int64_t>(detail.below(120 * 60)) * kTierSecondNs;
    // A fence ends where the clock is.
    const ModelSeries::Range range{
        from_ns,
        std::min(from_ns + static_cast<std::int64_t>(1 + detail.below(15 * 60)) * kTierSecondNs,
                 store_.clock.wall_ns())};
    if (range.to_ns <= range.from_ns) return "";
    erase::EraseRequest request;
    request.namespace_name = "default";
    request.selection = wire::parse_selector(std::string("board/") + kTierSensors[series]).value();
    request.from_ns = range.from_ns;
    request.to_ns = range.to_ns;
    const auto erased = store_.erase->erase(somebody(), request, erase::Everything::Allowed);
    if (erased.status().code() == StatusCode::NotFound) return "";
    std::vector<Model> before;
    if (!erased.ok()) before = models_;
    for (Model& model : models_) model[series].erase(range);
    may_be(std::move(before));
    ++report_.erasures;
    if (std::string broken = excuse(erased.status()); !broken.empty()) return broken;
    if (!ailing_ && detail.below(2) == 0) {
      const auto gone = store_.engine->erase();
      return excuse(gone.status());
    }
    return "";
  }

  std::string heal() {
    store_.cure();
    ailing_ = false;
    if (std::string broken = store_.rest(120); !broken.empty()) return broken;
    if (std::string broken = made(store_.maker->pass()); !broken.empty()) return broken;
    return compare(nullptr);
  }

  std::string reopen() {
    look_for_syncs();
    store_.close();
    const Status opened = store_.open();
    if (std::string broken = excuse(opened); !broken.empty()) return broken;
    store_.cure();
    ailing_ = false;
    if (opened.ok()) return settle(opened);
    store_.close();
    return settle(store_.open());
  }

  // What was synced since the store was opened has made durable what that recovered.
  void look_for_syncs() {
    if (!store_.is_open()) return;
    const Stats stats = store_.engine->stats();
    if (stats.wal_syncs > 0 || stats.flushes > 0) undurable_.clear();
  }

  void end_process(bool power_goes, std::uint64_t seed, CutPolicy policy) {
    ++report_.crashes;
    look_for_syncs();
    if (power_goes) {
      may_be(std::exchange(undurable_, {}));
    } else {
      undurable_.insert(undurable_.end(), models_.begin(), models_.end());
    }
    if (power_goes) {
      if (!store_.disk.stopped()) store_.disk.stop_at(1);
      store_.close();
      store_.disk.power_cut(seed, policy);
    } else {
      store_.disk.kill_process(seed);
      store_.close();
    }
    store_.cure();
    ailing_ = false;
  }

  std::string crash(const TierStep& step) {
    const auto& with = step.arguments;
    const bool cut = step.kind == TierStepKind::Cut;
    const auto policy = static_cast<CutPolicy>(with[1] % 6);
    end_process(cut, with[0], policy);
    if (with[2] != 0) {
      store_.disk.stop_at(with[2]);
      const Status opened = store_.open();
      if (opened.code() == StatusCode::Corruption) return opened.to_string();
      end_process(cut, with[0] + 1, policy);
    }
    store_.pass(kTierSecondNs);
    return settle(store_.open());
  }

  // Whatever happened: all that is due becomes windows, every question is answered, and the drives
  // are in order.
  std::string end() {
    if (!store_.is_open() || store_.disk.stopped()) {
      std::string broken = crash({TierStepKind::Cut, {plan_.seed, 0, 0}});
      if (!broken.empty()) return broken;
    }
    if (std::string broken = heal(); !broken.empty()) return broken;
    store_.pass(60 * kMinute);
    for (int i = 0; i < 2; ++i) {
      if (std::string broken = made(store_.maker->pass()); !broken.empty()) return broken;
      if (std::string broken = store_.rest(5); !broken.empty()) return broken;
    }
    if (std::string broken = excuse(store_.compact()); !broken.empty()) return broken;
    if (const auto gone = store_.engine->erase(); !gone.ok()) return gone.status().to_string();
    if (std::string broken = compare(nullptr); !broken.empty()) return broken;
    if (!store_.retention->marks().waiting(1).empty()) return "what was hidden is not erased";
    if (std::string broken = crash({TierStepKind::Cut, {plan_.seed, 0, 0}}); !broken.empty())
      return broken;
    store_.close();
    return store_.check();
  }

  const TierPlan& plan_;
  TierStore store_;
  std::vector<Model> models_;  // what the store may hold; more than one after what failed
  // What it may hold after a power cut, too: a kill leaves records that nobody waits for in the
  // page cache, and the store shows them at once, before it syncs them.
  std::vector<Model> undurable_;
  TierReport report_;
  bool ailing_ = false;
};

}  // namespace

TierReport live_tiers(const TierPlan& plan) {
  return TierLife(plan).run();
}

}  // namespace edgecase::test
