// The table of series' identities, as far as their names do not say them, in four bytes each. Texts
// that several series have in common are kept once. See wire/identity.h. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "catalog/name_store.h"
#include "catalog/shared_texts.h"
#include "wire/identity.h"

namespace edgecase::catalog {

class IdentityTable {
 public:
  // What a series' row holds.
  using Handle = std::uint32_t;
  static constexpr Handle kUnknown = 0;  // a record of version 1 says nothing of it
  static constexpr Handle kOfNames = 1;

  // `names` and `seed` as of NameIndex; outlives the table.
  IdentityTable(NameStore& names, std::uint64_t seed) : names_(names), bodies_(names, seed) {}

  // Keeps the identity of a series that is called `sensor`; each is given back once.
  Handle keep(const wire::SeriesIdentity& identity, std::string_view sensor);
  // Nothing of it is left in memory once nobody else has it.
  void give_back(Handle handle);
  // Not of kUnknown.
  wire::SeriesIdentity at(Handle handle, std::string_view sensor) const;

  std::uint64_t memory_bytes() const {
    return bodies_.memory_bytes() + keys_.capacity() * sizeof(std::string_view);
  }

 private:
  // A handle is one of the two above, or has its kind in the two bits at its top. By name: the
  // number of its keys, and how long the measurement is; by body: the body's row.
  static constexpr Handle kByName = 1u << 30, kByBody = 2u << 30, kKinds = 3u << 30;
  static constexpr unsigned kMeasurementBits = 11;

  std::uint32_t keep_keys(std::string_view keys);

  NameStore& names_;
  std::vector<std::string_view> keys_;
  std::map<std::string_view, std::uint32_t> keys_index_;
  SharedTexts bodies_;  // parent: the number of their keys
};

}  // namespace edgecase::catalog
