#include "catalog/names.h"

#include "wire/reading.h"

namespace edgecase::catalog {

static_assert(wire::kSensorNameMaxBytes < 1u << 11);

std::uint32_t IdentityTable::keep_keys(std::string_view keys) {
  const auto found = keys_index_.find(keys);
  if (found != keys_index_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(keys_.size());
  keys_.push_back(names_.keep(keys));
  keys_index_.emplace(keys_.back(), number);
  return number;
}

IdentityTable::Handle IdentityTable::keep(const wire::SeriesIdentity& identity,
                                          std::string_view sensor) {
  if (identity == wire::identity_of_names(sensor)) return kOfNames;
  const std::uint32_t keys = keep_keys(identity.device_keys);
  if (identity.body.empty()) return kByName | keys << kMeasurementBits | identity.measurement_bytes;
  return kByBody | bodies_.keep(keys, identity.body);
}

void IdentityTable::give_back(Handle handle) {
  if ((handle & kKinds) != kByBody) return;
  bodies_.give_back(handle & ~kKinds);
}

wire::SeriesIdentity IdentityTable::at(Handle handle, std::string_view sensor) const {
  const Handle rest = handle & ~kKinds;
  switch (handle & kKinds) {
    case kByName:
      return {static_cast<std::uint16_t>(rest & ((1u << kMeasurementBits) - 1)),
              keys_[rest >> kMeasurementBits],
              {}};
    case kByBody: return {0, keys_[bodies_.parent(rest)], bodies_.text(rest)};
    default: return wire::identity_of_names(sensor);
  }
}

}  // namespace edgecase::catalog
