#include "config/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace edgecase::config {
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
