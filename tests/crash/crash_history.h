// The history of a store, and by it what the store may hold after a crash: the states after each
// batch that was answered with Ok, from the last one that is durable on, and after batches that
// were refused, of which the crash may bring back one. Namespaces come and go beside the batches,
// durably and at once.
#pragma once

#include <string>
#include <vector>

#include "crash/crash_state.h"

namespace edgecase::test {

class History {
 public:
  const State& now() const { return states_.back(); }

  void acknowledge(const Changes& changes, Durability durability);
  void refuse(const Changes& changes);
  // Everything acknowledged so far survives a power cut.
  void note_durable() { durable_ = states_.size() - 1; }
  // The namespace is gone, or a new one: it holds nothing, whatever batches say.
  void forget_place(std::size_t place);

  // The key has expired: it is not there and does not return, whatever batches say.
  void hide(std::size_t place, std::size_t key);

  // Empty, or why `found` may not be what a crash left. From then on it is what the store holds.
  std::string settle_after_power_cut(const State& found);
  // The same where all that was acknowledged must be there. The power may still go.
  std::string settle_after_kill(const State& found);

 private:
  bool is_refused(const State& found) const;
  std::string unexpected(const State& found) const;

  std::vector<State> states_{State{}};
  std::size_t durable_ = 0;
  std::vector<Changes> refused_;  // since the last that was acknowledged
};

}  // namespace edgecase::test
