#include "config/configuration.h"

#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/settings.h"
#include "wire/authority.h"
#include "wire/names.h"
#include "wire/tiers.h"

namespace edgecase::config {
namespace {

// tidy: allow-file message-text: the key in front of a target's error finds its place in the file

// Without `.`, `..`, doubled and trailing slashes; links are not followed.
std::string plain_path(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool is_inside(const std::string& inner, const std::string& outer) {
  return outer == "/" ||
         (inner.size() > outer.size() && inner.starts_with(outer) && inner[outer.size()] == '/');
}

Status validate_directories(const Configuration& configuration) {
  const StorageSettings& storage = configuration.settings.storage;
  if (storage.metadata.empty()) {
    return configuration.error("storage.metadata", "is empty, give a directory");
  }
  if (storage.values.empty()) {
    return configuration.error("storage.values", "is empty, give a directory");
  }
  const std::string metadata = plain_path(storage.metadata);
  const std::string values = plain_path(storage.values);
  if (metadata == values) {
    return configuration.error("storage.values", "is the directory of storage.metadata too, use " +
                                                     metadata + "/values or another drive");
  }
  if (is_inside(metadata, values)) {
    return configuration.error("storage.values",
                               "holds storage.metadata, use a directory of its "
                               "own, such as " +
                                   metadata + "/values");
  }
  for (const char* taken : {"/wal", "/tables"}) {
    const std::string engine = metadata + taken;
    if (values == engine || is_inside(values, engine)) {
      return configuration.error(
          "storage.values",
          "lies in " + engine + ", which is the engine's own, use " + metadata + "/values");
    }
  }
  return ok();
}

Status validate_tls_pair(const Configuration& configuration, const std::string& section,
                         const std::string& certificate, const std::string& key) {
  if (certificate.empty() == key.empty()) return ok();
  const char* const missing = certificate.empty() ? ".tls-cert" : ".tls-key";
  const char* const given = certificate.empty() ? ".tls-key" : ".tls-cert";
  return configuration.error(section + given,
                             "is set but " + section + missing + " is empty, set both or neither");
}

Status validate_client_certificates(const Configuration& configuration, const std::string& section,
                                    const std::string& certificate, const std::string& authorities,
                                    const std::string& revocations) {
  if (!authorities.empty() && certificate.empty())
    return configuration.error(section + ".tls-client-ca", "is set but " + section +
                                                               ".tls-cert is empty: without TLS no "
                                                               "client shows a certificate");
  if (!revocations.empty() && authorities.empty())
    return configuration.error(section + ".tls-client-crl",
                               "is set but " + section + ".tls-client-ca is empty");
  return ok();
}

// Drives that are where no data may be.
Status validate_locations(const Configuration& configuration) {
  const StorageSettings& storage = configuration.settings.storage;
  for (const auto& [key, location] :
       {std::pair("storage.metadata-location", &storage.metadata_location),
        std::pair("storage.values-location", &storage.values_location)}) {
    if (!location->empty() && !wire::check_name("location", *location).ok())
      return configuration.error(key, "is no name, use one of up to 128 bytes");
    if (location->find(',') != std::string::npos)
      return configuration.error(key, "is one location, without a comma");
    if (!check_location(storage, *location).ok())
      return configuration.error(
          key, location->empty() ? "is not said, though storage.locations says where data may be"
                                 : "is none of storage.locations: data may not be there");
  }
  return ok();
}

Status validate_http(const Configuration& configuration) {
  const HttpSettings& http = configuration.settings.http;
  if (http.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return configuration.error(
        "http.socket", "is longer than " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                           " bytes, use a shorter path");
  }
  if (http.body_limit_bytes > http.in_flight_limit_bytes) {
    return configuration.error("http.in-flight-limit",
                               "is less than http.body-limit, use at least that much");
  }
  EC_TRY(validate_tls_pair(configuration, "http", http.tls_cert, http.tls_key));
  EC_TRY(validate_client_certificates(configuration, "http", http.tls_cert, http.tls_client_ca,
                                      http.tls_client_crl));
  for (const std::string& name : http.names) {
    if (const Status status = wire::check_host(name); !status.ok()) {
      return configuration.error("http.names", status.message());
    }
  }
  for (const std::string& proxy : http.proxies) {
    if (const auto network = wire::parse_network(proxy); !network.ok()) {
      return configuration.error("http.proxies", network.status().message());
    }
  }
  if (http.listen.empty()) return ok();
  const Result<ListenAddress> address = parse_listen_address(http.listen);
  if (!address.ok()) return configuration.error("http.listen", address.status().message());
  return ok();
}

Status validate_mqtt_listener(const Configuration& configuration) {
  const std::string& listen = configuration.settings.mqtt.listen;
  if (listen.empty()) return ok();
  const Result<ListenAddress> address = parse_listen_address(listen);
  if (!address.ok()) {
    return configuration.error("mqtt.listen",
                               "\"" + listen + "\" is not an address, use localhost:1884");
  }
  return ok();
}

Status validate_mqtt(const Configuration& configuration) {
  EC_TRY(validate_mqtt_listener(configuration));
  const MqttSettings& mqtt = configuration.settings.mqtt;
  EC_TRY(validate_tls_pair(configuration, "mqtt", mqtt.tls_cert, mqtt.tls_key));
  EC_TRY(validate_client_certificates(configuration, "mqtt", mqtt.tls_cert, mqtt.tls_client_ca,
                                      mqtt.tls_client_crl));
  const std::string_view broker = mqtt.broker;
  if (broker.empty()) return ok();
  const bool secure = broker.starts_with("mqtts://");
  if (!secure && !broker.starts_with("mqtt://")) {
    return configuration.error(
        "mqtt.broker", "\"" + mqtt.broker + "\" is not a broker, use mqtt://127.0.0.1:1883");
  }
  if (!secure && !mqtt.tls_ca.empty()) {
    return configuration.error("mqtt.tls-ca",
                               "is set but mqtt.broker does not speak TLS, use mqtts:// there");
  }
  const std::string_view rest = broker.substr(secure ? 8 : 7);
  if (rest.find('@') != std::string_view::npos) {
    return configuration.error("mqtt.broker",
                               "holds a user, use mqtt.username and mqtt.password-file instead");
  }
  // The port may be left out; with one, the address is written as listeners write it.
  const bool with_port = rest.rfind(':') != std::string_view::npos && rest.back() != ']';
  const Result<ListenAddress> address =
      parse_listen_address(with_port ? std::string(rest) : std::string(rest) + ":1883");
  if (!address.ok() || address->port == 0) {
    return configuration.error(
        "mqtt.broker", "\"" + mqtt.broker + "\" is not a broker, use mqtt://127.0.0.1:1883");
  }
  if (mqtt.client_id.empty()) {
    return configuration.error("mqtt.client-id",
                               "is empty, give a name: the broker keeps messages for it");
  }
  if (mqtt.username.empty() && !mqtt.password_file.empty()) {
    return configuration.error("mqtt.password-file",
                               "is set but mqtt.username is not, set both or neither");
  }
  return ok();
}

Status validate_forward(const Configuration& configuration) {
  const std::vector<ForwardSettings>& targets = configuration.settings.forward;
  if (targets.size() > kForwardTargetsMax) {
    return invalid_argument(targets[kForwardTargetsMax].where + ": forward: there are " +
                            std::to_string(targets.size()) + " targets, use at most " +
                            std::to_string(kForwardTargetsMax));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t number = i + 1;
    if (const auto parsed = parse_forward(targets[i]); !parsed.ok())
      return forward_error(configuration, number, parsed.status());
    for (std::size_t before = 0; before < i; ++before) {
      if (targets[before].name == targets[i].name)
        return forward_error(
            configuration, number,
            invalid_argument("name: is another target's too, use a name of its own"));
    }
    if (const Status status = check_location(configuration.settings.storage, targets[i].location);
        !status.ok()) {
      return forward_error(configuration, number, status.with_context("location: "));
    }
  }
  return ok();
}

// What this version does not have yet, and would be unsafe to ignore, is refused.
Status validate_support(const Configuration& configuration) {
  const Settings defaults;
  for (const Setting& setting : settings_table()) {
    if (setting.support == Support::Full) continue;
    if (value_text(setting, configuration.settings) == value_text(setting, defaults)) continue;
    return configuration.error(setting.key, setting.support_note);
  }
  return ok();
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  auto authority = wire::parse_authority(text);
  if (authority.ok() && authority->port) return ListenAddress{authority->host, *authority->port};
  return invalid_argument("\"" + std::string(text) + "\" is not an address, use localhost:8650");
}

Status forward_error(const Configuration& configuration, std::size_t number, const Status& status) {
  const std::string_view message = status.message();
  const std::string_view key = message.substr(0, message.find(": "));
  const Origin origin = configuration.origin_of(forward_origin(number, key));
  const std::string& table = configuration.settings.forward[number - 1].where;
  return invalid_argument((origin.kind == OriginKind::Default ? table : origin.where) +
                          ": forward." + std::string(message));
}

Status check_location(const StorageSettings& storage, std::string_view location) {
  if (storage.locations.empty()) return ok();
  if (location.empty())
    return not_allowed("say where that is: data may be in " + storage.locations +
                       " alone (storage.locations)");
  std::string_view rest = storage.locations;
  while (!rest.empty()) {
    std::string_view each = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(each.size() + 1, rest.size()));
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (each == location) return ok();
  }
  return not_allowed("data may be in " + storage.locations + " alone (storage.locations), not in " +
                     std::string(location));
}

// Bytes of readings that become windows go with merges, and nobody can say when.
Status validate_tiers(const Configuration& configuration) {
  const Settings& settings = configuration.settings;
  if (settings.storage.expiry != "exact") return ok();
  if (settings.storage.on_full == "thin-oldest")
    return configuration.error("storage.on-full",
                               "thin-oldest makes tiers, which storage.expiry exact has none of; "
                               "use reject or evict-oldest, or bounded expiry");
  const auto has_tiers = [](const std::string& text) {
    const auto keeping = wire::parse_keeping(text);
    return keeping.ok() && !keeping->tiers.empty();
  };
  const bool is_of_topic =
      std::any_of(settings.mqtt.rules.begin(), settings.mqtt.rules.end(),
                  [&](const MqttRuleSettings& rule) { return has_tiers(rule.retention); });
  if (!is_of_topic && !has_tiers(settings.storage.retention)) return ok();
  return configuration.error("storage.expiry",
                             "is exact, which tiers are not: bytes of readings that become windows "
                             "go within minutes; use bounded, or no tiers");
}

Status validate(Configuration& configuration) {
  EC_TRY(validate_directories(configuration));
  EC_TRY(validate_tiers(configuration));
  EC_TRY(validate_locations(configuration));
  EC_TRY(validate_http(configuration));
  EC_TRY(validate_mqtt(configuration));
  EC_TRY(validate_forward(configuration));
  EC_TRY(check_credential_names(configuration));
  return validate_support(configuration);
}

}  // namespace edgecase::config
