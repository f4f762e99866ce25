// A memo of the series that readings were found to be of: large batches, and requests that come
// again and again, have each looked up once. Two ways to recognise one:
//
//   by its number, between slices and between requests, as long as ReadingBatch::numbering stays
//   by where its names lie, where it has none: views with the same address and size hold the same
//   name within a batch, and between slices of one request as long as ReadingBatch::text_id() stays
//
// What it answers is what a look-up would: the catalog, which alone asks it, has it forget
// everything when a series was erased or dropped since. One thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "wire/reading.h"

namespace edgecase::catalog {

class SeriesMemo {
 public:
  // Numbers from here on; series with greater ones are not remembered.
  static constexpr std::uint32_t kNumbersMax = 128u << 10;

  // Before a batch with names under that id, and with that numbering.
  void begin(std::uint64_t text_id, std::uint64_t numbering) {
    if (text_id != text_id_) slots_.clear();
    if (numbering != numbering_) numbered_.clear();
    text_id_ = text_id;
    numbering_ = numbering;
  }
  // Names may lie elsewhere from here on: another request comes.
  void forget_places() { slots_.clear(); }
  // The catalog's: of when it is asked.
  void begin_look_up(std::uint64_t generation) {
    if (generation == generation_) return;
    generation_ = generation;
    slots_.clear();
    numbered_.clear();
  }

  // Null: not known.
  const SeriesId* find(const wire::Reading& reading) const {
    if (is_numbered(reading)) {
      if (reading.series_number >= numbered_.size()) return nullptr;
      const SeriesId& id = numbered_[reading.series_number];
      return id.sensor == 0 ? nullptr : &id;
    }
    return slots_.empty() ? nullptr : find_by_place(reading);
  }
  // Notes that the series is durable. Small batches, in which most series come once, are not worth
  // remembering places.
  void note(const wire::Reading& reading, const SeriesId& id, bool by_place) {
    if (!is_numbered(reading)) {
      if (by_place) note_place(reading, id);
      return;
    }
    const std::uint32_t number = reading.series_number;
    if (number >= kNumbersMax) return;
    if (number >= numbered_.size()) numbered_.resize(number + 1);
    numbered_[number] = id;
  }

  std::size_t memory_bytes() const {
    return slots_.capacity() * sizeof(Slot) + numbered_.capacity() * sizeof(SeriesId);
  }

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

  bool is_numbered(const wire::Reading& reading) const {
    return numbering_ != 0 && reading.series_number != 0;
  }
  const SeriesId* find_by_place(const wire::Reading& reading) const {
    const std::size_t first = place_of(reading);
    for (std::size_t i = 0; i < kWays; ++i) {
      const Slot& slot = slots_[(first + i) % kSlots];
      if (slot.sensor == place(reading.sensor) && slot.device == place(reading.device) &&
          slot.namespace_name == place(reading.namespace_name))
        return &slot.id;
    }
    return nullptr;
  }
  void note_place(const wire::Reading& reading, const SeriesId& id) {
    if (slots_.empty()) slots_.resize(kSlots);
    const std::size_t first = place_of(reading);
    std::size_t at = first;
    for (std::size_t i = 0; i < kWays && slots_[at].sensor.data != nullptr; ++i)
      at = (first + i) % kSlots;
    slots_[at] = {place(reading.sensor), place(reading.device), place(reading.namespace_name), id};
  }

  std::uint64_t generation_ = 0;
  std::uint64_t text_id_ = 0;
  std::uint64_t numbering_ = 0;
  std::vector<Slot> slots_;
  std::vector<SeriesId> numbered_;  // by number; sensor 0: not known
};

}  // namespace edgecase::catalog
