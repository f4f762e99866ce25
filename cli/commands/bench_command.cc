#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "application.h"
#include "bench/processes.h"
#include "bench/workloads.h"
#include "output.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

using bench::BenchOptions;
using bench::Workload;

// What only edgecase-bench-peers measures.
bool wants_peer_program(const Workload& workload, const BenchOptions& options) {
  return workload.run == nullptr || options.engine != bench::kOwnStore || !options.peers.empty();
}

// Becomes edgecase-bench-peers, which lies beside this executable, with the same command line.
// Returns when there is none.
void become_peer_program() {
  std::array<char, 4096> own{};
  const ssize_t size = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  if (size <= 0) return;
  const std::string path(own.data(), static_cast<std::size_t>(size));
  const std::string peers = path.substr(0, path.rfind('/') + 1) + "edgecase-bench-peers";
  std::vector<std::string> words;
  std::ifstream command_line("/proc/self/cmdline");
  for (std::string word; std::getline(command_line, word, '\0');) words.push_back(word);
  if (words.empty()) return;
  words.front() = peers;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(peers.c_str(), arguments.data());
}

int run_bench(const BenchOptions& options, const bench::PeerProgram* peers) {
  const Workload* workload = bench::find_workload(options.workload);
  if (peers == nullptr && wants_peer_program(*workload, options)) {
    become_peer_program();
    print_error(
        "edgecase bench %s: edgecase-bench-peers, which measures this, is not beside this "
        "executable; from EdgeCase's sources: cmake --preset release && cmake --build --preset "
        "release --target edgecase-bench-peers\n",
        workload->name);
    return wire::kExitFailed;
  }
  bench::watch_for_interrupt();
  bench::RunWorkload* const run = peers != nullptr ? peers->run_of(workload->name) : workload->run;
  const auto report = run(options);
  if (!report.ok()) {
    print_error("edgecase bench %s: %s\n", workload->name, report.status().to_string().c_str());
    return wire::exit_code_of(report.status().code());
  }
  const std::string text = options.json ? bench::report_json(*report) + "\n"
                                        : bench::report_text(*report, workload->operation);
  if (options.json_file.empty()) {
    write_out(stdout, text);
    return wire::kExitOk;
  }
  std::ofstream file(options.json_file);
  file << text << std::flush;
  if (file) return wire::kExitOk;
  // What took minutes to measure is not lost.
  print_error("edgecase bench: cannot write %s: %s\n", options.json_file.c_str(),
              std::strerror(errno));
  write_out(stdout, text);
  return wire::kExitFailed;
}

// The directory that the file of `--json` is to be in, which is asked before minutes are measured.
std::string check_json_file(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  return path + ": " + std::strerror(errno);
}

constexpr std::size_t kNameColumns = 22;

void list_workloads(bool is_elsewhere, std::string& text) {
  for (const Workload& workload : bench::workloads()) {
    if ((workload.run == nullptr) != is_elsewhere) continue;
    text += "  ";
    text += workload.name;
    text.append(kNameColumns - std::min(kNameColumns - 1, std::string(workload.name).size()), ' ');
    text += workload.purpose;
    text += '\n';
  }
}

std::string workload_list() {
  std::string text = "Workloads:\n";
  list_workloads(false, text);
  text +=
      "\nOf edgecase-bench-peers, which is built from the sources and started when it lies beside\n"
      "this executable, as it is for --engine and --peer:\n";
  list_workloads(true, text);
  return text + "\n";
}

void add_store_options(CLI::App& command, BenchOptions& options) {
  std::vector<std::string> names{bench::kOwnStore};
  names.insert(names.end(), std::begin(bench::kPeerStores), std::end(bench::kPeerStores));
  command.add_option("--engine", options.engine, "What is measured (workloads on a store)")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  names.front() = "influxdb";
  names.emplace_back("redis");
  command.add_option("--peer", options.peers, "Also measured, taking turns: a name or a list")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  command
      .add_option("--memory", options.memory_bytes,
                  "Of a store, e.g. 64MiB: an eighth a write buffer, a fifth a cache")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--operations", options.operations,
                     "After the fill, of workloads that begin with one; 0: as --num");
  command.add_flag("--compression", options.compression,
                   "Of peers: Snappy or LZ4; EdgeCase always packs what shrinks");
  command.add_flag("!--no-coalesce", options.coalesce, "Of EdgeCase: no groups of small values");
  command
      .add_option("--compression-ratio", options.compression_ratio,
                  "Share of a value that cannot be compressed")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_flag("--random-fill", options.random_fill, "What is read was written at random");
  command.add_flag("--at-once", options.at_once, "Read without waiting for compactions");
  command.add_flag("--cold", options.cold, "Read what is not in the page cache");
}

