// Runs through the readings of one series after another, over one snapshot: what both kinds of
// cursor stand on. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "wire/reading.h"
#include "wire/reading_key.h"

namespace edgecase::query {

struct TimeRange {
  std::int64_t from_ns = 0;           // included
  std::optional<std::int64_t> to_ns;  // not included; unset: no end
};

// The engine keys of one series within `range`.
KeyRange key_range(const catalog::SeriesId& series, const TimeRange& range);

class SeriesScan {
 public:
  SeriesScan(Engine& engine, std::vector<catalog::SeriesEntry> series, const TimeRange& range,
             const ReadOptions& options);

  // To the first reading of the next series, which may have none; false after the last one.
  Result<bool> next_series();
  // Lets go of snapshot and iterator.
  void close();

  // False at the end of the current series, and after an error: look at status().
  bool valid() const { return iterator_ != nullptr && iterator_->valid(); }
  Status status() const { return iterator_ == nullptr ? ok() : iterator_->status(); }
  void next() { iterator_->next(); }
  const catalog::SeriesEntry& series() const { return series_[current_]; }
  // Only when valid(). The value's views hold until next().
  std::int64_t time_ns() const { return wire::time_of_reading_key(iterator_->key().data()); }
  Status value(wire::Value& value);

 private:
  Status bad_value() const;

  Engine& engine_;
  std::vector<catalog::SeriesEntry> series_;
  TimeRange range_;
  ReadOptions options_;
  std::size_t next_ = 0;
  std::size_t current_ = 0;
  std::unique_ptr<Iterator> iterator_;
};

}  // namespace edgecase::query
