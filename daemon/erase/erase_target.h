// From what is asked to be erased to what there is of it: series, and devices and sensors that go
// with their names. Pure functions over catalog and device index; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "auth/authorize.h"
#include "catalog/device_index.h"
#include "catalog/erased.h"
#include "edgecase/engine.h"
#include "erase/fences.h"
#include "wire/selector.h"

namespace edgecase::erase {

struct EraseRequest {
  std::string namespace_name;  // empty: all but those whose names begin with `_`
  wire::Selector selector;
  catalog::DeviceFilter devices;               // not empty: those of which this is said instead
  std::optional<std::int64_t> from_ns, to_ns;  // without both: with its names

  bool has_all_times() const { return !from_ns && !to_ns; }
  TimeRange range() const { return {from_ns.value_or(INT64_MIN), to_ns.value_or(INT64_MAX)}; }
};

struct EraseTarget {
  std::vector<catalog::SeriesEntry> series;  // all that match, by namespace, device, sensor
  // Of which every series matches; fenced as such.
  std::vector<catalog::DeviceEntry> devices;
  std::vector<catalog::SeriesEntry> single_series;  // of `series`: of no such device
  catalog::Erased with_names;                       // of all times only
  bool is_everything = false;  // all that is in the namespaces in question, by a glob
};

// InvalidArgument: an empty range of times. NotAllowed: nothing of it may be erased. NotFound:
// nothing matches.
Result<EraseTarget> resolve_target(const catalog::Catalog& catalog,
                                   const catalog::DeviceIndex& devices,
                                   const auth::Principal& principal, const EraseRequest& request);

// The readings of it, as keys.
std::vector<catalog::KeySpan> spans_of_readings(const EraseTarget& target, TimeRange range);
KeyRange range_of_series(const catalog::SeriesId& id, TimeRange range);

// Sorted; neighbours are one.
std::vector<catalog::KeySpan> merged(std::vector<catalog::KeySpan> spans);

}  // namespace edgecase::erase
