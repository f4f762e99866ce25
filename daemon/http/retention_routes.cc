// Routes for rules of retention: /api/v1/retention and /api/v1/retention/preview.
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/json_text.h"
#include "wire/reading_json.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

using Rules = std::vector<retention::Rule>;

// Devices of a group that are looked up at once.
constexpr std::size_t kGroupPage = 500;

// Makes a rule for each device of which something is said, where anything is stored of it.
Status each_of_group(const HttpContext& context, const std::string& wanted,
                     const catalog::DeviceFilter& filter, const wire::Keeping& keeping,
                     const std::function<Status(const Rules&)>& take) {
  bool is_any = false;
  catalog::DevicePage page{std::nullopt, kGroupPage};
  while (true) {
    EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceName> found,
                        context.parts.devices.find(wanted, filter, page));
    Rules rules;
    for (const catalog::DeviceName& name : found) {
      if (wanted.empty() && name.namespace_name.starts_with('_')) continue;
      const wire::Selector one{wire::escape_name(name.device), "*"};
      if (!context.parts.catalog.select_rows(name.namespace_name, one).empty())
        rules.push_back({name.namespace_name, one, keeping.raw_ns, keeping.tiers});
    }
    if (!rules.empty()) EC_TRY(take(rules));
    is_any = is_any || !rules.empty();
    if (found.size() < kGroupPage) break;
    page.after = found.back();
  }
  return is_any ? ok() : not_found("nothing is stored of devices of which this is said");
}

// What a rule is asked for of, in pages: selectors, or a group of devices.
Status each_rules(const HttpContext& context, const Call& call, const wire::Keeping& keeping,
                  const std::function<Status(const Rules&)>& take) {
  EC_ASSIGN_OR_RETURN(const wire::Selection selection, selection_parameters(call));
  EC_ASSIGN_OR_RETURN(const catalog::DeviceFilter filter, filter_parameters(call));
  if (filter.empty() != call.has("select")) {
    return invalid_argument(
        "say of what: select, or of which devices (owner, purpose, object, label)");
  }
  const std::string wanted = namespace_parameter(call);
  if (!filter.empty()) return each_of_group(context, wanted, filter, keeping, take);
  Rules rules;
  for (const wire::Selector& each : selection.selectors) {
    const bool is_there =
        std::any_of(rules.begin(), rules.end(), [&each](const retention::Rule& rule) {
          return rule.selector.device == each.device && rule.selector.sensor == each.sensor;
        });
    if (!is_there) rules.push_back({wanted, each, keeping.raw_ns, keeping.tiers});
  }
  return take(rules);
}

// All of them. Busy: more than there may be.
Result<Rules> rules_of(const HttpContext& context, const Call& call, const wire::Keeping& keeping) {
  Rules all;
  EC_TRY(each_rules(context, call, keeping, [&all](const Rules& rules) {
    all.insert(all.end(), rules.begin(), rules.end());
    return all.size() > retention::kRulesMax ? retention::too_many_rules() : ok();
  }));
  return all;
}

std::string text_of(const Call& call, const Rules& rules) {
  if (rules.size() > 1)
    return std::to_string(rules.size()) + (call.has("select") ? " selectors" : " devices");
  return rules.front().selector.device + "/" + rules.front().selector.sensor;
}

// keep=7d, and then=1m:90d,1h:forever.
Result<wire::Keeping> keep_parameters(const Call& call) {
  const std::string text = call.parameter("keep");
  if (text.empty()) return invalid_argument("the parameter keep is missing, use 30d or forever");
  wire::Keeping keeping;
  if (text != "forever") {
    EC_ASSIGN_OR_RETURN(keeping.raw_ns, wire::parse_duration_ns(text));
    if (keeping.raw_ns == 0) return invalid_argument("keep is zero: nothing would be kept");
  }
  EC_ASSIGN_OR_RETURN(keeping.tiers, wire::parse_tiers(call.parameter("then")));
  EC_TRY(wire::check_keeping(keeping));
  return keeping;
}

