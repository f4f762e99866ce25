// Target, as it sends windows in place of readings.
#include <algorithm>
#include <utility>

#include "forward/target.h"

namespace edgecase::forward {

// Notes where commits stand when a window is over, whether the target can be reached or not. It
// stays until it is used.
void Target::note_window() {
  const std::int64_t begin_ns = window_begin_ns(parts_.clock.wall_ns(), target_.every_ns);
  if (!window_) {  // at once what is over, with no place moved
    boundary_ = live_.fresh_after();
    boundary_ns_ = begin_ns;
  }
  if (std::exchange(window_, begin_ns) == begin_ns || boundary_) return;
  boundary_ = parts_.bounds.mark(settings_.name);
  boundary_ns_ = begin_ns;
  publish_bounds();
}

bool Target::has_windows() const {
  if (round_upto_ != 0) return true;
  const std::int64_t late_ns = std::min(kLateNs, target_.every_ns / 4);
  return boundary_ && parts_.engine.committed() > live_.fresh_after() &&
         parts_.clock.wall_ns() - boundary_ns_ >= late_ns;
}

Target::Turn Target::send_windows() {
  if (round_upto_ == 0) {
    round_ = {.boundary = *std::exchange(boundary_, std::nullopt),
              .over_ns = boundary_ns_,
              .before_upto = done_upto_,
              .before_over_ns = done_over_ns_};
    round_upto_ = parts_.bounds.mark(settings_.name);
  }
  // What was committed after an erasure may lie before the mark.
  if (has_erasure()) return Turn::Sent;
  Result<Batch> batch = read({.after = live_.fresh_after(),
                              .upto = round_upto_,
                              .behind = round_behind_,
                              .skips_nameless = false,
                              .round = round_});
  if (!batch.ok()) return Turn::Failed;
  if (!send(*batch)) return Turn::Failed;
  if (batch->is_whole) {
    done_upto_ = round_upto_;
    done_over_ns_ = round_.over_ns;
    live_.fresh_done(round_.boundary);
    round_upto_ = 0;
    round_behind_.reset();
  } else if (round_.boundary - live_.fresh_after() > kRoundMax) {
    live_.fresh_part(round_.boundary, std::move(batch->last));
    forget_round();
  } else {
    round_behind_ = std::move(batch->last);
    return Turn::Sent;
  }
  publish_bounds();
  is_backlogs_turn_ = true;
  if (!live_.backlog().empty()) return Turn::Sent;
  note_current();
  return Turn::Idle;
}

// Everything behind the cursor goes again, in a round of its own.
void Target::forget_round() {
  if (round_upto_ != 0 && !boundary_) {
    boundary_ = round_.boundary;
    boundary_ns_ = round_.over_ns;
  }
  round_upto_ = done_upto_ = 0;
  done_over_ns_ = INT64_MIN;
  round_behind_.reset();
}

}  // namespace edgecase::forward
