#include "http/device_batch.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDepthMax = 5;
constexpr std::size_t kValuesMax = 32 * kDescribedMax;  // of all descriptions together

Result<std::string> text_of(const Json& json, const std::string& key) {
  if (!json.is_string()) return invalid_argument(key + " is no text");
  return json.get<std::string>();
}

Result<std::vector<std::string>> list_of(const Json& json, const std::string& key) {
  if (!json.is_array()) return invalid_argument(key + " is no list");
  std::vector<std::string> list;
  for (const Json& each : json) {
    EC_ASSIGN_OR_RETURN(list.emplace_back(), text_of(each, "an element of " + key));
  }
  return list;
}

Result<std::vector<catalog::Consent>> consents_of(const Json& json) {
  if (!json.is_array()) return invalid_argument("consents is no list");
  std::vector<catalog::Consent> consents;
  for (const Json& each : json) {
    if (!each.is_object()) return invalid_argument("a consent is no object");
    catalog::Consent& consent = consents.emplace_back();
    EC_ASSIGN_OR_RETURN(const std::string since, text_of(each.value("since", Json()), "since"));
    EC_ASSIGN_OR_RETURN(consent.time_ns, wire::parse_time_ns(since, 0));
    EC_ASSIGN_OR_RETURN(consent.by, text_of(each.value("by", Json()), "by"));
    EC_ASSIGN_OR_RETURN(consent.purposes, list_of(each.value("purposes", Json()), "purposes"));
    EC_ASSIGN_OR_RETURN(consent.objections,
                        list_of(each.value("objections", Json()), "objections"));
  }
  return consents;
}

// What is given; the rest stays as it is.
struct Description {
  std::optional<std::string> owner, location;
  std::optional<std::vector<std::string>> purposes, objections;
  std::vector<std::pair<std::string, std::string>> labels;
  std::optional<std::vector<catalog::Consent>> consents;

  void apply(catalog::DeviceMetadata& said) const {
    if (owner) said.owner = *owner;
    if (location) said.location = *location;
    if (purposes) said.purposes = *purposes;
    if (objections) said.objections = *objections;
    if (consents) said.consents = *consents;
    for (const auto& [label, value] : labels) {
      said.labels[label] = value;
      if (value.empty()) said.labels.erase(label);
    }
  }
};

Status take_member(const std::string& key, const Json& value, catalog::DeviceName& name,
                   Description& said) {
  if (key == "namespace") {
    EC_ASSIGN_OR_RETURN(name.namespace_name, text_of(value, key));
  } else if (key == "device") {
    EC_ASSIGN_OR_RETURN(name.device, text_of(value, key));
  } else if (key == "owner") {
    EC_ASSIGN_OR_RETURN(said.owner, text_of(value, key));
  } else if (key == "location") {
    EC_ASSIGN_OR_RETURN(said.location, text_of(value, key));
  } else if (key == "purposes") {
    EC_ASSIGN_OR_RETURN(said.purposes, list_of(value, key));
  } else if (key == "objections") {
    EC_ASSIGN_OR_RETURN(said.objections, list_of(value, key));
  } else if (key == "consents") {
    EC_ASSIGN_OR_RETURN(said.consents, consents_of(value));
  } else if (key == "labels") {
    if (!value.is_object()) return invalid_argument("labels is no object");
    for (const auto& [label, text] : value.items()) {
      EC_ASSIGN_OR_RETURN(std::string of_label, text_of(text, "label " + label));
      said.labels.emplace_back(label, std::move(of_label));
    }
  } else {
    return invalid_argument("there is no " + key);
  }
  return ok();
}

Result<catalog::DeviceChange> change_of(const Json& json, const std::string& default_namespace) {
  if (!json.is_object()) return invalid_argument("it is no object");
  catalog::DeviceChange change{{default_namespace, ""}, {}};
  Description said;
  for (const auto& [key, value] : json.items()) {
    EC_TRY(take_member(key, value, change.name, said));
  }
  if (change.name.device.empty()) return invalid_argument("device is missing");
  change.change = [said = std::move(said)](catalog::DeviceMetadata& all) { said.apply(all); };
  return change;
}

Status too_many() {
  return invalid_argument("a request describes at most " + std::to_string(kDescribedMax) +
                          " devices");
}

// Looked at before anything is made of it: values take many times the room of their text, and the
// library's own way to look takes time by the square of an array's length.
Status check_shape(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_array = first != std::string_view::npos && text[first] == '[';
  int depth = 0;
  std::size_t values = 0, elements = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == ',') {
      ++values;
      if (is_array && depth == 1 && ++elements >= kDescribedMax) return too_many();
    } else if (c == ']' || c == '}') {
      --depth;
    } else if ((c == '[' || c == '{') && ++depth > kDepthMax) {
      return invalid_argument("it goes more than " + std::to_string(kDepthMax) + " levels deep");
    }
  }
  if (values < kValuesMax) return ok();
  return invalid_argument("descriptions hold at most " + std::to_string(kValuesMax) +
                          " values a request");
}

Result<Json> parse(std::string_view text) {
  EC_TRY(check_shape(text));
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) return invalid_argument("it is no JSON");
  return json;
}

class Decoder {
 public:
  explicit Decoder(const std::string& default_namespace) : default_namespace_(default_namespace) {}

  Status add(const Json& json) {
    if (changes.size() == kDescribedMax) return too_many();
    auto change = change_of(json, default_namespace_);
    if (!change.ok()) return named(change.status());
    changes.push_back(std::move(change).value());
    return ok();
  }
  Status add_text(std::string_view text) {
    const auto json = parse(text);
    if (!json.ok()) return named(json.status());
    if (!json->is_array()) return add(*json);
    for (const Json& each : *json) EC_TRY(add(each));
    return ok();
  }

  std::vector<catalog::DeviceChange> changes;

 private:
  Status named(const Status& status) const {
    return status.with_context("description " + std::to_string(changes.size() + 1) + ": ");
  }
  const std::string& default_namespace_;
};

}  // namespace

Result<std::vector<catalog::DeviceChange>> decode_descriptions(
    std::string_view body, const std::string& default_namespace) {
  if (body.size() > kDescriptionsMaxBytes) {
    return invalid_argument("descriptions of devices are at most " +
                            std::to_string(kDescriptionsMaxBytes) + " bytes a request");
  }
  Decoder decoder(default_namespace);
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return invalid_argument("the body is empty");
  // Lines are taken apart, unless the first one ends in the middle of an object.
  const std::string_view line = body.substr(first, body.find('\n', first) - first);
  if (body[first] == '[' || !Json::accept(line.begin(), line.end())) {
    EC_TRY(decoder.add_text(body));
    return std::move(decoder.changes);
  }
  for (std::string_view rest = body; !rest.empty();) {
    const std::string_view each = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(each.size() + 1, rest.size()));
    if (each.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    EC_TRY(decoder.add_text(each));
  }
  return std::move(decoder.changes);
}

}  // namespace edgecase::http
