// The report for who has to account for the store: what is stored, of whom, why, until when; and to
// what degree the six features of "Analyzing the Impact of GDPR on Storage Systems" (Shah et al.,
// HotStorage 2019) are there as it is configured.
//
// Each feature has a response (real-time: done when the request is answered; eventual: later,
// within a bound) and a capability (full; partial, with what is missing; none). Thread-safe; work
// grows with what is reported of, counts come from metadata.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "auth/token_store.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "catalog/tier_spaces.h"
#include "config/settings.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "erase/erase_service.h"
#include "query/listings.h"
#include "query/query_service.h"
#include "retention/retention_service.h"
#include "wire/json_text.h"

namespace edgecase::report {

// In a report that does not count everything: what is damaged, as query/left_out.h tells it.
inline constexpr char kLeftOutMember[] = "left_out";

// Owners that the report of the whole store names; its sums count all.
inline constexpr std::size_t kOwnersNamedMax = 1'000;
// Certificates that a report shows, the newest.
inline constexpr std::size_t kErasuresShownMax = 10;

// The label of devices whose readings decide of themselves over somebody (article 22).
inline constexpr char kAutomatedDecisions[] = "automated-decisions";

struct OwnerReport;  // owner_report.h

// [{"since","by","purposes","objections"}]: who said when what a device's readings may be used for.
wire::Json consents_json(const catalog::DeviceMetadata& metadata);

// Everything must outlive the report.
struct ReportParts {
  const config::Settings& settings;
  Engine& engine;
  Clock& clock;
  const catalog::Catalog& catalog;
  const catalog::DeviceIndex& devices;
  query::QueryService& query;
  const retention::RetentionService& retention;
  const auth::TokenStore& tokens;
  const erase::EraseService& erase;
};

class ComplianceReport {
 public:
  explicit ComplianceReport(const ReportParts& parts) : parts_(parts) {}

  // The report of the whole store. Errors: the engine's.
  Result<wire::Json> of_store() const;
  // NotFound: nothing is said to be theirs.
  Status check_owner(const std::string& owner) const;
  // The report of one person (owner_report.h); `told` of each device.
  Result<OwnerReport> of_owner(const std::string& owner,
                               const std::function<void(const catalog::DeviceName&)>& told) const;

 private:
  // What the degrees of features depend on, beside the settings.
  struct Stored {
    std::uint64_t series = 0, devices = 0, readings = 0, bytes = 0;
    catalog::WindowAmount windows;
    std::uint64_t series_kept_forever = 0;
    std::uint64_t devices_without_owner = 0, devices_without_location = 0;
    std::uint64_t owners = 0;
    std::optional<std::int64_t> oldest_ns, newest_ns;
    wire::Json by_owner = wire::Json::array();
    wire::Json left_out = wire::Json::array();  // readings that are damaged, and so not counted
  };

  Result<Stored> look() const;
  wire::Json features(const Stored& stored) const;
  wire::Json settings_json() const;
  Result<wire::Json> erasures(const std::string& owner) const;
  Result<std::uint64_t> count_owners() const;
  Result<std::uint64_t> count_devices(
      const std::string& owner, const std::function<void(const catalog::DeviceName&)>& told) const;

  const ReportParts parts_;
};

// Amounts stored, of several series together. Inside daemon/report only.
struct Amounts {
  std::uint64_t devices = 0, series = 0, readings = 0, bytes = 0;
  catalog::WindowAmount windows;  // of tiers, beside the readings
  std::optional<std::int64_t> oldest_ns, newest_ns;

  void add(const query::SeriesInfo& info, const catalog::WindowAmount& of_tiers) {
    ++series;
    windows += of_tiers;
    readings += info.count;
    bytes += info.stored_bytes;
    if (info.first_ns) oldest_ns = std::min(oldest_ns.value_or(*info.first_ns), *info.first_ns);
    if (info.last_ns) newest_ns = std::max(newest_ns.value_or(*info.last_ns), *info.last_ns);
  }
};

// In all tiers together. Without a mark there is nothing to look for.
inline Result<catalog::WindowAmount> windows_of(Engine& engine,
                                                const retention::RetentionService& retention,
                                                const catalog::SeriesId& series) {
  catalog::WindowAmount amount;
  if (retention.marks().find(series).every_ns.empty()) return amount;
  for (const catalog::TierSpace& tier : catalog::tier_spaces_of(engine, series.namespace_id)) {
    EC_ASSIGN_OR_RETURN(const catalog::WindowAmount more,
                        catalog::windows_of(engine, tier, series));
    amount += more;
  }
  return amount;
}

inline void append_windows(const catalog::WindowAmount& amount, wire::Json& json) {
  json["windows"] = amount.windows;
  json["window_bytes"] = amount.bytes;
}

}  // namespace edgecase::report
