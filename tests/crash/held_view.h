// A view that a life of the crash harness holds on to while the store goes on: a snapshot and an
// iterator, and what they must show.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "crash/crash_state.h"
#include "crash/crash_store.h"

namespace edgecase::test {

inline constexpr std::size_t kSnapshotsMax = 3;

struct HeldView {
  std::shared_ptr<const Snapshot> snapshot;
  State state;
  PlaceIds ids{};
  State iterated_state;
  std::array<bool, kKeysPerPlace> erased{};  // meanwhile: the iterator may show them still
  std::size_t iterated = 0;                  // the place of `iterator`
  std::unique_ptr<Iterator> iterator;
  // It may have met a failure where it began, and keeps that when the drives are well again.
  bool began_ailing = false;
};

}  // namespace edgecase::test