void add_drive_options(CLI::App& command, BenchOptions& options) {
  const CLI::Range cost(0.01, 1e6);
  command
      .add_option("--fast-price", options.fast_price, "casedb-drives: dollars of the fast drive")
      ->capture_default_str()
      ->check(cost);
  command
      .add_option("--slow-price", options.slow_price, "casedb-drives: dollars of the slow drive")
      ->capture_default_str()
      ->check(cost);
  command
      .add_option("--slow-mb", options.slow_mb_per_second,
                  "casedb-drives without --values: MB/s of the drive that is made slow")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5));
  command
      .add_option("--slow-sync-ms", options.slow_sync_ms,
                  "casedb-drives without --values: ms that a sync of that drive takes more")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e3));
}

void add_bench(const bench::PeerProgram* peers, CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  if (peers != nullptr) options->make_peer = peers->make_store;
  CLI::App* command = app.add_subcommand(
      "bench", "Measure this board, on private directories that are removed at the end");
  std::vector<std::string> names;
  for (const Workload& workload : bench::workloads()) names.emplace_back(workload.name);
  command->add_option("workload", options->workload, "What to run, see below")
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("--num", options->num, "Operations; 0: the workload's own number")
      ->capture_default_str();
  command->add_option("--value-size", options->value_size,
                      "Bytes of a value; 0: the workload's own number");
  command->add_option("--key-size", options->key_size, "Bytes of a key")->capture_default_str();
  command->add_option("--batch", options->batch,
                      "Puts, lines or messages on their way together; 0: the workload's own");
  command->add_option("--threads", options->threads,
                      "Threads, connections or publishers; 0: the workload's own number");
  command->add_option("--devices", options->devices,
                      "Of erase; 0: its own number, of which it erases --operations");
  command->add_flag("--sync", options->sync, "Every write survives a power cut (fill workloads)");
  command->add_option("--seconds", options->seconds, "Stop after so many; 0: when num is done");
  command
      ->add_option(
          "--rate", options->rate,
          "Operations a second, of ycsb-* and neighbour; latencies count from when each was due")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--seed", options->seed, "Of keys, values and readings")
      ->capture_default_str();
  command
      ->add_option("--rounds,--runs", options->rounds,
                   "Runs of which the median counts; 0: the workload's own number")
      ->check(CLI::Range(0, 99));
  command
      ->add_option("--metadata,--dir", options->metadata,
                   "Directory on the drive for metadata, in which bench makes one of its own, "
                   "removed at the\n"
                   "end; default: the working directory")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--values", options->values,
                   "Directory on the drive for values; default: beside the metadata")
      ->check(CLI::ExistingDirectory);
  add_store_options(*command, *options);
  add_drive_options(*command, *options);
  command->add_option("--out", options->out, "papers: a new or empty directory for the report");
  command->add_flag("--slope", options->slope, "gdprbench: again on ten times the records");
  command->add_flag("--smoke", options->smoke, "A second's worth, to see that it runs");
  CLI::Option* json = command->add_flag("--json", options->json, "One JSON object");
  command->add_option("file", options->json_file, "Where --json goes, not to standard output")
      ->needs(json)
      ->check(CLI::Validator(check_json_file, "FILE"));
  command->footer(workload_list() +
                  help_footer({"edgecase bench fillrandom --value-size 100 --sync",
                               "edgecase bench readrandom --peer leveldb,rocksdb-blob",
                               "edgecase bench ingest-http --peer influxdb --json",
                               "edgecase bench papers --out report --peer leveldb,redis"}));
  command->callback([options, peers, &action] {
    action = [options, peers] { return run_bench(*options, peers); };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  add_bench(nullptr, app, action);
}

void add_bench_command_with(const bench::PeerProgram& peers, CLI::App& app, Action& action) {
  add_bench(&peers, app, action);
}

}  // namespace edgecase::cli
