#include "report/compliance_report.h"

#include <algorithm>
#include <utility>

#include "wire/tiers.h"

namespace edgecase::report {
namespace {

using wire::Json;

// Devices whose names are held at once.
constexpr std::size_t kNamesPerPage = 500;
constexpr char kDevicesMember[] = "devices";

std::string text_of(const nlohmann::json& sorted) {
  return sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string text_of(const Json& as_told) {
  return as_told.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// `series` is empty, and the last member in any order.
Result<Json> device_object(const ReportParts& parts, const catalog::DeviceName& name) {
  EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata, parts.devices.metadata(name));
  Json labels = Json::object();
  for (const auto& [label, value] : metadata.labels) labels[label] = value;
  return Json{{"namespace", name.namespace_name},    {"device", name.device},
              {"purposes", metadata.purposes},       {"objections", metadata.objections},
              {"location", metadata.location},       {"labels", std::move(labels)},
              {"consents", consents_json(metadata)}, {"series", Json::array()}};
}

Json series_object(const OwnerReport::Series& series, const std::string& sensor) {
  const auto time_or_null = [](bool is_there, std::int64_t time_ns) {
    return is_there ? Json(wire::time_text(time_ns)) : Json(nullptr);
  };
  return {{"sensor", sensor},
          {"readings", series.readings},
          {"bytes", series.bytes},
          {"windows", series.windows.windows},
          {"window_bytes", series.windows.bytes},
          {"oldest", time_or_null(series.has_first, series.first_ns)},
          {"newest", time_or_null(series.has_last, series.last_ns)},
          {"keep", wire::keep_text(series.keep_ns)}};
}

Status is_changed() {
  return busy("what is said of these devices has changed while it was told");
}

OwnerReport::Series numbers_of(const query::SeriesInfo& info, const catalog::WindowAmount& windows,
                               catalog::SeriesRow row, std::int64_t keep_ns) {
  return {info.count,
          info.stored_bytes,
          windows,
          info.first_ns.value_or(0),
          info.last_ns.value_or(0),
          keep_ns,
          row,
          info.first_ns.has_value(),
          info.last_ns.has_value()};
}

// Tokens that may read or export any of it now.
class Recipients {
 public:
  explicit Recipients(const auth::TokenStore& tokens) {
    for (auth::TokenInfo& token : tokens.list()) {
      if (token.has_ended) continue;
      auto grant = std::make_shared<auth::Grant>();
      grant->scopes = token.scopes;
      holders_.push_back(
          {std::move(token), {auth::PrincipalKind::Remote, "", std::move(grant)}, false});
    }
  }

  void look_at(const query::SeriesInfo& info) {
    for (Holder& holder : holders_) {
      const auto allows = [&](auth::Operation operation) {
        return auth::allows(operation, holder.principal, info.namespace_name, info.device,
                            info.sensor);
      };
      holder.may = holder.may || allows(auth::Operation::Read) || allows(auth::Operation::Export);
    }
  }

  Json json() const {
    Json list = Json::array();
    for (const Holder& holder : holders_) {
      if (!holder.may) continue;
      const auth::TokenInfo& token = holder.token;
      list.push_back({{"token", token.id},
                      {"admin", token.scopes.admin},
                      {"read", auth::scope_json(token.scopes.read)},
                      {"export", auth::scope_json(token.scopes.export_all)},
                      {"purpose", token.scopes.purpose},
                      {"ends", wire::time_or_null(token.ends_ns)},
                      {"last_used", wire::time_or_null(token.last_used_ns)}});
    }
    return list;
  }

 private:
  struct Holder {
    auth::TokenInfo token;
    auth::Principal principal;
    bool may = false;
  };
  std::vector<Holder> holders_;
};

}  // namespace

Status ComplianceReport::check_owner(const std::string& owner) const {
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> any,
                      parts_.devices.find("", catalog::owned_by(owner), {std::nullopt, 1}));
  return any.empty() ? not_found("nothing is said to belong to " + owner) : ok();
}

Result<std::uint64_t> ComplianceReport::count_devices(
    const std::string& owner, const std::function<void(const catalog::DeviceName&)>& told) const {
  std::uint64_t devices = 0;
  catalog::DevicePage page{std::nullopt, kNamesPerPage};
  while (true) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> names,
                        parts_.devices.find("", catalog::owned_by(owner), page));
    for (const catalog::DeviceName& name : names) told(name);
    devices += names.size();
    if (names.size() < kNamesPerPage) return devices;
    page.after = names.back();
  }
}

