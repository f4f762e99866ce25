// Tells whether a drive of this machine overwrites in place; what a certificate of erasure may say
// depends on it. The kernel's answers decide: of the file system (statfs, mountinfo, statx) and of
// the devices below it (/sys), also where the service's sandbox hides most of /proc. A drive of
// which that is not known does not count as one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "edgecase/file_system.h"

namespace edgecase::engine {

// What is known of a file system before it is judged.
struct DriveProbe {
  std::uint64_t magic = 0;       // statfs f_type
  std::string type = {};         // of mountinfo: "ext4", "ext3"; empty: no mount is to be seen
  std::string options = {};      // of its superblock, as there: "rw,nodelalloc"
  std::string all_options = {};  // of /proc/fs/ext4, a line each; empty: hidden
  std::uint32_t flags = 0;       // FS_IOC_GETFLAGS of the directory and what is in it, joined
  bool is_realtime = false;      // of XFS: a file lies on its real-time device
  // Whether a file of ext4 takes writes past the page cache: not where it journals data. Nothing: a
  // kernel before 6.1, or there is no file.
  std::optional<bool> has_direct_writes = std::nullopt;
  std::uint64_t swap_bytes = 0;  // of the machine
};

// Without `id`, and as if the devices below it did what they are told.
DriveFacts judge_file_system(const DriveProbe& probe);

// Where the kernel tells of devices and mounts; tests have a copy of their own.
struct KernelTree {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

// Judges the device with these numbers and all that it lies on. `of_file` judges the file system of
// the file behind a loop device.
DriveFacts judge_device(const KernelTree& kernel, unsigned major_number, unsigned minor_number,
                        const std::function<DriveFacts(const std::string&)>& of_file);

// As FileSystem::drive_facts().
DriveFacts look_at_drive(const std::string& directory);

}  // namespace edgecase::engine
