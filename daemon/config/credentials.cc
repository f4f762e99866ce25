#include "config/credentials.h"

#include <sys/stat.h>

#include <algorithm>

#include "config/settings_table.h"

namespace edgecase::config {
namespace {

constexpr std::size_t kNameMaxBytes = 255;

struct Named {
  const Setting* setting;
  std::string name;  // of the credential
};

std::vector<Named> named_credentials(const Configuration& configuration) {
  std::vector<Named> found;
  for (const Setting& setting : settings_table()) {
    if (setting.kind != SettingKind::File) continue;
    const std::string text = value_text(setting, configuration.settings);
    if (!text.starts_with(kCredentialPrefix)) continue;
    found.push_back({&setting, text.substr(kCredentialPrefix.size())});
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
  for (const auto& [setting, name] : named_credentials(configuration)) {
    if (!name.empty() && name.size() <= kNameMaxBytes && name != "." && name != ".." &&
        name.find('/') == std::string::npos) {
      continue;
    }
    return configuration.error(setting->key, "\"" + name +
                                                 "\" cannot be a credential's name, use one "
                                                 "without slashes, as in credential:key");
  }
  return ok();
}

Status resolve_credentials(const char* directory, Configuration& configuration) {
  for (const auto& [setting, name] : named_credentials(configuration)) {
    const std::string what = std::string(kCredentialPrefix) + name;
    if (directory == nullptr || *directory == '\0') {
      return configuration.error(
          setting->key, what +
                            ": systemd has handed no credentials to this process; to do: the "
                            "service wants LoadCredential=" +
                            name + ":FILE (systemctl edit edgecased), a command FILE itself");
    }
    const std::string path = std::string(directory) + "/" + name;
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) {
      return configuration.error(setting->key,
                                 what +
                                     ": is not among the credentials of the service; to do: add "
                                     "LoadCredential=" +
                                     name + ":FILE to it (systemctl edit edgecased)");
    }
    EC_TRY(set_from_text(*setting, path, configuration.settings));
  }
  return ok();
}

std::vector<std::string> leave_out_credentials(Configuration& configuration) {
  std::vector<std::string> keys;
  for (const auto& [setting, name] : named_credentials(configuration)) {
    keys.emplace_back(setting->key);
    std::get<std::string& (*)(Settings&)>(setting->member)(configuration.settings).clear();
  }
  Settings& settings = configuration.settings;
  leave_out_pair(keys, "http", settings.http.tls_cert, settings.http.tls_key);
  leave_out_pair(keys, "mqtt", settings.mqtt.tls_cert, settings.mqtt.tls_key);
  if (settings.storage.encryption_key_file.empty()) {
    settings.storage.encryption_previous_key_file.clear();
  }
  return keys;
}

}  // namespace edgecase::config
