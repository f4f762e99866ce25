// ingest-http: durable line protocol into a private daemon, the stream of TSBS's trucks (loads.h),
// 1,000 lines a request, two connections. edgecase-bench-peers sends the same requests to a private
// InfluxDB as well, taking turns.
#include "bench/loads.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/machine.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualLines = 200'000;
constexpr std::uint64_t kSmokeLines = 2'000;
constexpr std::uint32_t kHttpLinesPerRequest = 1'000;
constexpr std::uint32_t kConnections = 2;
constexpr const char* kHttpDatabase = "bench";

struct HttpRun {
  LoadResult load;
  std::uint64_t lines = 0;
  std::uint64_t readings = 0;
  std::uint64_t table_bytes = 0;  // of EdgeCase
  ProcessUsage usage;
};

double lines_per_second(const HttpRun& run) {
  return static_cast<double>(run.lines) / run.load.seconds;
}

// The server's processor time, kernel included: a figure that other work on the machine disturbs
// little.
double cpu_us_per_reading(const HttpRun& run) {
  return static_cast<double>(run.usage.cpu_ns) / 1000 / static_cast<double>(run.readings);
}

class IngestHttp {
 public:
  IngestHttp(const BenchOptions& options, StartServer* start_influx)
      : options_(options), start_influx_(start_influx) {
    lines_.lines = options.num_or(kUsualLines, kSmokeLines);
    lines_.lines_per_body = options.batch_or(kHttpLinesPerRequest);
    lines_.seed = options.seed;
    const TruckLines made = make_truck_lines(lines_);
    readings_per_line_ = static_cast<double>(made.fields) / static_cast<double>(lines_.lines);
    requests_ = make_write_requests(made.bodies, kHttpDatabase);
  }

  Result<Report> run() {
    const bool beside_influx = start_influx_ != nullptr && options_.has_peer("influxdb");
    const std::uint32_t rounds = options_.rounds_or(3);
    std::vector<HttpRun> own;
    std::vector<double> influx, influx_cpu_us;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      EC_ASSIGN_OR_RETURN(HttpRun run, into_edgecase());
      own.push_back(std::move(run));
      if (!beside_influx) continue;
      EC_ASSIGN_OR_RETURN(run, into_influx());
      influx.push_back(lines_per_second(run));
      influx_cpu_us.push_back(cpu_us_per_reading(run));
    }
    std::sort(own.begin(), own.end(), [](const HttpRun& a, const HttpRun& b) {
      return lines_per_second(a) < lines_per_second(b);
    });
    Report report = report_of(own[(own.size() - 1) / 2]);
    report.more.emplace_back("rounds", rounds);
    if (beside_influx) {
      report.more.emplace_back("influxdb_ops_per_second", median(influx));
      report.more.emplace_back("influxdb_cpu_us_per_reading", median(influx_cpu_us));
      report.more.emplace_back("ratio_to_influxdb", report.ops_per_second() / median(influx));
    }
    return report;
  }

 private:
  Result<HttpRun> into(const Endpoint& endpoint, pid_t server) {
    EC_TRY(create_database(endpoint, kHttpDatabase));
    const ProcessUsage before = usage_of(server);
    HttpRun run;
    EC_ASSIGN_OR_RETURN(run.load, send_all(endpoint, requests_, options_.threads_or(kConnections),
                                           options_.seconds));
    run.lines = std::min<std::uint64_t>(run.load.requests * lines_.lines_per_body, lines_.lines);
    run.readings = static_cast<std::uint64_t>(static_cast<double>(run.lines) * readings_per_line_);
    run.usage = usage_of(server);
    run.usage.written_bytes -= before.written_bytes;
    run.usage.cpu_ns -= before.cpu_ns;
    return run;
  }

  Result<HttpRun> into_edgecase() {
    EC_ASSIGN_OR_RETURN(const auto daemon,
                        DaemonProcess::create({.metadata_parent = options_.metadata,
                                               .values_parent = options_.values,
                                               .broker = "",
                                               .transport = Transport::Tcp}));
    EC_TRY(daemon->start());
    // As InfluxDB is reached.
    EC_ASSIGN_OR_RETURN(const Endpoint endpoint, daemon->tcp_endpoint());
    EC_ASSIGN_OR_RETURN(HttpRun run, into(endpoint, daemon->id()));
    daemon->stop();
    EC_ASSIGN_OR_RETURN(run.table_bytes, table_bytes(daemon->directories()));
    return run;
  }

  Result<HttpRun> into_influx() {
    EC_ASSIGN_OR_RETURN(const auto influx, start_influx_(options_.metadata));
    return into(influx->endpoint(), influx->id());
  }

  Report report_of(HttpRun& run) const {
    Report report;
    report.workload = options_.workload;
    report.num = run.lines;
    report.value_size = 8;
    report.threads = options_.threads_or(kConnections);
    report.sync = true;
    report.seed = options_.seed;
    report.seconds = run.load.seconds;
    report.user_bytes = run.load.bytes;
    report.latency = run.load.latency;
    report.peak_memory_bytes = run.usage.peak_resident_bytes;
    const auto bytes = static_cast<double>(run.load.bytes);
    report.write_amplification = static_cast<double>(run.usage.written_bytes) / bytes;
    report.more.emplace_back("readings_per_second", report.ops_per_second() * readings_per_line_);
    report.more.emplace_back("server_cpu_us_per_reading", cpu_us_per_reading(run));
    report.more.emplace_back("stored_mb", static_cast<double>(run.table_bytes) / 1e6);
    return report;
  }

  BenchOptions options_;
  StartServer* const start_influx_;
  TruckLineOptions lines_;
  double readings_per_line_ = 0;
  std::vector<std::string> requests_;
};

}  // namespace

