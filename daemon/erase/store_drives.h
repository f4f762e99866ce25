// Facts of a store's two drives: what they do with bytes that are overwritten, and so how far an
// erasure goes there. A drive that was once seen not to overwrite in place is remembered, by its
// file system's id: what was overwritten then may still lie on it, in a journal or a snapshot,
// though it is mounted otherwise now.
//
// Records, in the namespace `_erasures`: 'O' id (8, big-endian) ->
// {"version":1,"file_system","why"}. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"

namespace edgecase::erase {

// File systems that are remembered; of more, those that came first.
inline constexpr std::size_t kDrivesRememberedMax = 256;
// How old what last() answers may be.
inline constexpr std::int64_t kDriveFactsKeptNs = 5'000'000'000;

struct StoreDrives {
  DriveFacts metadata, values;

  bool overwrite_in_place() const {
    return metadata.overwrites == Overwrites::InPlace && values.overwrites == Overwrites::InPlace;
  }
};

// How far what is erased is gone.
enum class ErasureLevel : unsigned char {
  Logical,        // nobody is shown it; its bytes, or what opens them, may be on a drive
  Cryptographic,  // bytes may be on the values drive; the keys that open them are on none
  Physical,       // no byte of it is on either drive, as far as these let one see
};
const char* level_name(ErasureLevel level);

// "in-place", "elsewhere", "unknown".
const char* overwrites_name(Overwrites overwrites);

// Why not Physical, in words: "the values drive: it is btrfs, ...". Empty: nothing speaks against.
std::string obstacle_of(const StoreDrives& drives);
// The worse of two looks, which counts for what was overwritten between them.
StoreDrives worse_of(const StoreDrives& one, const StoreDrives& other);

class DriveWatch {
 public:
  // Looks anew; may take milliseconds. Empty: a store of tests, which is in place.
  using Look = std::function<StoreDrives()>;
  // Errors: the engine's, Corruption, Unsupported.
  static Result<std::unique_ptr<DriveWatch>> open(Engine& engine, NamespaceId records, Look look);

  // As the drives are now. What is to be remembered is durable, or tried again by the next look.
  StoreDrives look() EC_EXCLUDES(mutex_);
  // As they were kDriveFactsKeptNs ago, or are.
  StoreDrives last() EC_EXCLUDES(mutex_);

 private:
  DriveWatch(Engine& engine, NamespaceId records, Look look)
      : engine_(engine), records_(records), look_(std::move(look)) {}
  void judge(DriveFacts& facts) EC_REQUIRES(mutex_);

  Engine& engine_;
  const NamespaceId records_;
  const Look look_;
  Mutex mutex_;  // held across I/O: one looks for all
  std::map<std::uint64_t, std::string> bad_ EC_GUARDED_BY(mutex_);  // by id: why
  StoreDrives last_ EC_GUARDED_BY(mutex_);
  std::int64_t looked_ns_ EC_GUARDED_BY(mutex_) = 0;  // steady clock; 0: never
};

}  // namespace edgecase::erase
