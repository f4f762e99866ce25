// For administrators: tokens (/api/v1/tokens), the report (/api/v1/report).

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/audit_log.h"
#include "config/configuration.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "report/compliance_report.h"
#include "sign/signature.h"
#include "wire/contract.h"
#include "wire/json_text.h"
#include "wire/names.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

// "30d" from now, or a time.
Result<std::optional<std::int64_t>> end_parameter(const HttpContext& context, const Call& call,
                                                  const char* name) {
  if (!call.has(name)) return std::optional<std::int64_t>();
  const std::string text = call.parameter(name);
  const std::int64_t now_ns = context.parts.clock.wall_ns();
  if (const auto duration_ns = wire::parse_duration_ns(text); duration_ns.ok()) {
    std::int64_t end_ns = 0;
    if (__builtin_add_overflow(now_ns, *duration_ns, &end_ns)) {
      return invalid_argument(text + " is later than time can be told");
    }
    return std::optional<std::int64_t>(end_ns);
  }
  const auto time_ns = wire::parse_time_ns(text, now_ns);
  if (!time_ns.ok()) {
    return invalid_argument("\"" + text + "\" is neither a duration, as in 90d, nor a time");
  }
  return std::optional<std::int64_t>(*time_ns);
}

Result<auth::Scopes> scopes_parameters(const Call& call) {
  auth::Scopes scopes;
  scopes.namespace_name = namespace_parameter(call);
  if (!scopes.namespace_name.empty()) {
    EC_TRY(wire::check_name("namespace", scopes.namespace_name));
  }
  const auto read = [&call](const char* name, std::vector<wire::Selector>& scope) -> Status {
    const auto [begin, end] = call.request.parameters.equal_range(name);
    for (auto at = begin; at != end; ++at) {
      EC_ASSIGN_OR_RETURN(wire::Selector selector, wire::parse_selector(at->second));
      scope.push_back(std::move(selector));
    }
    if (scope.size() <= wire::kSelectorsMax) return ok();
    return invalid_argument("a scope has at most " + std::to_string(wire::kSelectorsMax) +
                            " selectors");
  };
  EC_TRY(read("read", scopes.read));
  EC_TRY(read("write", scopes.write));
  EC_TRY(read("export", scopes.export_all));
  EC_TRY(read("erase", scopes.erase));
  const std::string admin = call.parameter("admin");
  if (!admin.empty() && admin != "true" && admin != "false") {
    return invalid_argument("admin is neither true nor false");
  }
  scopes.admin = admin == "true";
  scopes.purpose = call.parameter("purpose");
  if (!scopes.purpose.empty()) EC_TRY(wire::check_name("purpose", scopes.purpose));
  return scopes;
}

Result<Json> create(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const auth::Scopes scopes, scopes_parameters(call));
  EC_ASSIGN_OR_RETURN(const auto ends_ns, end_parameter(context, call, "expires"));
  const std::string certificate = call.parameter("certificate");
  EC_ASSIGN_OR_RETURN(const auth::TokenStore::Created created,
                      context.parts.authenticator.tokens().create(scopes, ends_ns, certificate));
  call.exchange.audit.detail = "token " + created.id;
  context.parts.logger.info("access", "token " + created.id + " made by " + call.principal().name);
  return Json{{"id", created.id},
              {"token", created.text.empty() ? Json(nullptr) : Json(created.text)},
              {"certificate", certificate.empty() ? Json(nullptr) : Json(certificate)},
              {"expires", wire::time_or_null(ends_ns)}};
}

Result<Json> revoke(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  const std::string id = call.parameter("id");
  EC_ASSIGN_OR_RETURN(const auto ends_ns, end_parameter(context, call, "after"));
  EC_TRY(context.parts.authenticator.tokens().revoke(id, ends_ns));
  context.parts.logger.info("access", "token " + id + " revoked by " + call.principal().name);
  return Json{{"id", id}, {"revoked", true}};
}

