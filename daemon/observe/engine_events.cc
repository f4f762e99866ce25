#include "observe/engine_events.h"

#include <string>

namespace edgecase::observe {
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
