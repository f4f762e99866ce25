#include "forward/pace.h"

#include "wire/time_text.h"

namespace edgecase::forward {

void Pace::sent(std::int64_t now_ns, std::int64_t took_ns, std::uint64_t bytes) {
  took_ns_ = took_ns;
  if (budget_ == 0) return;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(budget_);
  budget_until_ns_ =
      std::max(budget_until_ns_, now_ns) +
      static_cast<std::int64_t>(seconds * static_cast<double>(wire::kNanosecondsPerSecond));
}

void Pace::taken(std::int64_t took_ns) {
  backoff_.reset();
  // Many of one target end with the same share: steps up, halves down.
  if (took_ns > kSlowNs) return halve();
  lines_max_ = std::min(lines_max_ + kLinesStep, Batch::kLinesMax);
}

std::int64_t Pace::rest_ns(const Answer& answer) {
  switch (answer.verdict) {
    case Verdict::Taken:
    case Verdict::Stopped: return 0;
    case Verdict::Stale: return kStaleNs;
    case Verdict::Denied:
    case Verdict::Refused:
    case Verdict::Wrong: return kDeniedNs;
    case Verdict::Away:
    case Verdict::Later: break;
  }
  // Patience is asked for by the queue there, not for what one request holds.
  if (answer.verdict == Verdict::Away) halve();
  const std::int64_t back_off_ns =
      backoff_.next_ns(is_local_ ? net::Backoff::kLocalMaxNs : net::Backoff::kMaxNs);
  if (answer.verdict == Verdict::Away || !answer.retry_after_ns) return back_off_ns;
  // And not all at once who were told the same.
  const auto spread = static_cast<std::uint64_t>(*answer.retry_after_ns / 4 + 1);
  return std::max(net::Backoff::kLeastNs, *answer.retry_after_ns) +
         static_cast<std::int64_t>(random_.next() % spread);
}

}  // namespace edgecase::forward