Json tiers_json(const std::vector<wire::Tier>& tiers) {
  Json list = Json::array();
  for (const wire::Tier& tier : tiers) list.push_back(wire::tier_text(tier));
  return list;
}

Json tier_previews_json(const std::vector<retention::PreviewTier>& tiers) {
  Json list = Json::array();
  for (const retention::PreviewTier& each : tiers) {
    list.push_back({{"tier", wire::tier_text(each.tier)},
                    {"windows", each.amount.windows},
                    {"bytes", each.amount.bytes}});
  }
  return list;
}

Json rule_json(const retention::Rule& rule) {
  Json json = {{"namespace", rule.namespace_name.empty() ? "*" : rule.namespace_name},
               {"select", rule.selector.device + "/" + rule.selector.sensor},
               {"keep", wire::keep_text(rule.retention_ns)}};
  if (!rule.tiers.empty()) json["then"] = tiers_json(rule.tiers);
  return json;
}

// Notes the devices of a group, which the audit log names.
void note_reach(const Call& call, const Rules& rules) {
  if (call.has("select")) return;
  std::optional<query::Reach>& reach = call.exchange.audit.reach;
  if (!reach) reach.emplace();
  for (const retention::Rule& rule : rules)
    reach->add(rule.namespace_name, wire::unescape_name(rule.selector.device));
}

Json rules_json(const Rules& rules) {
  Json list = Json::array();
  for (const retention::Rule& rule : rules) list.push_back(rule_json(rule));
  return {{"rules", std::move(list)}};
}

// `level`: how far what expires is gone, as for an erasure of a range of times.
Json preview_json(HttpContext& context, const retention::Preview& preview) {
  const erase::Reach reach = context.parts.erase.reach(context.parts.erase.drives().look(), false);
  Json json = {{"series", preview.series},
               {"readings", preview.readings},
               {"erased_readings", preview.count},
               {"erased_bytes", preview.bytes},
               {"thinned_readings", preview.thinned},
               {"erased_windows", preview.windows},
               {"oldest", wire::time_or_null(preview.oldest_ns)},
               {"next", wire::time_or_null(preview.next_ns)},
               {"level", erase::level_name(reach.level)},
               {"level_why", reach.why.empty() ? Json(nullptr) : Json(reach.why)}};
  Json affected = Json::array();
  for (const retention::PreviewSeries& series : preview.affected) {
    Json row = {{"namespace", series.entry.namespace_name},
                {"device", series.entry.device},
                {"sensor", series.entry.sensor},
                {"keep_now", wire::keep_text(series.now.raw_ns)},
                {"keep_then", wire::keep_text(series.then.raw_ns)},
                {"erased_readings", series.count},
                {"erased_bytes", series.bytes},
                {"thinned_readings", series.thinned},
                {"erased_windows", series.windows},
                {"oldest", wire::time_or_null(series.oldest_ns)},
                {"next", wire::time_or_null(series.next_ns)}};
    if (!series.now.tiers.empty()) row["tiers_now"] = tiers_json(series.now.tiers);
    if (!series.then.tiers.empty()) row["tiers_then"] = tiers_json(series.then.tiers);
    if (!series.tiers.empty()) row["tiers"] = tier_previews_json(series.tiers);
    affected.push_back(std::move(row));
  }
  json["affected"] = std::move(affected);
  if (!preview.tiers.empty()) json["tiers"] = tier_previews_json(preview.tiers);
  return json;
}

// The rule of a backup: one that names a device that was erased since would bring its name back.
Status check_rules_as_of(const HttpContext& context, const Call& call, const Rules& rules) {
  if (!call.has("as_of")) return ok();
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  for (const retention::Rule& rule : rules) {
    if (!wire::is_literal(rule.selector.device)) continue;
    const std::string device = wire::unescape_name(rule.selector.device);
    std::vector<std::string> namespaces{rule.namespace_name};
    if (rule.namespace_name.empty()) namespaces = context.parts.catalog.namespaces();
    for (const std::string& name : namespaces) EC_TRY(check_as_of(context, call, {name, device}));
  }
  return ok();
}

