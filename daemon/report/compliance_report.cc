#include "report/compliance_report.h"

#include <algorithm>
#include <map>
#include <memory>

#include "config/validate.h"
#include "wire/version.h"

namespace edgecase::report {
namespace {

using wire::Json;

// The label of devices whose readings decide of themselves over somebody (article 22).
constexpr char kAutomatedDecisions[] = "automated-decisions";

struct Amounts {
  std::uint64_t devices = 0, series = 0, readings = 0, bytes = 0;
  std::optional<std::int64_t> oldest_ns, newest_ns;

  void add(const query::SeriesInfo& info) {
    ++series;
    readings += info.count;
    bytes += info.stored_bytes;
    if (info.first_ns) oldest_ns = std::min(oldest_ns.value_or(*info.first_ns), *info.first_ns);
    if (info.last_ns) newest_ns = std::max(newest_ns.value_or(*info.last_ns), *info.last_ns);
  }
};

const auth::Principal& daemon_itself() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "daemon", nullptr};
  return principal;
}

catalog::DeviceName device_of(const query::SeriesInfo& info) {
  return {info.namespace_name, info.device};
}

Json scope_json(const std::optional<wire::Selector>& scope) {
  if (!scope) return nullptr;
  return scope->device + "/" + scope->sensor;
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
              const ExpiryStats& expiry) {
  const bool exact = settings.storage.expiry == "exact";
  std::string missing;
  const auto add = [&missing](const std::string& what) {
    missing += (missing.empty() ? "" : "; ") + what;
  };
  if (kept_forever > 0)
    add("series that no rule of retention ends: " + std::to_string(kept_forever));
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
  return !listen.empty() && address.ok() && !config::is_loopback(address->host);
}

bool is_remote_broker(const std::string& broker) {
  const std::string host = broker.substr(std::min(broker.size(), broker.find("://") + 3));
  return !broker.empty() && !config::is_loopback(host.substr(0, host.rfind(':')));
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
  EC_ASSIGN_OR_RETURN(const std::vector<query::SeriesInfo> series,
                      parts_.query.series(daemon_itself(), "", {}));
  Stored stored;
  Amounts all;
  std::map<std::string, Amounts> by_owner;
  std::string owner;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const query::SeriesInfo& info = series[i];
    const bool is_new_device = i == 0 || device_of(info) != device_of(series[i - 1]);
    if (is_new_device) {
      EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata,
                          parts_.devices.metadata(device_of(info)));
      owner = metadata.owner;
      ++stored.devices;
      if (owner.empty()) ++stored.devices_without_owner;
      if (metadata.location.empty()) ++stored.devices_without_location;
    }
    all.add(info);
    if (!owner.empty()) {
      by_owner[owner].add(info);
      by_owner[owner].devices += is_new_device ? 1 : 0;
    }
    EC_ASSIGN_OR_RETURN(const catalog::SeriesEntry entry,
                        parts_.catalog.find(info.namespace_name, info.device, info.sensor));
    if (parts_.retention.retention_ns(entry) == kRetentionForever) ++stored.series_kept_forever;
  }
  stored.series = all.series;
  stored.readings = all.readings;
  stored.bytes = all.bytes;
  stored.oldest_ns = all.oldest_ns;
  stored.newest_ns = all.newest_ns;
  stored.owners = by_owner.size();
  for (const auto& [name, amounts] : by_owner) {
    if (stored.by_owner.size() == kOwnersNamedMax) break;
    stored.by_owner.push_back({{"owner", name},
                               {"devices", amounts.devices},
                               {"series", amounts.series},
                               {"readings", amounts.readings},
                               {"bytes", amounts.bytes},
                               {"oldest", wire::time_or_null(amounts.oldest_ns)},
                               {"newest", wire::time_or_null(amounts.newest_ns)}});
  }
  return stored;
}

