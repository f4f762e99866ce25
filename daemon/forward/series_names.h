// Names of series at a target: SeriesNames has those that it wants, by their numbers;
// Pseudonyms and column_of() say how a name differs there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "config/settings.h"
#include "edgecase/bytes.h"
#include "retention/retention_service.h"
#include "wire/tiers.h"

namespace edgecase::forward {

// What the series of a column is called: `cpu.idle_min{core=1}`.
catalog::SeriesEntry column_of(const catalog::SeriesEntry& entry, wire::WindowColumn column);

// A pseudonym is HMAC-SHA-256 under the target's salt (records.h), of which 96 bits are written:
// nobody finds the name, and two targets cannot tell that they have the same device. Of an
// identity the measurement and the tags that name the device are replaced; other tags stay.
// Immutable; any thread.
class Pseudonyms {
 public:
  // Without a salt names stay as they are.
  explicit Pseudonyms(Bytes salt = {}) : salt_(std::move(salt)) {}

  std::string of(std::string_view namespace_name, std::string_view name) const;
  catalog::SeriesEntry of(catalog::SeriesEntry entry) const;

 private:
  Bytes salt_;
};

// For who reads the store in the order of keys. Remembers a bounded number of series. One thread.
class SeriesNames {
 public:
  static constexpr std::size_t kSeriesMax = 8'192;

  struct Series {
    catalog::SeriesEntry entry;  // as it is called at the target
    bool is_wanted = false;
    std::string keeping = {};    // its rule, as text; empty: it is kept for ever
    catalog::SeriesRow row = 0;  // of what it is called here
  };

  // Without rules (null) nothing is said of them. `every_ns`: they are said of such windows.
  SeriesNames(const catalog::Catalog& catalog, std::vector<config::ForwardSelection> selections,
              Pseudonyms pseudonyms = Pseudonyms(),
              const retention::RetentionService* rules = nullptr, std::int64_t every_ns = 0)
      : catalog_(catalog),
        selections_(std::move(selections)),
        pseudonyms_(std::move(pseudonyms)),
        rules_(rules),
        every_ns_(every_ns) {}

  // Whether something of the namespace may be wanted.
  bool wants(const std::string& namespace_name) const;
  // Null: it has no name. Its readings are durable before its name is to be found: ask again. What
  // it answers holds until the next call.
  const Series* find(const catalog::SeriesId& id);
  Series series_of(catalog::SeriesRow row, catalog::SeriesEntry entry) const;
  // Nothing of names stays in memory.
  void forget();

 private:
  using DeviceKey = std::pair<NamespaceId, std::uint32_t>;

 public:
  struct SeriesHash {
    std::size_t operator()(const catalog::SeriesId& id) const {
      const std::uint64_t mixed = (std::uint64_t{id.device} << 32 | id.sensor) * 0x9e3779b97f4a7c15;
      return static_cast<std::size_t>(mixed ^ mixed >> 29 ^ id.namespace_id);
    }
  };

 private:
  bool is_wanted(const catalog::SeriesEntry& entry) const;
  bool load_device(const DeviceKey& wanted);
  void remember(const catalog::DeviceEntry& device);

  const catalog::Catalog& catalog_;
  const std::vector<config::ForwardSelection> selections_;
  const Pseudonyms pseudonyms_;
  const retention::RetentionService* const rules_;
  const std::int64_t every_ns_;
  std::uint64_t generation_ = 0, rules_generation_ = 0;
  std::uint32_t rows_seen_ = 0;  // of devices: those before are looked through from the beginning
  std::unordered_map<catalog::SeriesId, Series, SeriesHash> series_;
};

}  // namespace edgecase::forward
