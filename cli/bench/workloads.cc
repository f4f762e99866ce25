#include "bench/workloads.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "wire/contract.h"

namespace edgecase::cli::bench {

std::span<const Workload> workloads() {
  constexpr RunWorkload* kElsewhere = nullptr;
  static constexpr Workload kWorkloads[] = {
      {"board", "readings and blobs", "sizes this board: sensors, images, video, days", run_board},
      {"fillseq", "puts", "write keys in order", run_store_workload},
      {"fillrandom", "puts", "write keys drawn at random", run_store_workload},
      {"overwrite", "puts", "write keys that are there, at random", run_store_workload},
      {"deleterandom", "deletes", "delete keys drawn at random", run_store_workload},
      {"readrandom", "gets", "read keys drawn at random", run_store_workload},
      {"hotkeys", "gets", "80 % of the gets mean 5 % of the keys, beside all alike",
       run_store_workload},
      {"readmissing", "gets", "read keys that are not there", run_store_workload},
      {"seekrandom", "entries", "read 100 in order from keys drawn at random", run_store_workload},
      {"readseq", "entries", "read everything in order", run_store_workload},
      {"mixed", "operations", "half gets, half puts of keys that are there, at random",
       run_store_workload},
      {"ttl", "keys", "keys that expire: unreadable when, and gone when", run_ttl},
      {"erase", "devices", "erase single devices: unreadable when, and gone when",
       run_erase_devices},
      {"ingest-http", "lines", "durable line protocol into a private daemon", run_ingest_http},
      {"ingest-mqtt", "messages", "QoS 1 through a private mosquitto", run_ingest_mqtt},
      {"ingest-listener", "messages", "QoS 1 straight into a private daemon", run_ingest_listener},
      {"recovery", "entries", "open a store whose log is full", run_recovery},
      {"query", "readings", "windows, all, and the last one, asked of a private daemon", run_query},
      {"encryption", "requests", "what encryption costs, at rest and on the way",
       run_encryption_cost},
      {"audit", "requests", "what the audit log costs, off, batched and strict", run_audit_cost},
      {"footprint", "readings", "memory, start time, bytes a reading", kElsewhere},
      {"ycsb-a", "operations", "half reads, half updates, hot keys", kElsewhere},
      {"ycsb-b", "operations", "95 % reads, 5 % updates, hot keys", kElsewhere},
      {"ycsb-c", "operations", "reads of hot keys", kElsewhere},
      {"ycsb-d", "operations", "95 % reads of the newest, 5 % inserts", kElsewhere},
      {"ycsb-e", "operations", "95 % short scans, 5 % inserts", kElsewhere},
      {"ycsb-f", "operations", "half reads, half read-modify-writes, hot keys", kElsewhere},
      {"ycsb", "operations", "all of them at 50 B and 16 KiB, beside the peers", kElsewhere},
      {"tenants", "gets", "eight tenants, apart and in one namespace", kElsewhere},
      {"neighbour", "operations", "a tenant beside one that writes all it can", kElsewhere},
      {"stall", "puts", "every put timed while compactions run", kElsewhere},
      {"casedb-writes", "puts", "CaseDB paper: writes at every size", kElsewhere},
      {"casedb-reads", "gets", "CaseDB paper: reads at every size, warm and cold", kElsewhere},
      {"casedb-metadata", "puts", "CaseDB paper: bytes of metadata to bytes of values", kElsewhere},
      {"casedb-coalescing", "puts", "CaseDB paper: small values in groups, and not", kElsewhere},
      {"casedb-amplification", "puts", "CaseDB paper: 90 % updates", kElsewhere},
      {"casedb-drives", "operations", "CaseDB paper: metadata, values, or both on the fast drive",
       kElsewhere},
      {"table2", "operations", "CaseDB paper: its table 2, a proof for each row", kElsewhere},
      {"logkv", "commands", "140 mixes of gets and puts, beside NaiveKV", kElsewhere},
      {"logkv-recovery", "commands", "kill -9 while writing: what is left", kElsewhere},
      {"gdprbench", "operations", "GDPRbench's roles, every answer checked", kElsewhere},
      {"papers", "experiments", "every experiment of the papers, and a report", kElsewhere},
  };
  return kWorkloads;
}

const Workload* find_workload(const std::string& name) {
  for (const Workload& workload : workloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

namespace {

double in_microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000.0;
}

// Three decimals are more than any of these figures repeats to.
double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

[[gnu::format(printf, 2, 3)]] void add_line(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
  text += '\n';
}

// Columns as wide as what stands in them, the last one as it is.
void add_table(std::string& text, const std::vector<std::vector<std::string>>& table) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += "  " + row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size(), ' ');
    }
    text += '\n';
  }
}

}  // namespace

