#include "erase/rejected_mentions.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "wire/base64.h"
#include "wire/reading_key.h"

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

}  // namespace edgecase::erase
