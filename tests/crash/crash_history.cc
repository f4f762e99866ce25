#include "crash/crash_history.h"

#include <algorithm>

namespace edgecase::test {

void History::acknowledge(const Changes& changes, Durability durability) {
  refused_.clear();
  states_.push_back(states_.back());
  apply(changes, states_.back());
  if (durability == Durability::Sync) note_durable();
}

void History::refuse(const Changes& changes) {
  refused_.push_back(changes);
}

void History::forget_place(std::size_t place) {
  for (State& state : states_) state.places[place].fill(0);
  for (Changes& changes : refused_)
    std::erase_if(changes, [&](const Change& change) { return change.place == place; });
}

void History::hide(std::size_t place, std::size_t key) {
  for (State& state : states_) state.places[place][key] = 0;
  for (Changes& changes : refused_)
    std::erase_if(changes, [&](const Change& change) {
      return change.kind == Change::Kind::Put && change.place == place && change.key == key;
    });
}

bool History::is_refused(const State& found) const {
  return std::any_of(refused_.begin(), refused_.end(), [&](const Changes& changes) {
    State state = now();
    apply(changes, state);
    return state == found;
  });
}

std::string History::unexpected(const State& found) const {
  for (std::size_t i = 0; i < durable_; ++i) {
    if (states_[i] == found)
      return "the store went back to what it was " + std::to_string(durable_ - i) +
             " batches before the last durable one (" + difference(states_[durable_], found) + ")";
  }
  return "no batch left this (durable: " + difference(states_[durable_], found) +
         "; last: " + difference(now(), found) + ")";
}

std::string History::settle_after_power_cut(const State& found) {
  const auto first = states_.begin() + static_cast<std::ptrdiff_t>(durable_);
  if (std::find(first, states_.end(), found) == states_.end() && !is_refused(found))
    return unexpected(found);
  states_.assign(1, found);
  durable_ = 0;
  refused_.clear();
  return {};
}

std::string History::settle_after_kill(const State& found) {
  if (found != now()) {
    if (!is_refused(found)) return unexpected(found);
    states_.push_back(found);
  }
  refused_.clear();
  return {};
}

}  // namespace edgecase::test
