// Backups (/api/v1/backups): moments to back up, and whose devices are, which a restore says again.
// Readings of a moment come from /api/v1/query and /api/v1/series with its name as the parameter
// `moment`.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/configuration.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "report/compliance_report.h"
#include "wire/json_text.h"
#include "wire/names.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

Json origin_json(const ingest::Origin& origin) {
  Json json = {{"origin", origin.number}, {"store", origin.store}, {"run", origin.run}};
  if (!origin.store_before.empty()) json["store_before"] = origin.store_before;
  if (origin.holder != origin.number) json["heir"] = origin.holder;
  if (origin.is_second) json["second"] = true;
  json["since"] = wire::time_text(origin.since_ns);
  json["with"] = origin.by;
  return json;
}

Json namespaces_json(const HttpServerParts& parts) {
  Json namespaces = Json::array();
  for (const std::string& name : parts.catalog.namespaces()) {
    if (wire::is_writable_namespace(name)) namespaces.push_back(name);
  }
  return namespaces;
}

// A moment with what is stored beside readings, as the requests that set it take it:
//   {"moment","made","state":{"namespaces","thinned_series","devices","origins","device_origins",
//    "retention"}}
// Both of origins only where stores forward to this one. What is said of devices, and whose they
// are, which is more than memory has room for, is looked up as it is told. A moment of which not
// all could be told is let go of: nobody goes on with it.
class MomentPieces final : public PieceSource {
 public:
  MomentPieces(HttpContext& context, std::string moment, std::int64_t made_ns)
      : context_(context), moment_(std::move(moment)), made_ns_(made_ns) {}
  ~MomentPieces() override {
    if (!is_told_) static_cast<void>(context_.moments.release(moment_).ok());
  }
  MomentPieces(const MomentPieces&) = delete;
  MomentPieces& operator=(const MomentPieces&) = delete;

  Result<bool> fill(std::string& piece) override {
    if (std::exchange(is_first_, false)) append_head(piece);
    while (piece.size() < kPieceBytes) {
      EC_ASSIGN_OR_RETURN(const bool more, append_device(piece));
      if (more) continue;
      if (!is_devices_told_) {
        append_origins(piece);
        continue;
      }
      if (has_origins_ && append_device_origin(piece)) continue;
      if (has_origins_) piece += ']';
      piece +=
          ",\"retention\":" + wire::compact(report::rules_json(context_.parts.retention.rules())) +
          "}}\n";
      is_told_ = true;
      return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kNamesPerPage = 500;

  void append_head(std::string& piece) const {
    const HttpServerParts& parts = context_.parts;
    piece += "{\"moment\":" + wire::compact(moment_) +
             ",\"made\":" + wire::compact(wire::time_text(made_ns_)) +
             ",\"state\":{\"namespaces\":" + wire::compact(namespaces_json(parts)) +
             ",\"thinned_series\":" + std::to_string(parts.retention.marks().size()) +
             ",\"devices\":[";
  }

  // False: that was the last.
  Result<bool> append_device(std::string& piece) {
    if (next_ == names_.size()) {
      if (is_last_page_) return false;
      if (!names_.empty()) page_.after = names_.back();
      EC_ASSIGN_OR_RETURN(names_, context_.parts.devices.all(page_));
      next_ = 0;
      is_last_page_ = names_.size() < page_.limit;
      if (names_.empty()) return false;
    }
    const catalog::DeviceName& name = names_[next_++];
    EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata said, context_.parts.devices.metadata(name));
    if (said.empty()) return true;  // it was erased meanwhile
    Json device = device_json(name, said);
    device["consents"] = report::consents_json(said);
    if (!std::exchange(is_first_device_, false)) piece += ',';
    piece += wire::compact(device);
    return true;
  }

  void append_origins(std::string& piece) {
    is_devices_told_ = true;
    piece += ']';
    Json origins = Json::array();
    if (context_.parts.origins != nullptr) {
      for (const ingest::Origin& each : context_.parts.origins->list())
        origins.push_back(origin_json(each));
    }
    has_origins_ = !origins.empty();
    if (!has_origins_) return;
    piece += ",\"origins\":" + wire::compact(origins) + ",\"device_origins\":[";
  }

  // False: that was the last.
  bool append_device_origin(std::string& piece) {
    if (next_row_ >= context_.parts.catalog.device_rows()) return false;
    const auto origin = context_.parts.catalog.origin_at(next_row_++);
    if (!origin.ok()) return true;
    if (!std::exchange(is_first_origin_, false)) piece += ',';
    Json device = {{"namespace", origin->namespace_name},
                   {"device", origin->device},
                   {"origin", origin->origin}};
    if (!origin->name_there.empty()) device["there"] = origin->name_there;
    piece += wire::compact(device);
    return true;
  }

  HttpContext& context_;
  const std::string moment_;
  const std::int64_t made_ns_;
  std::uint32_t next_row_ = 0;  // of the catalog's devices
  bool is_devices_told_ = false, has_origins_ = false, is_first_origin_ = true;
  catalog::DevicePage page_{std::nullopt, kNamesPerPage};
  std::vector<catalog::DeviceName> names_;  // of a page
  std::size_t next_ = 0;
  bool is_last_page_ = false;
  bool is_first_ = true, is_first_device_ = true;
  bool is_told_ = false;
};

// No erasure begins or ends meanwhile: `made_ns` is before or after it, as what the moment holds.
Result<std::string> pin(HttpContext& context, const Call& call, std::int64_t& made_ns) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(config::check_location(context.parts.settings.storage, call.parameter("location")));
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  made_ns = context.parts.clock.wall_ns();
  return context.moments.pin();
}

}  // namespace

