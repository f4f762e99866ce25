#include "bench/experiments/papers.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "bench/experiments/experiments.h"
#include "bench/processes.h"
#include "edgecase/machine.h"
#include "output.h"
#include "wire/contract.h"
#include "wire/reading_format.h"

namespace edgecase::cli::bench {
namespace {

struct Experiment {
  const char* paper;
  const char* workload;
};

constexpr const char* kCaseDb = "CaseDB";
constexpr const char* kIsoKvssd = "Iso-KVSSD";
constexpr const char* kLogkv = "LogKV";
constexpr const char* kGdpr = "GDPR on storage";
constexpr const char* kPapersSensors = "Sensor readings through the daemon";
constexpr Experiment kExperiments[] = {
    {kCaseDb, "casedb-writes"},
    {kCaseDb, "casedb-coalescing"},
    {kCaseDb, "casedb-metadata"},
    {kCaseDb, "casedb-reads"},
    {kCaseDb, "casedb-amplification"},
    {kCaseDb, "table2"},
    {kCaseDb, "casedb-drives"},
    {kCaseDb, "ycsb"},
    {kIsoKvssd, "tenants"},
    {kIsoKvssd, "neighbour"},
    {kLogkv, "logkv"},
    {kLogkv, "logkv-recovery"},
    {kLogkv, "stall"},
    {kLogkv, "hotkeys"},
    {kGdpr, "ttl"},
    {kGdpr, "erase"},
    {kGdpr, "audit"},
    {kGdpr, "encryption"},
    {kGdpr, "gdprbench"},
    {kPapersSensors, "ingest-http"},
    {kPapersSensors, "ingest-mqtt"},
    {kPapersSensors, "ingest-listener"},
    {kPapersSensors, "recovery"},
    {kPapersSensors, "board"},
};

// The first value of `field` in a file of lines "field : value".
std::string field_of(const char* path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(field) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

PaperFacts facts_of(const BenchOptions& options) {
  utsname kernel{};
  ::uname(&kernel);
  std::string processor = field_of("/proc/cpuinfo", "model name");
  if (processor.empty()) processor = field_of("/proc/cpuinfo", "Model");
  std::string now;
  wire::append_time(system_clock().wall_ns(), now);
  std::string peers;
  for (const std::string& peer : options.peers) peers += (peers.empty() ? "" : ", ") + peer;
  return {{"version", std::string(wire::version())},
          {"when", now},
          {"processors", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + ", " +
                             (processor.empty() ? kernel.machine : processor)},
          {"memory", field_of("/proc/meminfo", "MemTotal")},
          {"kernel", std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine},
          {"seed", std::to_string(options.seed)},
          {"runs of each",
           options.rounds == 0 ? "the workload's own number" : std::to_string(options.rounds)},
          {"sizes", options.smoke ? "the smallest (--smoke): they show that it runs, no more"
                                  : "the papers' own, or what the workload says"},
          {"beside", peers.empty() ? "what each experiment brings along" : peers}};
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? ok() : io_error(path.string() + " cannot be written");
}

Status prepare(const std::string& directory) {
  if (directory.empty()) return invalid_argument("papers needs --out DIR, where the report goes");
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return io_error(directory + ": " + error.message());
  const bool empty = std::filesystem::is_empty(directory, error);
  if (error) return io_error(directory + ": " + error.message());
  return empty ? ok() : invalid_argument(directory + " is not empty");
}

// Peers that are stores go to workloads on a store.
bool takes_stores(const std::string& workload) {
  return workload.starts_with("casedb") || workload.starts_with("ycsb") || workload == "tenants" ||
         workload == "neighbour" || workload == "stall" || workload == "hotkeys";
}

PaperSection run_one(const Experiment& experiment, const BenchOptions& options) {
  PaperSection section{
      experiment.paper, experiment.workload, find_workload(experiment.workload)->purpose, {}, {}};
  BenchOptions one = options;
  one.workload = experiment.workload;
  std::erase_if(one.peers, [&](const std::string& peer) {
    if (peer == "influxdb") return one.workload != "ingest-http";
    if (peer == "redis") return one.workload != "ttl";
    return !takes_stores(one.workload);
  });
  if (one.workload.starts_with("ycsb") && one.key_size < 16) one.key_size = 16;
  auto report = run_of(one.workload)(one);
  if (report.ok()) {
    section.report = *std::move(report);
  } else {
    section.failure = report.status().to_string();
  }
  return section;
}

}  // namespace

// The directory is made, or empty. An experiment that fails does not keep the others from running:
// the report says why, and the answer is an error in the end.
Result<Report> run_papers(const BenchOptions& options) {
  EC_TRY(prepare(options.out));
  const std::filesystem::path directory = options.out;
  const PaperFacts facts = facts_of(options);
  std::vector<PaperSection> sections;
  std::string runs;
  std::string failed;
  Report all;
  all.workload = options.workload;
  all.seed = options.seed;
  for (const Experiment& experiment : kExperiments) {
    EC_TRY(check_interrupt());
    print_error("%s\n", experiment.workload);
    PaperSection section = run_one(experiment, options);
    EC_TRY(check_interrupt());
    if (section.failure.empty()) {
      runs += report_json(section.report) + "\n";
      ++all.num;
      all.seconds += section.report.seconds;
    } else {
      failed += (failed.empty() ? "" : ", ") + section.workload;
    }
    sections.push_back(std::move(section));
    // What is there so far is there: some experiments take minutes.
    EC_TRY(write_file(directory / "papers.json", runs));
    EC_TRY(write_file(directory / "papers.md", papers_markdown(facts, sections)));
    EC_TRY(write_file(directory / "papers.html", papers_html(facts, sections)));
  }
  if (!failed.empty()) {
    return unavailable("these did not run: " + failed + "; see " +
                       (directory / "papers.md").string());
  }
  return all;
}

}  // namespace edgecase::cli::bench
