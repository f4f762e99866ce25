// A fleet of forwarders and their target, simulated: boards with the daemon's own pacing, back-off,
// batch limits and courier, on a clock and links of this program. What a target goes through is a
// list of phases. A seed decides all; one thread.
//
// The target takes requests in the order in which they arrive, one after another: each costs a part
// of `requests_per_second` and, by its lines, of `lines_per_second`. Who waits longer than a client
// does is gone when it is done: that work was for nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace edgecase::fleet {

struct FleetOptions {
  std::size_t boards = 10'000;
  double readings_per_second = 100;                                   // of each board
  double requests_per_second = 20'000, lines_per_second = 3'000'000;  // that the target takes
  double line_bytes = 60, packed_line_bytes = 12;                     // as text, and on the link
  std::int64_t link_ns = 20'000'000;                                  // there and back
  std::uint64_t seed = 1;
};

struct FleetPhase {
  enum class Target : unsigned char { Well, Away, Slow, AsksForPatience };
  const char* name;
  Target target = Target::Well;
  std::int64_t duration_ns = 0;
};

// The target: well, away for an hour, slow (a tenth), patience asked for (429), and well again.
std::vector<FleetPhase> usual_phases();

struct PhaseFigures {
  std::string name;
  double seconds = 0;
  std::uint64_t requests = 0, refused = 0, given_up = 0;  // that arrived; answered 429; waited for
                                                          // too long
  double peak_per_second = 0;      // requests that arrived, the worst ten seconds
  double capacity_per_second = 0;  // that the target takes in this phase
  double lines_per_second = 0;     // that counted
  std::uint64_t repeated = 0;      // lines that were taken and went again
  double waiting = 0;              // readings of all boards, at the end
  // Lines of a board by the average of all: of the 20th from below, and from above.
  double low_share = 0, high_share = 0;
};

// After the phases the fleet goes on until every board has sent all: a last row, "drained".
std::vector<PhaseFigures> run_fleet(const FleetOptions& options,
                                    const std::vector<FleetPhase>& phases);

}  // namespace edgecase::fleet
