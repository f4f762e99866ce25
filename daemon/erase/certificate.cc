#include "erase/certificate.h"

#include <nlohmann/json.hpp>

namespace edgecase::erase {
namespace {

using Json = nlohmann::json;

constexpr int kCertificateVersion = 1;

template <typename Number>
std::optional<Number> optional_number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::nullopt;
  return found->get<Number>();
}

std::optional<ErasureLevel> level_of_name(const std::string& name) {
  for (const ErasureLevel level :
       {ErasureLevel::Logical, ErasureLevel::Cryptographic, ErasureLevel::Physical})
    if (name == level_name(level)) return level;
  return std::nullopt;
}

}  // namespace

std::string encode_certificate(const Certificate& certificate) {
  Json json = {{"version", kCertificateVersion},
               {"number", certificate.number},
               {"done", certificate.state == ErasureState::Done},
               {"asked", certificate.asked_ns},
               {"invisible", certificate.invisible_ns},
               {"gone", certificate.gone_ns},
               {"by", certificate.asked_by},
               {"with_names", certificate.with_names},
               {"devices", certificate.devices},
               {"series", certificate.series},
               {"rules", certificate.rules},
               {"messages", certificate.messages},
               {"device_pseudonyms", certificate.device_pseudonyms},
               {"series_pseudonyms", certificate.series_pseudonyms},
               {"owner_pseudonym", certificate.owner_pseudonym},
               {"removed_files", certificate.removed_files},
               {"overwritten_bytes", certificate.overwritten_bytes},
               {"rewritten_bytes", certificate.rewritten_bytes}};
  if (certificate.destroyed_keys != 0) json["destroyed_keys"] = certificate.destroyed_keys;
  if (certificate.level) json["level"] = level_name(*certificate.level);
  if (!certificate.level_why.empty()) json["level_why"] = certificate.level_why;
  if (certificate.from_ns) json["from"] = *certificate.from_ns;
  if (certificate.to_ns) json["to"] = *certificate.to_ns;
  if (certificate.readings) json["readings"] = *certificate.readings;
  if (certificate.bytes) json["bytes"] = *certificate.bytes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Certificate> decode_certificate(ByteView record) {
  // A field that is missing or of another kind is what the library throws at.
  try {
    const Json json = Json::parse(record);
    if (json.at("version") != kCertificateVersion)
      return unsupported("a certificate of erasure was written by a newer version of EdgeCase");
    Certificate certificate;
    certificate.number = json.at("number");
    certificate.state = json.at("done") ? ErasureState::Done : ErasureState::Pending;
    certificate.asked_ns = json.at("asked");
    certificate.invisible_ns = json.at("invisible");
    certificate.gone_ns = json.at("gone");
    certificate.asked_by = json.at("by");
    certificate.with_names = json.at("with_names");
    certificate.devices = json.at("devices");
    certificate.series = json.at("series");
    certificate.rules = json.at("rules");
    certificate.messages = json.at("messages");
    certificate.device_pseudonyms = json.at("device_pseudonyms");
    certificate.series_pseudonyms = json.at("series_pseudonyms");
    certificate.owner_pseudonym = json.at("owner_pseudonym");
    certificate.removed_files = json.at("removed_files");
    certificate.overwritten_bytes = json.at("overwritten_bytes");
    certificate.rewritten_bytes = json.at("rewritten_bytes");
    certificate.destroyed_keys = json.value("destroyed_keys", std::uint64_t{0});
    if (const auto level = json.find("level"); level != json.end()) {
      certificate.level = level_of_name(*level);
      if (!certificate.level) return corruption("a certificate of erasure has an unknown level");
    }
    certificate.level_why = json.value("level_why", std::string());
    certificate.from_ns = optional_number<std::int64_t>(json, "from");
    certificate.to_ns = optional_number<std::int64_t>(json, "to");
    certificate.readings = optional_number<std::uint64_t>(json, "readings");
    certificate.bytes = optional_number<std::uint64_t>(json, "bytes");
    return certificate;
  } catch (const Json::exception&) {
    return corruption("a certificate of erasure is malformed");
  }
}

}  // namespace edgecase::erase
