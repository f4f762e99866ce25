// EventListener: what the engine reports instead of logging. It is called on the thread where
// something happened, never under a lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase {

struct RecoveryEvent {
  std::uint64_t tables = 0;
  std::uint64_t wal_segments = 0;
  std::uint64_t wal_records = 0;  // replayed: newer than the last flush
  std::uint64_t wal_bytes = 0;
  bool torn_tail = false;  // the last segment ended in an unfinished, unacknowledged record
  // Behind a segment of which a power cut took something that nobody had synced.
  std::uint64_t dropped_segments = 0;
  // One copy of the manifest lacked its last edit: unfinished when the power failed, or damaged.
  bool manifest_copies_differed = false;
  std::int64_t elapsed_ns = 0;
};

struct FlushEvent {
  std::uint64_t entries = 0;
  std::uint64_t value_bytes = 0;     // written to the value layer
  std::uint64_t metadata_bytes = 0;  // written to the metadata layer
  std::int64_t elapsed_ns = 0;
};

class EventListener {
 public:
  virtual ~EventListener() = default;
  virtual void on_recovered(const RecoveryEvent&) {}
  virtual void on_flushed(const FlushEvent&) {}
  // Background work or a write failed: the store is degraded until on_resumed().
  virtual void on_degraded(std::string_view /*layer*/, const Status&) {}
  virtual void on_resumed(std::string_view /*layer*/) {}
  virtual void on_corruption(const Status&) {}
};

}  // namespace edgecase
