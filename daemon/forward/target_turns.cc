// Target's turns beside readings of the fresh range and of backlog: erasures and lifts, what goes
// again, rules of retention, summaries of hours, windows in place of readings, or of readings that
// have gone. And what it tells of itself.
#include <algorithm>
#include <utility>

#include "forward/target.h"

namespace edgecase::forward {
namespace {

constexpr const char* kLogName = "forward";

}  // namespace

Target::Turn Target::send_erasure(const ErasureOrder& order) {
  if (erasing_.number != order.number)
    erasing_ = {.number = order.number, .chunk = 0, .result = {}};
  state_ = TargetState::Sending;
  TargetErasure& result = erasing_.result;
  const auto all_names = [&](const std::function<void(const ErasedName&)>& take) -> Status {
    for (std::uint32_t chunk = 0; chunk < order.chunks; ++chunk) {
      EC_ASSIGN_OR_RETURN(const std::vector<ErasedName> names, parts_.erasures.names(order, chunk));
      for (const ErasedName& each : names) take(each);
    }
    return ok();
  };
  while (erasing_.chunk < order.chunks) {
    const Result<std::vector<ErasedName>> names = parts_.erasures.names(order, erasing_.chunk);
    if (names.status().code() == StatusCode::Corruption) {
      result.step = ErasureStep::NotPossible;
      result.why = "the names of what was erased cannot be read here any more";
    } else if (!names.ok()) {
      fail(names.status());
      return Turn::Failed;
    } else {
      const Answer answer = eraser_.erase(order, *names, all_names, result);
      if (answer.verdict != Verdict::Taken) {
        fail(answer, false);
        return Turn::Failed;
      }
    }
    ++erasing_.chunk;
    if (is_stopping()) return Turn::Sent;
  }
  forget_erased(order, result);
  if (Status status = end_erasure(order.number, std::move(result)); !status.ok()) {
    erasing_ = {};  // it is asked again: before that is durable nothing else goes
    fail(status);
    return Turn::Failed;
  }
  erasing_ = {};
  pace_.hurry();
  rests_until_ns_ = 0;
  why_.clear();
  return Turn::Sent;
}

// What is gone there needs no other erasure. Its names go with the last answer.
void Target::forget_erased(const ErasureOrder& order, const TargetErasure& result) {
  if (!order.has_all_times || result.step == ErasureStep::NotPossible) return;
  for (std::uint32_t chunk = 0; chunk < order.chunks; ++chunk) {
    const auto names = parts_.erasures.names(order, chunk);
    if (!names.ok()) return;
    std::vector<Thinned::Named> some;
    for (const ErasedName& each : *names) {
      if (each.is_device) continue;
      Bytes hash = Thinned::hash_of(each.namespace_name, each.device, each.sensor);
      const auto gone = parts_.thinned.find_gone(settings_.name, hash);
      if (!gone.ok()) return;
      const catalog::SeriesId id = each.id.sensor != 0 ? each.id : gone->id.value_or(each.id);
      // A series that has the name now has its own.
      if (gone->id && !(*gone->id == id)) hash.clear();
      if (id.sensor != 0) some.emplace_back(std::move(hash), id);
    }
    if (!thinned_.erased(some).ok()) return;
  }
}

bool Target::has_erasure() const {
  return parts_.erasures.next(settings_.name) || parts_.erasures.next_lift(settings_.name);
}

Target::Turn Target::send_lift(std::uint64_t number, const TargetErasure& erased) {
  state_ = TargetState::Sending;
  std::string why;
  const Answer answer = eraser_.lift(erased, why);
  if (answer.verdict != Verdict::Taken) {
    fail(answer, false);
    return Turn::Failed;
  }
  if (!why.empty()) {
    parts_.logger.warning(kLogName, "the fences of erasure " + std::to_string(number) +
                                        " stay at " + settings_.name + ": " + why +
                                        "; to do: edgecase erase --lift there");
  }
  if (const Status noted = parts_.erasures.note_lifted(number, settings_.name); !noted.ok()) {
    fail(noted);
    return Turn::Failed;
  }
  return Turn::Sent;
}

// Durable before anything that was committed later goes.
Status Target::end_erasure(std::uint64_t number, TargetErasure result) {
  result.target = settings_.name;
  if (result.step == ErasureStep::NotPossible) {
    parts_.logger.warning(kLogName, "erasure " + std::to_string(number) +
                                        " is not done, or not whole, at " + settings_.name + ": " +
                                        result.why);
  }
  const bool settles = settle_ns_ != 0 && result.step != ErasureStep::NotPossible;
  TargetErasure noted = result;
  if (settles) noted.step = ErasureStep::Requested;
  EC_TRY(parts_.erasures.note(number, noted));
  if (settles) settling_erasures_.push_back({number, parts_.clock.boot_ns(), std::move(result)});
  return ok();
}

bool Target::settle_erasures() {
  while (!settling_erasures_.empty()) {
    const Settling& first = settling_erasures_.front();
    if (parts_.clock.boot_ns() - first.answered_ns < settle_ns_) return true;
    if (const Status kept = parts_.erasures.note(first.number, first.result); !kept.ok()) {
      fail(kept);
      return false;
    }
    settling_erasures_.erase(settling_erasures_.begin());
  }
  return true;
}

// An EdgeCase may have answered while bytes went still.
void Target::look_at_certificates() {
  const std::int64_t now_ns = parts_.clock.boot_ns();
  if (now_ns < rests_until_ns_ || now_ns - looked_ns_ < kCertificateLookNs || record_.is_paused)
    return;
  auto pending = parts_.erasures.pending_there(settings_.name);
  if (!pending) return;
  looked_ns_ = now_ns;
  auto& [number, result] = *pending;
  if (eraser_.look(result).verdict != Verdict::Taken) return;
  static_cast<void>(parts_.erasures.note(number, result).ok());  // it is looked at again
}

Target::Turn Target::send_thinned() {
  Result<ThinnedSender::Part> part = thinned_.read(reader_, pace_.lines_max());
  if (!part.ok()) {
    fail(part.status());
    return Turn::Failed;
  }
  if (const Status announced = thinned_.announce(*part); !announced.ok()) {
    fail(announced);
    return Turn::Failed;
  }
  // Windows that are older than a rule there says come behind it; columns that are new, before it.
  if (!carry_rules(part->batch) || !send(part->batch)) return Turn::Failed;
  thinned_.sent(*std::move(part), parts_.clock.boot_ns(),
                parts_.erasures.waiting(settings_.name) == 0);
  is_backlogs_turn_ = false;
  was_thinned_ = true;
  return Turn::Sent;
}

// What goes again is not shown until that is over for some time.
void Target::show_later() {
  shown_ = answered_upto_ = 0;
  answered_upto_ns_ = parts_.clock.boot_ns();
}

void Target::end_again() {
  show_later();
  again_now_ = Again::Nothing;
  again_behind_ = {};
  const auto left = parts_.records.count_refusals(settings_.name);
  if (left.ok()) kept_refusals_ = *left;
}

Target::Turn Target::send_again() {
  constexpr std::size_t kAtOnce = 256;
  auto kept = parts_.records.refusals(settings_.name, again_behind_, kAtOnce);
  if (!kept.ok()) {
    fail(kept.status());
    return Turn::Failed;
  }
  if (kept->empty()) {
    end_again();
    return Turn::Sent;
  }
  Place last = kept->back().place;
  std::vector<Refusal>& some = *kept;
  if (again_now_ == Again::Missing)
    std::erase_if(some, [](const Refusal& each) { return !is_missing(each); });
  std::size_t taken = 0;
  const Result<Batch> batch = reader_.read(some, taken);
  if (!batch.ok()) {
    fail(batch.status());
    return Turn::Failed;
  }
  const std::optional<Delivery> delivery = send(*batch, Refusals::AreKept);
  if (!delivery) {
    // Where it takes none of them, others may be taken.
    if (state_ == TargetState::Wrong) end_again();
    return Turn::Failed;
  }
  if (taken < some.size()) {
    some.resize(taken);
    last = some.back().place;
  }
  // What is refused stays, with what was answered now.
  std::vector<Refusal> refused;
  for (const auto& [line, status] : delivery->refused) {
    refused.push_back(
        {place_of(batch->lines[line]), static_cast<std::uint16_t>(status), parts_.clock.wall_ns()});
    std::erase_if(some,
                  [&refused](const Refusal& each) { return each.place == refused.back().place; });
  }
  Status noted = parts_.records.add_refusals(settings_.name, refused);
  if (noted.ok()) noted = parts_.records.remove_refusals(settings_.name, some);
  if (!noted.ok()) {
    fail(noted);
    return Turn::Failed;
  }
  again_behind_ = std::move(last);
  kept_refusals_ -= std::min(kept_refusals_, some.size());
  return Turn::Sent;
}

bool Target::carry_rules(const Batch& batch) {
  if (batch.rules.empty()) return true;
  std::uint64_t refused = 0;
  const Answer answer = http_->carry_rules(batch.rules, refused);
  if (answer.verdict != Verdict::Taken) {
    fail(answer, false);
    return false;
  }
  if (refused > 0)
    parts_.logger.log_keyed(observe::LogLevel::Warning, kLogName, "rules " + settings_.name,
                            settings_.name +
                                " takes some rules of retention not; to do: give the token "
                                "write and erase there");
  reader_.note_said(batch);
  return true;
}

bool Target::has_rules() {
  if (!settings_.retention || parts_.rules == nullptr) return false;
  if (const std::uint64_t now = parts_.rules->generation(); now != rules_generation_) {
    rules_generation_ = now;
    rules_row_ = 0;
  }
  return rules_row_.has_value();
}

Target::Turn Target::send_rules() {
  std::optional<catalog::SeriesRow> next = rules_row_;
  const Batch batch = reader_.read_rules(next);
  if (!carry_rules(batch)) return Turn::Failed;
  rules_row_ = next;
  return Turn::Sent;
}

bool Target::has_summaries() {
  if (std::exchange(was_summing_, false)) return false;
  return summarizer_.is_due(live_.backlog().empty() ? live_.fresh_after() : 0);
}

Target::Turn Target::send_summaries() {
  was_summing_ = true;
  summarizer_.turn(*http_);
  publish_bounds();
  return Turn::Sent;
}

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
  if (has_later()) return Turn::Sent;
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

void Target::note_known(const Delivery& delivery) {
  if (!is_introduced_ || delivery.taken == 0) return;
  if (delivery.is_apart && !is_apart_)
    parts_.logger.warning(
        kLogName, settings_.name +
                      " knows another copy of this store, so what goes there is kept apart; "
                      "to do: edgecase forward origins there");
  is_apart_ = delivery.is_apart;
  if (is_known_) return;
  parts_.lineage.note_answered();
  if (auto line = parts_.lineage.header(true); line.ok()) {
    http_->set_origin(*std::move(line));
    is_known_ = true;
  }
}

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
  told_.kept = settled();
  told_.thinned_sent = thinned_.readings();
  told_.shown = settle_ns_ == 0 ? UINT64_MAX : shown_;
}

}  // namespace edgecase::forward
