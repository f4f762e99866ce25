#include "forward/courier.h"

#include <deque>

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

}  // namespace edgecase::forward
