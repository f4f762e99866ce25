// Routes for clients of InfluxDB 1.x: /write, /ping, /query; and of InfluxDB 2: /api/v2/write,
// statements of InfluxQL, and which buckets and organisations there are.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "http/http_routes.h"
#include "http/influx_query.h"
#include "http/request_head.h"
#include "influxql/series_view.h"
#include "wire/contract.h"
#include "wire/decimal.h"
#include "wire/json_text.h"
#include "wire/line_protocol.h"
#include "wire/names.h"

namespace edgecase::http {
namespace {

std::string database_of(const Call& call, wire::InfluxVersion version) {
  std::string name = call.parameter(version == wire::InfluxVersion::V1 ? "db" : "bucket");
  // "database/policy" is how v2 clients address v1.
  if (version == wire::InfluxVersion::V2) name.resize(std::min(name.find('/'), name.size()));
  return name.empty() ? std::string(wire::kDefaultNamespace) : name;
}

// A tier is made of readings, and takes none. What other policies are called means nothing here.
Status check_policy(const HttpContext& context, const Call& call, wire::InfluxVersion version,
                    const std::string& database) {
  std::string policy = call.parameter("rp");
  if (version == wire::InfluxVersion::V2) {
    const std::string bucket = call.parameter("bucket");
    const std::size_t slash = bucket.find('/');
    policy = slash == std::string::npos ? std::string() : bucket.substr(slash + 1);
  }
  if (policy.empty()) return ok();
  const auto tier_ns = influxql::tier_of_policy(context.parts.query, database, policy);
  if (!tier_ns.ok() || *tier_ns == 0) return ok();
  return invalid_argument("the retention policy " + policy +
                          " is a tier: its windows are made of " +
                          "readings, which are written to autogen, without rp");
}

void write_lines(HttpContext& context, Call& call, wire::InfluxVersion version) {
  name_influx_version(call);
  const auto unit_ns = wire::parse_precision_ns(call.parameter("precision"), version);
  if (!unit_ns.ok()) return call.answer_error(unit_ns.status());
  const std::string database = database_of(call, version);
  if (const Status status = wire::check_name("database", database); !status.ok()) {
    return call.answer_error(status);
  }
  if (const Status status = check_policy(context, call, version, database); !status.ok())
    return call.answer_error(status);
  wire::LineProtocolOptions options;
  options.namespace_name = database;
  options.unit_ns = *unit_ns;
  options.error_limit = context.line_errors();
  LineSpares::Loan spare = context.line_spares.take(database);
  wire::LineProtocolDecoder decoder(call.body(), options, spare->names);
  ingest::IngestRequest request(call.principal(), &call.pacing, call.body().size(), spare->buffers);
  wire::ReadingBatch& batch = spare->batch;
  std::uint64_t taken = 0;
  ingest::Outcome outcome;
  while (decoder.next(batch)) {
    const std::size_t more = batch.readings.size();
    if (taken + more > context.points_per_batch()) break;
    if (const Status status = context.store(call, batch, request, outcome); !status.ok()) {
      return call.answer_error(status);
    }
    taken += more;
    batch.clear_readings();
  }
  if (const Status status = context.parts.ingest.finish(request); !status.ok())
    return call.answer_error(status);
  if (context.is_over_batch(call, taken, batch.readings.size())) return;
  if (decoder.bad_lines() + outcome.of(ingest::Loss::Refused) > 0) {
    return answer_partly(call, taken - outcome.not_stored(),
                         {decoder.bad_lines(), decoder.errors()}, outcome);
  }
  set_loss_headers(call, outcome);
  call.response.status = 204;
}

// The target's parameters, then those of a form in the body: clients do either.
class RequestParameters {
 public:
  explicit RequestParameters(const Call& call) : call_(call) {
    if (call.request.content_type.starts_with("application/x-www-form-urlencoded"))
      add_parameters(call.body(), form_);
  }
  std::string get(const char* name) const {
    if (call_.has(name)) return call_.parameter(name);
    const auto found = form_.lower_bound(name);
    return found == form_.end() || found->first != name ? std::string() : found->second;
  }

