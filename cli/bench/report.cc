#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "wire/contract.h"

namespace edgecase::cli::bench {
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
