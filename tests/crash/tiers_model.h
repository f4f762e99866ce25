// The oracle of tiers_life.h: it says what a series with tiers must answer. A mark is looked up in
// the store; what lies before it, and behind it, follows from what was written, erased and ruled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "retention/retention_service.h"

namespace edgecase::test {

// The values are whole numbers.
struct ModelWindow {
  std::int64_t count = 0, sum = 0, min = 0, max = 0, first = 0, last = 0;

  void add(std::int64_t value) { add({1, value, value, value, value, value}); }
  // One that is later.
  void add(const ModelWindow& later);
  friend bool operator==(const ModelWindow&, const ModelWindow&) = default;
};

class ModelSeries {
 public:
  using Windows = std::map<std::int64_t, ModelWindow>;  // by the times at which they begin
  struct Range {
    std::int64_t from_ns, to_ns;
  };

  // Whether a reading of that time is refused, since it was erased, or is late.
  bool is_erased(std::int64_t time_ns) const;
  bool is_late(std::int64_t time_ns) const { return time_ns < mark_.before_ns; }
  void write(std::int64_t time_ns, std::int64_t value) { raw_[time_ns] = value; }
  // With windows that the range cuts.
  void erase(const Range& range);
  // What became of it by the store's mark. Not empty: what the store may never do.
  std::string follow(const retention::TierMark& mark);

  const std::map<std::int64_t, std::int64_t>& raw() const { return raw_; }
  const retention::TierMark& mark() const { return mark_; }
  // What a question of windows of `every_ns` finds.
  Windows answer(std::int64_t every_ns) const;

  friend bool operator==(const ModelSeries&, const ModelSeries&) = default;

 private:
  void follow_rule(const std::vector<std::int64_t>& every_ns);

  std::map<std::int64_t, std::int64_t> raw_;
  retention::TierMark mark_;               // of readings that wait it knows nothing
  std::map<std::int64_t, Windows> tiers_;  // by their length
  std::vector<std::pair<std::int64_t, std::int64_t>> erased_;
};

}  // namespace edgecase::test
