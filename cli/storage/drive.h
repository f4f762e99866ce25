// The drive that a directory lies on: the mount, its space, how fast it takes writes. `storage`
// advises by it before a store puts its values there, and moves them there (values_move.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

// Moves the values of a store to another directory while no daemon runs. At every moment the store
// is whole in the directory that the configuration names:
//
//   1. note in the new directory (MOVED-FROM) where the values come from; copy each value table
//      there, under its name once it is complete and synced;
//   2. write its IDENTITY, which makes it the values directory of this store;
//   3. the caller has the configuration name the new directory;
//   4. overwrite and delete what is in the old directory, then the note.
//
// Ended at any point, by whatever, it is done again and goes on from there. What a daemon changed
// in the old directory in between is noticed by the tables' sizes and times. One thread.

struct MovePlan {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;  // that are still to be copied
};

// Told what has been copied, now and then. False: stop, to go on another time.
using Moved = std::function<bool(std::uint64_t bytes)>;

class ValuesMove {
 public:
  ValuesMove(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  // What copy() would do. NotFound: `from` is the values directory of no store.
  Result<MovePlan> plan() const;
  // Steps 1 and 2. `to` exists. Errors: AlreadyExists (values of another store lie there),
  // Cancelled, OutOfSpace, IoError, NotAllowed.
  Status copy(const Moved& moved) const;
  // Step 4: NotAllowed unless both directories say that they are of one store.
  Status remove_old() const;

  // Where the values in `directory` came from, while the move is not over; "" else.
  static std::string moved_from(const std::string& directory);

 private:
  Status copy_file(const std::string& name, const Moved& moved) const;
  Status remove_foreign() const;

  const std::string from_;
  const std::string to_;
};

// Changes one setting in the text of a configuration file and leaves every other byte as it is.

// `line` is where the key stands (from 1; 0: nowhere), `value` becomes a TOML string. Where the key
// is new it is put below its table's head, which is put at the end when it is new, too.
std::string with_setting(std::string_view text, std::string_view table, std::string_view key,
                         std::size_t line, std::string_view value);

}  // namespace edgecase::cli::storage
