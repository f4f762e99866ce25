// The drives of a store: which store they belong to (IDENTITY), whether they are there, what is
// free on them, and room that is kept for what must be written on a full one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "core/store.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

// IDENTITY, and IDENTITY.copy beside it, which is the same: which store a directory belongs to, and
// which of its two it is. Written once, when the store is made; checked at every open, and before
// each flush writes to the values directory, so that a swapped, empty or unmounted drive is
// recognised and left alone.
//
// Bytes, version 1, little-endian:
//
//   offset  size  field
//        0     8  magic "ECIDENT1"
//        8     4  format version, 1
//       12     1  role: 1 metadata, 2 values
//       13     3  zero
//       16    16  store id
//       32     4  crc32c of bytes 0..31

enum class DirectoryRole : unsigned char { Metadata = 1, Values = 2 };

struct Identity {
  StoreId store_id{};
  DirectoryRole role = DirectoryRole::Metadata;
};

inline constexpr std::size_t kIdentityBytes = 36;

StoreId make_store_id(Random& random);
std::string to_text(const StoreId& id);  // 32 hexadecimal digits

Bytes encode_identity(const Identity& identity);
// Errors: Corruption, Unsupported (newer format). `path` is for the message.
Result<Identity> decode_identity(ByteView bytes, const std::string& path);

// nullopt when the directory has none, or is not there. Where IDENTITY is missing or damaged its
// copy counts.
Result<std::optional<Identity>> read_identity(FileSystem& file_system,
                                              const std::string& directory);
// What is wrong with one of the two, where the other is `identity`; a copy that an older version
// did not write is nothing.
Status identity_damage(FileSystem& file_system, const std::string& directory,
                       const Identity& identity);
// Writes anew whichever of the two is missing or not `identity`. Answers as identity_damage().
Status heal_identity(FileSystem& file_system, const std::string& directory,
                     const Identity& identity);
Status write_identity(FileSystem& file_system, const std::string& directory,
                      const Identity& identity);

// Whether the metadata drive still answers, and is that of the store: read from the drive itself,
// since a drive that was pulled still answers from memory. Errors: Unavailable, Corruption,
// IoError.
Status check_metadata_identity(FileSystem& file_system, const std::string& metadata_directory,
                               const StoreId& store_id);
// The same of `values_directory`, whether it is that of the store. Errors: Unavailable with the
// reason, Corruption, Unsupported, IoError.
Status check_values_identity(FileSystem& file_system, const std::string& values_directory,
                             const StoreId& store_id);

// No more than this part of a small drive is kept.
inline constexpr std::uint64_t kKeepFreePart = 16;
// A drive is roomy of which this part is free.
inline constexpr std::uint64_t kRoomyPart = 4;
// While it is short, it is looked for so often.
inline constexpr std::int64_t kLookForSpaceNs = 500'000'000;

// FreeSpace tells whether the drives have as much room left as writes have to leave
// (Options::keep_free_bytes). Thread-safe.
class FreeSpace {
 public:
  // Which drive has too little; Ok: neither, and `is_of_values` tells which had.
  struct Shortage {
    Status status;
    bool is_of_values = false;
    std::int64_t since_ns = 0;  // wall time
  };

  FreeSpace(FileSystem& file_system, Clock& clock, std::string metadata_directory,
            std::string values_directory, std::uint64_t keep_free_bytes);

  // Without a look.
  bool is_short() const { return short_.load(std::memory_order_relaxed); }
  Shortage shortage() const;
  // Without a look: of the values drive, as of the last one; false before.
  bool is_roomy() const { return roomy_.load(std::memory_order_relaxed); }
  // Asks the drives, whose own failures are no shortage. Once it is short, an eighth more than is
  // kept has to be free again. True: it has begun or ended.
  bool look();

 private:
  Status judge(const std::string& directory, const Result<Space>& space, bool was_short) const;

  FileSystem& file_system_;
  Clock& clock_;
  const std::string metadata_directory_;
  const std::string values_directory_;
  const std::uint64_t keep_free_bytes_;
  std::atomic<bool> short_{false};
  std::atomic<bool> roomy_{false};
  mutable Mutex mutex_;  // held across the look
  Shortage shortage_ EC_GUARDED_BY(mutex_);
};

// Watches whether the values drive can be written to: it is there, it is ours, and nothing is
// missing on it. A drive that was away when the store was opened is *admitted* once it comes:
// locked and looked through before anything is written to it. Threads: any. The mutex is held
// across the look, which is done once.
class ValuesDrive {
 public:
  // `look_through` locks the drive and looks for what is missing.
  ValuesDrive(FileSystem& file_system, std::string directory, const StoreId& store_id,
              bool is_admitted, std::function<Status()> look_through)
      : file_system_(file_system),
        directory_(std::move(directory)),
        store_id_(store_id),
        look_through_(std::move(look_through)),
        is_admitted_(is_admitted) {}

  bool is_admitted() const { return is_admitted_.load(std::memory_order_acquire); }
  // Ok: it can be written to. Does I/O.
  Status check() EC_EXCLUDES(mutex_) {
    EC_TRY(check_values_identity(file_system_, directory_, store_id_));
    if (is_admitted()) return ok();
    MutexLock lock(mutex_);
    if (is_admitted()) return ok();
    EC_TRY(look_through_());
    is_admitted_.store(true, std::memory_order_release);
    return ok();
  }

 private:
  FileSystem& file_system_;
  const std::string directory_;
  const StoreId store_id_;
  const std::function<Status()> look_through_;
  Mutex mutex_;
  std::atomic<bool> is_admitted_;
};

// Files that hold nothing but their place, one a drive: what must be written on a full drive finds
// room when they are let go. Thread-safe.
class SpaceReserve {
 public:
  // 0 bytes: none is made.
  SpaceReserve(FileSystem& file_system, std::vector<std::string> paths, std::uint64_t bytes)
      : file_system_(file_system), paths_(std::move(paths)), bytes_(bytes) {}

  // Makes those that are not there. False: a drive has no room for its one. Does I/O.
  bool fill();
  // Whether there was anything to let go.
  bool release();

 private:
  bool fill(const std::string& path) EC_REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::vector<std::string> paths_;
  const std::uint64_t bytes_;
  Mutex mutex_;  // held across I/O
};

// Room on the drives: what writes leave free for others (FreeSpace), and what is kept for that
// which makes room once a drive is full (SpaceReserve).
//
// Threads: any. look() runs after each flush and, while room is short, now and then on the flush
// lane; the reserve is filled on the compaction lane. Both ask the drives; nothing else waits.
class DriveRoom {
 public:
  // Both outlive it.
  DriveRoom(const Store& store, ValuesDrive& values);

  // Asks the drives how much is free, and notes it in Health.
  void look();
  // Whether a batch may be written: OutOfSpace when a drive has less free than writes leave. What
  // makes room may, and what is of the metadata drive alone: that is little, and the store's own.
  Status check(const WriteBatch& batch) const;
  bool is_short() const { return free_space_.is_short(); }
  // Whether the values drive has room for what is not cleaned yet.
  bool is_roomy() const { return free_space_.is_roomy(); }

  // In the background: makes the files of the reserve that are not there, once there is room.
  void fill_reserve();
  // False: there was nothing to let go.
  bool release_reserve();

 private:
  void fill_reserve_later();

  const Store store_;
  ValuesDrive& values_;
  FreeSpace free_space_;
  SpaceReserve reserve_;
  std::atomic<bool> look_scheduled_{false};
  std::atomic<bool> fill_scheduled_{false};
};

}  // namespace edgecase::engine
