// Routes for forwarding: /api/v1/forward, and what /api/v1/status and /metrics tell of it.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "forward/forwarding.h"
#include "http/http_routes.h"
#include "wire/json_text.h"

namespace edgecase::http {
namespace {

using forward::TargetState;
using forward::TargetStatus;
using wire::Json;

constexpr std::size_t kUndeliveredShown = 100;

Json time_or_none(std::int64_t time_ns) {
  return time_ns == 0 ? Json(nullptr) : Json(wire::time_text(time_ns));
}

// For how long it has not had everything; none: not known yet.
Json behind_seconds(const HttpContext& context, const TargetStatus& status) {
  if (status.state == TargetState::Current) return 0;
  if (status.current_ns == 0) return nullptr;
  const std::int64_t behind_ns = context.parts.clock.wall_ns() - status.current_ns;
  return static_cast<double>(std::max<std::int64_t>(behind_ns, 0)) / 1e9;
}

// What went before the target had it, by reason; what it cannot hold among it.
Json unsent_json(const TargetStatus& status) {
  Json json = {{"unfit", status.totals.unfit}};
  for (std::size_t i = 0; i < status.totals.unsent.size(); ++i)
    json[forward::leaving_name(static_cast<retention::Leaving>(i))] = status.totals.unsent[i];
  return json;
}

Json target_json(const HttpContext& context, const TargetStatus& status) {
  return {{"name", status.name},
          {"to", status.to.empty() ? Json(nullptr) : Json(status.to)},
          {"state", forward::state_name(status.state)},
          {"why", status.why.empty() ? Json(nullptr) : Json(status.why)},
          {"behind_seconds", behind_seconds(context, status)},
          {"answered", time_or_none(status.answered_ns)},
          {"readings", status.totals.readings},
          {"bytes", status.totals.bytes},
          {"requests", status.requests},
          {"failed_requests", status.failed_requests},
          {"undelivered", status.totals.undelivered},
          {"erasures_waiting", status.erasures},
          {"apart", status.is_apart},
          {"cannot_erase", status.cannot_erase.empty() ? Json(nullptr) : Json(status.cannot_erase)},
          {"oldest_waiting", status.oldest_ns ? Json(wire::time_text(*status.oldest_ns)) : Json()},
          {"unsent", unsent_json(status)},
          {"thinned_sent", status.thinned_sent},
          {"unfit", status.totals.unfit},
          {"not_kept", status.totals.not_kept}};
}

Result<forward::Forwarding*> forwarding_of(const HttpContext& context) {
  if (context.parts.forwarding == nullptr) return unsupported("nothing is forwarded here");
  return context.parts.forwarding;
}

// The names of what was refused are for administrators.
Result<Json> one_target(const HttpContext& context, const Call& call, const std::string& name) {
  EC_ASSIGN_OR_RETURN(const forward::Forwarding* forwarding, forwarding_of(context));
  const std::vector<TargetStatus> all = forwarding->list();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&name](const TargetStatus& each) { return each.name == name; });
  if (found == all.end()) return not_found("no target is called " + name);
  Json json = target_json(context, *found);
  const auto waiting = forwarding->waiting(name);
  json["waiting_at_most"] = waiting.ok() ? Json(*waiting) : Json(nullptr);
  // Readings that came since it was looked at last.
  if (found->state == TargetState::Current && waiting.ok() && *waiting > 0)
    json["state"] = forward::state_name(TargetState::Sending);
  if (!auth::authorize_administration(call.principal()).ok()) return json;
  json["refused_why"] = found->refused_why.empty() ? Json(nullptr) : Json(found->refused_why);
  json["undelivered_kept"] = found->undelivered_kept;
  EC_ASSIGN_OR_RETURN(const auto undelivered, forwarding->undelivered(name, kUndeliveredShown));
  query::Reach& reach = call.exchange.audit.reach.emplace();
  Json readings = Json::array();
  for (const forward::UndeliveredReading& each : undelivered) {
    reach.add(each.series.namespace_name, each.series.device);
    readings.push_back({{"namespace", each.series.namespace_name},
                        {"device", each.series.device},
                        {"sensor", each.series.sensor},
                        {"time", wire::time_text(each.time_ns)},
                        {"status", each.status},
                        {"refused", wire::time_text(each.refused_ns)}});
  }
  json["undelivered_readings"] = std::move(readings);
  return json;
}

