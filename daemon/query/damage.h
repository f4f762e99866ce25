// Damage that scrubbing found, in words of users: which readings of which series a damaged file has
// lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"

namespace edgecase::query {

inline constexpr std::size_t kLostSeriesMax = 64;  // named of one file

struct LostSeries {
  std::string namespace_name;
  std::string device;  // empty: what the store notes for itself
  std::string sensor;
  std::int64_t from_ns = INT64_MIN;  // both included; not every reading between need be lost
  std::int64_t to_ns = INT64_MAX;
};

struct Damage {
  DamagedFile file;
  std::vector<LostSeries> lost;
  bool lost_more = false;  // than `lost` names
};

// A series that was erased meanwhile is not named.
std::vector<Damage> find_damage(const Engine& engine, const catalog::Catalog& catalog);

}  // namespace edgecase::query
