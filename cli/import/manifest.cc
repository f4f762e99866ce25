#include "import/importer.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "output.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

using Json = nlohmann::json;

Json list_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : Json::array();
}

std::string name_text(const Json& device) {
  return text_field(device, "namespace") + ": " + text_field(device, "device");
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> object_of(const Result<std::string>& body) {
  if (!body.ok()) return body.status();
  Json document = Json::parse(*body, nullptr, false);
  if (!document.is_object()) return io_error("the daemon's answer is no object");
  return document;
}

// How long each series of a device is kept.
std::map<std::string, std::string> kept_of(const Json& device) {
  std::map<std::string, std::string> kept;
  for (const Json& series : list_of(device, "series")) {
    const std::string keep = text_field(series, "keep");
    if (!keep.empty()) kept[text_field(series, "sensor")] = keep;
  }
  return kept;
}

bool is_device(const Json& device) {
  return device.is_object() &&
         wire::check_name("namespace", text_field(device, "namespace")).ok() &&
         wire::check_name("device", text_field(device, "device")).ok();
}

}  // namespace

Result<std::optional<Manifest>> Manifest::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(path + ": cannot be read");
  file.seekg(0, std::ios::end);
  if (file.tellg() > static_cast<std::streamoff>(kManifestMaxBytes))
    return std::optional<Manifest>();
  file.seekg(0);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return io_error(path + ": cannot be read");
  Manifest manifest;
  manifest.path_ = path;
  manifest.document_ = Json::parse(text, nullptr, false);
  const Json& said = manifest.document_;
  const bool is_manifest = said.is_object() && !text_field(said, "owner").empty() &&
                           !text_field(said, "made").empty() && said.contains("devices");
  if (!is_manifest) return std::optional<Manifest>();
  for (const Json& device : list_of(said, "devices")) {
    if (!is_device(device)) return corruption(path + ": names a device that is none");
  }
  return std::optional<Manifest>(std::move(manifest));
}

std::string Manifest::summary() const {
  return count_of(list_of(document_, "devices").size(), "device") + " of " +
         text_field(document_, "owner");
}

void Manifest::conflict(const std::string& message) {
  print_error("%s: %s\n", path_.c_str(), printable(message).c_str());
  ++conflicts_;
}

// What is to be said, beside what is; empty: nothing.
Json Manifest::merged(const Json& device, const Json& known) {
  Json more = Json::object();
  const auto take = [&](const char* field, const Json& wanted) {
    const Json there = known.value(field, Json());
    if (wanted.empty() || wanted == there || wanted == "") return;
    if (there.empty() || there == "") {
      more[field] = wanted;
    } else {
      conflict(name_text(device) + " has " + field + " " + dump(there) + " already, not " +
               dump(wanted) + "; that stays");
    }
  };
  take("owner", document_["owner"]);
  for (const char* field : {"location", "purposes", "objections"})
    take(field, device.value(field, Json()));
  const Json labels = device.value("labels", Json::object());
  const Json known_labels = known.value("labels", Json::object());
  for (const auto& [label, value] : labels.items()) {
    const Json there = known_labels.value(label, Json());
    if (there == value) continue;
    if (there.is_null()) {
      more["labels"][label] = value;
    } else {
      conflict(name_text(device) + " has the label " + label + " " + dump(there) +
               " already, not " + dump(value) + "; that stays");
    }
  }
  return more;
}

Status Manifest::describe(DaemonClient& client, const Json& device) {
  const Name name{text_field(device, "namespace"), text_field(device, "device")};
  Json known = Json::object();
  const auto answer = object_of(client.get_small(
      path_with(wire::routes::kDevice, {{"ns", name.first}, {"device", name.second}})));
  if (answer.ok()) {
    known = *answer;
  } else if (answer.status().code() != StatusCode::NotFound) {
    return answer.status();
  }
  const std::string owner = text_field(known, "owner");
  if (!owner.empty() && owner != text_field(document_, "owner")) of_others_.insert(name);
  Json more = merged(device, known);
  if (more.empty()) return ok();
  more["namespace"] = name.first;
  more["device"] = name.second;
  const std::string path =
      path_with(wire::routes::kDevices, {{"as_of", text_field(document_, "made")}});
  const Status said = client.post(path, dump(more), "application/json").status();
  // Erased here since, or over a limit: its readings are judged on their own.
  if (said.code() != StatusCode::InvalidArgument) return said;
  conflict(name_text(device) + ": " + said.message());
  return ok();
}