Result<Json> list(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  Json tokens = Json::array();
  for (const auth::TokenInfo& info : context.parts.authenticator.tokens().list()) {
    const char* const ended = info.is_revoked ? "revoked" : "expired";
    tokens.push_back(
        {{"id", info.id},
         {"state", info.has_ended ? ended : "active"},
         {"namespace", info.scopes.namespace_name.empty() ? "*" : info.scopes.namespace_name},
         {"read", auth::scope_json(info.scopes.read)},
         {"write", auth::scope_json(info.scopes.write)},
         {"export", auth::scope_json(info.scopes.export_all)},
         {"erase", auth::scope_json(info.scopes.erase)},
         {"admin", info.scopes.admin},
         {"purpose", info.scopes.purpose},
         {"certificate", info.certificate.empty() ? Json(nullptr) : Json(info.certificate)},
         {"created", wire::time_or_null(info.created_ns)},
         {"ends", wire::time_or_null(info.ends_ns)},
         {"last_used", wire::time_or_null(info.last_used_ns)}});
  }
  return Json{{"tokens", std::move(tokens)}};
}

void answer_unkept(Call& call, int http_status, const Result<Json>& answer) {
  if (!answer.ok()) return call.answer_error(answer.status());
  call.response.set_header("Cache-Control", "no-store");
  call.answer_json(http_status, wire::dump(*answer));
}

}  // namespace

void get_tokens(HttpContext& context, Call& call) {
  answer_unkept(call, 200, list(context, call));
}

void post_token(HttpContext& context, Call& call) {
  answer_unkept(call, 201, create(context, call));
}

void delete_token(HttpContext& context, Call& call) {
  answer_unkept(call, 200, revoke(context, call));
}

void register_token_metrics(HttpContext& context) {
  observe::Metrics& metrics = context.parts.metrics;
  metrics.callback(
      observe::MetricKind::Counter, "edgecase_login_failures_total", "Logins without a good token.",
      {}, [&context] { return static_cast<double>(context.parts.authenticator.failures()); });
  metrics.callback(observe::MetricKind::Counter, "edgecase_login_throttled_total",
                   "Those of them that came too fast from one address.", {}, [&context] {
                     return static_cast<double>(context.parts.authenticator.throttled());
                   });
}

// The report, signed; and by which key.

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

report::ReportParts report_parts(const HttpContext& context) {
  const HttpServerParts& parts = context.parts;
  return {parts.settings, parts.engine, parts.clock,     parts.catalog,
          parts.devices,  parts.query,  parts.retention, parts.authenticator.tokens(),
          parts.erase};
}

void note_signed(const Call& call, const auth::Digest& digest) {
  call.exchange.audit.detail = "sha256 " + auth::hex_text(auth::view_of(digest));
}

// A drive that takes no key, being full, is no reason to say nothing.
void say_unsigned(const Status& why, wire::Json& report) {
  report["unsigned"] = why.to_string();
}

Result<wire::Json> store_report(HttpContext& context, const Call& call) {
  const report::ComplianceReport maker(report_parts(context));
  EC_ASSIGN_OR_RETURN(wire::Json report, maker.of_store());
  report["forward"] = forward_status(context);
  const Result<Bytes> secret = signing_secret(context, call);
  add_audit_head(context, report);
  if (!secret.ok()) {
    say_unsigned(secret.status(), report);
    return report;
  }
  // What is in the log is in the report, by the head; and that this was said is in the log.
  EC_ASSIGN_OR_RETURN(const std::string text, add_signature(context, *secret, report));
  note_signed(call, auth::sha256(text));
  return report;
}

class OwnerReportPieces final : public PieceSource {
 public:
  explicit OwnerReportPieces(report::OwnerReportText text) : text_(std::move(text)) {}

  Result<bool> fill(std::string& piece) override {
    while (piece.size() < kPieceBytes) {
      EC_ASSIGN_OR_RETURN(const bool more, text_.fill(piece));
      if (more) continue;
      piece += '\n';
      return false;
    }
    return true;
  }

 private:
  report::OwnerReportText text_;
};

struct SignedText {
  auth::Digest of_all, of_devices;
};

// Written once as it is signed, before it is as it is told: the signature comes last.
Result<SignedText> hash_text(const report::ReportParts& parts,
                             const std::shared_ptr<const report::OwnerReport>& report) {
  report::OwnerReportText text(parts, report, report::MemberOrder::Sorted);
  auth::Sha256 hash;
  std::string piece;
  bool has_more = true;
  while (has_more) {
    piece.clear();
    EC_ASSIGN_OR_RETURN(has_more, text.fill(piece));
    hash.add(piece);
  }
  return SignedText{hash.finish(), text.devices_digest()};
}

