#include "observe/logger.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "edgecase/mutex.h"

namespace edgecase::observe {
namespace {

constexpr const char* kLevelNames[] = {"error", "warn", "note", "info", "debug"};
constexpr int kSyslogPriorities[] = {3, 4, 5, 6, 7};

void append_clean(std::string_view text, std::string& line) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

void append_wall_time(std::int64_t wall_ns, std::string& line) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = wall_ns / kSecond;
  std::int64_t rest_ns = wall_ns % kSecond;
  if (rest_ns < 0) {
    rest_ns += kSecond;
    --seconds;
  }
  const time_t when = seconds;
  tm parts{};
  gmtime_r(&when, &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(rest_ns / 1'000'000));
  line += text;
}

}  // namespace

// What was said lately. Lines themselves are written outside the lock.
struct Logger::Repeats {
  using Key = std::tuple<LogLevel, std::string, std::string>;
  struct Entry {
    std::int64_t window_start_ns = 0;
    int said = 0;
    std::uint64_t held_back = 0;
  };
  struct HeldBack {
    LogLevel level;
    std::string area;
    std::string text;
  };

  Mutex mutex;
  std::map<Key, Entry> entries EC_GUARDED_BY(mutex);

  static HeldBack tell(const Key& key, std::uint64_t count) {
    return {std::get<0>(key), std::get<1>(key),
            std::to_string(count) + " more like this: " + std::get<2>(key)};
  }

  // Forgets what is over, or the oldest entry when there is no room.
  void make_room(std::int64_t now_ns, std::vector<HeldBack>& told) EC_REQUIRES(mutex) {
    auto oldest = entries.end();
    for (auto it = entries.begin(); it != entries.end();) {
      if (now_ns - it->second.window_start_ns >= kWindowNs) {
        if (it->second.held_back > 0) told.push_back(tell(it->first, it->second.held_back));
        it = entries.erase(it);
        continue;
      }
      if (oldest == entries.end() || it->second.window_start_ns < oldest->second.window_start_ns) {
        oldest = it;
      }
      ++it;
    }
    if (entries.size() < kKeysMax || oldest == entries.end()) return;
    if (oldest->second.held_back > 0) told.push_back(tell(oldest->first, oldest->second.held_back));
    entries.erase(oldest);
  }

  // Whether the line may be written; `told` gets what is to be said before it.
  bool pass(LogLevel level, std::string_view area, std::string_view text, std::int64_t now_ns,
            std::vector<HeldBack>& told) EC_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    Key key(level, area, text.substr(0, kLineMaxBytes / 8));
    auto found = entries.find(key);
    if (found == entries.end()) {
      if (entries.size() >= kKeysMax) make_room(now_ns, told);
      found = entries.emplace(std::move(key), Entry{now_ns, 0, 0}).first;
    } else if (now_ns - found->second.window_start_ns >= kWindowNs) {
      if (found->second.held_back > 0) told.push_back(tell(found->first, found->second.held_back));
      found->second = Entry{now_ns, 0, 0};
    }
    if (found->second.said >= kBurst) {
      ++found->second.held_back;
      return false;
    }
    ++found->second.said;
    return true;
  }
};

LogStyle log_style_of(int file_descriptor) {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(file_descriptor, &status) != 0) return LogStyle::Plain;
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  return own == stream ? LogStyle::Journal : LogStyle::Plain;
}

Logger::Logger(int file_descriptor, LogStyle style, Clock& clock, LogLevel max_level)
    : file_descriptor_(file_descriptor),
      style_(style),
      clock_(clock),
      max_level_(max_level),
      repeats_(std::make_unique<Repeats>()) {}

Logger::~Logger() {
  for (const auto& [key, entry] : repeats_->entries) {
    if (entry.held_back == 0) continue;
    const Repeats::HeldBack told = Repeats::tell(key, entry.held_back);
    write_line(told.level, told.area, told.text);
  }
}

void Logger::log_keyed(LogLevel level, std::string_view area, std::string_view key,
                       std::string_view message) {
  if (level > max_level_) return;
  std::vector<Repeats::HeldBack> told;
  const bool passes = repeats_->pass(level, area, key, clock_.boot_ns(), told);
  for (const Repeats::HeldBack& one : told) write_line(one.level, one.area, one.text);
  if (passes) write_line(level, area, message);
}

