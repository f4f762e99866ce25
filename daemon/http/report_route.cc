// What the daemon says of itself, for administrators: /api/v1/report.
#include "audit/audit_log.h"
#include "http/http_routes.h"
#include "http/refusal.h"
#include "report/compliance_report.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

// Where the log's chain stands: whoever kept it can see later on that this record is still there,
// with this hash.
Status add_audit_head(HttpContext& context, wire::Json& report) {
  audit::AuditLog* const log = context.parts.audit;
  if (log == nullptr) return ok();
  if (log->is_on()) EC_TRY(log->flush());
  const audit::AuditLog::State state = log->state();
  report["audit"] = {{"sequence", state.sequence},
                     {"head", auth::hex_text(auth::view_of(state.hash))}};
  return ok();
}

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
    Result<wire::Json> answer = answer_report(context, call);
    if (!answer.ok()) return call.answer_error(answer.status());
    if (const Status added = add_audit_head(context, *answer); !added.ok())
      return call.answer_error(added);
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
