// How long readings are kept: /api/v1/retention and /api/v1/retention/preview.
#include <utility>

#include "http/http_routes.h"
#include "http/refusal.h"
#include "wire/json_values.h"
#include "wire/routes.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

Result<wire::Selector> required_selector(const Call& call) {
  if (!call.has("select")) return invalid_argument("the parameter select is missing");
  return selector_parameter(call);
}

Result<std::int64_t> keep_parameter(const Call& call) {
  const std::string text = call.parameter("keep");
  if (text == "forever") return kRetentionForever;
  if (text.empty()) return invalid_argument("the parameter keep is missing, use 30d or forever");
  EC_ASSIGN_OR_RETURN(const std::int64_t retention_ns, wire::parse_duration_ns(text));
  if (retention_ns == 0) return invalid_argument("keep is zero: nothing would be kept");
  return retention_ns;
}

Json rule_json(const retention::Rule& rule) {
  return {{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
          {"select", rule.selector.device + "/" + rule.selector.sensor},
          {"keep", wire::keep_text(rule.retention_ns)}};
}

Json preview_json(const retention::Preview& preview) {
  Json json = {{"series", preview.series},
               {"readings", preview.readings},
               {"erased_readings", preview.count},
               {"erased_bytes", preview.bytes},
               {"oldest", wire::time_or_null(preview.oldest_ns)},
               {"next", wire::time_or_null(preview.next_ns)}};
  Json affected = Json::array();
  for (const retention::PreviewSeries& series : preview.affected) {
    affected.push_back({{"namespace", series.entry.namespace_name},
                        {"device", series.entry.device},
                        {"sensor", series.entry.sensor},
                        {"keep_now", wire::keep_text(series.now_ns)},
                        {"keep_then", wire::keep_text(series.then_ns)},
                        {"erased_readings", series.count},
                        {"erased_bytes", series.bytes},
                        {"oldest", wire::time_or_null(series.oldest_ns)},
                        {"next", wire::time_or_null(series.next_ns)}});
  }
  json["affected"] = std::move(affected);
  return json;
}

void get_retention(HttpContext& context, Call& call) {
  if (const Status checked = check_parameters(call, {"ns"}); !checked.ok())
    return call.answer_error(checked);
  const std::string wanted = namespace_parameter(call);
  Json rules = Json::array();
  for (const retention::Rule& rule : context.parts.retention.rules()) {
    if (!auth::allows_namespace(call.principal(), rule.namespace_name)) continue;
    if (wanted.empty() || rule.namespace_name.empty() || rule.namespace_name == wanted)
      rules.push_back(rule_json(rule));
  }
  call.answer_json(200,
                   wire::dump({{"default", wire::keep_text(context.parts.retention.default_ns())},
                               {"rules", std::move(rules)}}));
}

// A rule that would erase all that its selector matches needs `yes=true`.
Result<Json> set_rule(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"ns", "select", "keep", "yes"}));
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const wire::Selector selector, required_selector(call));
  EC_ASSIGN_OR_RETURN(const std::int64_t retention_ns, keep_parameter(call));
  const retention::Rule rule{namespace_parameter(call), selector, retention_ns};
  EC_ASSIGN_OR_RETURN(const retention::Preview preview,
                      context.parts.retention.preview(rule.namespace_name, selector, retention_ns));
  if (preview.erases_everything() && call.parameter("yes") != "true")
    return invalid_argument("this rule would erase all " + std::to_string(preview.count) +
                            " readings of " + selector.device + "/" + selector.sensor +
                            " at once; if that is meant, say yes=true");
  EC_TRY(context.parts.retention.set(rule));
  call.exchange.audit.count = preview.count;
  Json json = rule_json(rule);
  json["erased_readings"] = preview.count;
  return json;
}

void post_retention(HttpContext& context, Call& call) {
  const auto done = set_rule(context, call);
  if (!done.ok()) return call.answer_error(done.status());
  call.answer_json(200, wire::dump(*done));
}

void delete_retention(HttpContext& context, Call& call) {
  Status status = check_parameters(call, {"ns", "select"});
  if (status.ok()) status = auth::authorize_administration(call.principal());
  const auto selector = required_selector(call);
  if (status.ok()) status = selector.status();
  if (status.ok()) status = context.parts.retention.clear(namespace_parameter(call), *selector);
  if (!status.ok()) return call.answer_error(status);
  call.answer_json(200, wire::dump({{"cleared", true}}));
}

Result<Json> preview_of(HttpContext& context, const Call& call) {
  EC_TRY(check_parameters(call, {"ns", "select", "keep"}));
  EC_ASSIGN_OR_RETURN(const wire::Selector selector, required_selector(call));
  EC_TRY(auth::authorize_administration(call.principal()));
  std::optional<std::int64_t> retention_ns;
  if (call.has("keep")) {
    EC_ASSIGN_OR_RETURN(retention_ns, keep_parameter(call));
  }
  EC_ASSIGN_OR_RETURN(
      const retention::Preview preview,
      context.parts.retention.preview(namespace_parameter(call), selector, retention_ns));
  return preview_json(preview);
}

void get_preview(HttpContext& context, Call& call) {
  const auto preview = preview_of(context, call);
  if (!preview.ok()) return call.answer_error(preview.status());
  call.answer_json(200, wire::dump(*preview));
}

}  // namespace

void add_retention_routes(Router& router, HttpContext& context) {
  router.add("GET", wire::routes::kRetention, Effect::Reads,
             [&context](Call& call) { get_retention(context, call); });
  router.add("POST", wire::routes::kRetention, Effect::Changes,
             [&context](Call& call) { post_retention(context, call); });
  router.add("DELETE", wire::routes::kRetention, Effect::Changes,
             [&context](Call& call) { delete_retention(context, call); });
  router.add("GET", wire::routes::kRetentionPreview, Effect::Reads,
             [&context](Call& call) { get_preview(context, call); });
}

}  // namespace edgecase::http
