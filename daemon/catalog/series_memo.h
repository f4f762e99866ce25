// Which series the readings of a batch were found to be of, recognised by where their names lie, so
// that large batches, which mostly name few series again and again, have each looked up once. Views
// with the same address and size hold the same name within a batch, and between the slices of one
// request as long as ReadingBatch::text_id() stays; when it changes, forget(). Nor may it outlive
// what keeps the numbers of its series as they are (erase::Fences). One thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "wire/reading.h"

namespace edgecase::catalog {

class SeriesMemo {
 public:
  // Null: not known.
  const SeriesId* find(const wire::Reading& reading) const {
    if (slots_.empty()) return nullptr;
    const std::size_t first = place_of(reading);
    for (std::size_t i = 0; i < kWays; ++i) {
      const Slot& slot = slots_[(first + i) % kSlots];
      if (slot.sensor == place(reading.sensor) && slot.device == place(reading.device) &&
          slot.namespace_name == place(reading.namespace_name))
        return &slot.id;
    }
    return nullptr;
  }
  // That the series is durable.
  void note(const wire::Reading& reading, const SeriesId& id) {
    if (slots_.empty()) slots_.resize(kSlots);
    const std::size_t first = place_of(reading);
    std::size_t at = first;
    for (std::size_t i = 0; i < kWays && slots_[at].sensor.data != nullptr; ++i)
      at = (first + i) % kSlots;
    slots_[at] = {place(reading.sensor), place(reading.device), place(reading.namespace_name), id};
  }
  void forget() { slots_.clear(); }

 private:
  static constexpr unsigned kSlotBits = 11;
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;
  static constexpr std::size_t kWays = 8;  // where one may be, beginning at its place

  struct Place {
    const char* data = nullptr;
    std::size_t size = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Slot {
    Place sensor, device, namespace_name;
    SeriesId id;
  };
  static Place place(std::string_view name) { return {name.data(), name.size()}; }
  static std::size_t place_of(const wire::Reading& reading) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    const auto sensor = reinterpret_cast<std::uintptr_t>(reading.sensor.data());
    const auto device = reinterpret_cast<std::uintptr_t>(reading.device.data());
    return static_cast<std::size_t>((sensor * 31 + device) * kOdd >> (64 - kSlotBits));
  }

  std::vector<Slot> slots_;
};

}  // namespace edgecase::catalog
