// Descriptions of devices: /api/v1/device, and of many at once POST /api/v1/devices; and devices
// and series as somebody types: /api/v1/find.

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

constexpr std::size_t kDescribedMax = 10'000;            // devices of one request
constexpr std::size_t kDescriptionsMaxBytes = 4u << 20;  // of one request
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
    EC_ASSIGN_OR_RETURN(consent.time_ns, wire::parse_absolute_time_ns(since));
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

Status check_namespace(const HttpContext& context, const catalog::DeviceName& name) {
  if (name.namespace_name.empty()) return invalid_argument("a device is in one namespace");
  if (name.namespace_name.starts_with('_')) {
    return not_allowed("names that begin with _ are the store's own");
  }
  if (!context.parts.catalog.has_namespace(name.namespace_name))
    return not_found("no namespace " + name.namespace_name);
  return ok();
}

Result<catalog::DeviceName> device_parameter(const HttpContext& context, const Call& call) {
  catalog::DeviceName name{namespace_parameter(call), call.parameter("device")};
  if (name.device.empty()) return invalid_argument("the parameter device is missing");
  EC_TRY(check_namespace(context, name));
  return name;
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::string_view each = text.substr(0, text.find(','));
    text.remove_prefix(std::min(each.size() + 1, text.size()));
    list.emplace_back(each);
  }
  return list;
}

// The one who says it, as the record of consents tells: "uid 1000", "10.0.0.5 token 1a2b3c4d5e".
catalog::Saying saying_of(const HttpContext& context, const Call& call) {
  catalog::Saying saying{context.parts.clock.wall_ns(), call.principal().name};
  if (call.principal().grant) saying.by += " token " + call.principal().grant->token_id;
  return saying;
}

// What is given replaces what was said; empty takes it back.
Result<std::function<void(catalog::DeviceMetadata&)>> change_parameters(const Call& call) {
  EC_ASSIGN_OR_RETURN(auto labels, label_parameters(call));
  return std::function<void(catalog::DeviceMetadata&)>(
      [&call, labels = std::move(labels)](catalog::DeviceMetadata& said) {
        if (call.has("owner")) said.owner = call.parameter("owner");
        if (call.has("purpose")) said.purposes = list_of(call.parameter("purpose"));
        if (call.has("object")) said.objections = list_of(call.parameter("object"));
        if (call.has("location")) said.location = call.parameter("location");
        for (const auto& [label, value] : labels) {
          said.labels[label] = value;
          if (value.empty()) said.labels.erase(label);
        }
      });
}

// Sets what is said of the devices of which something is said already.
Result<Json> set_group(HttpContext& context, const Call& call,
                       const catalog::DeviceFilter& filter) {
  if (call.has("device") || call.has("as_of"))
    return invalid_argument("say which devices: device, or of_owner, of_purpose, ...");
  EC_ASSIGN_OR_RETURN(const auto change, change_parameters(call));
  const std::string wanted = namespace_parameter(call);
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  query::Reach& reach = call.exchange.audit.reach.emplace();
  std::size_t described = 0;
  EC_TRY(context.parts.devices.update_found(wanted, filter, change, saying_of(context, call),
                                            [&](const catalog::DeviceName& name) {
                                              ++described;
                                              reach.add(name.namespace_name, name.device);
                                            }));
  if (described == 0) return not_found("no device of which this is said");
  return Json{{"described", described}};
}

}  // namespace

Result<Json> get_device(HttpContext& context, const Call& call) {
  EC_ASSIGN_OR_RETURN(const catalog::DeviceName name, device_parameter(context, call));
  const wire::Selector all_of_it{wire::escape_name(name.device), "*"};
  EC_TRY(auth::authorize(auth::Operation::Read, call.principal(), name.namespace_name, all_of_it));
  EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata, context.parts.devices.metadata(name));
  if (metadata.empty() && context.parts.catalog.select(name.namespace_name, all_of_it).empty()) {
    return not_found("no device " + name.device + " in namespace " + name.namespace_name);
  }
  return device_json(name, metadata);
}

Result<Json> post_device(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const catalog::DeviceFilter filter, filter_parameters(call, "of_"));
  if (!filter.empty()) return set_group(context, call, filter);
  EC_ASSIGN_OR_RETURN(const catalog::DeviceName name, device_parameter(context, call));
  EC_ASSIGN_OR_RETURN(const auto change, change_parameters(call));
  // No erasure begins or ends meanwhile.
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  EC_TRY(check_as_of(context, call, name));
  EC_ASSIGN_OR_RETURN(const catalog::DeviceMetadata metadata,
                      context.parts.devices.update(name, change, saying_of(context, call)));
  return device_json(name, metadata);
}

