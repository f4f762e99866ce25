// Brings a batch to a target: what is refused is halved, down to the line that is wrong, which
// costs itself alone. A target that refuses everything is told from one that refuses a line: a line
// that it took before must be taken again. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "forward/answer.h"
#include "forward/batch.h"

namespace edgecase::forward {

struct Delivery {
  Answer last;                 // Taken: all of it is there, but for what was refused
  std::uint64_t taken = 0;     // lines
  std::uint64_t not_kept = 0;  // of these
  bool is_apart = false;       // as of Answer
  std::vector<std::pair<std::size_t, int>> refused;  // lines, by number, and the status for each
  std::string refused_why;                           // what was said of the last of them
  bool refuses_all = false;                          // with Refused: whatever is sent
};

class Courier {
 public:
  // Requests in a row that are refused before a line that was taken is tried again.
  static constexpr std::size_t kRefusedInRowMax = 64;
  static constexpr std::size_t kProbeMaxBytes = 16u << 10;

  explicit Courier(Carrier& carrier) : carrier_(carrier) {}

  // `still_holds` is asked before each request: whether all of the batch may be sent still.
  Delivery deliver(const Batch& batch, const std::function<bool()>& still_holds);
  // The line that was taken last does not stay in memory.
  void forget() { probe_.clear(); }

 private:
  bool takes_probe();

  Carrier& carrier_;
  std::string probe_, probe_database_;  // a line that was taken; empty: none yet
};

}  // namespace edgecase::forward