Status Manifest::describe(DaemonClient& client) {
  std::set<std::string> namespaces;
  for (const Json& device : list_of(document_, "devices"))
    namespaces.insert(text_field(device, "namespace"));
  for (const std::string& name : namespaces) {
    if (name == wire::kDefaultNamespace) continue;
    EC_TRY(client.post(path_with(wire::routes::kNamespaces, {{"name", name}}), "", "text/plain")
               .status());
  }
  for (const Json& device : list_of(document_, "devices")) EC_TRY(describe(client, device));
  return ok();
}

Status Manifest::set_rule(DaemonClient& client, const std::string& namespace_name,
                          const std::string& selector, const std::string& keep) {
  const Status set =
      client
          .post(path_with(wire::routes::kRetention,
                          {{"ns", namespace_name}, {"select", selector}, {"keep", keep}}),
                "", "text/plain")
          .status();
  // It would erase all that was imported, or nothing of it was.
  if (set.code() != StatusCode::InvalidArgument && set.code() != StatusCode::NotFound) return set;
  conflict(namespace_name + ": " + selector + " is not kept for " + keep + ": " + set.message());
  return ok();
}

// One rule where all series of the device are kept as long, else one each.
Status Manifest::keep(DaemonClient& client, const Json& device, const Json& found) {
  const std::string namespace_name = text_field(device, "namespace");
  const std::string glob = wire::escape_name(text_field(device, "device"));
  const auto wanted = kept_of(device);
  const auto now = kept_of(found);
  std::map<std::string, std::string> missing;
  std::set<std::string> durations;
  for (const auto& [sensor, keep] : wanted) {
    durations.insert(keep);
    const auto there = now.find(sensor);
    if (there == now.end() || there->second != keep) missing[sensor] = keep;
  }
  if (missing.empty()) return ok();
  EC_ASSIGN_OR_RETURN(
      const Json rules,
      object_of(client.get_small(path_with(wire::routes::kRetention, {{"ns", namespace_name}}))));
  std::map<std::string, std::string> own;
  for (const Json& rule : list_of(rules, "rules")) {
    if (text_field(rule, "namespace") == namespace_name)
      own[text_field(rule, "select")] = text_field(rule, "keep");
  }
  if (durations.size() == 1 && now.size() == wanted.size()) {
    missing = {{"*", *durations.begin()}};
  }
  for (const auto& [sensor, keep] : missing) {
    const std::string selector = glob + "/" + (sensor == "*" ? sensor : wire::escape_name(sensor));
    if (const auto there = own.find(selector); there != own.end()) {
      conflict(namespace_name + ": " + selector + " is kept for " + there->second +
               " already, not for " + keep + "; that stays");
    } else {
      EC_TRY(set_rule(client, namespace_name, selector, keep));
    }
  }
  return ok();
}

Status Manifest::keep(DaemonClient& client) {
  const auto answer = object_of(client.get_small(
      path_with(wire::routes::kReport, {{"owner", text_field(document_, "owner")}})));
  if (answer.status().code() == StatusCode::NotFound) return ok();
  EC_TRY(answer.status());
  std::map<Name, Json> found;
  for (const Json& device : list_of(*answer, "devices"))
    found[{text_field(device, "namespace"), text_field(device, "device")}] = device;
  for (const Json& device : list_of(document_, "devices")) {
    const Name name{text_field(device, "namespace"), text_field(device, "device")};
    const auto there = found.find(name);
    if (there != found.end() && !of_others_.contains(name))
      EC_TRY(keep(client, device, there->second));
  }
  return ok();
}

}  // namespace edgecase::cli
