// What is said of devices: /api/v1/device, and of many at once POST /api/v1/devices.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/device_batch.h"
#include "http/http_routes.h"
#include "http/refusal.h"
#include "wire/names.h"
#include "wire/routes.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

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

// Who says it, as the record of consents tells: "uid 1000", "10.0.0.5 token 1a2b3c4d5e".
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

// Of the devices of which something is said.
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

}  // namespace edgecase::http
