// Measures what a feature costs: the daemon with it and without it, in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// What is sent, and what of it is counted.
struct DaemonLoad {
  std::string name;  // "ingest_16": begins the names of its figures
  const std::vector<std::string>* requests = nullptr;
  std::uint32_t clients = 1;
  double seconds = 0;             // at most; 0: until all is sent
  double amount_per_request = 1;  // of what the rate counts
};

// Daemons that differ in one thing, each under the same loads, taking turns: what else the machine
// does costs none of them more than the others.
class DaemonComparison {
 public:
  // The others are compared with the first one.
  explicit DaemonComparison(std::vector<std::string> variants);

  const std::vector<std::string>& variants() const { return variants_; }
  // Calls `turn` for each variant; another one comes first each time.
  Status take_turns(const std::function<Status(std::size_t variant)>& turn);
  // Sends the load to the variant's daemon, and remembers how fast that was.
  Result<LoadResult> measure(std::size_t variant, const DaemonProcess& daemon,
                             const Endpoint& endpoint, const DaemonLoad& load);

  // Medians of the rounds. The ratio is that of a round's rates: its loads were close in time.
  double rate(const std::string& load, std::size_t variant) const;
  double ratio(const std::string& load, std::size_t variant) const;
  // For each load: <load>_<variant>_per_second, _ratio, and of the daemon, a request: _cpu_us,
  // _syncs of its log, _waits of its threads.
  void add_figures(Report& report) const;

 private:
  struct Measured {
    std::vector<double> rates, cpu_us, syncs, waits;  // by round
  };
  const Measured& measured(const std::string& load, std::size_t variant) const;

  const std::vector<std::string> variants_;
  std::size_t first_ = 0;
  std::vector<std::string> loads_;  // in the order they came
  std::map<std::pair<std::string, std::size_t>, Measured> measured_;
};

}  // namespace edgecase::cli::bench