void post_backup(HttpContext& context, Call& call) {
  std::int64_t made_ns = 0;
  auto moment = pin(context, call, made_ns);
  if (!moment.ok()) return call.answer_error(moment.status());
  answer_in_pieces(call, "application/json",
                   std::make_shared<MomentPieces>(context, std::move(moment).value(), made_ns));
  if (call.response.status == 200) call.response.status = 201;
}

Result<Json> delete_backup(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(context.moments.release(call.parameter("moment")));
  return Json{{"moment", call.parameter("moment")}, {"released", true}};
}

namespace {

constexpr std::size_t kRestoredMax = 10'000;  // lines of one request

Result<Json> restored_line(std::string_view line) {
  Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (json.is_object()) return json;
  return invalid_argument("a line is not an object");
}

Result<std::string> text_member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return std::string();
  if (!found->is_string()) return invalid_argument(std::string(name) + " is no text");
  return found->get<std::string>();
}

Result<catalog::OriginNumber> number_member(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() >= catalog::kNoOrigin) {
    return invalid_argument(std::string(name) + " is the number of an origin");
  }
  return found->get<catalog::OriginNumber>();
}

Result<ingest::Origin> restored_origin(const Json& json) {
  ingest::Origin origin;
  EC_ASSIGN_OR_RETURN(origin.number, number_member(json, "origin"));
  EC_ASSIGN_OR_RETURN(origin.store, text_member(json, "store"));
  EC_ASSIGN_OR_RETURN(origin.run, text_member(json, "run"));
  EC_ASSIGN_OR_RETURN(origin.store_before, text_member(json, "store_before"));
  EC_ASSIGN_OR_RETURN(origin.by, text_member(json, "with"));
  EC_ASSIGN_OR_RETURN(const std::string since, text_member(json, "since"));
  EC_ASSIGN_OR_RETURN(origin.since_ns, wire::parse_absolute_time_ns(since));
  origin.holder = origin.number;
  if (json.contains("heir") && !json["heir"].is_null()) {
    EC_ASSIGN_OR_RETURN(origin.holder, number_member(json, "heir"));
  }
  origin.is_second = json.contains("second") && json["second"] == true;
  return origin;
}

Result<catalog::DeviceOrigin> restored_device(const Json& json) {
  catalog::DeviceOrigin device;
  EC_ASSIGN_OR_RETURN(device.namespace_name, text_member(json, "namespace"));
  EC_ASSIGN_OR_RETURN(device.device, text_member(json, "device"));
  EC_ASSIGN_OR_RETURN(device.origin, number_member(json, "origin"));
  EC_ASSIGN_OR_RETURN(device.name_there, text_member(json, "there"));
  return device;
}

}  // namespace

// Lines of `origins` and of `device_origins`, the former first.
Result<Json> put_backup(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  if (context.parts.origins == nullptr) return unsupported("nothing is forwarded to this store");
  std::vector<ingest::Origin> origins;
  std::vector<catalog::DeviceOrigin> devices;
  for (std::string_view rest = call.body(); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    if (origins.size() + devices.size() == kRestoredMax)
      return invalid_argument("more than " + std::to_string(kRestoredMax) + " lines at once");
    EC_ASSIGN_OR_RETURN(const Json json, restored_line(line));
    if (json.contains("device")) {
      EC_ASSIGN_OR_RETURN(devices.emplace_back(), restored_device(json));
    } else {
      EC_ASSIGN_OR_RETURN(origins.emplace_back(), restored_origin(json));
    }
  }
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  EC_ASSIGN_OR_RETURN(const auto others, context.parts.origins->restore(origins));
  std::set<catalog::OriginNumber> known{catalog::kOwnOrigin};
  for (const ingest::Origin& each : context.parts.origins->list()) known.insert(each.number);
  query::Reach& reach = call.exchange.audit.reach.emplace();
  std::vector<catalog::DeviceOrigin> taken;
  for (catalog::DeviceOrigin& each : devices) {
    if (!known.contains(each.origin)) return invalid_argument("a device's origin is none");
    // What was erased since leaves no name.
    if (!check_as_of(context, call, {each.namespace_name, each.device}).ok()) continue;
    reach.add(each.namespace_name, each.device);
    taken.push_back(std::move(each));
  }
  EC_ASSIGN_OR_RETURN(const std::size_t kept, context.parts.catalog.restore_origins(taken));
  return Json{{"devices", taken.size() - kept}, {"others_devices", kept}, {"others", others}};
}

Result<std::shared_ptr<const Snapshot>> moment_parameter(HttpContext& context, const Call& call) {
  if (!call.has("moment")) return std::shared_ptr<const Snapshot>();
  EC_TRY(auth::authorize_administration(call.principal()));
  return context.moments.use(call.parameter("moment"));
}

}  // namespace edgecase::http