// A rule that would erase all that it is for needs `yes=true`.
Result<Json> set_rule(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const wire::Keeping keeping, keep_parameters(call));
  if (!keeping.tiers.empty() && context.parts.settings.storage.expiry == "exact") {
    return invalid_argument(
        "storage.expiry is exact, which tiers are not: bytes of readings that become windows go "
        "within minutes, not within a second");
  }
  EC_ASSIGN_OR_RETURN(const Rules rules, rules_of(context, call, keeping));
  EC_TRY(check_rules_as_of(context, call, rules));
  EC_ASSIGN_OR_RETURN(const retention::Preview preview,
                      context.parts.retention.preview_all(rules, keeping));
  if (preview.erases_everything() && call.parameter("yes") != "true")
    return invalid_argument("this rule would erase all " + std::to_string(preview.count) +
                            " readings of " + text_of(call, rules) +
                            " at once; if that is meant, say yes=true");
  EC_TRY(context.parts.retention.set_all(rules));
  call.exchange.audit.count = preview.count;
  note_reach(call, rules);
  const bool is_one = call.has("select") && rules.size() == 1;
  Json json = is_one ? rule_json(rules.front()) : rules_json(rules);
  json["erased_readings"] = preview.count;
  json["thinned_readings"] = preview.thinned;
  json["erased_windows"] = preview.windows;
  json["series"] = preview.series;
  return json;
}

}  // namespace

void get_retention(HttpContext& context, Call& call) {
  const std::string wanted = namespace_parameter(call);
  Json rules = Json::array();
  for (const retention::Rule& rule : context.parts.retention.rules()) {
    if (!auth::allows_namespace(call.principal(), rule.namespace_name)) continue;
    if (wanted.empty() || rule.namespace_name.empty() || rule.namespace_name == wanted)
      rules.push_back(rule_json(rule));
  }
  const wire::Keeping& by_default = context.parts.retention.by_default();
  Json json = {{"default", wire::keep_text(by_default.raw_ns)}, {"rules", std::move(rules)}};
  if (!by_default.tiers.empty()) json["default_then"] = tiers_json(by_default.tiers);
  call.answer_json(200, wire::dump(json));
}

void post_retention(HttpContext& context, Call& call) {
  // The engine may need a rule for each of tens of thousands of series, and a few lists of them.
  const auto& give_memory_back = context.parts.give_memory_back;
  if (give_memory_back) give_memory_back();
  const auto done = set_rule(context, call);
  if (give_memory_back) give_memory_back();
  if (!done.ok()) return call.answer_error(done.status());
  call.answer_json(200, wire::dump(*done));
}