Result<std::shared_ptr<PieceSource>> owner_report(HttpContext& context, Call& call) {
  const report::ReportParts parts = report_parts(context);
  const report::ComplianceReport maker(parts);
  const std::string owner = call.parameter("owner");
  if (owner.empty()) return invalid_argument("owner is empty");
  EC_TRY(maker.check_owner(owner));
  query::Reach reach;
  reach.patience = call.exchange.patience;
  EC_ASSIGN_OR_RETURN(report::OwnerReport made,
                      maker.of_owner(owner, [&reach](const catalog::DeviceName& name) {
                        reach.add(name.namespace_name, name.device);
                      }));
  auto report = std::make_shared<report::OwnerReport>(std::move(made));
  const Result<Bytes> secret = signing_secret(context, call);
  add_audit_head(context, report->document);
  std::optional<auth::Digest> of_devices;
  if (secret.ok()) {
    EC_ASSIGN_OR_RETURN(const SignedText hashes, hash_text(parts, report));
    EC_ASSIGN_OR_RETURN(
        report->document[sign::kSignatureMember],
        sign::signature_of(hashes.of_all, *secret, context.parts.signing_key->random()));
    note_signed(call, hashes.of_all);
    of_devices = hashes.of_devices;
  } else {
    say_unsigned(secret.status(), report->document);
  }
  tell_left_out(call, report->document.value(report::kLeftOutMember, wire::Json()));
  report::OwnerReportText text(parts, std::move(report), report::MemberOrder::AsTold);
  if (of_devices) text.expect_devices(*of_devices);
  call.exchange.audit.reach = std::move(reach);
  return std::shared_ptr<PieceSource>(std::make_shared<OwnerReportPieces>(std::move(text)));
}

}  // namespace

void get_report(HttpContext& context, Call& call) {
  if (const Status status = auth::authorize_administration(call.principal()); !status.ok()) {
    return call.answer_error(status);
  }
  if (call.has("owner")) {
    auto pieces = owner_report(context, call);
    if (!pieces.ok()) return call.answer_error(pieces.status());
    return answer_in_pieces(call, "application/json", std::move(*pieces));
  }
  const Result<wire::Json> report = store_report(context, call);
  if (!report.ok()) return call.answer_error(report.status());
  tell_left_out(call, report->value(report::kLeftOutMember, wire::Json()));
  call.answer_json(200, wire::dump(*report));
}

Result<wire::Json> get_report_key(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const Bytes secret, signing_secret(context, call));
  EC_ASSIGN_OR_RETURN(std::string key,
                      sign::public_key_of(secret, context.parts.signing_key->random()));
  std::string fingerprint = sign::fingerprint(key);
  return wire::Json{{"algorithm", sign::kAlgorithm},
                    {"public_key", std::move(key)},
                    {"fingerprint", std::move(fingerprint)}};
}

Result<Bytes> signing_secret(HttpContext& context, const Call& call) {
  if (context.parts.signing_key == nullptr) return unsupported("nothing is signed here");
  EC_ASSIGN_OR_RETURN(sign::SigningKey::Secret secret, context.parts.signing_key->secret());
  if (secret.is_new && context.parts.audit != nullptr) {
    EC_ASSIGN_OR_RETURN(const std::string key,
                        sign::public_key_of(secret.bytes, context.parts.signing_key->random()));
    audit::Record record = audit::record_of("report.key-made", call.principal());
    record.detail = "fingerprint " + sign::fingerprint(key);
    EC_TRY(context.parts.audit->note(std::move(record)));
  }
  return std::move(secret.bytes);
}

Result<std::string> add_signature(HttpContext& context, const Bytes& secret, wire::Json& answer) {
  const nlohmann::json document = answer;
  EC_ASSIGN_OR_RETURN(answer[sign::kSignatureMember],
                      sign::signature_of(document, secret, context.parts.signing_key->random()));
  return sign::signed_text(document);
}

}  // namespace edgecase::http
