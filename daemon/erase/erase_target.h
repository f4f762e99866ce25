// From what is asked to be erased to what there is of it: series, and devices and sensors that go
// with their names. Pure functions over catalog and device index; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "edgecase/engine.h"
#include "edgecase/write_batch.h"
#include "erase/fences.h"
#include "retention/retention_service.h"
#include "wire/selector.h"

namespace edgecase::erase {

using SeriesFinder = std::function<Result<std::vector<catalog::SeriesRow>>()>;

struct EraseRequest {
  std::string namespace_name;  // empty: all but those whose names begin with `_`
  wire::Selection selection;
  // Not empty: of all devices of which this is said, what the selection's identity holds for.
  catalog::DeviceFilter devices;
  std::optional<std::int64_t> from_ns, to_ns;  // without both: with its names
  // Not null: the series that it finds instead, in the catalog's order; all of them or, where one
  // may not be erased, none. Asked twice. Of a range of times it takes the names of series of which
  // nothing is left, too.
  SeriesFinder find = nullptr;
  FenceKind fence = FenceKind::Lasting;
  // Where its fence ends, as of an erasure that was asked for elsewhere before; none: now.
  std::optional<std::int64_t> fence_to_ns = {};

  bool has_all_times() const { return !from_ns && !to_ns; }
  TimeRange range() const { return {from_ns.value_or(INT64_MIN), to_ns}; }
};

// Names that are not known here any more: targets of forwarding may know them.
struct GoneName {
  std::string namespace_name, device;
  std::string sensor;  // empty: the device, with all that it has

  friend auto operator<=>(const GoneName&, const GoneName&) = default;
};
// Whether something of that name may be elsewhere; null: nothing is.
using GoneFinder = std::function<bool(const GoneName& name)>;

struct EraseTarget {
  struct Device {
    NamespaceId namespace_id;
    std::uint32_t id;
    std::uint32_t row;  // Catalog::device_at()

    friend auto operator<=>(const Device&, const Device&) = default;
  };
  std::vector<catalog::SeriesRow> series;  // all that match, by namespace, device, sensor
  // Devices of which every series is meant, also those that come later, sorted; those of which
  // something is said and that have no number; and what there is of `series` of no such device.
  // They are fenced as such.
  std::vector<Device> devices;
  std::vector<catalog::DeviceName> only_said;
  std::vector<catalog::SeriesRow> single_series;
  std::vector<GoneName> gone;            // of these there is nothing here
  bool is_everything = false;            // all that is in the namespaces in question, by a glob
  std::vector<wire::LeftSelector> left;  // of several that take nothing, and why

  std::size_t device_count() const { return devices.size() + only_said.size(); }
};

// InvalidArgument: an empty range of times. NotAllowed: nothing of it may be erased, or not all
// that was found. NotFound: nothing matches,
// nor is any of it gone in the sense of `is_elsewhere`.
Result<EraseTarget> resolve_target(const catalog::Catalog& catalog,
                                   const catalog::DeviceIndex& devices,
                                   const auth::Principal& principal, const EraseRequest& request,
                                   const GoneFinder& is_elsewhere = nullptr);

catalog::Erased names_of(const catalog::Catalog& catalog, const EraseTarget& target);
// By number.
void sort_series(catalog::Erased& names);

// `take` gets the readings of it, as keys; answers its error.
Status tell_readings(const catalog::Catalog& catalog, const EraseTarget& target, TimeRange range,
                     const catalog::SpanTaker& take);
// The same of its tiers (catalog/tier_spaces.h), where there are any. A window that the range cuts
// goes whole.
Status tell_windows(const Engine& engine, const catalog::Catalog& catalog,
                    const retention::TierMarks& marks, const EraseTarget& target, TimeRange range,
                    const catalog::SpanTaker& take);
// The windows of `every_ns` that a range cuts or holds.
TimeRange whole_windows(TimeRange range, std::int64_t every_ns);
KeyRange range_of_series(const catalog::SeriesId& id, TimeRange range);

struct PassedErasure {
  std::uint64_t number = 0;  // of its certificate
  std::int64_t asked_ns = 0;
  bool has_all_times = false;  // with the names
  TimeRange range = {};
  FenceKind fence = FenceKind::Lasting;
  std::optional<std::int64_t> fence_to_ns = {};  // none: it has no end
};

// The relay that passes an erasure on to where readings went before (daemon/forward/). EraseService
// tells it in time: what it writes is durable with the erasure or not at all. Any thread.
class ErasureRelay {
 public:
  virtual ~ErasureRelay() = default;
  // Whether a target may hold some of it, whatever is here; without a sensor: of the device.
  virtual bool may_hold(const std::string& namespace_name, const std::string& device,
                        const std::string& sensor) const = 0;
  // Tells what it keeps here of what is erased, which goes along. Errors: those of `take`.
  virtual Status tell_kept(const catalog::Catalog& catalog, const EraseTarget& target,
                           TimeRange range, const catalog::SpanTaker& take) const = 0;
  // While no reading is written and no other erasure begins. Adds to `batch` what it is to know
  // later; may write ahead, in batches of its own, what means nothing without that. Errors: the
  // engine's; then nothing is erased.
  virtual Status plan(const PassedErasure& erasure, const catalog::Catalog& catalog,
                      const EraseTarget& target, WriteBatch& batch) = 0;
  // The batch of that erasure is durable; nobody has written a reading since.
  virtual void planned(std::uint64_t number) = 0;
  // The fences of that erasure are to be lifted where it went, too. Durable on return. Errors: the
  // engine's; Corruption: where that is is not known any more.
  virtual Status lift(std::uint64_t number) = 0;
};

}  // namespace edgecase::erase