// As the rule of a topic says it, of series that are known here. A rule lets readings go: of what
// may not be erased it is not taken.
Result<Json> put_retention(HttpContext& context, const Call& call) {
  wire::JsonDecodeOptions options;
  options.form = wire::JsonDecodeOptions::Form::Lines;
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome decoded;
  EC_TRY(wire::decode_readings_json(call.body(), options, batch, decoded));
  if (decoded.bad > 0) return invalid_argument("a line is none: " + decoded.errors.front().message);
  std::deque<wire::TopicMetadata> tiers;
  std::vector<wire::Reading> said;
  std::uint64_t refused = 0;
  for (wire::Reading& reading : batch.readings) {
    if (reading.value.type != wire::ValueType::Text)
      return invalid_argument("a rule is a text, as in \"7d then 1m:90d\"; \"\": there is none");
    reading.retention_ns = wire::kRetentionOfNoTopic;
    if (!reading.value.text.empty()) {
      EC_ASSIGN_OR_RETURN(wire::Keeping keeping, wire::parse_keeping(reading.value.text));
      reading.retention_ns = keeping.raw_ns;
      if (!keeping.tiers.empty()) {
        tiers.push_back({.owner = {}, .purposes = {}, .tiers = std::move(keeping.tiers)});
        reading.metadata = &tiers.back();
      }
    }
    const bool may_go =
        auth::authorize_write(call.principal(), reading).ok() &&
        auth::allows(auth::Operation::Erase, call.principal(), reading.namespace_name,
                     reading.device, reading.sensor) &&
        (reading.metadata == nullptr || context.parts.settings.storage.expiry != "exact");
    if (may_go) {
      said.push_back(reading);
    } else {
      ++refused;
    }
  }
  // By the names that they have here.
  catalog::Catalog::Placed placed;
  if (!call.request.forwarder.empty() && context.parts.origins != nullptr) {
    EC_ASSIGN_OR_RETURN(const ingest::OriginClaim claim,
                        ingest::parse_origin(call.request.forwarder));
    EC_ASSIGN_OR_RETURN(const ingest::Origins::Holder holder, context.parts.origins->find(claim));
    EC_ASSIGN_OR_RETURN(const std::span<const wire::Reading> here,
                        context.parts.catalog.place(said, holder.numbers, placed));
    said = std::vector<wire::Reading>(here.begin(), here.end());
  }
  std::vector<const wire::Reading*> asked;
  for (const wire::Reading& reading : said) asked.push_back(&reading);
  std::vector<catalog::SeriesId> ids;
  context.parts.catalog.find_ids(asked, ids);
  std::vector<wire::Reading> known;
  std::vector<catalog::SeriesId> known_ids;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (ids[i].sensor == 0) continue;
    known.push_back(said[i]);
    known_ids.push_back(ids[i]);
    reach.add(std::string(said[i].namespace_name), std::string(said[i].device));
  }
  EC_TRY(context.parts.retention.cover(known, known_ids, false));
  call.exchange.audit.count = known.size();
  return Json{{"set", known.size()}, {"unknown", said.size() - known.size()}, {"refused", refused}};
}

// Clears rules; of several selectors those that have one, and of a group those of its devices.
Result<Json> delete_retention(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  std::size_t cleared = 0;
  std::size_t asked = 0;
  Status status;
  std::vector<wire::LeftSelector> left;
  const auto clear_all = [&](const Rules& rules) {
    note_reach(call, rules);
    for (const retention::Rule& rule : rules) {
      ++asked;
      status = context.parts.retention.clear(rule.namespace_name, rule.selector);
      if (status.ok()) ++cleared;
      if (status.code() != StatusCode::NotFound) EC_TRY(status);
      if (!status.ok()) left.push_back({rule.selector, status});
    }
    return ok();
  };
  EC_TRY(each_rules(context, call, {}, clear_all));
  if (cleared == 0) return left.empty() ? status : left.front().why;
  if (!call.has("select")) return Json{{"cleared", true}, {"rules", cleared}};
  Json json = {{"cleared", true}};
  if (asked > 1) json["rules"] = cleared;
  if (!left.empty()) json[kLeftOutMember] = left_out_json(call, left);
  return json;
}

Result<Json> get_retention_preview(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  const bool clears = call.parameter("clear") == "true";
  if (clears && call.has("keep")) return invalid_argument("a rule is either set or cleared");
  if (!call.has("keep") && call.has("then"))
    return invalid_argument("then is of what comes after keep, which is missing");
  if (call.has("keep")) {
    EC_ASSIGN_OR_RETURN(const wire::Keeping keeping, keep_parameters(call));
    EC_ASSIGN_OR_RETURN(const Rules rules, rules_of(context, call, keeping));
    EC_ASSIGN_OR_RETURN(const retention::Preview preview,
                        context.parts.retention.preview_all(rules, keeping));
    note_reach(call, rules);
    return preview_json(context, preview);
  }
  retention::Preview preview;
  const auto look_at = [&](const Rules& rules) -> Status {
    EC_ASSIGN_OR_RETURN(retention::Preview more,
                        clears ? context.parts.retention.preview_clear(rules)
                               : context.parts.retention.preview_all(rules, std::nullopt));
    preview.add(std::move(more));
    note_reach(call, rules);
    return ok();
  };
  EC_TRY(each_rules(context, call, {}, look_at));
  return preview_json(context, preview);
}

}  // namespace edgecase::http
