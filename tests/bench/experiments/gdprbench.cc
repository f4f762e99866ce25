// gdprbench: the roles of GDPRbench on a private daemon over HTTP, every answer compared with a
// model; and what all features of protection cost together.
#include "bench/experiments/experiments.h"

#include <cstdio>

#include "bench/experiments/feature_cost.h"
#include "bench/experiments/gdpr_run.h"
#include "output.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualRecords = 100'000;
constexpr std::uint64_t kUsualOperations = 10'000;  // of each role
constexpr std::uint64_t kSmokeRecords = 2'000;
constexpr std::uint64_t kSmokeOperations = 200;
constexpr std::uint64_t kRecordsMax = 100'000'000;
constexpr std::uint32_t kClients = 4;
constexpr std::uint32_t kPage = 10;
constexpr std::uint64_t kSlope = 10;
constexpr std::uint32_t kFeatureClients = 16;
constexpr std::uint64_t kFeatureRecords = 10'000;
constexpr std::uint64_t kFeatureOperations = 50'000;

void add(Report& report, const std::string& name, double value) {
  report.more.emplace_back(name, value);
}

// `prefix` tells figures of the larger store from those of the usual one.
void add_figures(Report& report, const std::string& prefix, const GdprFigures& figures,
                 std::uint64_t records) {
  if (!figures.mistake.empty())
    print_error("edgecase bench gdprbench: wrong answer: %s\n", figures.mistake.c_str());
  add(report, prefix + "records", static_cast<double>(records));
  add(report, prefix + "correct_percent", figures.correct_percent());
  add(report, prefix + "load_seconds", figures.load_seconds);
  add(report, prefix + "expired_unreadable_ms", figures.expired_ms);
  for (const GdprFigures::Role& role : figures.roles) {
    add(report, prefix + role.name + "_seconds", role.seconds);
    if (role.gone_seconds > 0) add(report, prefix + role.name + "_gone_seconds", role.gone_seconds);
  }
  add(report, prefix + "space_factor", figures.space_factor());
  add(report, prefix + "repeats", static_cast<double>(figures.repeats));
}

}  // namespace

Result<Report> run_gdprbench(const BenchOptions& options) {
  GdprSize size;
  size.records = options.num_or(kUsualRecords, kSmokeRecords);
  size.operations = options.operations != 0 ? options.operations
                    : options.smoke         ? kSmokeOperations
                                            : kUsualOperations;
  size.clients = options.threads_or(kClients);
  size.page = options.batch_or(kPage);
  if (size.records > kRecordsMax || size.operations > kRecordsMax)
    return invalid_argument("gdprbench takes at most " + std::to_string(kRecordsMax) + " records");

  EC_ASSIGN_OR_RETURN(const GdprFigures figures, run_gdpr_roles(options, size));
  Report report;
  report.workload = options.workload;
  report.num = figures.operations;
  report.value_size = 100;
  report.threads = size.clients;
  report.sync = true;
  report.seed = options.seed;
  report.seconds = figures.seconds();
  report.user_bytes = figures.user_bytes;
  report.latency = figures.latency;
  report.peak_memory_bytes = figures.peak_memory_bytes;
  add_figures(report, "", figures, size.records);
  add(report, "operations_digest", static_cast<double>(figures.digest));

  if (options.slope) {
    GdprSize larger = size;
    larger.records *= kSlope;
    EC_ASSIGN_OR_RETURN(const GdprFigures slow, run_gdpr_roles(options, larger));
    add_figures(report, "larger_", slow, larger.records);
    for (std::size_t i = 0; i < figures.roles.size(); ++i) {
      add(report, figures.roles[i].name + "_seconds_ratio",
          slow.roles[i].seconds / figures.roles[i].seconds);
    }
    add(report, "seconds_ratio", slow.seconds() / figures.seconds());
  }

  EC_ASSIGN_OR_RETURN(const FeatureCost cost,
                      measure_feature_cost(options, std::min(kFeatureRecords, size.records),
                                           options.smoke ? kSmokeOperations : kFeatureOperations,
                                           options.smoke ? size.clients : kFeatureClients));
  add(report, "plain_per_second", cost.plain_per_second);
  add(report, "features_per_second", cost.features_per_second);
  add(report, "features_ratio", cost.features_ratio);
  add(report, "everything_per_second", cost.everything_per_second);
  add(report, "everything_ratio", cost.everything_ratio);
  return report;
}

}  // namespace edgecase::cli::bench
