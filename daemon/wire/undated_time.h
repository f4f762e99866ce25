// Times that stand for none yet. What arrives without a time while the clock is not trusted is
// stored under one of these, and moved to its own once the clock is right (ingest/redating.h): they
// lie far behind every clock, so that nothing of theirs expires or is evicted meanwhile.
//
// A slot is a span of one boot in which the clock was not trusted: its first nanosecond stands for
// the moment of the first arrival in it.
#pragma once

#include <cstdint>
#include <string_view>

namespace edgecase::wire {

// Where it is kept what the slots stand for; empty: nothing ever had such a time.
inline constexpr std::string_view kUndatedNamespace = "_undated";

inline constexpr int kUndatedSlotBits = 48;  // 3.26 days; a longer span takes another slot
inline constexpr std::uint32_t kUndatedSlots = 2048;
inline constexpr std::int64_t kUndatedSlotNs = std::int64_t{1} << kUndatedSlotBits;
// From 2225-09-28T23:48:52.247928832Z to 2244-01-04T23:48:04.551352320Z.
inline constexpr std::int64_t kUndatedFromNs = std::int64_t{7} << 60;
inline constexpr std::int64_t kUndatedToNs = kUndatedFromNs + kUndatedSlots * kUndatedSlotNs;

inline bool is_undated_time(std::int64_t time_ns) {
  return kUndatedFromNs <= time_ns && time_ns < kUndatedToNs;
}
// The slot of an undated time.
inline std::uint32_t undated_slot_of(std::int64_t time_ns) {
  return static_cast<std::uint32_t>((time_ns - kUndatedFromNs) >> kUndatedSlotBits);
}
inline std::int64_t undated_slot_first_ns(std::uint32_t slot) {
  return kUndatedFromNs + slot * kUndatedSlotNs;
}

}  // namespace edgecase::wire
