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
// How many things that a message lacks are named; all are counted.
constexpr std::uint32_t kLeftOutNamedMax = 3;

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
    EC_TRY(name_readings(std::max(named_, first_), names_));  // those that no record brought
    return tell_repeated_apart();
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
    if (plan_.only_scalar && (text[0] == '{' || text[0] == '[')) {
      result_.reason = "is a JSON object or array, and the preset stores single values here";
      return ok();
    }
    if (text[0] == '{') return decode_json(text);
    const bool may_be_json = text[0] == '[' || (text[0] == '"' && plan_.unquote);
    // `[INFO]` is a text; what JSON does not know is forgiven where the rest says that it is some.
    if (may_be_json && read(text).ok() &&
        std::ranges::find(leaves_, JsonKind::Refused, &JsonLeaf::kind) == leaves_.end()) {
      return decode_leaves();
    }
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
    has_object_ = text.starts_with('{');
    auto leaves = read_json_leaves(text, {limits_.json_depth, limits_.json_leaves});
    if (!leaves.ok()) return leaves.status();
    leaves_ = std::move(leaves).value();
    return ok();
  }

  // Where pointers are looked up: in the whole message or in one of its records.
  struct Scope {
    std::string root;
    std::size_t begin = 0, end = 0;  // of leaves_
  };
  // What a message, or one of its records, says of all its readings.
  struct Names {
    std::string device, sensor;
    std::optional<std::int64_t> time_ns;
    wire::TimeSource time_source = wire::TimeSource::Measured;
  };

  const JsonLeaf* leaf_in(const Scope& scope, std::string_view pointer) const {
    const JsonLeaf* found = nullptr;  // the last one, as with every repeated key
    for (std::size_t i = scope.begin; i < scope.end; ++i) {
      const JsonLeaf& leaf = leaves_[i];
      if (leaf.kind == JsonKind::Null || leaf.kind == JsonKind::Refused) continue;
      if (leaf.pointer.size() == scope.root.size() + pointer.size() &&
          leaf.pointer.starts_with(scope.root) && leaf.pointer.ends_with(pointer)) {
        found = &leaf;
      }
    }
    return found;
  }
  // In the whole message; each pointer is looked up once, however many records there are.
  const JsonLeaf* leaf_at(const std::string& pointer) {
    const auto [known, is_new] = known_leaves_.try_emplace(pointer, nullptr);
    if (is_new) known->second = leaf_in({"", 0, leaves_.size()}, pointer);
    return known->second;
  }
  const JsonLeaf* find_leaf(const Scope& scope, const std::string& pointer) {
    const JsonLeaf* const found = scope.root.empty() ? nullptr : leaf_in(scope, pointer);
    return found != nullptr ? found : leaf_at(pointer);
  }

  Status decode_leaves() {
    if (!plan_.only_pointer.empty()) {
      const JsonLeaf* decisive = leaf_at(plan_.only_pointer);
      if (decisive == nullptr || !contains(plan_.only_texts, decisive->text)) {
        result_.reason = "its " + plan_.only_pointer + " is none the preset stores";
        return ok();
      }
    }
    const Scope whole{"", 0, leaves_.size()};
    Status named = take_names(whole, names_);
    if (!plan_.records.empty()) {
      decode_records();
    }
    if (!named.ok() && plan_.records.empty()) return named;
    const std::size_t before = batch_.readings.size();
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const JsonLeaf& leaf = leaves_[i];
      if (i < in_record_.size() && in_record_[i]) continue;
      if (is_dropped(leaf, leaf.pointer)) continue;
      const std::string name = name_of(leaf);
      if (name.empty() && !lies_at_or_below(plan_.root, leaf.pointer)) continue;
      if (named.ok()) {
        add_leaf(leaf, name);
      } else {
        leave_out(leaf.pointer, named.message());
      }
    }
    const bool empty = batch_.readings.size() == before;
    for (const JsonPick& pick : plan_.picks) {
      if (pick.only_if_empty && !empty) continue;
      if (const JsonLeaf* leaf = leaf_at(pick.pointer)) add_leaf(*leaf, pick.name);
    }
    return ok();
  }

  // The name of what lies below the plan's root or one of its branches; else "".
  std::string name_of(const JsonLeaf& leaf) const {
    if (lies_at_or_below(plan_.root, leaf.pointer)) return name_below(plan_.root, leaf.pointer);
    for (const JsonBranch& branch : plan_.branches) {
      if (!lies_at_or_below(branch.pointer, leaf.pointer)) continue;
      const std::string below = name_below(branch.pointer, leaf.pointer);
      return below.empty() ? branch.name : branch.name + "." + below;
    }
    return "";
  }

  // Each element of the array is a message of its own; one that is none costs itself.
  void decode_records() {
    const std::string array = plan_.records == "/" ? "" : plan_.records;
    in_record_.assign(leaves_.size(), false);
    for (std::size_t begin = 0; begin < leaves_.size();) {
      const std::string_view pointer = leaves_[begin].pointer;
      const std::size_t index_end =
          lies_at_or_below(array, pointer) && pointer.size() > array.size()
              ? pointer.find('/', array.size() + 1)
              : 0;
      Scope record{std::string(pointer.substr(0, index_end)), begin, begin + 1};
      const std::string_view index =
          std::string_view(record.root).substr(std::min(array.size() + 1, record.root.size()));
      if (index.empty() || index.find_first_not_of("0123456789") != index.npos) {
        ++begin;
        continue;
      }
      while (record.end < leaves_.size() &&
             lies_at_or_below(record.root, leaves_[record.end].pointer)) {
        ++record.end;
      }
      std::fill(in_record_.begin() + static_cast<std::ptrdiff_t>(begin),
                in_record_.begin() + static_cast<std::ptrdiff_t>(record.end), true);
      const std::size_t first = batch_.readings.size();
      if (const Status status = decode_record(record); !status.ok()) {
        batch_.readings.resize(first);
        leave_out(record.root, status.message());
      }
      record_of_.resize(batch_.readings.size() - first_, ++result_.records);
      named_ = batch_.readings.size();
      begin = record.end;
    }
  }

  Status decode_record(const Scope& record) {
    Names names;
    EC_TRY(take_names(record, names));
    std::string before;
    for (const std::string& pointer : plan_.record_names) {
      const JsonLeaf* const leaf = leaf_in(record, pointer);
      if (leaf == nullptr) continue;
      before = leaf->text;
      break;
    }
    const std::size_t first = batch_.readings.size();
    for (std::size_t i = record.begin; i < record.end; ++i) {
      const JsonLeaf& leaf = leaves_[i];
      const std::string_view within = std::string_view(leaf.pointer).substr(record.root.size());
      if (is_dropped(leaf, within)) continue;
      const bool is_below =
          !plan_.record_root.empty() && lies_at_or_below(plan_.record_root, within);
      std::string name = name_below(is_below ? std::string_view(plan_.record_root) : "", within);
      if (!before.empty()) name = name.empty() ? before : before + "." + name;
      add_leaf(leaf, name);
    }
    return name_readings(first, names);
  }

  Status take_names(const Scope& scope, Names& names) {
    take_time(scope, names);
    EC_TRY(take_name(scope, route_.device_pointer, names.device));
    return take_name(scope, route_.sensor_pointer, names.sensor);
  }

  // A clock that cannot be read costs no value.
  void take_time(const Scope& scope, Names& names) {
    for (const std::string& pointer : plan_.times) {
      const JsonLeaf* leaf = find_leaf(scope, pointer);
      if (leaf == nullptr) continue;
      const bool is_local = !plan_.zone && plan_.local_time_is_unknown;
      if (is_local && is_time_without_offset(leaf->text)) return;
      if (leaf->kind == JsonKind::Bool) {
        result_.time_problem = "time at " + pointer + " is a bool";
        return;
      }
      auto time_ns = parse_message_time_ns(leaf->text, plan_.time_format, plan_.zone.get());
      if (!time_ns.ok()) {
        result_.time_problem = time_ns.status().message();
        return;
      }
      names.time_ns = *time_ns;
      if (says_last_heard(pointer)) names.time_source = wire::TimeSource::LastHeard;
      return;
    }
  }

  Status take_name(const Scope& scope, const std::string& pointer, std::string& name) {
    if (pointer.empty()) return ok();
    const JsonLeaf* leaf = find_leaf(scope, pointer);
    if (leaf == nullptr || leaf->kind == JsonKind::Bool) {
      return invalid_argument("no text or number at " + pointer);
    }
    name = leaf->text;
    return ok();
  }

  // `within`: below the record, where there are any.
  bool is_dropped(const JsonLeaf& leaf, std::string_view within) const {
    if (within == route_.device_pointer && !within.empty()) return true;
    if (within == route_.sensor_pointer && !within.empty()) return true;
    if (contains(plan_.times, within)) return true;
    if (contains(plan_.drop_names, last_token(leaf.pointer))) return true;
    return std::any_of(plan_.drops.begin(), plan_.drops.end(), [within](const std::string& root) {
      return lies_at_or_below(root, within);
    });
  }

  void add_leaf(const JsonLeaf& leaf, std::string_view name) {
    switch (leaf.kind) {
      case JsonKind::Null: ++result_.skipped; break;
      case JsonKind::Refused: leave_out(leaf.pointer, wire::number_problem(leaf.text)); break;
      case JsonKind::Bool: add(name, wire::Value::of_bool(leaf.boolean)); break;
      case JsonKind::Number: add(name, wire::Value::of_float64(leaf.number)); break;
      case JsonKind::Text: add(name, wire::Value::of_text(keep(leaf))); break;
    }
  }

  void leave_out(const std::string& pointer, const std::string& why) {
    if (result_.left_out++ < kLeftOutNamedMax) {
      result_.reason += (result_.reason.empty() ? "left out: " : "; ") + pointer + ": " + why;
    }
  }

  std::string_view keep(const JsonLeaf& leaf) {
    return leaf.long_text.empty() ? batch_.keep(leaf.text)
                                  : wire::keep_json_string(leaf.long_text, batch_);
  }

  void add_scalar(const wire::Value& value) {
    if (plan_.scalar_is_attribute && !is_attribute()) {
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

  bool is_attribute() const { return topic_.device_levels.size() > 1; }

  // {"a":1,"a":2} and {"a.b":1,"a":{"b":2}}: both are kept. The later one is `a.b~2`, or the next
  // number that is free. So are two records of one time; those without one differ by it.
  Status tell_repeated_apart() {
    auto& readings = batch_.readings;
    if (readings.size() < first_ + 2) return ok();
    const auto key_of = [this, &readings](std::size_t i) -> std::string_view {
      const wire::Reading& reading = readings[i];
      if (result_.records == 0) return reading.sensor;
      const std::size_t record = i - first_ < record_of_.size() ? record_of_[i - first_] : 0;
      const std::string when =
          reading.time_ns ? std::to_string(*reading.time_ns) : "#" + std::to_string(record);
      return batch_.keep(std::string(reading.device) + "/" + std::string(reading.sensor) + "/" +
                         when);
    };
    std::unordered_set<std::string_view> taken;
    for (std::size_t i = first_; i < readings.size(); ++i) taken.insert(key_of(i));
    if (taken.size() == readings.size() - first_) return ok();
    std::unordered_set<std::string_view> seen;
    std::unordered_map<std::string_view, std::size_t> last_numbers;
    for (std::size_t i = first_; i < readings.size(); ++i) {
      const std::string_view key = key_of(i);
      if (seen.insert(key).second) continue;
      std::size_t& number = last_numbers.try_emplace(key, 1).first->second;
      const std::string plain(readings[i].sensor);
      do {
        readings[i].sensor = batch_.keep(plain + "~" + std::to_string(++number));
      } while (!taken.insert(key_of(i)).second);
      seen.insert(key_of(i));
      EC_TRY(wire::check_name("sensor", readings[i].sensor));
    }
    return ok();
  }

  Status name_readings(std::size_t first, Names& names) {
    if (batch_.readings.size() == first) return ok();
    if (route_.device_pointer.empty()) {
      names.device = route_.device ? route_.device->render(topic_) : topic_.device;
    } else if (names.device.empty()) {
      return invalid_argument("no JSON to take the device from " + route_.device_pointer);
    }
    if (route_.sensor_pointer.empty()) {
      names.sensor = route_.sensor ? route_.sensor->render(topic_) : topic_.sensor;
      if (contains(route_.silent_sensors, names.sensor)) names.sensor.clear();
    }
    if (plan_.scalar_is_attribute && !has_object_ && is_attribute()) {
      const auto& levels = topic_.device_levels;
      names.device = join_levels({levels.begin(), levels.end() - 1});
      names.sensor = levels.back();
    }
    note_levels(names);
    std::string space(wire::kDefaultNamespace);
    if (route_.namespace_name) {
      space = route_.namespace_name->render(topic_);
    } else if (route_.topic.has(TopicField::Namespace)) {
      space = topic_.namespace_name;
    }
    EC_TRY(wire::check_name("namespace", space));
    EC_TRY(wire::check_name("device", names.device));
    const std::string_view space_view =
        space == wire::kDefaultNamespace ? wire::kDefaultNamespace : batch_.keep(space);
    const std::string_view device_view = batch_.keep(names.device);
    for (std::size_t i = first; i < batch_.readings.size(); ++i) {
      wire::Reading& reading = batch_.readings[i];
      reading.namespace_name = space_view;
      reading.device = device_view;
      reading.sensor = full_sensor(names.sensor, reading.sensor);
      EC_TRY(wire::check_name("sensor", reading.sensor));
      reading.time_ns = names.time_ns;
      if (names.time_ns) reading.time_source = names.time_source;
    }
    return ok();
  }

  // `1/OG` and `1.OG` are joined to one name.
  void note_levels(const Names& names) {
    result_.device_levels.clear();
    if (!route_.device_pointer.empty()) return;
    if (route_.identity) {
      result_.device_levels = route_.identity->render(topic_);
    } else if (!route_.device && !topic_.device_levels.empty() &&
               names.device.find('.') != std::string::npos) {
      // The device's levels lie side by side in the topic.
      const auto& levels = topic_.device_levels;
      const std::size_t count = levels.size() - (names.device != topic_.device ? 1 : 0);
      const char* const end = levels[count - 1].data() + levels[count - 1].size();
      result_.device_levels.assign(levels.front().data(), end);
    }
  }

  std::string_view full_sensor(const std::string& sensor, std::string_view below) {
    if (sensor.empty()) return below.empty() ? std::string_view("value") : below;
    if (below.empty()) return batch_.keep(sensor);
    return batch_.keep(sensor + "." + std::string(below));
  }

  const Route& route_;
  const PayloadPlan& plan_;
  const TopicMatch& topic_;
  const config::LimitSettings& limits_;
  wire::ReadingBatch& batch_;
  const std::size_t first_;  // of this message in the batch
  DecodeResult& result_;
  std::vector<JsonLeaf> leaves_;
  std::unordered_map<std::string, const JsonLeaf*> known_leaves_;
  std::vector<bool> in_record_;         // by leaf
  std::vector<std::size_t> record_of_;  // by reading of the message
  std::size_t named_ = 0;               // readings before this one have their names
  bool has_object_ = false;             // the payload is a JSON object
  Names names_;                         // of what lies in no record
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
    reject(std::string(kNoRuleReason));
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