Result<OwnerReport> ComplianceReport::of_owner(
    const std::string& owner, const std::function<void(const catalog::DeviceName&)>& told) const {
  EC_TRY(check_owner(owner));
  OwnerReport report;
  report.owner = owner;
  EC_ASSIGN_OR_RETURN(Json erased, erasures(owner));
  EC_ASSIGN_OR_RETURN(query::SeriesListing listing, parts_.query.list_series_of(owner));
  Amounts all;
  Recipients recipients(parts_.tokens);
  query::SeriesInfo info;
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, listing.next(info));
    if (!more) break;
    EC_ASSIGN_OR_RETURN(const catalog::SeriesEntry entry,
                        parts_.catalog.find(info.namespace_name, info.device, info.sensor));
    EC_ASSIGN_OR_RETURN(const catalog::WindowAmount windows,
                        windows_of(parts_.engine, parts_.retention, entry.id));
    all.add(info, windows);
    recipients.look_at(info);
    report.series.push_back(
        numbers_of(info, windows, listing.row(), parts_.retention.retention_ns(entry)));
  }
  EC_ASSIGN_OR_RETURN(const std::uint64_t devices, count_devices(owner, told));
  catalog::DeviceFilter deciding = catalog::owned_by(owner);
  deciding.labels = {{kAutomatedDecisions, "yes"}};
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> decides,
                      parts_.devices.find("", deciding, {std::nullopt, 1}));
  report.document = Json{{"owner", owner},
                         {"made", wire::time_text(parts_.clock.wall_ns())},
                         {"stored",
                          {{"devices", devices},
                           {"series", all.series},
                           {"readings", all.readings},
                           {"bytes", all.bytes},
                           {"oldest", wire::time_or_null(all.oldest_ns)},
                           {"newest", wire::time_or_null(all.newest_ns)}}},
                         {kDevicesMember, Json::array()},
                         {"recipients", recipients.json()},
                         {"erasures", std::move(erased)},
                         {"automated_decisions", !decides.empty()}};
  append_windows(all.windows, report.document["stored"]);
  if (!listing.left_out()->empty())
    report.document[kLeftOutMember] = query::left_out_json(*listing.left_out());
  return report;
}

// All members but the devices, of one side of these.
void OwnerReportText::append_members(bool are_before_devices, std::string& out) const {
  bool is_before = true;
  const auto append_all = [&](const auto& document) {
    for (const auto& [name, value] : document.items()) {
      if (name == kDevicesMember) {
        is_before = false;
        continue;
      }
      if (is_before != are_before_devices) continue;
      if (!is_before) out += ',';
      out += text_of(Json(name)) + ":" + text_of(value);
      if (is_before) out += ',';
    }
  };
  if (order_ == MemberOrder::Sorted) {
    append_all(nlohmann::json(report_->document));
  } else {
    append_all(report_->document);
  }
}

// Appends all but the last bytes of an object's text, behind which more may come.
void OwnerReportText::append_object(const Json& object, std::size_t left_out, std::string& out) {
  std::string text = text_of(object);
  told_.add(text);
  if (order_ == MemberOrder::Sorted) text = text_of(nlohmann::json(object));
  out.append(text, 0, text.size() - left_out);
}

// Whether names_[next_name_] is there.
Result<bool> OwnerReportText::next_name() {
  if (next_name_ < names_.size()) return true;
  if (is_last_page_) return false;
  catalog::DevicePage page{std::nullopt, kNamesPerPage};
  if (!names_.empty()) page.after = names_.back();
  EC_ASSIGN_OR_RETURN(names_, parts_.devices.find("", catalog::owned_by(report_->owner), page));
  next_name_ = 0;
  is_last_page_ = names_.size() < kNamesPerPage;
  return !names_.empty();
}

// The beginning of a device's object, to before its first series.
Result<bool> OwnerReportText::next_device(std::string& out) {
  EC_ASSIGN_OR_RETURN(const bool is_there, next_name());
  if (!is_there) return false;
  EC_ASSIGN_OR_RETURN(const Json device, device_object(parts_, names_[next_name_]));
  if (!std::exchange(is_first_device_, false)) out += ',';
  append_object(device, std::string_view("]}").size(), out);
  is_first_series_ = true;
  return true;
}

Result<bool> OwnerReportText::next_series(std::string& out) {
  if (next_series_ == report_->series.size()) return false;
  const OwnerReport::Series& series = report_->series[next_series_];
  const auto entry = parts_.catalog.series_at(series.row);
  if (!entry.ok()) return is_changed();
  const catalog::DeviceName& name = names_[next_name_];
  if (entry->namespace_name != name.namespace_name || entry->device != name.device) return false;
  if (!std::exchange(is_first_series_, false)) out += ',';
  append_object(series_object(series, entry->sensor), 0, out);
  ++next_series_;
  return true;
}

Status OwnerReportText::end_devices() {
  digest_ = told_.finish();
  const bool is_whole = next_series_ == report_->series.size();
  return is_whole && (!expected_ || digest_ == *expected_) ? ok() : is_changed();
}

Result<bool> OwnerReportText::fill(std::string& out) {
  switch (part_) {
    case Part::Head:
      out += '{';
      append_members(true, out);
      out += text_of(Json(kDevicesMember)) + ":[";
      part_ = Part::Devices;
      return true;
    case Part::Devices: {
      EC_ASSIGN_OR_RETURN(const bool is_there, next_device(out));
      if (!is_there) EC_TRY(end_devices());
      part_ = is_there ? Part::Series : Part::Tail;
      return true;
    }
    case Part::Series: {
      EC_ASSIGN_OR_RETURN(const bool is_there, next_series(out));
      if (is_there) return true;
      out += "]}";
      ++next_name_;
      part_ = Part::Devices;
      return true;
    }
    case Part::Tail:
      out += ']';
      append_members(false, out);
      out += '}';
      part_ = Part::End;
      return false;
    case Part::End: break;
  }
  return false;
}

}  // namespace edgecase::report
