// The status of a target.
#include <utility>

#include "forward/target.h"

namespace edgecase::forward {

const char* state_name(TargetState state) {
  switch (state) {
    case TargetState::Current: return "current";
    case TargetState::Sending: return "sending";
    case TargetState::Waiting: return "waiting";
    case TargetState::Denied: return "denied";
    case TargetState::Wrong: return "wrong";
    case TargetState::Paused: return "paused";
    case TargetState::AtRest: return "not configured";
    case TargetState::Failing: return "failing";
  }
  return "failing";
}

TargetStatus Target::status() const {
  const MutexLock lock(mutex_);
  return told_;
}

Result<std::uint64_t> Target::waiting() const {
  const Cursor cursor = status().cursor;
  // A reader of its own: that of the thread is at work.
  const BatchReader reader(parts_.engine, parts_.catalog, settings_, target_);
  BatchReader::Wish wish{.after = cursor.oldest(), .upto = UINT64_MAX};
  // Where there is one range of backlog alone, what it has is not counted.
  if (cursor.backlog().size() == 1) wish.behind = cursor.backlog().front().done_to;
  EC_ASSIGN_OR_RETURN(const std::uint64_t count, reader.count(wish));
  if (!wish.behind) return count;
  const BatchReader::Wish fresh{.after = cursor.fresh_after(), .upto = UINT64_MAX};
  EC_ASSIGN_OR_RETURN(const std::uint64_t all_fresh, reader.count(fresh));
  return count + all_fresh;
}

void Target::tell() {
  const std::int64_t wall_ns = parts_.clock.wall_ns();
  const std::int64_t now_ns = parts_.clock.boot_ns();
  if (now_ns - answered_upto_ns_ >= kShownNs) {
    shown_ = std::exchange(answered_upto_, live_.oldest());
    answered_upto_ns_ = now_ns;
  }
  const bool is_current = live_.backlog().empty() && state_ == TargetState::Current;
  const MutexLock lock(mutex_);
  told_.state = state_;
  told_.why = why_;
  told_.refused_why = refused_why_;
  told_.totals = record_.totals;
  told_.undelivered_kept = kept_refusals_;
  told_.requests = requests_;
  told_.failed_requests = failed_requests_;
  told_.answered_ns = answered_ns_;
  told_.cannot_erase = eraser_.cannot();
  told_.is_apart = is_apart_;
  if (is_current) told_.current_ns = wall_ns;
  told_.cursor = live_;
  told_.shown = settle_ns_ == 0 ? UINT64_MAX : shown_;
}

}  // namespace edgecase::forward