// As post_device(), of many devices: all of them or, where anything is wrong, none.
Result<Json> post_devices(HttpContext& context, const Call& call) {
  EC_TRY(auth::authorize_administration(call.principal()));
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::DeviceChange> changes,
                      decode_descriptions(call.body(), namespace_parameter(call)));
  for (const catalog::DeviceChange& change : changes) {
    EC_TRY(check_namespace(context, change.name));
  }
  const erase::Fences::Pass pass = context.parts.erase.fences().enter();
  for (const catalog::DeviceChange& change : changes) {
    EC_TRY(check_as_of(context, call, change.name));
  }
  EC_TRY(context.parts.devices.update_all(changes, saying_of(context, call)));
  return Json{{"described", changes.size()}};
}

Status check_as_of(const HttpContext& context, const Call& call, const catalog::DeviceName& name) {
  if (!call.has("as_of")) return ok();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      wire::parse_time_ns(call.parameter("as_of"), context.parts.clock.wall_ns()));
  if (!context.parts.erase.fences().is_erased(name.namespace_name, name.device, time_ns))
    return ok();
  return invalid_argument("a device was erased since " + call.parameter("as_of") +
                          ", and what was said of it then is not taken again");
}

wire::Json device_json(const catalog::DeviceName& name, const catalog::DeviceMetadata& metadata) {
  wire::Json labels = wire::Json::object();
  for (const auto& [label, value] : metadata.labels) labels[label] = value;
  return {{"namespace", name.namespace_name},  {"device", name.device},
          {"owner", metadata.owner},           {"purposes", metadata.purposes},
          {"objections", metadata.objections}, {"location", metadata.location},
          {"labels", std::move(labels)}};
}

Result<std::vector<std::pair<std::string, std::string>>> label_parameters(const Call& call,
                                                                          const std::string& name) {
  std::vector<std::pair<std::string, std::string>> labels;
  const auto [begin, end] = call.request.parameters.equal_range(name);
  for (auto at = begin; at != end; ++at) {
    const std::size_t equals = at->second.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return invalid_argument("a label is written NAME=VALUE, not \"" + at->second + "\"");
    }
    labels.emplace_back(at->second.substr(0, equals), at->second.substr(equals + 1));
  }
  return labels;
}

Result<catalog::DeviceFilter> filter_parameters(const Call& call, const std::string& prefix) {
  catalog::DeviceFilter filter;
  for (const auto& [name, wanted] :
       {std::pair("owner", &filter.owner), std::pair("purpose", &filter.purpose),
        std::pair("object", &filter.objection)}) {
    const std::string parameter = prefix + name;
    if (!call.has(parameter.c_str())) continue;
    *wanted = call.parameter(parameter.c_str());
    EC_TRY(wire::check_name(parameter, *wanted));
  }
  EC_ASSIGN_OR_RETURN(filter.labels, label_parameters(call, prefix + "label"));
  for (const auto& [label, value] : filter.labels) {
    EC_TRY(wire::check_name("label", label));
    EC_TRY(wire::check_name("label", value));
  }
  return filter;
}

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

// Series as somebody types, for the page.

namespace {

constexpr std::uint64_t kFoundByDefault = 50;
constexpr std::uint64_t kFoundMax = 500;
constexpr std::size_t kTypedWordsMax = 16;
constexpr std::size_t kTypedMaxBytes = 1'024;

Result<std::vector<std::string>> typed_words(std::string_view text) {
  if (text.size() > kTypedMaxBytes) {
    return invalid_argument("q has more than " + std::to_string(kTypedMaxBytes) + " bytes");
  }
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (words.size() == kTypedWordsMax) {
      return invalid_argument("q has more than " + std::to_string(kTypedWordsMax) + " words");
    }
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<query::FindRequest> find_request(const Call& call) {
  query::FindRequest request;
  request.namespace_name = namespace_parameter(call);
  EC_ASSIGN_OR_RETURN(request.words, typed_words(call.parameter("q")));
  request.purpose = call.parameter("purpose");
  EC_ASSIGN_OR_RETURN(const auto limit, limit_parameter(call));
  request.limit = std::min(limit.value_or(kFoundByDefault), kFoundMax);
  EC_ASSIGN_OR_RETURN(const auto offset, limit_parameter(call, "offset"));
  request.offset = offset.value_or(0);
  return request;
}

}  // namespace

void get_find(HttpContext& context, Call& call) {
  const auto request = find_request(call);
  if (!request.ok()) return call.answer_error(request.status());
  query::Reach reach;
  reach.patience = call.exchange.patience;
  const auto found = context.parts.query.find(call.principal(), *request, &reach);
  if (!found.ok()) return call.answer_error(found.status());
  std::string json = "{\"found\":[";
  for (const query::FoundSeries::Names& entry : found->series) {
    if (!json.ends_with('[')) json += ',';
    json += "{\"namespace\":";
    wire::append_json_string(entry.namespace_name, json);
    json += ",\"device\":";
    wire::append_json_string(entry.device, json);
    json += ",\"sensor\":";
    wire::append_json_string(entry.sensor, json);
    json += '}';
  }
  json += "],\"next\":";
  json += found->has_more ? std::to_string(request->offset + found->series.size()) : "null";
  reach.patience = nullptr;
  call.exchange.audit.reach = std::move(reach);
  call.answer_json(200, json + "}\n");
}

}  // namespace edgecase::http
