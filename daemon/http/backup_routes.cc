// Moments to back up, for administrators: /api/v1/backups. Readings of one come from /api/v1/query
// and /api/v1/series with its name as the parameter `moment`.
#include "config/validate.h"
#include "http/http_routes.h"
#include "http/refusal.h"
#include "report/compliance_report.h"
#include "wire/json_values.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

using wire::Json;

// What is stored beside readings, as the requests that set it take it.
Result<Json> state_json(const HttpServerParts& parts) {
  Json rules = Json::array();
  for (const retention::Rule& rule : parts.retention.rules()) {
    rules.push_back({{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
                     {"select", rule.selector.device + "/" + rule.selector.sensor},
                     {"keep", wire::keep_text(rule.retention_ns)}});
  }
  Json devices = Json::array();
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> described, parts.devices.all({}));
  for (const catalog::DeviceName& name : described) {
    EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata, parts.devices.metadata(name));
    Json device = device_json(name, metadata);
    device["consents"] = report::consents_json(metadata);
    devices.push_back(std::move(device));
  }
  Json namespaces = Json::array();
  for (const std::string& name : parts.catalog.namespaces()) {
    if (!name.starts_with('_')) namespaces.push_back(name);
  }
  return Json{{"namespaces", std::move(namespaces)},
              {"devices", std::move(devices)},
              {"retention", std::move(rules)}};
}

Result<Json> pin(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"location"}));
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(config::check_location(context.parts.settings.storage, call.parameter("location")));
  EC_ASSIGN_OR_RETURN(const std::string moment, context.moments.pin());
  auto state = state_json(context.parts);
  if (!state.ok()) {
    EC_TRY(context.moments.release(moment));
    return state.status();
  }
  return Json{{"moment", moment},
              {"made", wire::time_text(context.parts.clock.wall_ns())},
              {"state", std::move(*state)}};
}

Result<Json> release(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"moment"}));
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_TRY(context.moments.release(call.parameter("moment")));
  return Json{{"moment", call.parameter("moment")}, {"released", true}};
}

}  // namespace

Result<std::shared_ptr<const Snapshot>> moment_parameter(HttpContext& context, const Call& call) {
  if (!call.has("moment")) return std::shared_ptr<const Snapshot>();
  EC_TRY(auth::authorize_administration(call.principal()));
  return context.moments.use(call.parameter("moment"));
}

void add_backup_routes(Router& router, HttpContext& context) {
  using Function = Result<Json> (*)(HttpContext&, const Call&);
  const auto add = [&](const char* method, int good, Function function) {
    router.add(method, wire::routes::kBackups, Effect::Changes,
               [&context, good, function](Call& call) {
                 const auto answer = function(context, call);
                 if (!answer.ok()) return call.answer_error(answer.status());
                 call.answer_json(good, wire::dump(*answer));
               });
  };
  add("POST", 201, pin);
  add("DELETE", 200, release);
}

}  // namespace edgecase::http
