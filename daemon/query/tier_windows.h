// The windows that a tier keeps of one series, one after another, as of one snapshot: what its
// columns have at the same time put together (catalog/tier_spaces.h). One thread; must not outlive
// the engine.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "catalog/tier_spaces.h"
#include "edgecase/engine.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::query {

// What is known of the readings of one window. Text and bytes are counted, no more.
using TierWindow = wire::Window;

// Sets of columns, as bits.
using TierColumnSet = std::uint32_t;
constexpr TierColumnSet tier_bit(catalog::TierColumn column) {
  return TierColumnSet{1} << static_cast<std::uint32_t>(column);
}
inline constexpr TierColumnSet kAllTierColumns = (TierColumnSet{1} << catalog::kTierColumns) - 1;

class TierWindows {
 public:
  // Whole windows that lie within [from_ns, to_ns); of `columns`, and what they need. `options` say
  // which snapshot and direction, and who is told of damage, whose times are windows' begins.
  static Result<std::unique_ptr<TierWindows>> open(Engine& engine, const catalog::TierSpace& tier,
                                                   const catalog::SeriesId& series,
                                                   std::int64_t from_ns,
                                                   std::optional<std::int64_t> to_ns,
                                                   TierColumnSet columns,
                                                   const ReadOptions& options);

  // False at the end, and after an error: look at status().
  bool valid() const { return has_window_; }
  const Status& status() const { return status_; }
  const TierWindow& window() const { return window_; }
  // The last instant of the window where it stands.
  std::int64_t last_ns() const;
  void next();
  // To the first window that begins at or behind `time_ns` (Reverse: at or before).
  void seek(std::int64_t time_ns);

 private:
  TierWindows(const catalog::TierSpace& tier, Direction direction)
      : tier_(tier), direction_(direction) {}
  void read();
  Result<bool> read_window();
  Result<std::optional<wire::Value>> take(catalog::TierColumn column, std::int64_t time_ns);

  const catalog::TierSpace tier_;
  const Direction direction_;
  catalog::SeriesId series_;
  std::array<std::unique_ptr<Iterator>, catalog::kTierColumns> columns_;
  TierWindow window_;
  bool has_window_ = false;
  Status status_;
};

}  // namespace edgecase::query
