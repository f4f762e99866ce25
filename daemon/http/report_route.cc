// What the daemon says of itself, for administrators: /api/v1/report, signed; and by which key.
#include "audit/audit_log.h"
#include "http/http_routes.h"
#include "http/refusal.h"
#include "http/signed_answer.h"
#include "report/compliance_report.h"
#include "sign/signature.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

// Where the log's chain stands: whoever kept it can see later on that this record is still there,
// with this hash. What a full drive does not take yet comes later.
void add_audit_head(HttpContext& context, wire::Json& report) {
  audit::AuditLog* const log = context.parts.audit;
  if (log == nullptr) return;
  if (log->is_on()) static_cast<void>(log->flush().ok());
  const audit::AuditLog::State state = log->state();
  report["audit"] = {{"sequence", state.sequence},
                     {"head", auth::hex_text(auth::view_of(state.hash))}};
}

Result<wire::Json> make_report(const HttpContext& context, const Call& call) {
  const HttpServerParts& parts = context.parts;
  const report::ComplianceReport report({parts.settings, parts.engine, parts.clock, parts.catalog,
                                         parts.devices, parts.query, parts.retention,
                                         parts.authenticator.tokens(), parts.erase});
  if (!call.has("owner")) return report.of_store();
  const std::string owner = call.parameter("owner");
  if (owner.empty()) return invalid_argument("owner is empty");
  return report.of_owner(owner);
}

Result<wire::Json> answer_report(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"owner"}));
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(wire::Json report, make_report(context, call));
  const Result<Bytes> secret = signing_secret(context, call);
  add_audit_head(context, report);
  // A drive that takes no key, being full, is no reason to say nothing.
  if (!secret.ok()) {
    report["unsigned"] = secret.status().to_string();
    return report;
  }
  // What is in the log is in the report, by the head; and that this was said is in the log.
  EC_ASSIGN_OR_RETURN(const std::string text, add_signature(context, *secret, report));
  call.exchange.audit.detail = "sha256 " + auth::hex_text(auth::view_of(auth::sha256(text)));
  return report;
}

Result<wire::Json> answer_key(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {}));
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const Bytes secret, signing_secret(context, call));
  EC_ASSIGN_OR_RETURN(std::string key,
                      sign::public_key_of(secret, context.parts.signing_key->random()));
  std::string fingerprint = sign::fingerprint(key);
  return wire::Json{{"algorithm", sign::kAlgorithm},
                    {"public_key", std::move(key)},
                    {"fingerprint", std::move(fingerprint)}};
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
  router.add("GET", wire::routes::kReportKey, Effect::Reads, [&context](Call& call) {
    const Result<wire::Json> answer = answer_key(context, call);
    if (!answer.ok()) return call.answer_error(answer.status());
    call.answer_json(200, wire::dump(*answer));
  });
}

}  // namespace edgecase::http
