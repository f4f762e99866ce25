#include "report/compliance_report.h"

#include <iterator>
#include <map>
#include <optional>

#include "config/configuration.h"
#include "wire/authority.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/tiers.h"

namespace edgecase::report {
namespace {

using wire::Json;

const auth::Principal& daemon_itself() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "daemon", nullptr};
  return principal;
}

catalog::DeviceName device_of(const query::SeriesInfo& info) {
  return {info.namespace_name, info.device};
}

// "full" where nothing is missing.
Json feature(const char* name, const char* response, const std::string& missing,
             const std::string& how) {
  return {{"feature", name},
          {"response", response},
          {"capability", missing.empty() ? "full" : "partial"},
          {"how", how},
          {"missing", missing.empty() ? Json(nullptr) : Json(missing)}};
}

Json absent_feature(const char* name, const char* missing) {
  return {{"feature", name},
          {"response", nullptr},
          {"capability", "none"},
          {"how", nullptr},
          {"missing", missing}};
}

Json deletion(const config::Settings& settings, std::uint64_t kept_forever,
              const ExpiryStats& expiry, const erase::Reach& reach) {
  const bool exact = settings.storage.expiry == "exact";
  std::string missing;
  const auto add = [&missing](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  if (kept_forever > 0)
    add("series that no rule of retention ends: " + std::to_string(kept_forever));
  if (reach.level != erase::ErasureLevel::Physical)
    add("what is overwritten may stay on a drive, so erasures are " +
        std::string(erase::level_name(reach.level)) + " (" + reach.why + ")");
  if (expiry.wait == ExpiryWait::Untrusted) add("the clock is not trusted: nothing expires");
  if (expiry.wait == ExpiryWait::Jump)
    add("the clock leapt ahead: until it is followed, readings expire by the time that passes");
  if (expiry.held_bytes > 0)
    add("the clock leapt ahead: " + std::to_string(expiry.held_bytes) +
        " bytes that are unreadable by it are kept until it is confirmed, a day at most");
  return feature("timely deletion", exact ? "real-time" : "eventual", missing,
                 exact ? "unreadable at the instant, its bytes gone within 1 s"
                       : "unreadable at the instant, its bytes gone within 60 s after a sixteenth "
                         "of the retention (storage.expiry = \"exact\": within 1 s)");
}

Json indexing(std::uint64_t without_owner) {
  return feature("indexing via metadata", "real-time",
                 without_owner == 0 ? ""
                                    : std::to_string(without_owner) +
                                          " devices have no owner (device set --owner)",
                 "devices are found and refused by owner, purpose, objection and label");
}

Json access(const config::Settings& settings, bool any_token) {
  std::string missing;
  if (!any_token) missing = "no token was made yet: whoever reaches this machine may do everything";
  if (settings.http.allow_insecure) {
    missing = "http.allow-insecure lets other machines in without TLS or token";
  }
  return feature("access control", "real-time", missing,
                 "tokens with scopes, purposes and an end; the local socket by its group");
}

// What leaves the machine is what others could read.
bool crosses_a_network(const std::string& listen) {
  const auto address = config::parse_listen_address(listen);
  return !listen.empty() && address.ok() && !wire::is_loopback(address->host);
}

bool is_remote_broker(const std::string& broker) {
  if (broker.empty()) return false;
  const auto place = wire::parse_authority(
      std::string_view(broker).substr(std::min(broker.size(), broker.find("://") + 3)));
  return !place.ok() || !wire::is_loopback(place->host);
}

Json encryption(const config::Settings& settings) {
  std::string open;
  const auto add = [&open](bool is_open, const char* what) {
    if (is_open) open += (open.empty() ? "" : ", ") + std::string(what);
  };
  add(crosses_a_network(settings.http.listen) && settings.http.tls_cert.empty(), "http.listen");
  add(crosses_a_network(settings.mqtt.listen) && settings.mqtt.tls_cert.empty(), "mqtt.listen");
  add(is_remote_broker(settings.mqtt.broker) && settings.mqtt.broker.starts_with("mqtt://"),
      "mqtt.broker");
  const bool is_on = !settings.storage.encryption_key_file.empty();
  std::string missing = is_on ? "" : "nothing is encrypted on the drives";
  if (!open.empty()) missing += (is_on ? "" : "; ") + ("without TLS over a network: " + open);
  if (!is_on && !open.empty()) return absent_feature("encryption", missing.c_str());
  std::string how;
  if (is_on) how = "everything on both drives by AES-256-GCM, a key for each device";
  if (open.empty())
    how += (is_on ? "; " : "") + std::string("nothing crosses a network without TLS");
  return feature("encryption", "real-time", missing, how);
}

Json location(const config::StorageSettings& storage, std::uint64_t without_location) {
  std::string missing;
  if (without_location > 0)
    missing = std::to_string(without_location) + " devices have no location";
  if (storage.metadata_location.empty() || storage.values_location.empty())
    missing += std::string(missing.empty() ? "" : "; ") +
               "where the drives are (storage.metadata-location, storage.values-location)";
  return feature("managing data location", "real-time", missing,
                 storage.locations.empty()
                     ? "values on one drive, all else on the other; nothing is sent elsewhere "
                       "(storage.locations: nor backed up to elsewhere)"
                     : "values on one drive, all else on the other; nothing is sent, or backed up, "
                       "to elsewhere than " +
                           storage.locations);
}

Json monitoring(const config::AuditSettings& settings) {
  constexpr const char* kName = "monitoring and logging";
  if (settings.mode == "off") return absent_feature(kName, "audit.mode is off");
  const bool strict = settings.mode == "strict";
  return feature(kName, strict ? "real-time" : "eventual", "",
                 strict ? "what is stored, read, changed and denied is recorded before the answer"
                        : "what is stored, read, changed and denied is recorded within 1 s "
                          "(audit.mode = \"strict\": before the answer)");
}

}  // namespace

