// Lines to stderr for whoever runs the daemon: one event, one line, no secrets. What the engine
// reports becomes such lines, and metrics (EngineEvents).
//
// Under systemd (JOURNAL_STREAM names stderr's pipe) a line is `<6>mqtt: connected`: the priority
// that journald understands, and no time, since the journal adds one. Elsewhere it is
// `2026-11-20T14:00:00.123Z info  mqtt: connected`.
//
// Repeats are held back: of the same level, area and key, kBurst lines pass in each window of
// kWindowNs, then one line tells how many were left out. The key is the message itself, or what
// log_keyed() is given when messages of one kind differ (a topic, an address). Memory is bounded:
// kKeysMax keys are remembered, the oldest is forgotten first.
//
// Thread-safe; a line is written with one system call and never waits for the drive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "edgecase/machine.h"
#include "edgecase/options.h"
#include "observe/metrics.h"

namespace edgecase::observe {

enum class LogLevel : unsigned char { Error, Warning, Notice, Info, Debug };

enum class LogStyle : unsigned char { Journal, Plain };

// Journal when JOURNAL_STREAM names the device and inode of `file_descriptor`.
LogStyle log_style_of(int file_descriptor);

class Logger {
 public:
  static constexpr int kBurst = 5;
  static constexpr std::int64_t kWindowNs = 30'000'000'000;
  static constexpr std::size_t kKeysMax = 256;
  static constexpr std::size_t kLineMaxBytes = 2048;  // longer messages are cut

  // `file_descriptor` is borrowed. Debug lines are dropped unless `max_level` is Debug.
  Logger(int file_descriptor, LogStyle style, Clock& clock, LogLevel max_level = LogLevel::Info);
  // Tells what was still held back.
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // `area` is the folder's name: "mqtt", "http", "engine". Control characters become spaces.
  void log(LogLevel level, std::string_view area, std::string_view message) {
    log_keyed(level, area, message, message);
  }
  void log_keyed(LogLevel level, std::string_view area, std::string_view key,
                 std::string_view message);

  void error(std::string_view area, std::string_view message) {
    log(LogLevel::Error, area, message);
  }
  void warning(std::string_view area, std::string_view message) {
    log(LogLevel::Warning, area, message);
  }
  void notice(std::string_view area, std::string_view message) {
    log(LogLevel::Notice, area, message);
  }
  void info(std::string_view area, std::string_view message) { log(LogLevel::Info, area, message); }
  void debug(std::string_view area, std::string_view message) {
    log(LogLevel::Debug, area, message);
  }

 private:
  struct Repeats;

  void write_line(LogLevel level, std::string_view area, std::string_view message);

  const int file_descriptor_;
  const LogStyle style_;
  Clock& clock_;
  const LogLevel max_level_;
  std::unique_ptr<Repeats> repeats_;
};

// Turns what the engine reports into log lines and metrics. Thread-safe. Logger and metrics must
// outlive it.
class EngineEvents final : public EventListener {
 public:
  EngineEvents(Logger& logger, Metrics& metrics);

  void on_recovered(const RecoveryEvent& event) override;
  void on_flushed(const FlushEvent& event) override;
  void on_degraded(std::string_view layer, const Status& status) override;
  void on_resumed(std::string_view layer) override;
  void on_corruption(const Status& status) override;

 private:
  Logger& logger_;
  Metrics& metrics_;
  Counter& flushed_entries_;
  Counter& flushed_value_bytes_;
  Counter& flushed_metadata_bytes_;
  Histogram& flush_seconds_;
  Counter& corruptions_;
};

}  // namespace edgecase::observe
