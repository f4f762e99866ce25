// Counters of what became of the messages of one way in.
#pragma once

#include <cstdint>
#include <string>

namespace edgecase::mqtt {

struct SinkCounters {
  std::uint64_t messages = 0;        // all that came and were stored, kept or passed over
  std::uint64_t readings = 0;        // durable
  std::uint64_t rejected = 0;        // kept in `_rejected`
  std::uint64_t rejected_lost = 0;   // could not be kept there: a limit of the catalog
  std::uint64_t ignored = 0;         // nothing to store, on purpose
  std::uint64_t skipped_values = 0;  // JSON nulls and the like
  // Messages whose time gave way to that of their arrival: no clock says it, or it cannot be read;
  // the series has another value of that time; the device was last heard before the newest of the
  // series.
  std::uint64_t times_unbelievable = 0;
  std::uint64_t times_repeated = 0;
  std::uint64_t times_stale = 0;
  std::uint64_t redelivered = 0;  // with the DUP flag
  std::uint64_t repeats_dropped =
      0;                           // redelivered, retained or copies: recognised as stored before
  std::uint64_t withheld = 0;      // of the broker's client: acknowledgements that were dropped
  std::uint64_t lost_at_qos0 = 0;  // the same: came while it stopped
  std::int64_t waiting_since_ns = 0;  // boot clock; 0: no message waits for the drive
  std::string waiting_for;            // why, while it waits

  // Adds what both ways in tell to an object of the status, which keeps its members' order.
  template <typename Json>
  void add_to(Json& json) const {
    if (!waiting_for.empty()) json["waiting_for"] = waiting_for;
    json["messages"] = messages;
    json["readings"] = readings;
    json["rejected"] = rejected;
    json["rejected_lost"] = rejected_lost;
    json["ignored"] = ignored;
    json["skipped_values"] = skipped_values;
    json["times_unbelievable"] = times_unbelievable;
    json["times_repeated"] = times_repeated;
    json["times_stale"] = times_stale;
    json["redelivered"] = redelivered;
    json["repeats_dropped"] = repeats_dropped;
  }
};

}  // namespace edgecase::mqtt
