#include "storage/drive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "target_file.h"

namespace edgecase::cli::storage {
namespace {

constexpr std::size_t kProbePieceBytes = 1u << 20;
constexpr std::size_t kSmallBytes = 4096;
constexpr double kSpeedTestSeconds = 3;

// Spaces and the like stand there as three octal digits.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string uuid_of(std::uint64_t device_number) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/disk/by-uuid", error)) {
    struct stat found {};
    if (stat(entry.path().c_str(), &found) == 0 && found.st_rdev == device_number) {
      return entry.path().filename();
    }
  }
  return {};
}

double seconds_since(std::chrono::steady_clock::time_point started) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

Result<Speed> measure(int file, const std::string& path) {
  const std::string piece(kProbePieceBytes, 'e');
  Speed speed;
  std::uint64_t written = 0;
  const auto started = std::chrono::steady_clock::now();
  while (written < kSpeedTestBytes && seconds_since(started) < kSpeedTestSeconds) {
    if (pwrite(file, piece.data(), piece.size(), static_cast<off_t>(written)) !=
            static_cast<ssize_t>(piece.size()) ||
        fdatasync(file) != 0) {
      return file_failure(path, errno);
    }
    written += piece.size();
  }
  speed.mb_per_second = static_cast<double>(written) / 1e6 / std::max(seconds_since(started), 1e-6);
  std::array<double, kSpeedTestSyncs> times_ms{};
  for (double& time_ms : times_ms) {
    const auto begun = std::chrono::steady_clock::now();
    if (pwrite(file, piece.data(), kSmallBytes, static_cast<off_t>(written)) < 0 ||
        fdatasync(file) != 0) {
      return file_failure(path, errno);
    }
    written += kSmallBytes;
    time_ms = seconds_since(begun) * 1e3;
  }
  std::nth_element(times_ms.begin(), times_ms.begin() + kSpeedTestSyncs / 2, times_ms.end());
  speed.sync_ms = times_ms[kSpeedTestSyncs / 2];
  return speed;
}

}  // namespace

// 36 35 98:0 /root /mount/point options optional-fields - type source super-options
std::vector<Mount> parse_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string device;
    std::string options;
    Mount mount;
    words >> skipped >> skipped >> device >> skipped >> mount.point >> options;
    while (words >> skipped && skipped != "-") {
    }
    words >> mount.file_system >> mount.device;
    const std::size_t colon = device.find(':');
    if (!words || colon == std::string::npos) continue;
    mount.point = unescaped(mount.point);
    mount.device = unescaped(mount.device);
    mount.read_only = options == "ro" || options.starts_with("ro,");
    mount.device_number =
        makedev(static_cast<unsigned>(std::strtoul(device.c_str(), nullptr, 10)),
                static_cast<unsigned>(std::strtoul(device.c_str() + colon + 1, nullptr, 10)));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

const Mount* mount_of(const std::vector<Mount>& mounts, const std::string& path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const std::string prefix = mount.point.ends_with('/') ? mount.point : mount.point + "/";
    if (path != mount.point && !path.starts_with(prefix)) continue;
    // The later of two mounts at one place is the one that is seen.
    if (best == nullptr || mount.point.size() >= best->point.size()) best = &mount;
  }
  return best;
}

bool fstab_has(const std::string& fstab, const std::string& point) {
  std::istringstream lines(fstab);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    if (words >> device >> place && !device.starts_with('#') && unescaped(place) == point)
      return true;
  }
  return false;
}

bool on_one_drive(const std::string& directory, const std::string& other) {
  const std::vector<Mount> mounts = parse_mounts(read_text("/proc/self/mountinfo"));
  std::error_code failure;
  const Mount* const one = mount_of(mounts, std::filesystem::weakly_canonical(directory, failure));
  if (failure) return false;
  const Mount* const two = mount_of(mounts, std::filesystem::weakly_canonical(other, failure));
  if (failure || one == nullptr || two == nullptr) return false;
  return one->device_number == two->device_number;
}

Result<Drive> look_at_drive(const std::string& directory) {
  struct stat found {};
  struct statvfs space {};
  std::error_code error;
  const std::string path = std::filesystem::canonical(directory, error);
  if (error) return file_failure(directory, error.value());
  if (stat(path.c_str(), &found) != 0 || statvfs(path.c_str(), &space) != 0) {
    return file_failure(directory, errno);
  }
  if (!S_ISDIR(found.st_mode)) return invalid_argument(directory + " is no directory");
  const std::vector<Mount> mounts = parse_mounts(read_text("/proc/self/mountinfo"));
  const Mount* const mount = mount_of(mounts, path);
  Drive drive;
  if (mount != nullptr) drive.mount = *mount;
  drive.mount.device_number = found.st_dev;
  drive.mount.read_only = (space.f_flag & ST_RDONLY) != 0;
  drive.uuid = uuid_of(found.st_dev);
  drive.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  drive.size_bytes = static_cast<std::uint64_t>(space.f_blocks) * space.f_frsize;
  drive.in_fstab = fstab_has(read_text("/etc/fstab"), drive.mount.point);
  return drive;
}

Result<Speed> measure_speed(const std::string& directory) {
  std::string path = directory + "/.edgecase-speed-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return file_failure(directory, errno);
  unlink(path.c_str());
  Result<Speed> speed = measure(file, directory);
  close(file);
  return speed;
}

std::string fstab_line(const Drive& drive) {
  const std::string device = drive.uuid.empty() ? drive.mount.device : "UUID=" + drive.uuid;
  std::string point;
  for (const char c : drive.mount.point)
    point += c == ' ' ? std::string("\\040") : std::string(1, c);
  return device + " " + point + " " + drive.mount.file_system +
         " defaults,noatime,nofail,x-systemd.device-timeout=10s 0 2";
}

std::string unit_drop_in(const std::string& directory) {
  // A name with a space would be taken for two; `%` begins what systemd replaces.
  std::string quoted;
  for (const char c : directory) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '%') quoted += '%';
    quoted += c;
  }
  if (quoted.find(' ') != std::string::npos)
    return "[Service]\nReadWritePaths=\"-" + quoted + "\"\n";
  return "[Service]\nReadWritePaths=-" + quoted + "\n";
}

}  // namespace edgecase::cli::storage
