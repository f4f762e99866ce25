// The drive that a directory lies on: the mount, its space, how fast it takes writes. `storage`
// advises by it before a store puts its values there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::cli::storage {

struct Mount {
  std::string point;        // "/mnt/ssd"
  std::string device;       // "/dev/sda1", or what the file system calls itself
  std::string file_system;  // "ext4"
  bool read_only = false;
  std::uint64_t device_number = 0;  // st_dev
};

struct Speed {
  double mb_per_second = 0;  // 10^6 bytes, written in order and synced
  double sync_ms = 0;        // of a small synced write, the median
};

struct Drive {
  Mount mount;
  std::string uuid;  // of the file system; "": it has none, or nobody knows
  std::uint64_t free_bytes = 0;
  std::uint64_t size_bytes = 0;
  bool in_fstab = false;
};

// Lines of /proc/self/mountinfo; those that are none are passed over.
std::vector<Mount> parse_mounts(const std::string& mountinfo);
// The innermost of `mounts` that `path`, absolute and without links, lies in; null: none.
const Mount* mount_of(const std::vector<Mount>& mounts, const std::string& path);
// Whether a line of /etc/fstab mounts at `point`.
bool fstab_has(const std::string& fstab, const std::string& point);

// Whether two directories lie on one file system, or would if they were made; false where that
// cannot be told.
bool on_one_drive(const std::string& directory, const std::string& other);

// Looks at the drive of a directory that exists. Errors: NotFound, NotAllowed, IoError.
Result<Drive> look_at_drive(const std::string& directory);

inline constexpr std::uint64_t kSpeedTestBytes = 32u << 20;
inline constexpr int kSpeedTestSyncs = 15;

// Writes kSpeedTestBytes at most, and for three seconds at most, to a file of its own that is gone
// afterwards. Errors: NotAllowed, OutOfSpace, IoError.
Result<Speed> measure_speed(const std::string& directory);

// The line that mounts it at start, without which a board that misses it would not start.
std::string fstab_line(const Drive& drive);
// What opens the sandbox of the service to it.
std::string unit_drop_in(const std::string& directory);

}  // namespace edgecase::cli::storage