std::string report_json(const Report& report) {
  nlohmann::ordered_json json;
  json["workload"] = report.workload;
  json["engine"] = report.engine;
  json["num"] = report.num;
  json["value_size"] = report.value_size;
  json["threads"] = report.threads;
  json["sync"] = report.sync;
  json["seed"] = report.seed;
  json["seconds"] = rounded(report.seconds);
  json["ops_per_second"] = rounded(report.ops_per_second());
  json["mb_per_second"] = rounded(report.mb_per_second());
  json["latency_us"] = {{"p50", in_microseconds(report.latency.percentile_ns(0.5))},
                        {"p95", in_microseconds(report.latency.percentile_ns(0.95))},
                        {"p99", in_microseconds(report.latency.percentile_ns(0.99))},
                        {"p999", in_microseconds(report.latency.percentile_ns(0.999))},
                        {"max", in_microseconds(report.latency.max_ns())}};
  json["write_amplification"] = rounded(report.write_amplification);
  json["space_amplification"] = rounded(report.space_amplification);
  json["peak_memory_bytes"] = report.peak_memory_bytes;
  json["version"] = wire::version();
  for (const auto& [name, text] : report.words) json[name] = text;
  for (const auto& [name, value] : report.more) json[name] = rounded(value);
  for (std::size_t row = 1; row < report.rows.size(); ++row) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < report.rows[row].size(); ++i) {
      object[report.rows.front()[i]] = report.rows[row][i];
    }
    json["rows"].push_back(std::move(object));
  }
  return json.dump();
}

std::string report_text(const Report& report, const std::string& operation) {
  std::string text;
  add_line(text, "%s (%s)", report.workload.c_str(), report.engine.c_str());
  add_line(text, "  %.0f %s/s, %.1f MB/s (%llu in %.2f s, %u threads, %s, seed %llu)",
           report.ops_per_second(), operation.c_str(), report.mb_per_second(),
           static_cast<unsigned long long>(report.num), report.seconds, report.threads,
           report.sync ? "synced" : "not synced", static_cast<unsigned long long>(report.seed));
  if (report.latency.count() > 0) {
    add_line(text, "  latency us: p50 %.1f  p95 %.1f  p99 %.1f  p99.9 %.1f  max %.1f",
             in_microseconds(report.latency.percentile_ns(0.5)),
             in_microseconds(report.latency.percentile_ns(0.95)),
             in_microseconds(report.latency.percentile_ns(0.99)),
             in_microseconds(report.latency.percentile_ns(0.999)),
             in_microseconds(report.latency.max_ns()));
  }
  if (report.write_amplification > 0) {
    add_line(text, "  write amplification %.2f, space amplification %.2f",
             report.write_amplification, report.space_amplification);
  }
  if (report.peak_memory_bytes > 0) {
    add_line(text, "  peak memory %.1f MiB",
             static_cast<double>(report.peak_memory_bytes) / (1 << 20));
  }
  for (const auto& [name, words] : report.words) text += "  " + name + ": " + words + "\n";
  if (!report.table.empty()) return text + report.table;
  for (const auto& [name, value] : report.more) {
    const int decimals = value == std::floor(value) ? 0 : 3;
    add_line(text, "  %s %.*f", name.c_str(), decimals, value);
  }
  add_table(text, report.rows);
  return text;
}

}  // namespace edgecase::cli::bench