void Logger::write_line(LogLevel level, std::string_view area, std::string_view message) {
  const auto index = static_cast<std::size_t>(level);
  std::string line;
  if (style_ == LogStyle::Journal) {
    line = "<" + std::to_string(kSyslogPriorities[index]) + ">";
  } else {
    append_wall_time(clock_.wall_ns(), line);
    line += ' ';
    line += kLevelNames[index];
    line.append(6 - std::string_view(kLevelNames[index]).size(), ' ');
  }
  append_clean(area, line);
  line += ": ";
  append_clean(message.substr(0, kLineMaxBytes), line);
  if (message.size() > kLineMaxBytes) line += "...";
  line += '\n';
  // A log that cannot be written has nowhere to complain.
  [[maybe_unused]] const ssize_t written = write(file_descriptor_, line.data(), line.size());
}

namespace {

std::string milliseconds(std::int64_t elapsed_ns) {
  return std::to_string(elapsed_ns / 1'000'000) + " ms";
}

}  // namespace

EngineEvents::EngineEvents(Logger& logger, Metrics& metrics)
    : logger_(logger),
      metrics_(metrics),
      flushed_entries_(metrics.counter("edgecase_engine_flushed_entries_total",
                                       "Entries moved from memory to tables.")),
      flushed_value_bytes_(metrics.counter("edgecase_engine_flushed_bytes_total",
                                           "Bytes written by flushes.", {{"layer", "values"}})),
      flushed_metadata_bytes_(metrics.counter("edgecase_engine_flushed_bytes_total",
                                              "Bytes written by flushes.",
                                              {{"layer", "metadata"}})),
      flush_seconds_(metrics.histogram("edgecase_engine_flush_seconds", "How long flushes took.")),
      corruptions_(metrics.counter("edgecase_engine_corruptions_total",
                                   "Times that bytes on a drive were not what was written.")) {}

void EngineEvents::on_recovered(const RecoveryEvent& event) {
  metrics_.callback(MetricKind::Gauge, "edgecase_engine_recovery_seconds",
                    "How long the last recovery took.", {},
                    [seconds = static_cast<double>(event.elapsed_ns) / 1e9] { return seconds; });
  std::string line = "store open in " + milliseconds(event.elapsed_ns) + ": " +
                     std::to_string(event.tables) + " tables, " +
                     std::to_string(event.wal_records) + " batches (" +
                     std::to_string(event.wal_bytes) + " bytes) replayed from the log";
  if (event.dropped_segments > 0)
    line += "; what was never synced behind a gap was dropped, with " +
            std::to_string(event.dropped_segments) + " segments of the log";
  else if (event.torn_tail)
    line += "; an unfinished, unacknowledged write at its end was dropped";
  if (event.manifest_copies_differed)
    line +=
        "; one copy of the manifest lacked its last edit (unfinished, or damaged), which the "
        "other had";
  logger_.info("engine", line);
}

void EngineEvents::on_flushed(const FlushEvent& event) {
  flushed_entries_.add(event.entries);
  flushed_value_bytes_.add(event.value_bytes);
  flushed_metadata_bytes_.add(event.metadata_bytes);
  flush_seconds_.observe_ns(event.elapsed_ns);
  logger_.log_keyed(
      LogLevel::Debug, "engine", "flush",
      "flushed " + std::to_string(event.entries) + " entries in " + milliseconds(event.elapsed_ns));
}

void EngineEvents::on_degraded(std::string_view layer, const Status& status) {
  metrics_
      .gauge("edgecase_engine_degraded", "1 while the layer takes no writes.",
             {{"layer", std::string(layer)}})
      .set(1);
  logger_.log_keyed(LogLevel::Error, "engine", layer,
                    "the " + std::string(layer) + " drive takes no writes: " + status.to_string());
}

void EngineEvents::on_resumed(std::string_view layer) {
  metrics_
      .gauge("edgecase_engine_degraded", "1 while the layer takes no writes.",
             {{"layer", std::string(layer)}})
      .set(0);
  logger_.log_keyed(LogLevel::Notice, "engine", layer,
                    "the " + std::string(layer) + " drive takes writes again");
}

void EngineEvents::on_corruption(const Status& status) {
  corruptions_.add();
  logger_.error("engine", status.to_string());
}

}  // namespace edgecase::observe
