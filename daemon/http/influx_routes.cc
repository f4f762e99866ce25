// Routes for clients of InfluxDB 1.x: /write, /ping, /query; and /api/v2/write.
#include <algorithm>
#include <charconv>

#include "http/http_routes.h"
#include "http/influx_query.h"
#include "http/refusal.h"
#include "influxql/series_view.h"
#include "wire/decimal.h"
#include "wire/json_values.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/routes.h"

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

}  // namespace edgecase::http
