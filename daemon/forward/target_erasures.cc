// Target, as it passes erasures on.
#include "forward/target.h"

#include <utility>

namespace edgecase::forward {
namespace {

constexpr const char* kErasing = "forward";

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
    parts_.logger.warning(kErasing, "the fences of erasure " + std::to_string(number) +
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
    parts_.logger.warning(kErasing, "erasure " + std::to_string(number) +
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

}  // namespace edgecase::forward