// A page of what the target holds, or does not.
Result<Json> verify_target(const HttpContext& context, const Call& call,
                           forward::Forwarding& forwarding, const std::string& name) {
  forward::VerifyRequest request;
  const std::int64_t now_ns = context.parts.clock.wall_ns();
  for (auto& [key, time_ns] :
       {std::pair<const char*, std::optional<std::int64_t>*>("from", &request.from_ns),
        {"to", &request.to_ns}}) {
    if (!call.has(key)) continue;
    EC_ASSIGN_OR_RETURN(*time_ns, wire::parse_time_ns(call.parameter(key), now_ns));
  }
  request.behind = call.parameter("behind");
  EC_ASSIGN_OR_RETURN(const forward::Forwarding::Verified verified,
                      forwarding.verify(name, std::move(request)));
  const forward::VerifyPage& page = verified.page;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  Json hours = Json::array();
  for (const forward::VerifyPage::Hour& each : page.hours) {
    reach.add(each.namespace_name, each.device);
    hours.push_back({{"namespace", each.namespace_name},
                     {"device", each.device},
                     {"sensor", each.sensor},
                     {"hour", wire::time_text(each.begin_ns)},
                     {"readings", each.here},
                     {"missing", each.missing}});
  }
  return Json{{"name", name},
              {"readings", page.readings},
              {"missing", page.missing},
              {"sent_again", verified.sent_again},
              {"refused", page.refused},
              {"unchecked", page.unchecked},
              {"hours", std::move(hours)},
              {"next", page.next.empty() ? Json(nullptr) : Json(page.next)}};
}

// Signed summaries: of what went to a target, or, without a name, of what came.
Result<Json> summaries_json(const HttpContext& context, const Call& call, const std::string& name) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(forward::Forwarding * forwarding, forwarding_of(context));
  EC_ASSIGN_OR_RETURN(const forward::Summaries::Page page,
                      forwarding->summaries().list(name, call.parameter("behind")));
  query::Reach& reach = call.exchange.audit.reach.emplace();
  Json list = Json::array();
  for (const nlohmann::json& each : page.documents) {
    const nlohmann::json& named = each.contains("namespace") ? each : each["summary"];
    reach.add(named.value("namespace", ""), named.value("device", ""));
    list.push_back({{"confirmed", forward::confirms(each)}, {"document", each}});
  }
  return Json{{"summaries", std::move(list)},
              {"next", page.next.empty() ? Json(nullptr) : Json(page.next)}};
}

// A line of PUT: what is held of an hour that is summed up.
Result<nlohmann::json> receipt_of(const HttpContext& context, const Call& call,
                                  std::string_view line, query::Reach& reach) {
  const nlohmann::json asked = nlohmann::json::parse(line, nullptr, false);
  const bool is_asked = asked.is_object() && asked.contains("summary") &&
                        asked["summary"].is_object() && asked.contains("sensors") &&
                        asked["sensors"].is_array() &&
                        asked["sensors"].size() <= forward::Summaries::kSensorsMax;
  if (!is_asked) return invalid_argument("a line is not a summary and its sensors");
  EC_ASSIGN_OR_RETURN(forward::Forwarding * forwarding, forwarding_of(context));
  if (call.request.forwarder.empty() || context.parts.origins == nullptr)
    return invalid_argument("it is not said which store sums up");
  EC_ASSIGN_OR_RETURN(const ingest::OriginClaim claim,
                      ingest::parse_origin(call.request.forwarder));
  EC_ASSIGN_OR_RETURN(const ingest::Origins::Holder holder, context.parts.origins->find(claim));
  const auto text = [&asked](const char* name) {
    const auto found = asked["summary"].find(name);
    return found != asked["summary"].end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string namespace_name = text("namespace"), device = text("device");
  std::vector<std::string> sensors;
  for (const nlohmann::json& each : asked["sensors"]) {
    if (!each.is_string()) return invalid_argument("a sensor is no text");
    sensors.push_back(each.get<std::string>());
    if (namespace_name.starts_with('_') || !auth::allows(auth::Operation::Write, call.principal(),
                                                         namespace_name, device, sensors.back())) {
      return not_allowed("the token may not write this device");
    }
  }
  reach.add(namespace_name, device);
  return forwarding->summaries().receipt(asked["summary"], sensors, claim.store, holder.numbers);
}

// Names here, by those that the sender's devices have there.
using NamesHere = std::map<std::string, std::vector<std::string>>;

// What a token may do to devices of the sender's, by the names that they have here; nothing to
// others, whose names may be those of the sender's.
std::shared_ptr<const auth::Grant> grant_here(const auth::Grant& grant, const NamesHere& names) {
  auto here = std::make_shared<auth::Grant>();
  here->token_id = grant.token_id;
  here->certificate = grant.certificate;
  here->ends_ns = grant.ends_ns.load();
  here->scopes = grant.scopes;
  for (std::vector<wire::Selector>* scope :
       {&here->scopes.read, &here->scopes.write, &here->scopes.export_all, &here->scopes.erase}) {
    std::vector<wire::Selector> may;
    for (const wire::Selector& each : *scope) {
      for (const auto& [device, all] : names) {
        if (!wire::glob_matches(each.device, device)) continue;
        for (const std::string& name : all) may.push_back({wire::escape_name(name), each.sensor});
      }
    }
    *scope = std::move(may);
  }
  return here;
}

// The stores that forward to this one.
Result<Json> origins_json(const HttpContext& context) {
  if (context.parts.origins == nullptr) return unsupported("nothing is forwarded to this store");
  const auto counts = context.parts.catalog.count_origins();
  Json list = Json::array();
  for (const ingest::Origin& each : context.parts.origins->list()) {
    const auto count = counts.find(each.number);
    const bool is_any = count != counts.end();
    list.push_back({{"origin", each.number},
                    {"store", each.store},
                    {"with", each.by},
                    {"since", wire::time_text(each.since_ns)},
                    {"second", each.is_second},
                    {"heir", each.holder == each.number ? Json(nullptr) : Json(each.holder)},
                    {"devices", is_any ? count->second.devices : 0},
                    {"renamed", is_any ? count->second.renamed : 0}});
  }
  return Json{{"origins", std::move(list)}};
}

Result<catalog::OriginNumber> origin_parameter(const Call& call, const char* name) {
  EC_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> number, limit_parameter(call, name));
  if (!number || *number == 0 || *number >= catalog::kNoOrigin)
    return invalid_argument(std::string(name) + " is the number of an origin");
  return static_cast<catalog::OriginNumber>(*number);
}

