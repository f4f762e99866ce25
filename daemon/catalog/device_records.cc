#include "catalog/device_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/names.h"

namespace edgecase::catalog {
namespace {

using Json = nlohmann::json;

constexpr int kRecordVersion = 1;

Status check_terms(const char* what, const std::vector<std::string>& terms) {
  if (terms.size() > kTermsMax) {
    return invalid_argument("a device has at most " + std::to_string(kTermsMax) + " " + what + "s");
  }
  for (const std::string& term : terms) EC_TRY(wire::check_name(what, term));
  return ok();
}

}  // namespace

Bytes name_bytes(const DeviceName& name) {
  return name.namespace_name + '\0' + name.device;
}

Bytes term_prefix(char kind, std::string_view term) {
  return Bytes(1, kind) + Bytes(term) + '\0';
}

// Of the key behind a prefix: "namespace 0 device".
DeviceName parse_name(ByteView bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  return {std::string(bytes.substr(0, end)),
          std::string(bytes.substr(std::min(end + 1, bytes.size())))};
}

// The first key behind all that begin so.
Bytes end_of(Bytes prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);  // a zero byte, always
  return prefix;
}

std::vector<Bytes> index_prefixes(const DeviceMetadata& metadata) {
  std::vector<Bytes> prefixes;
  if (!metadata.owner.empty()) prefixes.push_back(term_prefix('O', metadata.owner));
  for (const std::string& each : metadata.purposes) prefixes.push_back(term_prefix('P', each));
  for (const std::string& each : metadata.objections) prefixes.push_back(term_prefix('X', each));
  for (const auto& [label, value] : metadata.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  return prefixes;
}

std::vector<Bytes> prefixes_of(const DeviceFilter& filter) {
  DeviceMetadata terms;
  terms.owner = filter.owner;
  if (!filter.purpose.empty()) terms.purposes = {filter.purpose};
  if (!filter.objection.empty()) terms.objections = {filter.objection};
  std::vector<Bytes> prefixes = index_prefixes(terms);
  for (const auto& [label, value] : filter.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  return prefixes;
}

Bytes taken_back_key(const DeviceName& name, const Bytes& prefix) {
  return 'S' + name_bytes(name) + '\0' + prefix;
}

std::pair<DeviceName, Bytes> parse_taken_back(ByteView key) {
  key.remove_prefix(std::min<std::size_t>(key.size(), 1));
  const std::size_t first = std::min(key.find('\0'), key.size());
  const std::size_t end = std::min(key.find('\0', first + 1), key.size());
  return {parse_name(key.substr(0, end)), Bytes(key.substr(std::min(end + 1, key.size())))};
}

Bytes encode_metadata(const DeviceMetadata& metadata) {
  Json json = {{"version", kRecordVersion}};
  if (!metadata.owner.empty()) json["owner"] = metadata.owner;
  if (!metadata.purposes.empty()) json["purposes"] = metadata.purposes;
  if (!metadata.objections.empty()) json["objections"] = metadata.objections;
  if (!metadata.location.empty()) json["location"] = metadata.location;
  if (!metadata.labels.empty()) json["labels"] = metadata.labels;
  return json.dump();
}

Result<DeviceMetadata> decode_metadata(ByteView record) {
  // A field of another kind than it should be is what the library throws at.
  try {
    const Json json = Json::parse(record);
    if (json.at("version") != kRecordVersion) {
      return unsupported("metadata of a device was written by a newer version of EdgeCase");
    }
    DeviceMetadata metadata;
    metadata.owner = json.value("owner", "");
    metadata.purposes = json.value("purposes", metadata.purposes);
    metadata.objections = json.value("objections", metadata.objections);
    metadata.location = json.value("location", "");
    metadata.labels = json.value("labels", metadata.labels);
    return metadata;
  } catch (const Json::exception&) {
    return corruption("the record of a device's metadata is malformed");
  }
}

Status check_metadata(const DeviceName& name, const DeviceMetadata& metadata) {
  EC_TRY(wire::check_name("namespace", name.namespace_name));
  EC_TRY(wire::check_name("device", name.device));
  if (!metadata.owner.empty()) EC_TRY(wire::check_name("owner", metadata.owner));
  if (!metadata.location.empty()) EC_TRY(wire::check_name("location", metadata.location));
  EC_TRY(check_terms("purpose", metadata.purposes));
  EC_TRY(check_terms("objection", metadata.objections));
  if (metadata.labels.size() > kLabelsMax) {
    return invalid_argument("a device has at most " + std::to_string(kLabelsMax) + " labels");
  }
  for (const auto& [label, value] : metadata.labels) {
    EC_TRY(wire::check_name("label", label));
    EC_TRY(wire::check_name("label's value", value));
    if (label.find('=') != std::string::npos) return invalid_argument("a label's name holds a =");
  }
  return ok();
}

void tidy(std::vector<std::string>& terms) {
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
}

}  // namespace edgecase::catalog
