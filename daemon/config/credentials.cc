#include "config/credentials.h"

#include <sys/stat.h>

#include <algorithm>

#include "config/forward_target.h"
#include "config/settings_table.h"

namespace edgecase::config {
namespace {

constexpr std::size_t kNameMaxBytes = 255;

struct Named {
  std::string key;     // by which the setting's place is found
  std::string* value;  // of the setting
  std::string name;    // of the credential
};

// The views are into `settings`.
std::vector<Named> named_credentials(Settings& settings) {
  std::vector<Named> found;
  const auto look_at = [&found](std::string key, std::string& value) {
    if (value.starts_with(kCredentialPrefix))
      found.push_back({std::move(key), &value, value.substr(kCredentialPrefix.size())});
  };
  for (const Setting& setting : settings_table()) {
    if (setting.kind == SettingKind::File)
      look_at(std::string(setting.key),
              std::get<std::string& (*)(Settings&)>(setting.member)(settings));
  }
  for (std::size_t i = 0; i < settings.forward.size(); ++i) {
    for (const ForwardKey& key : forward_keys()) {
      if (key.is_file)
        look_at(forward_origin(i + 1, key.name),
                settings.forward[i].*std::get<std::string ForwardSettings::*>(key.member));
    }
  }
  return found;
}

// A certificate and its key are of use together alone.
void leave_out_pair(const std::vector<std::string>& keys, const std::string& section,
                    std::string& certificate, std::string& key) {
  const auto is_left_out = [&keys, &section](const char* name) {
    return std::find(keys.begin(), keys.end(), section + name) != keys.end();
  };
  if (!is_left_out(".tls-cert") && !is_left_out(".tls-key")) return;
  certificate.clear();
  key.clear();
}

}  // namespace

Status check_credential_names(const Configuration& configuration) {
  Settings settings = configuration.settings;
  for (const auto& [key, value, name] : named_credentials(settings)) {
    if (!name.empty() && name.size() <= kNameMaxBytes && name != "." && name != ".." &&
        name.find('/') == std::string::npos) {
      continue;
    }
    return configuration.error(key, "\"" + name +
                                        "\" cannot be a credential's name, use one "
                                        "without slashes, as in credential:key");
  }
  return ok();
}

Status resolve_credentials(const char* directory, Configuration& configuration) {
  for (const auto& [key, value, name] : named_credentials(configuration.settings)) {
    const std::string what = std::string(kCredentialPrefix) + name;
    if (directory == nullptr || *directory == '\0') {
      return configuration.error(
          key, what +
                   ": systemd has handed no credentials to this process; to do: the "
                   "service wants LoadCredential=" +
                   name + ":FILE (systemctl edit edgecased), a command FILE itself");
    }
    const std::string path = std::string(directory) + "/" + name;
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) {
      return configuration.error(key,
                                 what +
                                     ": is not among the credentials of the service; to do: add "
                                     "LoadCredential=" +
                                     name + ":FILE to it (systemctl edit edgecased)");
    }
    *value = path;
  }
  return ok();
}

std::vector<std::string> leave_out_credentials(Configuration& configuration) {
  std::vector<std::string> keys;
  Settings& settings = configuration.settings;
  for (const auto& [key, value, name] : named_credentials(settings)) {
    keys.push_back(key);
    value->clear();
  }
  leave_out_pair(keys, "http", settings.http.tls_cert, settings.http.tls_key);
  leave_out_pair(keys, "mqtt", settings.mqtt.tls_cert, settings.mqtt.tls_key);
  for (ForwardSettings& target : settings.forward) {
    if (!target.tls_cert.empty() && !target.tls_key.empty()) continue;
    target.tls_cert.clear();
    target.tls_key.clear();
  }
  if (settings.storage.encryption_key_file.empty()) {
    settings.storage.encryption_previous_key_file.clear();
  }
  return keys;
}

}  // namespace edgecase::config
