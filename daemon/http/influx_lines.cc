// Lines of line protocol: what their decoder keeps from one request to the next (LineSpares), and
// how one is tried without being stored: POST /api/v1/influx/test says what lines would become,
// GET /api/v1/influx/rules by which rules.
#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "auth/authorize.h"
#include "http/http_routes.h"
#include "wire/contract.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::http {

bool CatalogSeries::has_device(std::string_view namespace_name, std::string_view device) const {
  return !catalog_.devices(namespace_name, wire::escape_name(device)).empty();
}

bool CatalogSeries::has_series(std::string_view namespace_name, std::string_view device,
                               std::string_view sensor,
                               const wire::SeriesIdentity& identity) const {
  return catalog_.may_be(namespace_name, device, sensor, identity);
}

bool CatalogSeries::has_series_of(std::string_view namespace_name, std::string_view device,
                                  std::string_view prefix) const {
  return catalog_.has_old(namespace_name, device, prefix);
}

LineSpares::Loan LineSpares::take(std::string_view namespace_name) {
  std::unique_ptr<LineSpare> spare;
  std::shared_ptr<const wire::LineRules> rules;
  const std::uint64_t generation = catalog_.generation();
  std::uint64_t forgets = 0;
  std::size_t share = 0;
  {
    const MutexLock lock(mutex_);
    forgets = forgets_;
    rules = rules_;
    std::erase_if(spares_, [&](const auto& each) {
      return each->generation != generation || each->rules != rules;
    });
    const auto served = std::find_if(
        spares_.rbegin(), spares_.rend(),
        [namespace_name](const auto& each) { return each->namespace_name == namespace_name; });
    // The spare that was used longest ago gives way, once there are as many as are kept.
    if (served != spares_.rend()) {
      const auto at = std::prev(served.base());
      spare = std::move(*at);
      spares_.erase(at);
    } else if (spares_.size() == kSparesMax) {
      spare = std::move(spares_.front());
      spares_.erase(spares_.begin());
    }
    ++lent_;
    share = share_bytes();
  }
  if (spare == nullptr) spare = std::make_unique<LineSpare>();
  spare->names.look_in(&series_);
  spare->names.obey(rules.get());
  spare->names.set_room(share / 2);
  spare->rules = std::move(rules);
  spare->generation = generation;
  spare->forgets = forgets;
  spare->namespace_name = namespace_name;
  return Loan(*this, std::move(spare));
}

void LineSpares::set_rules(std::shared_ptr<const wire::LineRules> rules) {
  const MutexLock lock(mutex_);
  rules_ = std::move(rules);
  spares_.clear();
  set_aside_.tell(0);
}

std::shared_ptr<const wire::LineRules> LineSpares::rules() const {
  const MutexLock lock(mutex_);
  return rules_;
}

void LineSpares::forget() {
  const MutexLock lock(mutex_);
  ++forgets_;
  spares_.clear();
  set_aside_.tell(0);
}

void LineSpares::give_back(std::unique_ptr<LineSpare> spare) {
  spare->batch.clear_readings();
  spare->buffers.abandon();
  const MutexLock lock(mutex_);
  const std::size_t most = std::min(share_bytes() / 2, kBuffersMaxBytes);
  --lent_;
  // Names bound themselves. A request of large texts is rare.
  const auto is_large = [&] { return spare->memory_bytes() - spare->names_bytes() > most; };
  if (is_large()) static_cast<void>(std::exchange(spare->buffers.gathered, {}));
  if (is_large() || spare->forgets != forgets_) return;
  if (spares_.size() == kSparesMax) spares_.erase(spares_.begin());
  spares_.push_back(std::move(spare));
  std::uint64_t bytes = 0;
  for (const auto& each : spares_) bytes += each->memory_bytes();
  set_aside_.tell(bytes);
}

// What one spare may take, of as many as are kept or lent.
std::size_t LineSpares::share_bytes() const {
  return kSparesMaxBytes / std::clamp<std::size_t>(spares_.size() + lent_, 1, kSparesMax);
}

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
