#include "bench/daemon_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/histogram.h"
#include "bench/interrupt.h"
#include "bench/process_usage.h"
#include "bench/raw_connection.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

struct Counts {
  ProcessUsage usage;
  double syncs = 0;
};

Result<Counts> counts_of(const DaemonProcess& daemon) {
  HttpClient client(daemon.endpoint());
  EC_ASSIGN_OR_RETURN(const std::string text, client.get(wire::routes::kStatus));
  const auto status = nlohmann::json::parse(text, nullptr, false);
  const auto syncs = nlohmann::json::json_pointer("/wal/syncs");
  if (!status.is_object() || !status.contains(syncs)) {
    return io_error("the daemon's status tells no syncs");
  }
  return Counts{usage_of(daemon.id()), status.at(syncs).get<double>()};
}

}  // namespace

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
  Counts before;
  const auto begin = [&before, &daemon]() -> Status {
    EC_ASSIGN_OR_RETURN(before, counts_of(daemon));
    return ok();
  };
  EC_ASSIGN_OR_RETURN(LoadResult result,
                      send_all(endpoint, *load.requests, load.clients, load.seconds, begin));
  EC_ASSIGN_OR_RETURN(const Counts after, counts_of(daemon));
  const auto done = static_cast<double>(std::max<std::uint64_t>(result.requests, 1));
  const auto a_request = [done](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - std::min(from, to)) / done;
  };
  if (std::find(loads_.begin(), loads_.end(), load.name) == loads_.end())
    loads_.push_back(load.name);
  Measured& measured = measured_[{load.name, variant}];
  measured.rates.push_back(static_cast<double>(result.requests) * load.amount_per_request /
                           result.seconds);
  measured.cpu_us.push_back(a_request(before.usage.cpu_ns, after.usage.cpu_ns) / 1'000);
  measured.waits.push_back(a_request(before.usage.waits, after.usage.waits));
  measured.syncs.push_back((after.syncs - before.syncs) / done);
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
      report.more.emplace_back(name + "_syncs", median(measured(load, variant).syncs));
      report.more.emplace_back(name + "_waits", median(measured(load, variant).waits));
    }
  }
}

}  // namespace edgecase::cli::bench