Json consents_json(const catalog::DeviceMetadata& metadata) {
  Json consents = Json::array();
  for (const catalog::Consent& consent : metadata.consents) {
    consents.push_back({{"since", wire::time_text(consent.time_ns)},
                        {"by", consent.by},
                        {"purposes", consent.purposes},
                        {"objections", consent.objections}});
  }
  return consents;
}

Result<ComplianceReport::Stored> ComplianceReport::look() const {
  EC_ASSIGN_OR_RETURN(query::SeriesListing listing,
                      parts_.query.list_series(daemon_itself(), "", {}));
  Stored stored;
  Amounts all;
  std::map<std::string, Amounts> by_owner;  // the first ones, by name
  std::string owner;
  std::optional<catalog::DeviceName> device;
  query::SeriesInfo info;
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, listing.next(info));
    if (!more) break;
    const bool is_new_device = !device || device_of(info) != *device;
    if (is_new_device) {
      device = device_of(info);
      EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata, parts_.devices.metadata(*device));
      owner = metadata.owner;
      ++stored.devices;
      if (owner.empty()) ++stored.devices_without_owner;
      if (metadata.location.empty()) ++stored.devices_without_location;
    }
    EC_ASSIGN_OR_RETURN(const catalog::SeriesEntry entry,
                        parts_.catalog.find(info.namespace_name, info.device, info.sensor));
    EC_ASSIGN_OR_RETURN(const catalog::WindowAmount windows,
                        windows_of(parts_.engine, parts_.retention, entry.id));
    all.add(info, windows);
    if (!owner.empty()) {
      by_owner[owner].add(info, windows);
      by_owner[owner].devices += is_new_device ? 1 : 0;
      // One that is not among them by now never will be.
      if (by_owner.size() > kOwnersNamedMax) by_owner.erase(std::prev(by_owner.end()));
    }
    if (parts_.retention.retention_ns(entry) == kRetentionForever) ++stored.series_kept_forever;
  }
  stored.left_out = query::left_out_json(*listing.left_out());
  stored.series = all.series;
  stored.readings = all.readings;
  stored.bytes = all.bytes;
  stored.windows = all.windows;
  stored.oldest_ns = all.oldest_ns;
  stored.newest_ns = all.newest_ns;
  EC_ASSIGN_OR_RETURN(stored.owners, count_owners());
  for (const auto& [name, amounts] : by_owner) {
    stored.by_owner.push_back({{"owner", name},
                               {"devices", amounts.devices},
                               {"series", amounts.series},
                               {"readings", amounts.readings},
                               {"bytes", amounts.bytes},
                               {"oldest", wire::time_or_null(amounts.oldest_ns)},
                               {"newest", wire::time_or_null(amounts.newest_ns)}});
    append_windows(amounts.windows, stored.by_owner.back());
  }
  return stored;
}

// Counts the owners whose devices hold anything.
Result<std::uint64_t> ComplianceReport::count_owners() const {
  return parts_.devices.count_owners([this](const catalog::DeviceName& name) {
    return !name.namespace_name.starts_with('_') &&
           !parts_.catalog.select_rows(name.namespace_name, {wire::escape_name(name.device), "*"})
                .empty();
  });
}