Result<Json> hand_over(const HttpContext& context, const Call& call) {
  if (context.parts.origins == nullptr) return unsupported("nothing is forwarded to this store");
  EC_ASSIGN_OR_RETURN(const catalog::OriginNumber number, origin_parameter(call, "origin"));
  EC_ASSIGN_OR_RETURN(const catalog::OriginNumber heir, origin_parameter(call, "heir"));
  call.exchange.audit.detail =
      "hand-over " + std::to_string(number) + " to " + std::to_string(heir);
  EC_TRY(context.parts.origins->hand_over(number, heir));
  return Json{{"origin", number}, {"heir", heir}};
}

}  // namespace

Result<catalog::Origins> HttpContext::origins_of(Call& call) const {
  if (call.request.forwarder.empty() || parts.origins == nullptr)
    return catalog::Origins(catalog::kOwnOrigins);
  if (!call.holder) {
    EC_ASSIGN_OR_RETURN(const ingest::OriginClaim claim,
                        ingest::parse_origin(call.request.forwarder));
    EC_ASSIGN_OR_RETURN(call.holder, parts.origins->enter(claim, call.principal().name));
    if (call.holder->is_new && call.holder->is_second) {
      parts.logger.warning("forward",
                           "a second copy of a store forwards to this one, with the token " +
                               call.principal().name +
                               ": what it brings is kept apart; to do: edgecase forward origins");
    }
  }
  return catalog::Origins(call.holder->numbers);
}

Result<wire::Selection> HttpContext::by_names_here(const Call& call,
                                                   wire::Selection selection) const {
  if (call.request.forwarder.empty() || parts.origins == nullptr) return selection;
  EC_ASSIGN_OR_RETURN(const ingest::OriginClaim claim,
                      ingest::parse_origin(call.request.forwarder));
  EC_ASSIGN_OR_RETURN(const ingest::Origins::Holder holder, parts.origins->find(claim));
  const std::string from = namespace_parameter(call);
  std::vector<wire::Selector> here;
  NamesHere names;
  for (const wire::Selector& each : selection.selectors) {
    if (from.empty() || !wire::is_literal(each.device))
      return invalid_argument("who forwards names devices one by one, and their namespace");
    const std::string device = wire::unescape_name(each.device);
    const auto [known, is_new] = names.try_emplace(device);
    if (is_new) known->second = parts.catalog.placed_names(from, device, holder.numbers);
    for (const std::string& name : known->second)
      here.push_back({wire::escape_name(name), each.sensor});
  }
  if (here.empty()) return not_found("nothing of these devices came from this store");
  selection.selectors = std::move(here);
  if (call.principal().grant)
    call.exchange.principal.grant = grant_here(*call.principal().grant, names);
  return selection;
}

Json forward_status(const HttpContext& context) {
  Json targets = Json::array();
  if (context.parts.forwarding == nullptr) return targets;
  for (const TargetStatus& each : context.parts.forwarding->list())
    targets.push_back(target_json(context, each));
  return targets;
}

