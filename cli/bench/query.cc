// query: a private daemon is given one series of a reading a second, and asked for windows, all of
// it and its last one. Medians over rounds; figures of HTTP as a client has them.
#include <algorithm>
#include <chrono>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/workloads.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualQueryReadings = 1'000'000;
constexpr std::uint64_t kSmokeQueryReadings = 10'000;
constexpr std::uint32_t kQueryLinesPerRequest = 5'000;
constexpr int kLastRequests = 1'000;
constexpr const char* kSelector = "ns=bench&select=node-0/node.temperature";

double ns_to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

struct Timed {
  double seconds = 0;
  double first_row_ms = 0;
  std::uint64_t rows = 0;
};

Result<Timed> timed_get(HttpClient& client, const std::string& path_and_query) {
  Timed timed;
  const std::string request = http_request("GET", path_and_query, "", "");
  const auto start = SteadyClock::now();
  EC_ASSIGN_OR_RETURN(
      const HttpAnswer answer, client.exchange(request, [&timed](std::string_view piece) {
        timed.rows += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
      }));
  timed.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  timed.first_row_ms = ns_to_ms(answer.first_body_ns);
  if (answer.status != 200) {
    return io_error("HTTP " + std::to_string(answer.status) + " to " + path_and_query);
  }
  if (timed.rows == 0) return not_found("no rows from " + path_and_query);
  return timed;
}

// The median of each figure over the rounds.
Result<Timed> median_get(HttpClient& client, const std::string& path_and_query,
                         std::uint32_t rounds) {
  std::vector<double> seconds, first_row_ms;
  Timed result;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    EC_TRY(check_interrupt());
    EC_ASSIGN_OR_RETURN(result, timed_get(client, path_and_query));
    seconds.push_back(result.seconds);
    first_row_ms.push_back(result.first_row_ms);
  }
  result.seconds = median(seconds);
  result.first_row_ms = median(first_row_ms);
  return result;
}

}  // namespace

Result<Report> run_query(const BenchOptions& options) {
  const std::uint64_t readings = options.num_or(kUsualQueryReadings, kSmokeQueryReadings);
  EC_ASSIGN_OR_RETURN(const auto daemon,
                      DaemonProcess::create({options.metadata, options.values, ""}));
  EC_TRY(daemon->start());
  EC_TRY(create_database(daemon->endpoint(), "bench"));
  SensorLineOptions lines;
  lines.lines = readings;
  lines.lines_per_body = kQueryLinesPerRequest;
  lines.devices = 1;
  lines.fields = 1;
  lines.seed = options.seed;
  EC_TRY(send_all(daemon->endpoint(), make_write_requests(make_sensor_bodies(lines), "bench"), 1, 0)
             .status());

  HttpClient client(daemon->endpoint());
  const std::uint32_t rounds = options.rounds_or(3) + 2;
  const std::string query = std::string(wire::routes::kQuery) + "?" + kSelector;
  Report report;
  report.workload = options.workload;
  report.value_size = 8;
  report.seed = options.seed;
  report.num = readings;
  report.user_bytes = readings * 16;

  EC_ASSIGN_OR_RETURN(const Timed mean,
                      median_get(client, query + "&every=1h&agg=mean&format=ndjson", rounds));
  report.seconds = mean.seconds;
  struct Question {
    const char *figure, *asked;
  };
  constexpr Question kQuestions[] = {{"min_hours_ms", "&every=1h&agg=min"},
                                     {"max_hours_ms", "&every=1h&agg=max"},
                                     {"count_hours_ms", "&every=1h&agg=count"},
                                     {"mean_10s_ms", "&every=10s&agg=mean"},
                                     {"json_ms", "&format=json"}};
  std::vector<std::pair<std::string, double>> more;
  for (const Question& each : kQuestions) {
    EC_ASSIGN_OR_RETURN(const Timed timed, median_get(client, query + each.asked, rounds));
    more.emplace_back(each.figure, timed.seconds * 1e3);
  }
  EC_ASSIGN_OR_RETURN(const Timed raw, median_get(client, query + "&format=csv", rounds));
  const std::string last = std::string(wire::routes::kLast) + "?" + kSelector + "&format=ndjson";
  for (int i = 0; i < kLastRequests; ++i) {
    EC_TRY(check_interrupt());
    EC_ASSIGN_OR_RETURN(const Timed one, timed_get(client, last));
    report.latency.add(static_cast<std::uint64_t>(one.seconds * 1e9));
  }
  report.peak_memory_bytes = usage_of(daemon->id()).peak_resident_bytes;
  report.more = {
      {"mean_rows", static_cast<double>(mean.rows)},
      {"mean_first_row_ms", mean.first_row_ms},
      {"mean_total_ms", mean.seconds * 1e3},
      {"csv_readings_per_second", static_cast<double>(readings) / raw.seconds},
      {"csv_first_row_ms", raw.first_row_ms},
      {"last_p50_ms", ns_to_ms(static_cast<std::int64_t>(report.latency.percentile_ns(0.5)))},
      {"last_p99_ms", ns_to_ms(static_cast<std::int64_t>(report.latency.percentile_ns(0.99)))}};
  for (auto& [figure, value] : more) report.more.emplace_back(std::move(figure), value);
  return report;
}

}  // namespace edgecase::cli::bench
