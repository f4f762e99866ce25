// Turns what the engine reports into log lines and metrics. Thread-safe. Logger and metrics must
// outlive it.
#pragma once

#include <atomic>

#include "edgecase/options.h"
#include "observe/logger.h"
#include "observe/metrics.h"

namespace edgecase::observe {

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