 private:
  const Call& call_;
  Parameters form_;
};

constexpr std::size_t kChunkRows = 10'000;  // InfluxDB's, where nothing is said

Result<std::int64_t> epoch_parameter(const std::string& text) {
  if (text.empty()) return 0;
  struct Unit {
    std::string_view name;
    std::int64_t ns;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr Unit kUnits[] = {
      {"ns", 1},     {"n", 1},          {"u", 1'000},   {"us", 1'000},       {"µ", 1'000},
      {"µs", 1'000}, {"ms", 1'000'000}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}};
  for (const Unit& unit : kUnits) {
    if (unit.name == text) return unit.ns;
  }
  return invalid_argument("epoch is none of ns, u, ms, s, m, h");
}

Result<std::size_t> chunk_parameter(const std::string& text) {
  std::size_t rows = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (!text.empty() && (error != std::errc{} || stop != text.data() + text.size()))
    return invalid_argument("chunk_size is no whole number");
  return rows == 0 ? kChunkRows : rows;
}

// The first form of an answer that is known here.
bool wants_csv(std::string_view accept) {
  while (!accept.empty()) {
    std::string_view type = next_word(accept, ',');
    type = type.substr(0, type.find(';'));
    while (type.starts_with(' ')) type.remove_prefix(1);
    while (type.ends_with(' ')) type.remove_suffix(1);
    if (type == "application/csv" || type == "text/csv") return true;
    if (type == "application/json" || type == "*/*") return false;
  }
  return false;
}

// One of `params`. `type` is InfluxDB's word for it, or empty: what JSON says.
std::optional<influxql::Parameter> bound_parameter(std::string_view type, const wire::Json& value) {
  using Kind = influxql::Parameter::Kind;
  if (value.is_string()) {
    static constexpr std::pair<std::string_view, Kind> kOfText[] = {{"string", Kind::Text},
                                                                    {"ident", Kind::Name},
                                                                    {"identifier", Kind::Name},
                                                                    {"regex", Kind::Regex},
                                                                    {"duration", Kind::Duration}};
    for (const auto& [word, kind] : kOfText) {
      if (type == word) return influxql::Parameter{kind, value.get<std::string>()};
    }
    return std::nullopt;
  }
  if (value.is_boolean() && (type.empty() || type == "boolean"))
    return influxql::Parameter{Kind::Bool, value.get<bool>() ? "true" : "false"};
  if (!value.is_number()) return std::nullopt;
  const bool is_whole = value.is_number_integer();
  if (type == "float" || type == "number" || (type.empty() && !is_whole))
    return influxql::Parameter{Kind::Number, value.dump()};
  if (!is_whole) return std::nullopt;
  if (type.empty() || type == "int" || type == "integer")
    return influxql::Parameter{Kind::Integer, value.dump()};
  if (type != "duration") return std::nullopt;
  return influxql::Parameter{Kind::Duration, value.dump() + "ns"};
}

Result<InfluxQuestion> question_of(const Call& call) {
  const RequestParameters given(call);
  InfluxQuestion question;
  question.text = wire::trimmed_text(given.get("q"));
  const std::string_view type = call.request.content_type;
  const bool is_text = type.starts_with(kInfluxQlType) || type.starts_with("text/plain");
  if (question.text.empty() && is_text) question.text = call.body();
  question.database = given.get("db");
  if (question.database.empty()) question.database = wire::kDefaultNamespace;
  question.policy = given.get("rp");
  question.purpose = call.parameter("purpose");
  if (const std::string params = given.get("params"); !params.empty()) {
    if (params.size() > kInfluxQueryMaxBytes) return invalid_argument("params is too long");
    const wire::Json json = wire::Json::parse(params, nullptr, false);
    EC_ASSIGN_OR_RETURN(question.parameters, bound_parameters(json));
  }
  EC_ASSIGN_OR_RETURN(question.shape, influx_shape_of(call));
  return question;
}

}  // namespace

Result<influxql::Parameters> bound_parameters(const wire::Json& json) {
  influxql::Parameters bound;
  if (json.is_null()) return bound;  // the Go client says so where there are none
  if (!json.is_object()) return invalid_argument("params is no JSON object");
  for (const auto& [name, value] : json.items()) {
    const bool has_type = value.is_object() && value.size() == 1;
    const auto parameter = has_type ? bound_parameter(value.begin().key(), value.begin().value())
                                    : bound_parameter(value.is_string() ? "string" : "", value);
    if (!parameter)
      return invalid_argument("params: " + name + " is no text, number or truth value");
    bound.emplace(name, *parameter);
  }
  return bound;
}

Result<InfluxShape> influx_shape_of(const Call& call) {
  const RequestParameters given(call);
  InfluxShape shape;
  shape.is_csv = wants_csv(call.request.accept);
  shape.is_pretty = given.get("pretty") == "true";
  EC_ASSIGN_OR_RETURN(shape.epoch_ns, epoch_parameter(given.get("epoch")));
  EC_ASSIGN_OR_RETURN(const std::size_t rows, chunk_parameter(given.get("chunk_size")));
  if (given.get("chunked") == "true") shape.chunk_rows = rows;
  return shape;
}

void influx_query(HttpContext& context, Call& call) {
  name_influx_version(call);
  if (call.body().size() > kInfluxFormMaxBytes) {
    return call.answer_error(invalid_argument("error parsing query: more than " +
                                              std::to_string(kInfluxQueryMaxBytes) + " bytes"));
  }
  const auto question = question_of(call);
  if (!question.ok()) return call.answer_error(question.status());
  answer_influx_question(context, call, *question);
}

// As version 1.8: a body only where a client asks for one.
void get_influx_ping(HttpContext& /*context*/, Call& call) {
  name_influx_version(call);
  const std::string verbose = call.parameter("verbose");
  call.response.status = 204;
  if (verbose.empty() || verbose == "0" || verbose == "false") return;
  call.answer_json(200, std::string("{\"version\":\"") + kInfluxVersion + "\"}\n");
}

void name_influx_version(Call& call) {
  call.response.set_header("X-Influxdb-Version", kInfluxVersion);
  call.response.set_header("X-Influxdb-Build", "EdgeCase");
}

void post_influx_write(HttpContext& context, Call& call) {
  write_lines(context, call, wire::InfluxVersion::V1);
}

void post_influx_write_v2(HttpContext& context, Call& call) {
  write_lines(context, call, wire::InfluxVersion::V2);
}

// A bucket of InfluxDB 2 is a namespace; organisations mean nothing here.

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
