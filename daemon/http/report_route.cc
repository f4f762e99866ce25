// What the daemon says of itself, for administrators: /api/v1/report.
#include "http/http_routes.h"
#include "http/refusal.h"
#include "report/compliance_report.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

Result<wire::Json> answer_report(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"owner"}));
  EC_TRY(auth::authorize_administration(call.principal()));
  const HttpServerParts& parts = context.parts;
  const report::ComplianceReport report({parts.settings, parts.engine, parts.clock, parts.catalog,
                                         parts.devices, parts.query, parts.retention,
                                         parts.authenticator.tokens(), parts.erase});
  if (!call.has("owner")) return report.of_store();
  const std::string owner = call.parameter("owner");
  if (owner.empty()) return invalid_argument("owner is empty");
  return report.of_owner(owner);
}

}  // namespace

void add_report_route(Router& router, HttpContext& context) {
  router.add("GET", wire::routes::kReport, Effect::Reads, [&context](Call& call) {
    const Result<wire::Json> answer = answer_report(context, call);
    if (!answer.ok()) return call.answer_error(answer.status());
    if (const auto devices = answer->find("devices");
        call.has("owner") && devices != answer->end()) {
      query::Reach& reach = call.exchange.audit.reach.emplace();
      for (const wire::Json& each : *devices) {
        reach.add(each.value("namespace", ""), each.value("device", ""));
      }
    }
    call.answer_json(200, wire::dump(*answer));
  });
}

}  // namespace edgecase::http
