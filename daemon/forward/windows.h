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
// round. One thread.
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

class Windows {
 public:
  using Taker = std::function<void(wire::WindowColumn column, const wire::Value& value)>;

  // Without rules (null) nothing is thinned here.
  Windows(Engine& engine, std::int64_t every_ns, const retention::RetentionService* rules = nullptr)
      : engine_(engine), every_ns_(every_ns), rules_(rules) {}

  std::int64_t every_ns() const { return every_ns_; }
  // Windows that begin before it may have lost readings here, which a target got whole, or not at
  // all: they do not go. `why`: what takes them, mostly.
  std::int64_t whole_from_ns(const catalog::SeriesId& id, retention::Leaving& why) const;
  // The readings of the window that `key` lies in. Errors: the engine's.
  Result<std::uint64_t> count(NamespaceId namespace_id, const wire::ReadingKey& key,
                              const std::shared_ptr<const Snapshot>& snapshot) const;
  // The columns that have a value, of the window that `key` lies in. `unfit`: those that are too
  // large for a line. Values hold during the call. Errors: the engine's.
  Status compute(NamespaceId namespace_id, const wire::ReadingKey& key,
                 const std::shared_ptr<const Snapshot>& snapshot, std::uint64_t& unfit,
                 const Taker& take) const;

 private:
  KeyRange keys_of(const wire::ReadingKey& key) const;

  Engine& engine_;
  const std::int64_t every_ns_;
  const retention::RetentionService* const rules_;
};

}  // namespace edgecase::forward
