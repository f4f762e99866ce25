// Tokens (/api/v1/tokens), for administrators.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/audit_log.h"
#include "config/configuration.h"
#include "http/http_routes.h"
#include "http/request_head.h"
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

}  // namespace edgecase::http
