// edgecase-bench-fleet [BOARDS]: what a fleet asks of its target while that is away, slow, and asks
// for patience; and what so many boards take of a cluster, with where each number comes from.
#include <cstdio>
#include <cstdlib>

#include "bench/fleet/fleet.h"

int main(int count, char** arguments) {
  edgecase::fleet::FleetOptions options;
  if (count > 1) {
    const double scale = std::strtod(arguments[1], nullptr) / static_cast<double>(options.boards);
    if (!(scale >= 1e-4) || scale > 100) {
      std::fputs("usage: edgecase-bench-fleet [BOARDS], 1 to 1000000\n", stderr);
      return 2;
    }
    options.boards = static_cast<std::size_t>(std::strtod(arguments[1], nullptr));
    options.requests_per_second *= scale;
    options.lines_per_second *= scale;
  }
  std::printf("%zu boards, %g readings/s each; the target takes %g requests/s, %g lines/s\n\n",
              options.boards, options.readings_per_second, options.requests_per_second,
              options.lines_per_second);
  std::printf("%-8s %7s %10s %10s %8s %8s %12s %12s %7s %7s\n", "phase", "s", "requests/s",
              "peak/s", "429/s", "lost/s", "lines/s", "waiting", "low", "high");
  for (const auto& each : run_fleet(options, edgecase::fleet::usual_phases())) {
    const double seconds = each.seconds > 0 ? each.seconds : 1;
    std::printf("%-8s %7.0f %10.0f %10.0f %8.0f %8.0f %12.0f %12.0f %7.2f %7.2f\n",
                each.name.c_str(), each.seconds, static_cast<double>(each.requests) / seconds,
                each.peak_per_second, static_cast<double>(each.refused) / seconds,
                static_cast<double>(each.given_up) / seconds, each.lines_per_second, each.waiting,
                each.low_share, each.high_share);
  }
  const auto boards = static_cast<double>(options.boards);
  const double readings = boards * options.readings_per_second;
  std::printf("\nconnections  %.0f: one a board, kept open\n", boards);
  std::printf("link         %.1f MB/s: %g bytes a line packed, the bound of the sender\n",
              readings * options.packed_line_bytes / 1e6, options.packed_line_bytes);
  std::printf("lines        %.0f a second: boards times readings\n", readings);
  return 0;
}