Json ComplianceReport::features(const Stored& stored) const {
  return Json::array(
      {deletion(parts_.settings, stored.series_kept_forever, parts_.engine.stats().expiry,
                parts_.erase.reach(parts_.erase.drives().look(), true)),
       monitoring(parts_.settings.audit), indexing(stored.devices_without_owner),
       access(parts_.settings, parts_.tokens.any()), encryption(parts_.settings),
       location(parts_.settings.storage, stored.devices_without_location)});
}

Json ComplianceReport::settings_json() const {
  const config::Settings& settings = parts_.settings;
  return {{"storage.retention", settings.storage.retention},
          {"storage.expiry", settings.storage.expiry},
          {"storage.metadata", settings.storage.metadata},
          {"storage.values", settings.storage.values},
          {"storage.on-full", settings.storage.on_full},
          {"storage.encryption", !settings.storage.encryption_key_file.empty()},
          {"storage.metadata-location", settings.storage.metadata_location},
          {"storage.values-location", settings.storage.values_location},
          {"storage.locations", settings.storage.locations},
          {"http.listen", settings.http.listen},
          {"http.tls", !settings.http.tls_cert.empty()},
          {"audit.mode", settings.audit.mode},
          {"audit.retention", settings.audit.retention},
          {"http.allow-insecure", settings.http.allow_insecure},
          {"mqtt.broker", settings.mqtt.broker},
          {"mqtt.listen", settings.mqtt.listen},
          {"mqtt.tls", !settings.mqtt.tls_cert.empty()}};
}

Json rules_json(const std::vector<retention::Rule>& rules) {
  Json list = Json::array();
  for (const retention::Rule& rule : rules) {
    list.push_back({{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
                    {"select", rule.selector.device + "/" + rule.selector.sensor},
                    {"keep", wire::keep_text(rule.retention_ns)}});
    if (!rule.tiers.empty()) list.back()["then"] = wire::tiers_text(rule.tiers);
  }
  return list;
}

Result<Json> ComplianceReport::of_store() const {
  EC_ASSIGN_OR_RETURN(const Stored stored, look());
  const bool trusted = parts_.clock.trust() == ClockTrust::Trusted;
  Json rules = rules_json(parts_.retention.rules());
  EC_ASSIGN_OR_RETURN(Json erased, erasures(""));
  std::uint64_t tokens = 0;
  for (const auth::TokenInfo& token : parts_.tokens.list()) tokens += token.has_ended ? 0 : 1;
  Json report{{"made", wire::time_text(parts_.clock.wall_ns())},
              {"clock_trusted", trusted},
              {"version", wire::version()},
              {"features", features(stored)},
              {"stored",
               {{"devices", stored.devices},
                {"series", stored.series},
                {"readings", stored.readings},
                {"bytes", stored.bytes},
                {"oldest", wire::time_or_null(stored.oldest_ns)},
                {"newest", wire::time_or_null(stored.newest_ns)},
                {"owners", stored.owners},
                {"devices_without_owner", stored.devices_without_owner},
                {"series_kept_forever", stored.series_kept_forever}}},
              {"owners", stored.by_owner},
              {"retention", std::move(rules)},
              {"erasures", std::move(erased)},
              {"active_tokens", tokens},
              {"settings", settings_json()}};
  append_windows(stored.windows, report["stored"]);
  if (!stored.left_out.empty()) report[kLeftOutMember] = stored.left_out;
  return report;
}

// The last ones, or those of what is somebody's.
Result<Json> ComplianceReport::erasures(const std::string& owner) const {
  EC_ASSIGN_OR_RETURN(const std::vector<erase::Certificate> certificates,
                      parts_.erase.certificates(std::nullopt, owner, kErasuresShownMax));
  Json list = Json::array();
  for (const erase::Certificate& each : certificates) {
    const bool is_done = each.state == erase::ErasureState::Done;
    list.push_back({{"id", each.number},
                    {"state", is_done ? "done" : "pending"},
                    {"level", erase::level_name(parts_.erase.reach_of(each).level)},
                    {"asked", wire::time_text(each.asked_ns)},
                    {"gone", is_done ? Json(wire::time_text(each.gone_ns)) : Json(nullptr)},
                    {"series", each.series}});
  }
  return list;
}

}  // namespace edgecase::report