Result<Json> get_forward(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_status(call.principal()));
  if (call.parameter("origins") == "true") {
    EC_TRY(auth::authorize_administration(call.principal()));
    if (call.parameter("summaries") == "true") return summaries_json(context, call, "");
    return origins_json(context);
  }
  if (call.has("name") && call.parameter("summaries") == "true")
    return summaries_json(context, call, call.parameter("name"));
  if (call.has("name")) return one_target(context, call, call.parameter("name"));
  return Json{{"targets", forward_status(context)}};
}

Result<Json> put_forward(HttpContext& context, const Call& call) {
  constexpr std::size_t kLinesMax = 256;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  Json receipts = Json::array();
  for (std::string_view rest = call.body(); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    if (receipts.size() == kLinesMax)
      return invalid_argument("more than " + std::to_string(kLinesMax) + " summaries at once");
    const Result<nlohmann::json> receipt = receipt_of(context, call, line, reach);
    receipts.push_back(receipt.ok() ? Json(*receipt) : Json{{"error", receipt.status().message()}});
  }
  call.exchange.audit.count = receipts.size();
  return Json{{"receipts", std::move(receipts)}};
}

Result<Json> post_forward(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  const std::string name = call.parameter("name");
  const std::string action = call.parameter("action");
  if (action == "hand-over") return hand_over(context, call);
  EC_ASSIGN_OR_RETURN(forward::Forwarding * forwarding, forwarding_of(context));
  const bool undelivered = call.parameter("undelivered") == "true";
  call.exchange.audit.detail = action + " " + name;
  if (action == "verify") return verify_target(context, call, *forwarding, name);
  if (action == "pause") {
    EC_TRY(forwarding->pause(name));
  } else if (action == "resume") {
    EC_TRY(forwarding->resume(name, undelivered));
  } else {
    return invalid_argument("action is neither pause, resume, verify nor hand-over");
  }
  return Json{{"name", name}, {"action", action}};
}

Result<Json> delete_forward(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(forward::Forwarding * forwarding, forwarding_of(context));
  const std::string name = call.parameter("name");
  call.exchange.audit.detail = name;
  EC_TRY(forwarding->forget(name));
  return Json{{"name", name}, {"forgotten", true}};
}

std::string forward_metrics(const HttpContext& context) {
  if (context.parts.forwarding == nullptr) return {};
  const std::vector<TargetStatus> all = context.parts.forwarding->list();
  struct Number {
    const char* name;
    const char* help;
    std::uint64_t (*of)(const TargetStatus& status);
  };
  const std::array numbers = {
      Number{"edgecase_forward_readings_total", "Readings that a target has answered for.",
             [](const TargetStatus& each) { return each.totals.readings; }},
      Number{"edgecase_forward_bytes_total", "Bytes of requests to it, as they were sent.",
             [](const TargetStatus& each) { return each.totals.bytes; }},
      Number{"edgecase_forward_undelivered_total", "Readings that it refused one by one.",
             [](const TargetStatus& each) { return each.totals.undelivered; }},
      Number{"edgecase_forward_unfit_total", "Readings that a target of its kind cannot hold.",
             [](const TargetStatus& each) { return each.totals.unfit; }},
      Number{"edgecase_forward_not_kept_total", "Readings that it took and did not keep.",
             [](const TargetStatus& each) { return each.totals.not_kept; }},
      Number{"edgecase_forward_thinned_sent_total",
             "Of the readings that became windows before a target had them: those whose windows it "
             "has.",
             [](const TargetStatus& each) { return each.thinned_sent; }},
      Number{"edgecase_forward_failures_total", "Batches that did not get through.",
             [](const TargetStatus& each) { return each.failed_requests; }}};
  std::string text;
  for (const Number& each : numbers) {
    std::vector<std::pair<observe::Labels, std::uint64_t>> values;
    for (const TargetStatus& status : all)
      values.emplace_back(observe::Labels{{"target", status.name}}, each.of(status));
    text += observe::render_counter(each.name, each.help, values);
  }
  std::vector<std::pair<observe::Labels, std::uint64_t>> unsent;
  for (const TargetStatus& status : all) {
    const Json counts = unsent_json(status);
    for (const auto& [reason, count] : counts.items())
      unsent.emplace_back(observe::Labels{{"target", status.name}, {"reason", reason}},
                          count.get<std::uint64_t>());
  }
  return text + observe::render_counter("edgecase_forward_unsent_total",
                                        "Readings that went here before a target had them.",
                                        unsent);
}

}  // namespace edgecase::http
