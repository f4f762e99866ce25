// Thinned forwarding: in place of its readings a target gets the columns of windows
// (wire/tiers.h), each computed from all that the store holds of it. A window goes again
// when something of it was committed later, so what the target has in the end is right.
//
//   commits ──────────────┬──────────────────┬──────►
//                         │ of windows that  │
//      after the cursor   │ were over then   │
//                      boundary        the round is read
//
// A round begins when a window is over. What was committed before that is sent and counts; of what
// came until it is read, late readings go along, and the windows that are open wait for the next
// round.
//
// Where readings became windows of tiers before they went, these take their place (TIERS.md). One
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "edgecase/engine.h"
#include "retention/retention_service.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::forward {

// Where the window of a time begins.
std::int64_t window_begin_ns(std::int64_t time_ns, std::int64_t every_ns);

// Which windows belong to a round: by the position of a reading, and the end of its window.
struct Round {
  CommitPosition boundary = UINT64_MAX;  // what was committed before it goes in any case
  std::int64_t over_ns = INT64_MAX;      // windows that end until then go, too
  // The round before took these along already.
  CommitPosition before_upto = 0;
  std::int64_t before_over_ns = INT64_MIN;

  bool takes(CommitPosition position, std::int64_t window_end_ns) const {
    if (position <= before_upto && window_end_ns <= before_over_ns) return false;
    return position <= boundary || window_end_ns <= over_ns;
  }
};

// A window as a target gets it: its columns, of readings and of windows of tiers within it.
struct WholeWindow {
  std::int64_t begin_ns = 0, every_ns = 0;
  std::uint64_t count = 0;    // readings
  bool has_readings = false;  // some of these are here as they came
  // Nothing: it has none. Views hold during the call that gives the window.
  std::function<std::optional<wire::Value>(wire::WindowColumn column)> value_of;
};
inline WholeWindow as_it_is(const wire::Window& window) {
  return {
      .begin_ns = window.begin_ns,
      .every_ns = window.every_ns,
      .count = window.count,
      .has_readings = false,
      .value_of = [&window](wire::WindowColumn column) { return wire::value_of(window, column); }};
}
using WholeWindowTaker = std::function<bool(const WholeWindow& window)>;  // false ends it

class Windows {
 public:
  using Taker = std::function<void(wire::WindowColumn column, const wire::Value& value)>;

  // `every_ns` 0: windows of tiers go as they are. Without rules (null) nothing is thinned here.
  Windows(Engine& engine, std::int64_t every_ns, const retention::RetentionService* rules = nullptr)
      : engine_(engine), every_ns_(every_ns), rules_(rules) {}

  std::int64_t every_ns() const { return every_ns_; }
  // Windows that begin before it may have lost readings here, which a target got whole, or not at
  // all: they do not go. `why`: what takes them, mostly.
  std::int64_t whole_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const;
  // The same where windows of tiers stand for what they were made of.
  std::int64_t kept_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const;
  // Whether something of that window may be windows of tiers: compute() needs the series then.
  bool is_tiered(const catalog::SeriesId& id, std::int64_t time_ns) const {
    return rules_ != nullptr && rules_->marks().reach_ns(id) > window_begin_ns(time_ns, every_ns_);
  }
  // The readings of the window that `key` lies in. Errors: the engine's.
  Result<std::uint64_t> count(NamespaceId namespace_id, const wire::ReadingKey& key,
                              const std::shared_ptr<const Snapshot>& snapshot) const;
  // The columns that have a value, of the window that `key` lies in. `unfit`: those that are too
  // large for a line. `tiered`: its series, where is_tiered(). Values hold during the call. False:
  // a window of a tier reaches beyond it, or has expired. Errors: the engine's.
  Result<bool> compute(NamespaceId namespace_id, const wire::ReadingKey& key,
                       const catalog::SeriesEntry* tiered,
                       const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t& unfit,
                       const Taker& take) const;
  // What stands for readings that have become windows of tiers: windows that begin in
  // [from_ns, to_ns), or hold `from_ns`, oldest first. Those of tiers that are longer than `every`,
  // or no part of it, go as they are; of the others `every` is made, with what there is of readings
  // behind the mark. Without rules there are none. Errors: the engine's.
  Status each_tiered(const catalog::SeriesEntry& series, std::int64_t from_ns, std::int64_t to_ns,
                     const std::shared_ptr<const Snapshot>& snapshot,
                     const WholeWindowTaker& take) const;

 private:
  class Sum;
  class Combiner;
  KeyRange keys_of(const wire::ReadingKey& key) const;
  std::int64_t end_ns(std::int64_t begin_ns) const;
  Status add_readings(NamespaceId namespace_id, const wire::ReadingKey& key,
                      const std::shared_ptr<const Snapshot>& snapshot, Sum& sum) const;

  Engine& engine_;
  const std::int64_t every_ns_;
  const retention::RetentionService* const rules_;
};

// Windows of a series that begin in [from_ns, to_ns), or hold `from_ns`, oldest first: of each time
// those of the finest tier that has it whole. `take`: false ends it. Errors: the engine's.
Status each_finest_window(Engine& engine, const retention::RetentionService& rules,
                          const catalog::SeriesEntry& series, std::int64_t from_ns,
                          std::int64_t to_ns, const std::shared_ptr<const Snapshot>& snapshot,
                          const std::function<bool(const wire::Window& window)>& take);
// Windows of one length that begin in [from_ns, to_ns); none: there is no such tier any more.
Status each_window(Engine& engine, const catalog::SeriesId& id, std::int64_t every_ns,
                   std::int64_t from_ns, std::int64_t to_ns,
                   const std::shared_ptr<const Snapshot>& snapshot,
                   const std::function<bool(const wire::Window& window)>& take);

// The rule of columns that stand for windows of this length or finer ones: such a tier's, and what
// comes behind it.
wire::Keeping keeping_of_columns(const wire::Keeping& keeping, std::int64_t every_ns);

}  // namespace edgecase::forward