Result<Report> run_ingest_http(const BenchOptions& options) {
  return ingest_http_beside(nullptr, options);
}

Result<Report> ingest_http_beside(StartServer* start_influx, const BenchOptions& options) {
  return IngestHttp(options, start_influx).run();
}

namespace {

constexpr std::int64_t kTickNs = 10'000'000'000;
constexpr std::size_t kBatchLines = 10;

// Chances in a thousand.
constexpr std::uint64_t kBatchMissing = 10, kBatchWaits = 50, kBatchReturns = 500;
constexpr std::uint64_t kLineMissing = 100, kLineWaits = 300, kLineReturns = 500;
constexpr std::uint64_t kLacksField = 100, kLacksTag = 10;
constexpr std::uint64_t kLoadChanges = 50;

// Walks are counted in hundred-thousandths.
constexpr std::int64_t kUnit = 100'000;

struct WalkRule {
  const char* name;
  std::int64_t min, max;
  std::int64_t step_min, step_max;      // from one tick to the next
  std::int64_t start_min, start_range;  // where it begins
  int digits;                           // behind the point, as many as are not zero
};
constexpr WalkRule kReadings[] = {
    {"latitude", -90 * kUnit, 90 * kUnit, -500, 500, 0, 90 * kUnit, 5},
    {"longitude", -180 * kUnit, 180 * kUnit, -500, 500, 0, 180 * kUnit, 5},
    {"elevation", 0, 5'000 * kUnit, -10 * kUnit, 10 * kUnit, 0, 500 * kUnit, 0},
    {"velocity", 0, 100 * kUnit, -10 * kUnit, 10 * kUnit, 0, 1, 0},
    {"heading", 0, 360 * kUnit, -5 * kUnit, 5 * kUnit, 0, 360 * kUnit, 0},
    {"grade", 0, 100 * kUnit, -5 * kUnit, 5 * kUnit, 0, 1, 0},
    {"fuel_consumption", 0, 50 * kUnit, -5 * kUnit, 5 * kUnit, 25 * kUnit, 1, 1},
};
constexpr std::size_t kReadingCount = std::size(kReadings);
constexpr const char* kDiagnostics[] = {"fuel_state", "current_load", "status"};
constexpr std::size_t kDiagnosticCount = std::size(kDiagnostics);
constexpr std::int64_t kFuelStep = 100, kLoadMax = 5'000, kStatusMax = 5 * kUnit;

struct Model {
  const char* name;
  const char* capacities[3];  // load, fuel, and what it takes of that
};
constexpr Model kModels[] = {{"F-150", {"2000", "200", "15"}},
                             {"G-2000", {"5000", "300", "19"}},
                             {"H-2", {"1500", "150", "12"}}};
constexpr const char* kCapacityNames[] = {"load_capacity", "fuel_capacity",
                                          "nominal_fuel_consumption"};
constexpr const char* kTagNames[] = {"name", "fleet", "driver", "model", "device_version"};
constexpr std::size_t kTagCount = std::size(kTagNames);
constexpr std::size_t kCapacityCount = std::size(kCapacityNames);
constexpr const char* kFleets[] = {"East", "West", "North", "South"};
constexpr const char* kDrivers[] = {"Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"};
constexpr const char* kVersions[] = {"v1.0", "v1.5", "v2.0", "v2.3"};

void append_whole(std::string& out, std::int64_t number) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

// Appends a number of kUnit, cut to some digits, without zeros at the end.
void append_cut(std::string& out, std::int64_t number, int digits) {
  std::int64_t cut = 1;
  for (int i = digits; i < 5; ++i) cut *= 10;
  std::int64_t last = number >= 0 ? number / cut : -((cut - 1 - number) / cut);
  if (last < 0) out += '-';
  last = last < 0 ? -last : last;
  while (digits > 0 && last % 10 == 0) {
    last /= 10;
    --digits;
  }
  std::string text = std::to_string(last);
  const auto behind = static_cast<std::size_t>(digits);
  if (text.size() <= behind) text.insert(0, behind + 1 - text.size(), '0');
  out.append(text, 0, text.size() - behind);
  if (digits > 0) out.append(1, '.').append(text, text.size() - behind);
}

struct TruckLine {
  std::size_t truck = 0;
  bool is_diagnostics = false;
  std::int64_t time_ns = 0;
  std::array<std::int64_t, kReadingCount> values{};
  std::optional<std::size_t> lacks_field, lacks_tag;
};

struct Truck {
  std::array<const char*, kTagCount> tags{};  // the first is its number
  const Model* model = nullptr;
  std::array<std::int64_t, kReadingCount> readings{};
  std::array<std::int64_t, kDiagnosticCount> diagnostics{};
};

class TruckStream {
 public:
  explicit TruckStream(const TruckLineOptions& options)
      : random_(options.seed), time_ns_(options.start_ns) {
    for (std::uint32_t i = 0; i < options.trucks; ++i) trucks_.push_back(make_truck());
  }

  // As they arrive.
  TruckLine next() {
    while (batch_.empty()) batch_ = next_batch();
    TruckLine line = batch_.front();
    batch_.pop_front();
    return line;
  }
  void append(const TruckLine& line, std::string& out);
  std::uint64_t fields() const { return fields_; }
  std::uint64_t drawn() const { return drawn_; }

 private:
  using Batch = std::deque<TruckLine>;

  bool chance(std::uint64_t of_thousand) { return random_.below(1'000) < of_thousand; }
  template <typename Choices>
  const auto& one_of(const Choices& choices) {
    return choices[random_.below(std::size(choices))];
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  Truck make_truck();
  void advance(Truck& truck);
  TruckLine draw();
  Batch next_batch();
  Batch make_batch();
  void append_tags(const TruckLine& line, std::string& out) const;

  SeededRandom random_;
  std::int64_t time_ns_;
  std::vector<Truck> trucks_;
  std::size_t next_truck_ = 0;
  bool at_diagnostics_ = false;
  std::deque<Batch> late_batches_;
  Batch late_lines_;
  Batch batch_;
  std::uint64_t fields_ = 0, drawn_ = 0;
};

Truck TruckStream::make_truck() {
  Truck truck;
  truck.model = &one_of(kModels);
  truck.tags = {"truck_", one_of(kFleets), one_of(kDrivers), truck.model->name, one_of(kVersions)};
  for (std::size_t i = 0; i < kReadingCount; ++i) {
    const WalkRule& rule = kReadings[i];
    truck.readings[i] = between(rule.start_min, rule.start_min + rule.start_range - 1);
  }
  truck.diagnostics = {kUnit, between(0, kLoadMax) * kUnit, 0};
  return truck;
}

void TruckStream::advance(Truck& truck) {
  for (std::size_t i = 0; i < kReadingCount; ++i) {
    const WalkRule& rule = kReadings[i];
    truck.readings[i] =
        std::clamp(truck.readings[i] + between(rule.step_min, rule.step_max), rule.min, rule.max);
  }
  auto& [fuel, load, status] = truck.diagnostics;
  fuel -= between(0, kFuelStep);
  if (fuel <= 0) fuel = kUnit;  // filled up
  if (chance(kLoadChanges)) load = between(0, kLoadMax) * kUnit;
  // About normal, of deviation 1.
  std::int64_t step = -6 * kUnit;
  for (int i = 0; i < 12; ++i) step += between(0, kUnit);
  status = std::clamp(status + step, std::int64_t{0}, kStatusMax);
}

// The next line that a truck makes.
TruckLine TruckStream::draw() {
  if (next_truck_ == trucks_.size()) {
    next_truck_ = 0;
    at_diagnostics_ = !at_diagnostics_;
    if (!at_diagnostics_) {
      time_ns_ += kTickNs;
      for (Truck& truck : trucks_) advance(truck);
    }
  }
  ++drawn_;
  TruckLine line;
  line.truck = next_truck_++;
  line.is_diagnostics = at_diagnostics_;
  line.time_ns = time_ns_;
  const Truck& truck = trucks_[line.truck];
  if (at_diagnostics_) {
    std::copy(truck.diagnostics.begin(), truck.diagnostics.end(), line.values.begin());
  } else {
    line.values = truck.readings;
  }
  return line;
}

// Empty where it is missing or waits.
TruckStream::Batch TruckStream::next_batch() {
  if (chance(kBatchMissing)) {
    for (std::size_t i = 0; i < kBatchLines; ++i) draw();
    return {};
  }
  const bool waits = chance(kBatchWaits);
  if (!late_batches_.empty() && chance(kBatchReturns)) {
    Batch batch = std::move(late_batches_.front());
    late_batches_.pop_front();
    return batch;
  }
  Batch batch = make_batch();
  if (!waits) return batch;
  late_batches_.push_back(std::move(batch));
  return {};
}

TruckStream::Batch TruckStream::make_batch() {
  Batch batch;
  for (std::size_t taken = 0; batch.size() < kBatchLines; ++taken) {
    const bool may_fail = taken < kBatchLines;
    const bool returns = may_fail && !late_lines_.empty() && chance(kLineReturns);
    TruckLine line;
    if (returns) {
      line = late_lines_.front();
      late_lines_.pop_front();
    } else {
      line = draw();
    }
    if (may_fail && chance(kLineMissing)) continue;
    if (may_fail && chance(kLineWaits)) {
      late_lines_.push_back(line);
      continue;
    }
    const std::size_t fields = line.is_diagnostics ? kDiagnosticCount : kReadingCount;
    if (may_fail && chance(kLacksField)) line.lacks_field = random_.below(fields);
    if (may_fail && chance(kLacksTag)) line.lacks_tag = random_.below(kTagCount + kCapacityCount);
    batch.push_back(line);
  }
  return batch;
}

void TruckStream::append_tags(const TruckLine& line, std::string& out) const {
  out += line.is_diagnostics ? "diagnostics" : "readings";
  for (std::size_t i = 0; i < kTagCount; ++i) {
    if (line.lacks_tag == i) continue;
    out.append(1, ',').append(kTagNames[i]).append(1, '=').append(trucks_[line.truck].tags[i]);
    if (i == 0) append_whole(out, static_cast<std::int64_t>(line.truck));
  }
}

void TruckStream::append(const TruckLine& line, std::string& out) {
  append_tags(line, out);
  char separator = ' ';
  const auto begin_field = [&](const char* name) {
    out.append(1, std::exchange(separator, ',')).append(name).append(1, '=');
    ++fields_;
  };
  for (std::size_t i = 0; i < kCapacityCount; ++i) {
    if (line.lacks_tag == kTagCount + i) continue;
    begin_field(kCapacityNames[i]);
    out += trucks_[line.truck].model->capacities[i];
  }
  const std::size_t fields = line.is_diagnostics ? kDiagnosticCount : kReadingCount;
  for (std::size_t i = 0; i < fields; ++i) {
    if (line.lacks_field == i) continue;
    begin_field(line.is_diagnostics ? kDiagnostics[i] : kReadings[i].name);
    const int digits = line.is_diagnostics ? (i == 0 ? 1 : 0) : kReadings[i].digits;
    append_cut(out, line.values[i], digits);
    if (line.is_diagnostics && i == 2) out += 'i';
  }
  out += ' ';
  append_whole(out, line.time_ns);
  out += '\n';
}

}  // namespace

TruckLines make_truck_lines(const TruckLineOptions& options) {
  TruckStream stream(options);
  TruckLines made;
  for (std::uint64_t line = 0; line < options.lines; ++line) {
    if (line % options.lines_per_body == 0) made.bodies.emplace_back();
    stream.append(stream.next(), made.bodies.back());
  }
  made.fields = stream.fields();
  made.drawn = stream.drawn();
  return made;
}

}  // namespace edgecase::cli::bench
