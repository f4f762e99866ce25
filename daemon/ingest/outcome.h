// What became of readings that were handed over: those that are not there as they were sent, by
// cause. Each way in reports it to whoever sent them; LossLedger keeps the sums of all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::ingest {

enum class Loss : std::uint8_t {
  Expired,   // older than its rule keeps: it was gone when it was stored
  Replaced,  // another one of the same batch, behind it, has its series and time
  Erased,    // its time was erased, and is not taken again
  Evicted,   // its time made room for later ones
  Refused,   // cannot be stored for good: a limit, a name, a value, a scope. Never acknowledged
};
inline constexpr std::size_t kLosses = 5;
inline constexpr std::array<std::string_view, kLosses> kLossNames = {
    "expired", "replaced", "erased", "evicted", "refused"};

struct Outcome {
  // Reasons that are kept in words.
  static constexpr std::size_t kReasonsMax = 10;

  // Set by whoever tells its sender of parts: what can never be stored costs itself alone then.
  bool takes_parts = false;
  std::array<std::uint64_t, kLosses> counts{};
  std::uint64_t out_of_scope = 0;            // of those refused: the token may not write them
  StatusCode refused_code = StatusCode::Ok;  // of the first one refused
  std::vector<std::string> reasons;

  std::uint64_t of(Loss loss) const { return counts[static_cast<std::size_t>(loss)]; }
  std::uint64_t& of(Loss loss) { return counts[static_cast<std::size_t>(loss)]; }
  // Those that nobody finds now.
  std::uint64_t not_stored() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    return all;
  }
  // Acknowledged all the same.
  std::uint64_t lost() const { return not_stored() - of(Loss::Refused); }
  void refuse(const wire::Reading& reading, const Status& why);
};

// Since the start, of all ways in. Thread-safe.
class LossLedger {
 public:
  // Devices that are told apart; beyond, the one whose last loss was longest ago is forgotten.
  static constexpr std::size_t kDevicesMax = 64;

  struct Device {
    std::string namespace_name, name;
    std::array<std::uint64_t, kLosses> counts{};
    std::int64_t last_ns = 0;  // wall time of the last one
  };

  // `generation` is the catalog's: with what is erased the names that are kept here go. Of what was
  // erased none is kept.
  void note(Loss loss, const wire::Reading& reading, std::int64_t now_ns, std::uint64_t generation);
  std::uint64_t total(Loss loss) const {
    return totals_[static_cast<std::size_t>(loss)].load(std::memory_order_relaxed);
  }
  // In the order of their names.
  std::vector<Device> devices(std::uint64_t generation);

 private:
  std::array<std::atomic<std::uint64_t>, kLosses> totals_{};
  std::mutex mutex_;
  std::uint64_t generation_ = 0;
  std::map<std::pair<std::string, std::string>, Device, std::less<>> devices_;
};

}  // namespace edgecase::ingest
