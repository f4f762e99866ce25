// Routes for clients of InfluxDB 2 beside /api/v2/write: statements of InfluxQL, and which buckets
// and organisations there are. A bucket is a namespace; organisations mean nothing here.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "http/http_routes.h"
#include "http/influx_query.h"
#include "http/refusal.h"
#include "wire/json_values.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

using wire::Json;

constexpr char kOrganisationId[] = "0000000000000001";
constexpr char kOrganisation[] = "edgecase";

// Clients want 16 hexadecimal digits, the same each time: FNV-1a of the name.
std::string id_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  constexpr char kDigits[] = "0123456789abcdef";
  constexpr int kIdDigits = 16;
  std::string id(kIdDigits, '0');
  for (auto digit = id.rbegin(); digit != id.rend(); ++digit, hash >>= 4)
    *digit = kDigits[hash % 16];
  return id;
}

// "database/policy" is how v2 clients address v1.
void take_bucket(const std::string& bucket, InfluxQuestion& question) {
  const std::size_t slash = bucket.find('/');
  if (slash != std::string::npos) question.policy = bucket.substr(slash + 1);
  question.database = bucket.substr(0, slash);
  if (question.database.empty()) question.database = wire::kDefaultNamespace;
}

std::string member_text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

Status flux_refusal() {
  return unsupported(
      "Flux is not offered here: send InfluxQL to /query, or with type influxql to /api/v2/query");
}

// {"query":"…","type":"influxql","bucket":"…","params":{…}}
Result<InfluxQuestion> question_of_json(const Call& call) {
  if (call.body().size() > 2 * kInfluxQueryMaxBytes)
    return invalid_argument("the body is longer than a query may be");
  const Json json = Json::parse(call.body(), nullptr, false);
  if (!json.is_object()) return invalid_argument("the body is no JSON object");
  std::string type = member_text(json, "type");
  std::transform(type.begin(), type.end(), type.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (type.empty() || type == "flux") return flux_refusal();
  if (type != "influxql") return invalid_argument("type is none of influxql, flux");
  InfluxQuestion question;
  question.text = member_text(json, "query");
  question.database = member_text(json, "bucket");
  if (question.database.empty()) question.database = member_text(json, "db");
  if (const auto found = json.find("params"); found != json.end()) {
    EC_ASSIGN_OR_RETURN(question.parameters, bound_parameters(*found));
  }
  return question;
}

Result<InfluxQuestion> question_of_v2(const Call& call) {
  const std::string_view type = call.request.content_type;
  InfluxQuestion question;
  if (type.starts_with("application/vnd.flux")) return flux_refusal();
  if (type.starts_with(kInfluxQlType)) {
    question.text = call.body();
  } else if (type.starts_with("application/json")) {
    EC_ASSIGN_OR_RETURN(question, question_of_json(call));
  } else {
    return invalid_argument("Content-Type is none of application/json, application/vnd.influxql");
  }
  for (const char* name : {"db", "bucket"}) {
    if (call.has(name)) question.database = call.parameter(name);
  }
  take_bucket(std::string(question.database), question);
  question.purpose = call.parameter("purpose");
  EC_ASSIGN_OR_RETURN(question.shape, influx_shape_of(call));
  return question;
}

Result<std::size_t> count_parameter(const Call& call, const char* name, std::size_t otherwise) {
  if (!call.has(name)) return otherwise;
  const std::string text = call.parameter(name);
  std::size_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || error != std::errc{} || stop != text.data() + text.size())
    return invalid_argument(std::string(name) + " is no whole number");
  return count;
}

Json bucket_json(const std::string& name, std::int64_t kept_ns) {
  Json rules = Json::array();
  if (kept_ns != kRetentionForever)
    rules.push_back(
        {{"type", "expire"},
         {"everySeconds", std::max<std::int64_t>(1, kept_ns / wire::kNanosecondsPerSecond)}});
  return {{"id", id_of(name)}, {"orgID", kOrganisationId}, {"type", "user"},
          {"name", name},      {"retentionRules", rules},  {"labels", Json::array()}};
}

}  // namespace

void influx_query_v2(HttpContext& context, Call& call) {
  name_influx_version(call);
  const auto question = question_of_v2(call);
  if (question.ok()) return answer_influx_question(context, call, *question);
  if (question.status().code() != StatusCode::Unsupported)
    return call.answer_error(question.status());
  call.answer_json(501, error_body(call.request.path, question.status()));
}

void get_influx_buckets(HttpContext& context, Call& call) {
  name_influx_version(call);
  const auto limit = count_parameter(call, "limit", SIZE_MAX);
  const auto offset = count_parameter(call, "offset", 0);
  const Status status = limit.ok() ? offset.status() : limit.status();
  if (!status.ok()) return call.answer_error(status);
  Json buckets = Json::array();
  bool is_behind = call.parameter("after").empty();
  std::size_t passed = 0;
  const auto take = [&](const std::string& name, std::int64_t kept_ns) {
    if (call.has("name") && call.parameter("name") != name) return;
    if (call.has("id") && call.parameter("id") != id_of(name)) return;
    if (!is_behind) {
      is_behind = call.parameter("after") == id_of(name);
    } else if (passed < *offset) {
      ++passed;
    } else if (buckets.size() < *limit) {
      buckets.push_back(bucket_json(name, kept_ns));
    }
  };
  for (const std::string& name : context.parts.catalog.namespaces()) {
    if (name.starts_with('_') || !auth::allows_namespace(call.principal(), name)) continue;
    take(name, context.parts.retention.namespace_ns(name));
    // Tiers are policies, and a bucket is "database/policy", as in InfluxDB 1.8.
    for (const wire::Tier& tier : context.parts.retention.tiers_of(name))
      take(name + "/" + wire::format_duration(tier.every_ns), tier.keep_ns);
  }
  const Json answer = {{"links", {{"self", wire::routes::kInfluxBuckets}}}, {"buckets", buckets}};
  call.answer_json(200, wire::dump(answer));
}

void get_influx_orgs(HttpContext& /*context*/, Call& call) {
  name_influx_version(call);
  const std::string asked = call.parameter("org");
  const Json answer = {{"links", {{"self", wire::routes::kInfluxOrgs}}},
                       {"orgs",
                        {{{"id", kOrganisationId},
                          {"name", asked.empty() ? kOrganisation : asked},
                          {"description", ""},
                          {"status", "active"}}}}};
  call.answer_json(200, wire::dump(answer));
}

}  // namespace edgecase::http
