// Reports for who has to account: of the whole store (ComplianceReport), of one person
// (OwnerReport).
//
// The first tells what is stored, of whom, why, until when; and to what degree the six
// features of "Analyzing the Impact of GDPR on Storage Systems" (Shah et al., HotStorage 2019) are
// there as it is configured.
//
// Each feature has a response (real-time: done when the request is answered; eventual: later,
// within a bound) and a capability (full; partial, with what is missing; none). Thread-safe; work
// grows with what is reported of, counts come from metadata.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/hashing.h"
#include "auth/token_store.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "catalog/tier_spaces.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "erase/erase_service.h"
#include "query/listings.h"
#include "query/query_service.h"
#include "retention/retention_service.h"
#include "wire/json_text.h"

namespace edgecase::report {

// In a report that does not count everything: what is damaged, as query/left_out.h tells it.
inline constexpr char kLeftOutMember[] = "left_out";

// Rules of retention, as reports and backups tell them.
wire::Json rules_json(const std::vector<retention::Rule>& rules);

// Owners that the report of the whole store names; its sums count all.
inline constexpr std::size_t kOwnersNamedMax = 1'000;
// Certificates that a report shows, the newest.
inline constexpr std::size_t kErasuresShownMax = 10;

// The label of devices whose readings decide of themselves over somebody (article 22).
inline constexpr char kAutomatedDecisions[] = "automated-decisions";

struct OwnerReport;

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
  // The report of one person (OwnerReport); `told` of each device.
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

// The report on one person: devices with their readings, purposes and objections, how long each
// series is kept, and who may read it.
//
//   {"owner","made","stored","devices":[{...,"series":[...]}],"recipients","erasures",
//    "automated_decisions", ...}
//
// It may be longer than memory has room for: numbers of its series are kept, 64 bytes each; names,
// and what is said of devices, are looked up each time that its text is written. One thread.
struct OwnerReport {
  // One series, as it was found.
  struct Series {
    std::uint64_t readings = 0, bytes = 0;
    catalog::WindowAmount windows;
    std::int64_t first_ns = 0, last_ns = 0, keep_ns = 0;
    catalog::SeriesRow row = 0;
    bool has_first = false, has_last = false;
  };

  std::string owner;
  wire::Json document;  // of its devices none
  std::vector<Series> series;
};

// The members of its objects as they are told, or sorted by their names.
enum class MemberOrder : unsigned char { AsTold, Sorted };

class OwnerReportText {
 public:
  OwnerReportText(const ReportParts& parts, std::shared_ptr<const OwnerReport> report,
                  MemberOrder order)
      : parts_(parts), report_(std::move(report)), order_(order) {}

  // Appends more of it: one object, without a line feed at its end. False: that was the last.
  // Errors: the engine's.
  Result<bool> fill(std::string& out);
  // What is told of devices, once it was; the same in any order.
  const auth::Digest& devices_digest() const { return digest_; }
  // Busy, before anything behind the devices, if what is told of them is something else.
  void expect_devices(const auth::Digest& digest) { expected_ = digest; }

 private:
  enum class Part : unsigned char { Head, Devices, Series, Tail, End };

  void append_members(bool are_before_devices, std::string& out) const;
  Result<bool> next_name();
  Result<bool> next_device(std::string& out);
  Result<bool> next_series(std::string& out);
  Status end_devices();
  void append_object(const wire::Json& object, std::size_t left_out, std::string& out);

  const ReportParts parts_;
  const std::shared_ptr<const OwnerReport> report_;
  const MemberOrder order_;
  Part part_ = Part::Head;
  std::vector<catalog::DeviceName> names_;  // a page of them
  std::size_t next_name_ = 0;
  std::size_t next_series_ = 0;
  bool is_last_page_ = false;
  bool is_first_device_ = true, is_first_series_ = true;
  auth::Sha256 told_;
  auth::Digest digest_{};
  std::optional<auth::Digest> expected_;
};

}  // namespace edgecase::report
