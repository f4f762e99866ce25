// Target, as it sends again what is kept aside: what it refused, and what it was found to lack; and
// as it passes rules of retention on.
#include <algorithm>
#include <utility>

#include "forward/target.h"

namespace edgecase::forward {

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
    parts_.logger.log_keyed(observe::LogLevel::Warning, "forward", "rules " + settings_.name,
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

}  // namespace edgecase::forward
