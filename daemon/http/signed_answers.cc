// Answers that this store signs, so that they can be kept and shown to others: certificates of
// erasures, and the report (/api/v1/report) with the key that they are checked by. How a text is
// signed: sign/signature.h.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "audit/audit_log.h"
#include "config/configuration.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "report/compliance_report.h"
#include "sign/signature.h"
#include "wire/json_text.h"

namespace edgecase::http {
namespace {

// The log knows a new key before anything is signed by it. Unsupported: nothing is signed here.
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

// Returns what was signed.
Result<std::string> add_signature(HttpContext& context, const Bytes& secret, wire::Json& answer) {
  const nlohmann::json document = answer;
  EC_ASSIGN_OR_RETURN(answer[sign::kSignatureMember],
                      sign::signature_of(document, secret, context.parts.signing_key->random()));
  return sign::signed_text(document);
}

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

void sign_certificate(HttpContext& context, const Call& call, erase::ErasureState state,
                      wire::Json& certificate) {
  if (state != erase::ErasureState::Done || !context.parts.engine.stats().refused.ok()) return;
  const Result<Bytes> secret = signing_secret(context, call);
  if (secret.ok()) static_cast<void>(add_signature(context, *secret, certificate).ok());
}

}  // namespace edgecase::http
