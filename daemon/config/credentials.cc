#include "config/configuration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "config/settings.h"

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

namespace {

// One byte more than a key, to tell a longer file.
struct Contents {
  ~Contents() { ::explicit_bzero(bytes.data(), bytes.size()); }

  std::array<std::uint8_t, sizeof(SecretKey) + 1> bytes{};
  std::size_t size = 0;
};

// Answers 0 or errno.
int read_file(const std::string& path, Contents& contents, struct stat& facts) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int failure = ::fstat(descriptor, &facts) != 0 ? errno : 0;
  while (failure == 0 && contents.size < contents.bytes.size()) {
    const ssize_t got = ::read(descriptor, contents.bytes.data() + contents.size,
                               contents.bytes.size() - contents.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failure = errno;
    if (got <= 0) break;
    contents.size += static_cast<std::size_t>(got);
  }
  ::close(descriptor);
  return failure;
}

Result<SecretKey> load_key(const Configuration& configuration, const char* setting,
                           const std::string& path) {
  Contents contents;
  struct stat facts {};
  if (const int failure = read_file(path, contents, facts); failure != 0)
    return configuration.error(
        setting, path + ": " + std::strerror(failure) +
                     (failure == EACCES ? ", make it the daemon's user's (chown edgecase)" : ""));
  SecretKey key;
  if (contents.size != key.size())
    return configuration.error(
        setting,
        path +
            (contents.size > key.size() ? ": holds more than 32 bytes"
                                        : ": holds " + std::to_string(contents.size) + " bytes") +
            ", a key has exactly 32 (head -c 32 /dev/urandom > FILE)");
  std::copy_n(contents.bytes.begin(), key.size(), key.begin());
  if (std::all_of(key.begin(), key.end(), [](std::uint8_t byte) { return byte == 0; }))
    return configuration.error(setting, path + ": is all zeros, which is no key");
  if (S_ISREG(facts.st_mode) && (facts.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return configuration.error(setting, path + ": everybody can " +
                                            ((facts.st_mode & S_IROTH) != 0 ? "read" : "write") +
                                            " it, run chmod 0400 on it");
  return key;
}

}  // namespace

Result<std::optional<MasterKeys>> load_master_keys(const Configuration& configuration) {
  const StorageSettings& storage = configuration.settings.storage;
  if (storage.encryption_key_file.empty()) {
    if (storage.encryption_previous_key_file.empty()) return std::optional<MasterKeys>();
    return configuration.error(
        "storage.encryption-previous-key-file",
        "is set but storage.encryption-key-file is not, set both or neither");
  }
  MasterKeys keys;
  EC_ASSIGN_OR_RETURN(keys.current, load_key(configuration, "storage.encryption-key-file",
                                             storage.encryption_key_file));
  if (!storage.encryption_previous_key_file.empty()) {
    EC_ASSIGN_OR_RETURN(keys.previous,
                        load_key(configuration, "storage.encryption-previous-key-file",
                                 storage.encryption_previous_key_file));
  }
  return std::optional<MasterKeys>(keys);
}

bool on_one_file_system(const std::string& path, const std::string& other) {
  struct stat first {};
  struct stat second {};
  return ::stat(path.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev;
}

}  // namespace edgecase::config