Json ComplianceReport::features(const Stored& stored) const {
  return Json::array(
      {deletion(parts_.settings, stored.series_kept_forever, parts_.engine.stats().expiry),
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

Result<Json> ComplianceReport::of_store() const {
  EC_ASSIGN_OR_RETURN(const Stored stored, look());
  const bool trusted = parts_.clock.trust() == ClockTrust::Trusted;
  Json rules = Json::array();
  for (const retention::Rule& rule : parts_.retention.rules()) {
    rules.push_back({{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
                     {"select", rule.selector.device + "/" + rule.selector.sensor},
                     {"keep", wire::keep_text(rule.retention_ns)}});
  }
  EC_ASSIGN_OR_RETURN(Json erased, erasures(""));
  std::uint64_t tokens = 0;
  for (const auth::TokenInfo& token : parts_.tokens.list()) tokens += token.has_ended ? 0 : 1;
  return Json{{"made", wire::time_text(parts_.clock.wall_ns())},
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
}

Result<Json> ComplianceReport::device_json(const catalog::DeviceName& name) const {
  EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata, parts_.devices.metadata(name));
  Json labels = Json::object();
  for (const auto& [label, value] : metadata.labels) labels[label] = value;
  return Json{{"namespace", name.namespace_name},    {"device", name.device},
              {"purposes", metadata.purposes},       {"objections", metadata.objections},
              {"location", metadata.location},       {"labels", std::move(labels)},
              {"consents", consents_json(metadata)}, {"series", Json::array()}};
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
                    {"asked", wire::time_text(each.asked_ns)},
                    {"gone", is_done ? Json(wire::time_text(each.gone_ns)) : Json(nullptr)},
                    {"series", each.series}});
  }
  return list;
}

// Tokens that may read or export any of it now.
Json ComplianceReport::recipients(const std::vector<query::SeriesInfo>& series) const {
  Json list = Json::array();
  for (const auth::TokenInfo& token : parts_.tokens.list()) {
    if (token.has_ended) continue;
    auto grant = std::make_shared<auth::Grant>();
    grant->scopes = token.scopes;
    const auth::Principal holder{auth::PrincipalKind::Remote, "", grant};
    const bool may = std::any_of(series.begin(), series.end(), [&](const auto& info) {
      return auth::allows(auth::Operation::Read, holder, info.namespace_name, info.device,
                          info.sensor) ||
             auth::allows(auth::Operation::Export, holder, info.namespace_name, info.device,
                          info.sensor);
    });
    if (!may) continue;
    list.push_back({{"token", token.id},
                    {"admin", token.scopes.admin},
                    {"read", scope_json(token.scopes.read)},
                    {"export", scope_json(token.scopes.export_all)},
                    {"purpose", token.scopes.purpose},
                    {"ends", wire::time_or_null(token.ends_ns)},
                    {"last_used", wire::time_or_null(token.last_used_ns)}});
  }
  return list;
}

Result<Json> ComplianceReport::of_owner(const std::string& owner) const {
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                      parts_.devices.find("", catalog::owned_by(owner)));
  if (names.empty()) return not_found("nothing is said to belong to " + owner);
  EC_ASSIGN_OR_RETURN(const std::vector<query::SeriesInfo> series, parts_.query.series_of(owner));
  EC_ASSIGN_OR_RETURN(Json erased, erasures(owner));
  Amounts all;
  Json devices = Json::array();
  bool decides = false;
  auto next = series.begin();
  // Both are in the order of namespace and device; a device need not have readings.
  for (const catalog::DeviceName& name : names) {
    EC_ASSIGN_OR_RETURN(Json device, device_json(name));
    decides = decides || device["labels"].value(kAutomatedDecisions, "") == "yes";
    for (; next != series.end() && device_of(*next) == name; ++next) {
      EC_ASSIGN_OR_RETURN(const catalog::SeriesEntry entry,
                          parts_.catalog.find(next->namespace_name, next->device, next->sensor));
      all.add(*next);
      device["series"].push_back({{"sensor", next->sensor},
                                  {"readings", next->count},
                                  {"bytes", next->stored_bytes},
                                  {"oldest", wire::time_or_null(next->first_ns)},
                                  {"newest", wire::time_or_null(next->last_ns)},
                                  {"keep", wire::keep_text(parts_.retention.retention_ns(entry))}});
    }
    devices.push_back(std::move(device));
  }
  return Json{{"owner", owner},
              {"made", wire::time_text(parts_.clock.wall_ns())},
              {"stored",
               {{"devices", names.size()},
                {"series", all.series},
                {"readings", all.readings},
                {"bytes", all.bytes},
                {"oldest", wire::time_or_null(all.oldest_ns)},
                {"newest", wire::time_or_null(all.newest_ns)}}},
              {"devices", std::move(devices)},
              {"recipients", recipients(series)},
              {"erasures", std::move(erased)},
              {"automated_decisions", decides}};
}

}  // namespace edgecase::report
