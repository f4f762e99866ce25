// POST /api/v1/influx/test: what lines would be stored as; GET /api/v1/influx/rules: by which
// rules.
#include <nlohmann/json.hpp>

#include "auth/authorize.h"
#include "http/http_routes.h"
#include "wire/contract.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using Json = nlohmann::ordered_json;

// It is for trying a line, not for loading a file: the answer is put together in memory.
constexpr std::size_t kTriedReadingsMax = 1'000;

Json value_json(const wire::Value& value) {
  switch (value.type) {
    case wire::ValueType::Float64: return value.float64;
    case wire::ValueType::Int64: return value.int64;
    case wire::ValueType::Bool: return value.boolean;
    case wire::ValueType::Text:
    case wire::ValueType::Bytes: break;
  }
  return value.text;
}

const char* type_of(const wire::Value& value) {
  switch (value.type) {
    case wire::ValueType::Float64: return "float";
    case wire::ValueType::Int64: return "int";
    case wire::ValueType::Bool: return "bool";
    case wire::ValueType::Text:
    case wire::ValueType::Bytes: break;
  }
  return "text";
}

Json rule_json(const wire::LineRules& rules, const wire::CompiledLineRule& rule) {
  Json json = {{"number", rules.number_of(rule)}};
  if (rule.written().line > 0) json["line"] = rule.written().line;
  json["measurement"] = rule.written().measurement;
  json["device"] = rule.written().device;
  return json;
}

Json reading_json(const wire::Reading& reading, const wire::LineRules& rules) {
  const wire::Identity identity =
      wire::identity_of(*reading.identity, reading.device, reading.sensor);
  std::vector<wire::LineTag> tags;
  for (const auto& [key, value] : identity.tags) tags.push_back({key, value});
  Json json = {{"namespace", reading.namespace_name},
               {"device", reading.device},
               {"sensor", reading.sensor}};
  if (const auto* const rule = rules.find(identity.measurement, tags))
    json["rule"] = rule_json(rules, *rule);
  if (reading.time_ns) {
    std::string time;
    wire::append_time(*reading.time_ns, time);
    json["time"] = time;
  }
  json["value"] = value_json(reading.value);
  json["type"] = type_of(reading.value);
  json["measurement"] = identity.measurement;
  json["tags"] = Json::object();
  for (const auto& [key, value] : identity.tags) json["tags"][key] = value;
  json["field"] = identity.field;
  return json;
}

}  // namespace

void post_influx_test(HttpContext& context, Call& call) {
  const auto unit_ns =
      wire::parse_precision_ns(call.parameter("precision"), wire::InfluxVersion::V1);
  if (!unit_ns.ok()) return call.answer_error(unit_ns.status());
  std::string namespace_name = call.parameter("ns");
  if (namespace_name.empty()) namespace_name = wire::kDefaultNamespace;
  wire::LineProtocolOptions options;
  options.namespace_name = namespace_name;
  if (const Status status = wire::check_name("namespace", options.namespace_name); !status.ok())
    return call.answer_error(status);
  options.unit_ns = *unit_ns;
  options.error_limit = context.line_errors();
  LineSpares::Loan spare = context.line_spares.take(options.namespace_name);
  wire::LineProtocolDecoder decoder(call.body(), options, spare->names);
  Json readings = Json::array();
  while (decoder.next(spare->batch)) {
    for (const wire::Reading& reading : spare->batch.readings) {
      if (readings.size() == kTriedReadingsMax) {
        return call.answer_error(invalid_argument("the lines have more than " +
                                                  std::to_string(kTriedReadingsMax) +
                                                  " fields: try fewer at once"));
      }
      // What the store has under a name is told to nobody who may not write there.
      if (const Status status = auth::authorize_write(call.principal(), reading); !status.ok())
        return call.answer_error(status);
      readings.push_back(reading_json(reading, *spare->rules));
    }
    spare->batch.clear_readings();
  }
  Json errors = Json::array();
  for (const wire::LineError& error : decoder.errors())
    errors.push_back({{"line", error.line}, {"message", error.message}});
  const Json document = {{"readings", std::move(readings)},
                         {"bad_lines", decoder.bad_lines()},
                         {"errors", std::move(errors)}};
  call.answer_json(200, wire::dump(document) + "\n");
}

void get_influx_rules(HttpContext& context, Call& call) {
  const auto rules = context.line_spares.rules();
  Json list = Json::array();
  for (const wire::CompiledLineRule& rule : rules->all()) list.push_back(rule_json(*rules, rule));
  call.answer_json(200, wire::dump(Json{{"rules", std::move(list)}}) + "\n");
}

}  // namespace edgecase::http
