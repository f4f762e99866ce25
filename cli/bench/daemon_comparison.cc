#include "bench/daemon_comparison.h"

#include <algorithm>

#include "bench/interrupt.h"
#include "bench/median.h"
#include "bench/process_usage.h"

namespace edgecase::cli::bench {

DaemonComparison::DaemonComparison(std::vector<std::string> variants)
    : variants_(std::move(variants)) {}

Status DaemonComparison::take_turns(const std::function<Status(std::size_t)>& turn) {
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    EC_TRY(check_interrupt());
    EC_TRY(turn((first_ + i) % variants_.size()));
  }
  ++first_;
  return ok();
}

Result<LoadResult> DaemonComparison::measure(std::size_t variant, const DaemonProcess& daemon,
                                             const Endpoint& endpoint, const DaemonLoad& load) {
  const std::uint64_t cpu_before_ns = usage_of(daemon.id()).cpu_ns;
  EC_ASSIGN_OR_RETURN(LoadResult result,
                      send_all(endpoint, *load.requests, load.clients, load.seconds));
  const auto done = static_cast<double>(result.requests);
  const std::uint64_t cpu_ns = usage_of(daemon.id()).cpu_ns - cpu_before_ns;
  if (std::find(loads_.begin(), loads_.end(), load.name) == loads_.end())
    loads_.push_back(load.name);
  Measured& measured = measured_[{load.name, variant}];
  measured.rates.push_back(done * load.amount_per_request / result.seconds);
  measured.cpu_us.push_back(static_cast<double>(cpu_ns) / 1'000 / std::max(done, 1.0));
  return result;
}

const DaemonComparison::Measured& DaemonComparison::measured(const std::string& load,
                                                             std::size_t variant) const {
  static const Measured nothing;
  const auto found = measured_.find({load, variant});
  return found == measured_.end() ? nothing : found->second;
}

double DaemonComparison::rate(const std::string& load, std::size_t variant) const {
  return median(measured(load, variant).rates);
}

double DaemonComparison::ratio(const std::string& load, std::size_t variant) const {
  const std::vector<double>& first = measured(load, 0).rates;
  const std::vector<double>& other = measured(load, variant).rates;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    if (first[i] > 0) ratios.push_back(other[i] / first[i]);
  }
  return median(std::move(ratios));
}

void DaemonComparison::add_figures(Report& report) const {
  for (const std::string& load : loads_) {
    for (std::size_t variant = 0; variant < variants_.size(); ++variant) {
      const std::string name = load + "_" + variants_[variant];
      report.more.emplace_back(name + "_per_second", rate(load, variant));
      if (variant != 0) report.more.emplace_back(name + "_ratio", ratio(load, variant));
      report.more.emplace_back(name + "_cpu_us", median(measured(load, variant).cpu_us));
    }
  }
}

}  // namespace edgecase::cli::bench
