// Target, as it sends again what is kept aside: what it refused, and what it was found to lack.
#include <algorithm>
#include <utility>

#include "forward/target.h"

namespace edgecase::forward {

void Target::end_again() {
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

}  // namespace edgecase::forward
