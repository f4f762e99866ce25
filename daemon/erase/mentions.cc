#include "erase/erase_service.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "wire/authority.h"
#include "wire/encoding.h"
#include "wire/reading.h"

namespace edgecase::erase {
namespace {

using Json = nlohmann::json;

bool is_part_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0;
}

bool stands_in(std::string_view text, std::string_view name, bool (*joins)(char)) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !joins(text[at - 1]);
    if (begins && (end == text.size() || !joins(text[end]))) return true;
  }
  return false;
}

struct Message {
  std::string topic, reason, payload;
};

std::string text_of(const Json& json, const char* name) {
  const auto plain = json.find(name);
  if (plain != json.end() && plain->is_string()) return plain->get<std::string>();
  const auto coded = json.find(std::string(name) + "_base64");
  if (coded == json.end() || !coded->is_string()) return {};
  auto bytes = wire::decode_base64(coded->get_ref<const std::string&>());
  return bytes.ok() ? std::move(bytes).value() : std::string();
}

// What is no such record is looked at as a text.
Message message_of(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return {{}, std::string(text), {}};
  return {text_of(json, "topic"), text_of(json, "reason"), text_of(json, "payload")};
}

bool names(const Message& message, std::string_view device) {
  return topic_names(message.topic, device) || text_names(message.reason, device) ||
         text_names(message.payload, device);
}

bool names_any(const Message& message, const catalog::Erased& erased) {
  return std::any_of(erased.devices.begin(), erased.devices.end(),
                     [&](const auto& each) { return names(message, each.device); }) ||
         std::any_of(erased.series.begin(), erased.series.end(), [&](const auto& each) {
           return names(message, each.device) && names(message, each.sensor);
         });
}

Status look_through(Engine& engine, const catalog::KeySpan& all, const catalog::Erased& erased,
                    std::vector<catalog::KeySpan>& spans) {
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator,
                      engine.scan(all.namespace_id, {all.lower, all.upper}, options));
  for (; iterator->valid(); iterator->next()) {
    const Bytes key(iterator->key());
    wire::Value value;
    if (!wire::decode_value(iterator->value(), value)) continue;
    if (names_any(message_of(value.text), erased))
      spans.push_back(catalog::span_of_key(all.namespace_id, key));
  }
  return iterator->status();
}

// Namespace and device, or namespace, device and sensor, in order.
class ErasedNames {
 public:
  explicit ErasedNames(const catalog::Erased& erased) {
    for (const catalog::DeviceEntry& each : erased.devices)
      devices_.emplace(each.namespace_name, each.device);
    for (const catalog::SeriesEntry& each : erased.series)
      series_.emplace(each.namespace_name, each.device, each.sensor);
  }
  // "NS/DEVICE/SENSOR" as a view has it.
  bool has(std::string_view text) const {
    std::string part[3];
    for (std::string& each : part) {
      const std::size_t end = text.find('/');
      each = wire::percent_decode(text.substr(0, end));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return devices_.contains({part[0], part[1]}) || series_.contains({part[0], part[1], part[2]});
  }
  // For what is no view.
  bool stands_in(std::string_view text) const {
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const auto& each) { return text_names(text, each.second); }) ||
           std::any_of(series_.begin(), series_.end(), [&](const auto& each) {
             return text_names(text, std::get<1>(each)) && text_names(text, std::get<2>(each));
           });
  }

 private:
  std::set<std::pair<std::string, std::string>> devices_;
  std::set<std::tuple<std::string, std::string, std::string>> series_;
};

enum class Left : unsigned char { All, Some, Nothing };

// Takes the series out of a view's charts. Nothing: it is no view, and holds a name.
Left take_out(const ErasedNames& names, std::string_view text, Json& view) {
  view = Json::parse(text, nullptr, false);
  const auto charts = view.is_object() ? view.find("charts") : view.end();
  if (!view.is_object() || charts == view.end() || !charts->is_array())
    return names.stands_in(text) ? Left::Nothing : Left::All;
  Left left = Left::All;
  for (Json& chart : *charts) {
    if (!chart.is_array()) continue;
    Json kept = Json::array();
    for (Json& each : chart) {
      if (each.is_string() && names.has(each.get_ref<const std::string&>())) {
        left = Left::Some;
      } else {
        kept.push_back(std::move(each));
      }
    }
    chart = std::move(kept);
  }
  return left;
}

}  // namespace

bool topic_names(std::string_view topic, std::string_view device) {
  const auto joins = [](char c) { return c != '/' && c != '.'; };
  if (stands_in(topic, device, joins)) return true;
  std::string joined(topic);
  std::replace(joined.begin(), joined.end(), '/', '.');
  return stands_in(joined, device, joins);
}

bool text_names(std::string_view text, std::string_view name) {
  return name.size() >= kMentionMinBytes && stands_in(text, name, is_part_of_word);
}

std::vector<catalog::KeySpan> find_mentions(Engine& engine, const catalog::Catalog& catalog,
                                            const catalog::Erased& erased) {
  std::vector<catalog::KeySpan> spans;
  const std::size_t count = erased.devices.size() + erased.series.size();
  if (count == 0) return spans;
  for (const catalog::SeriesEntry& series : catalog.select(wire::kRejectedNamespace, {})) {
    Bytes prefix = wire::make_reading_key({series.id.device, series.id.sensor, 0});
    prefix.resize(wire::kSeriesPrefixBytes);
    const catalog::KeySpan all = catalog::span_of_prefix(series.id.namespace_id, prefix);
    if (count > kMentionedNamesMax) {
      spans.push_back(all);
      continue;
    }
    const std::size_t before = spans.size();
    if (look_through(engine, all, erased, spans).ok()) continue;
    spans.resize(before);
    spans.push_back(all);
  }
  return spans;
}

std::vector<ViewMention> find_views(Engine& engine, const catalog::Erased& erased) {
  std::vector<ViewMention> found;
  if (erased.devices.empty() && erased.series.empty()) return found;
  const auto id = engine.find_namespace(wire::kViewsNamespace);
  if (!id.ok()) return found;
  const ErasedNames names(erased);
  // What erases views themselves does not write them again.
  const auto is_view = [](const auto& each) {
    return each.namespace_name == wire::kViewsNamespace;
  };
  const bool takes_views = std::any_of(erased.devices.begin(), erased.devices.end(), is_view) ||
                           std::any_of(erased.series.begin(), erased.series.end(), is_view);
  ReadOptions options;
  options.fill_cache = false;
  const std::vector<ViewMention> all = {{id->id, {}, {}}};
  const auto scan = engine.scan(id->id, {}, options);
  if (!scan.ok()) return all;
  const auto& iterator = *scan;
  for (; iterator->valid(); iterator->next()) {
    const Bytes key(iterator->key());
    wire::Value value;
    if (!wire::decode_value(iterator->value(), value)) continue;
    Json view;
    const Left left = take_out(names, value.text, view);
    if (left == Left::All) continue;
    ViewMention& mention = found.emplace_back(ViewMention{id->id, key, {}});
    if (left == Left::Nothing || takes_views) continue;
    const std::string rest = view.dump(-1, ' ', false, Json::error_handler_t::replace);
    wire::append_value(wire::Value::of_text(rest), mention.value);
  }
  return iterator->status().ok() ? found : all;
}

}  // namespace edgecase::erase
