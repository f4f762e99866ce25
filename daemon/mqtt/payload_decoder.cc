#include "mqtt/payload_decoder.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "mqtt/json_leaves.h"
#include "wire/decimal.h"
#include "wire/json_text.h"
#include "wire/names.h"

namespace edgecase::mqtt {
namespace {

constexpr std::string_view kBytesContentType = "application/octet-stream";
// Of what a message lacks, the first that are named; all are counted.
constexpr std::uint32_t kLeftOutNamedMax = 3;

bool lies_at_or_below(std::string_view root, std::string_view pointer) {
  return pointer.substr(0, root.size()) == root &&
         (pointer.size() == root.size() || pointer[root.size()] == '/');
}

std::string_view last_token(std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  return slash == pointer.npos ? pointer : pointer.substr(slash + 1);
}

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class MessageDecoder {
 public:
  MessageDecoder(const RouteMatch& match, const config::LimitSettings& limits,
                 wire::ReadingBatch& batch, DecodeResult& result)
      : route_(*match.route),
        plan_(match.route->payload),
        topic_(match.topic),
        limits_(limits),
        batch_(batch),
        first_(batch.readings.size()),
        result_(result) {}

  Status decode(std::string_view payload) {
    switch (plan_.kind) {
      case PayloadKind::Auto: EC_TRY(decode_auto(payload)); break;
      case PayloadKind::Number: EC_TRY(decode_number(payload)); break;
      case PayloadKind::Json: EC_TRY(decode_json(payload)); break;
      case PayloadKind::Text: EC_TRY(decode_text(payload)); break;
      case PayloadKind::Bytes: add_scalar(wire::Value::of_bytes(payload, kBytesContentType)); break;
    }
    tell_repeated_sensors_apart();
    return name_readings();
  }

 private:
  Status decode_auto(std::string_view payload) {
    const std::string_view text = wire::trimmed_text(payload);
    double number = 0;
    switch (wire::read_number(text, number)) {
      case wire::NumberText::Number: add_scalar(wire::Value::of_float64(number)); return ok();
      case wire::NumberText::NoValue: ++result_.skipped; return ok();
      case wire::NumberText::TooLarge: return invalid_argument(wire::number_problem(text));
      case wire::NumberText::Other: break;
    }
    if (text == "true" || text == "false") {
      add_scalar(wire::Value::of_bool(text == "true"));
      return ok();
    }
    if (text[0] == '{') return decode_json(text);
    const bool may_be_json = text[0] == '[' || (text[0] == '"' && plan_.unquote);
    if (may_be_json && read(text).ok()) return decode_leaves();
    if (wire::is_valid_utf8(text)) {
      add_scalar(wire::Value::of_text(text));
    } else {
      add_scalar(wire::Value::of_bytes(payload, kBytesContentType));
    }
    return ok();
  }

  Status decode_number(std::string_view payload) {
    double number = 0;
    switch (wire::read_number(payload, number)) {
      case wire::NumberText::Number: add_scalar(wire::Value::of_float64(number)); break;
      case wire::NumberText::NoValue: ++result_.skipped; break;
      case wire::NumberText::TooLarge:
      case wire::NumberText::Other: return invalid_argument(wire::number_problem(payload));
    }
    return ok();
  }

  Status decode_text(std::string_view payload) {
    if (!wire::is_valid_utf8(payload)) return invalid_argument("payload is not UTF-8");
    add_scalar(wire::Value::of_text(payload));
    return ok();
  }

  Status decode_json(std::string_view payload) {
    EC_TRY(read(wire::trimmed_text(payload)));
    return decode_leaves();
  }

  Status read(std::string_view text) {
    auto leaves = read_json_leaves(text, {limits_.json_depth, limits_.json_leaves});
    if (!leaves.ok()) return leaves.status();
    leaves_ = std::move(leaves).value();
    return ok();
  }

  const JsonLeaf* leaf_at(std::string_view pointer) const {
    const JsonLeaf* found = nullptr;  // the last one, as with every repeated key
    for (const JsonLeaf& leaf : leaves_) {
      const bool is_value = leaf.kind != JsonKind::Null && leaf.kind != JsonKind::Refused;
      if (leaf.pointer == pointer && is_value) found = &leaf;
    }
    return found;
  }

  Status decode_leaves() {
    if (!plan_.only_pointer.empty()) {
      const JsonLeaf* decisive = leaf_at(plan_.only_pointer);
      if (decisive == nullptr || !contains(plan_.only_texts, decisive->text)) {
        result_.reason = "its " + plan_.only_pointer + " is none the preset stores";
        return ok();
      }
    }
    take_time();
    EC_TRY(take_name(route_.device_pointer, device_));
    EC_TRY(take_name(route_.sensor_pointer, sensor_));
    for (const JsonLeaf& leaf : leaves_) {
      if (!lies_at_or_below(plan_.root, leaf.pointer) || is_dropped(leaf)) continue;
      add_leaf(leaf, name_below(plan_.root, leaf.pointer));
    }
    const bool empty = batch_.readings.size() == first_;
    for (const JsonPick& pick : plan_.picks) {
      if (pick.only_if_empty && !empty) continue;
      if (const JsonLeaf* leaf = leaf_at(pick.pointer)) add_leaf(*leaf, pick.name);
    }
    return ok();
  }

  // A clock that cannot be read costs no value.
  void take_time() {
    for (const std::string& pointer : plan_.times) {
      const JsonLeaf* leaf = leaf_at(pointer);
      if (leaf == nullptr) continue;
      if (plan_.local_time_is_unknown && is_time_without_offset(leaf->text)) return;
      if (leaf->kind == JsonKind::Bool) {
        result_.time_problem = "time at " + pointer + " is a bool";
        return;
      }
      auto time_ns = parse_message_time_ns(leaf->text, plan_.time_format);
      if (!time_ns.ok()) {
        result_.time_problem = time_ns.status().message();
        return;
      }
      time_ns_ = *time_ns;
      if (says_last_heard(pointer)) time_source_ = wire::TimeSource::LastHeard;
      return;
    }
  }

  Status take_name(const std::string& pointer, std::string& name) const {
    if (pointer.empty()) return ok();
    const JsonLeaf* leaf = leaf_at(pointer);
    if (leaf == nullptr || leaf->kind == JsonKind::Bool) {
      return invalid_argument("no text or number at " + pointer);
    }
    name = leaf->text;
    return ok();
  }

  bool is_dropped(const JsonLeaf& leaf) const {
    if (leaf.pointer == route_.device_pointer && !leaf.pointer.empty()) return true;
    if (leaf.pointer == route_.sensor_pointer && !leaf.pointer.empty()) return true;
    if (contains(plan_.times, leaf.pointer)) return true;
    if (contains(plan_.drop_names, last_token(leaf.pointer))) return true;
    return std::any_of(plan_.drops.begin(), plan_.drops.end(), [&leaf](const std::string& root) {
      return lies_at_or_below(root, leaf.pointer);
    });
  }

  void add_leaf(const JsonLeaf& leaf, std::string_view name) {
    switch (leaf.kind) {
      case JsonKind::Null: ++result_.skipped; break;
      case JsonKind::Refused: leave_out(leaf); break;
      case JsonKind::Bool: add(name, wire::Value::of_bool(leaf.boolean)); break;
      case JsonKind::Number: add(name, wire::Value::of_float64(leaf.number)); break;
      case JsonKind::Text: add(name, wire::Value::of_text(keep(leaf))); break;
    }
  }

  void leave_out(const JsonLeaf& leaf) {
    if (result_.left_out++ < kLeftOutNamedMax) {
      result_.reason += (result_.reason.empty() ? "left out: " : "; ") + leaf.pointer + ": " +
                        wire::number_problem(leaf.text);
    }
  }

  std::string_view keep(const JsonLeaf& leaf) {
    return leaf.long_text.empty() ? batch_.keep(leaf.text)
                                  : wire::keep_json_string(leaf.long_text, batch_);
  }

  void add_scalar(const wire::Value& value) {
    if (plan_.drop_scalar) {
      result_.reason = "is no JSON object, which is all the preset stores here";
      return;
    }
    add({}, value);
  }

  // The sensor is only the leaf's part here; name_readings() completes it.
  void add(std::string_view name, const wire::Value& value) {
    wire::Reading& reading = batch_.readings.emplace_back();
    reading.sensor = name.empty() ? std::string_view{} : batch_.keep(name);
    reading.value = value;
  }

  // {"a":1,"a":2} and {"a.b":1,"a":{"b":2}}: both are kept. The later one is `a.b~2`, or the next
  // number that is free.
  void tell_repeated_sensors_apart() {
    auto& readings = batch_.readings;
    if (readings.size() < first_ + 2) return;
    std::unordered_set<std::string_view> names;
    for (std::size_t i = first_; i < readings.size(); ++i) names.insert(readings[i].sensor);
    if (names.size() == readings.size() - first_) return;
    std::unordered_set<std::string_view> seen;
    std::unordered_map<std::string_view, std::size_t> last_numbers;
    for (std::size_t i = first_; i < readings.size(); ++i) {
      std::string_view& sensor = readings[i].sensor;
      if (seen.insert(sensor).second) continue;
      std::size_t& number = last_numbers.try_emplace(sensor, 1).first->second;
      const std::string plain(sensor.empty() ? std::string_view("value") : sensor);
      do {
        sensor = batch_.keep(plain + "~" + std::to_string(++number));
      } while (!names.insert(sensor).second);
      seen.insert(sensor);
    }
  }

  Status name_readings() {
    if (batch_.readings.size() == first_) return ok();
    if (route_.device_pointer.empty()) {
      device_ = route_.device ? route_.device->render(topic_) : topic_.device;
    } else if (device_.empty()) {
      return invalid_argument("no JSON to take the device from " + route_.device_pointer);
    }
    if (route_.sensor_pointer.empty()) {
      sensor_ = route_.sensor ? route_.sensor->render(topic_) : topic_.sensor;
      if (contains(route_.silent_sensors, sensor_)) sensor_.clear();
    }
    std::string space(wire::kDefaultNamespace);
    if (route_.namespace_name) {
      space = route_.namespace_name->render(topic_);
    } else if (route_.topic.has(TopicField::Namespace)) {
      space = topic_.namespace_name;
    }
    EC_TRY(wire::check_name("namespace", space));
    EC_TRY(wire::check_name("device", device_));
    const std::string_view space_view =
        space == wire::kDefaultNamespace ? wire::kDefaultNamespace : batch_.keep(space);
    const std::string_view device_view = batch_.keep(device_);
    for (std::size_t i = first_; i < batch_.readings.size(); ++i) {
      wire::Reading& reading = batch_.readings[i];
      reading.namespace_name = space_view;
      reading.device = device_view;
      reading.sensor = full_sensor(reading.sensor);
      EC_TRY(wire::check_name("sensor", reading.sensor));
      reading.time_ns = time_ns_;
      if (time_ns_) reading.time_source = time_source_;
    }
    return ok();
  }

  std::string_view full_sensor(std::string_view below) {
    if (sensor_.empty()) return below.empty() ? std::string_view("value") : below;
    if (below.empty()) return batch_.keep(sensor_);
    return batch_.keep(sensor_ + "." + std::string(below));
  }

  const Route& route_;
  const PayloadPlan& plan_;
  const TopicMatch& topic_;
  const config::LimitSettings& limits_;
  wire::ReadingBatch& batch_;
  const std::size_t first_;  // of this message in the batch
  DecodeResult& result_;
  std::vector<JsonLeaf> leaves_;
  std::string device_;
  std::string sensor_;
  std::optional<std::int64_t> time_ns_;
  wire::TimeSource time_source_ = wire::TimeSource::Measured;
};

}  // namespace

DecodeResult decode_message(const std::vector<TopicRule>& rules,
                            const config::LimitSettings& limits, std::string_view topic,
                            std::string_view payload, wire::ReadingBatch& batch) {
  DecodeResult result;
  const auto reject = [&result](std::string reason) {
    result.outcome = DecodeOutcome::Rejected;
    result.reason = std::move(reason);
  };
  const auto match = find_route(rules, topic);
  if (!match) {
    reject("no rule takes this topic");
    return result;
  }
  result.rule = match->rule;
  result.route = match->route;
  if (match->route->action == RouteAction::Ignore) {
    result.reason = "the preset leaves this topic out";
    return result;
  }
  if (payload.empty()) {
    result.reason = "empty payload";
    return result;
  }
  if (payload.size() > limits.message_limit_bytes) {
    reject("payload of " + std::to_string(payload.size()) +
           " bytes is over limits.message-limit = " + std::to_string(limits.message_limit_bytes));
    return result;
  }
  const std::size_t before = batch.readings.size();
  MessageDecoder decoder(*match, limits, batch, result);
  if (Status status = decoder.decode(payload); !status.ok()) {
    batch.readings.resize(before);
    reject(status.message());
  } else if (batch.readings.size() > before) {
    const TopicRule& rule = *match->rule;
    for (std::size_t i = before; i < batch.readings.size(); ++i) {
      batch.readings[i].retention_ns = rule.retention_ns;
      batch.readings[i].metadata = rule.metadata ? &*rule.metadata : nullptr;
    }
    result.outcome = DecodeOutcome::Readings;
  } else if (result.left_out > 0) {
    result.outcome = DecodeOutcome::Rejected;
  } else if (result.reason.empty()) {
    result.reason = "no value in it";
  }
  return result;
}

}  // namespace edgecase::mqtt
