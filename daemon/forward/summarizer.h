// Sums up, once an hour, what a target has been sent: of each device the hours of which something
// was committed since the round before, as a whole, signed (summaries.h). The target's receipts are
// kept. A round covers what is there at its beginning; hours with something newer wait for the next
// one. What the target holds otherwise shows as a receipt that does not confirm. One thread, the
// target's.
//
// An EdgeCase that does not know summaries is asked again in the next hour. Targets with
// `every` get none: what they hold is not what is here. Hours that ended more than kBackNs ago are
// left to verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "forward/http_target.h"
#include "forward/records.h"
#include "forward/series_names.h"
#include "forward/summaries.h"
#include "forward/windows.h"
#include "observe/logger.h"

namespace edgecase::forward {

class Summarizer {
 public:
  static constexpr std::int64_t kBackNs = 7 * 24 * kSummedHourNs;
  static constexpr std::int64_t kAheadNs =
      2 * 24 * kSummedHourNs;                                   // of readings ahead of the clock
  static constexpr std::int64_t kAfterHourNs = 10'000'000'000;  // late readings come first
  static constexpr std::int64_t kAfterStartNs = 2'000'000'000;  // what waits goes first
  static constexpr std::int64_t kAgainNs = 60'000'000'000;      // after no answer
  static constexpr std::size_t kAtOnce = 32;                    // summaries of a request, at most
  static constexpr std::int64_t kTurnNs = 100'000'000;

  struct Parts {
    Engine& engine;
    const catalog::Catalog& catalog;
    Clock& clock;
    observe::Logger& logger;
    Records& records;
    Summaries& summaries;
    Lineage& lineage;
    const retention::RetentionService* rules = nullptr;
  };
  Summarizer(const Parts& parts, const config::ForwardSettings& settings,
             const config::ForwardTarget& target, const Shape& shape, CommitPosition began_behind);

  // Something is to be done. `sent`: everything until there is at the target; 0: not all is.
  bool is_due(CommitPosition sent);
  // Some of it.
  void turn(HttpTarget& target);
  // Bounds of merges: what was summed up does not come up as new.
  std::vector<CommitPosition> positions() const { return {summed_, upto_}; }

 private:
  struct Waiting {
    Summaries::Kept kept;
    nlohmann::json summary;
    std::vector<std::string> sensors;
  };
  Status add_device(const catalog::DeviceEntry& device, std::vector<Waiting>& some);
  Status send(HttpTarget& target, std::vector<Waiting>& some, std::uint64_t revocations);
  void rest(const Status& status);

  const Parts parts_;
  const std::string name_, namespace_;
  const bool is_wanted_;
  const std::int64_t from_ns_;
  const WatchedTarget watched_;
  const Pseudonyms pseudonyms_;
  const Windows hours_;
  const CommitPosition began_behind_;
  const std::int64_t began_ns_;           // by boot_ns()
  CommitPosition summed_ = 0, upto_ = 0;  // upto_ 0: no round
  std::int64_t hour_ns_ = INT64_MIN;      // of the clock, of which the round is over
  std::int64_t rests_until_ns_ = 0;       // by boot_ns()
  std::uint32_t row_ = 0;                 // of devices: where the round is
};

}  // namespace edgecase::forward
