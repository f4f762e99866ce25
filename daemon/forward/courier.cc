#include "forward/courier.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <span>

#include "wire/decimal.h"
#include "wire/time_text.h"

namespace edgecase::forward {

bool Courier::takes_probe() {
  return !probe_.empty() && carrier_.carry(probe_database_, probe_, 1).verdict == Verdict::Taken;
}

Delivery Courier::deliver(const Batch& batch, const std::function<bool()>& still_holds) {
  Delivery delivery;
  std::size_t in_row = 0;     // requests that were refused since one was taken
  bool is_confirmed = false;  // it takes something
  const auto refuses_all = [&] {
    // The line that was taken may be erased since.
    if (!still_holds()) {
      delivery.last = {.verdict = Verdict::Stale};
      return true;
    }
    if (takes_probe()) {
      in_row = 0;
      is_confirmed = true;
      return false;
    }
    delivery.refuses_all = true;
    return true;
  };
  for (const Batch::Part& part : batch.parts) {
    // The larger pieces first: soon something is taken.
    std::deque<std::pair<std::size_t, std::size_t>> pieces{{part.begin, part.end}};
    while (!pieces.empty()) {
      const auto [begin, end] = pieces.front();
      pieces.pop_front();
      if (!still_holds()) {
        delivery.last = {.verdict = Verdict::Stale};
        return delivery;
      }
      delivery.last = carrier_.carry(part.database, batch.body_of(begin, end), end - begin);
      if (delivery.last.verdict == Verdict::Taken) {
        in_row = 0;
        is_confirmed = true;
        delivery.taken += end - begin;
        delivery.not_kept += delivery.last.not_kept;
        delivery.is_apart = delivery.is_apart || delivery.last.is_apart;
        if (batch.text_of(end - 1).size() <= kProbeMaxBytes) {
          probe_ = batch.body_of(end - 1, end);
          probe_database_ = part.database;
        }
        continue;
      }
      if (delivery.last.verdict != Verdict::Refused) return delivery;
      if (++in_row > kRefusedInRowMax && refuses_all()) return delivery;
      if (end - begin == 1) {
        delivery.refused.emplace_back(begin, delivery.last.status);
        delivery.refused_why = delivery.last.why;
      } else {
        const std::size_t middle = begin + (end - begin) / 2;
        pieces.emplace_back(begin, middle);
        pieces.emplace_back(middle, end);
      }
    }
  }
  if (!delivery.refused.empty() && !is_confirmed && refuses_all()) return delivery;
  delivery.last.verdict = Verdict::Taken;
  return delivery;
}

namespace {

// Whether a step leads there.
bool has_step(const Batch::Line& from, const Batch::Line& to) {
  std::int64_t step_ns = 0;
  return !__builtin_sub_overflow(to.key.time_ns, from.key.time_ns, &step_ns);
}

// One object of the readings of a column; of one reading it is as any other.
void append_column(const Batch& batch, const Batch::Column& column,
                   std::span<const std::size_t> lines, std::string& body) {
  body += column.head;
  wire::append_time(batch.lines[lines.front()].key.time_ns, body);
  const char* before = "\",\"steps\":[";
  for (std::size_t i = 1; i < lines.size(); ++i) {
    body += before;
    body +=
        std::to_string(batch.lines[lines[i]].key.time_ns - batch.lines[lines[i - 1]].key.time_ns);
    before = ",";
  }
  before = lines.size() == 1 ? "\",\"value\":" : "],\"values\":[";
  for (const std::size_t line : lines) {
    body += before;
    body += batch.text_of(line).substr(0, batch.text_of(line).size() - 1);
    before = ",";
  }
  if (lines.size() > 1) body += ']';
  if (column.is_int) body += ",\"type\":\"int\"";
  body += "}\n";
}

}  // namespace

std::string Batch::body_of(std::size_t begin, std::size_t end) const {
  std::string body;
  if (begin == end) return body;
  std::vector<std::size_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  // In windows the columns of several series take turns.
  std::stable_sort(numbers.begin(), numbers.end(), [this](std::size_t a, std::size_t b) {
    return lines[a].column < lines[b].column;
  });
  for (std::size_t i = 0; i < numbers.size();) {
    const std::uint32_t column = lines[numbers[i]].column;
    std::size_t upto = i + 1;
    if (column == kWhole) {
      body += text_of(numbers[i]);
    } else {
      while (upto < numbers.size() && lines[numbers[upto]].column == column &&
             has_step(lines[numbers[upto - 1]], lines[numbers[upto]])) {
        ++upto;
      }
      append_column(*this, columns[column], std::span(numbers).subspan(i, upto - i), body);
    }
    i = upto;
  }
  return body;
}

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
