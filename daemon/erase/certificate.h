// The certificate that remains of an erasure: when it was asked for, since when nobody can read
// what it took, when the bytes were gone, how much it was, and who it was of, by pseudonym alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::erase {

// File systems that are remembered; of more, those that came first.
inline constexpr std::size_t kDrivesRememberedMax = 256;
// How old what last() answers may be.
inline constexpr std::int64_t kDriveFactsKeptNs = 5'000'000'000;

// Facts of a store's two drives: what they do with bytes that are overwritten, and so how far an
// erasure goes there. A drive that was once seen not to overwrite in place is remembered, by its
// file system's id: what was overwritten then may still lie on it, in a journal or a snapshot,
// though it is mounted otherwise now.
//
// Records, in the namespace `_erasures`: 'O' id (8, big-endian) ->
// {"version":1,"file_system","why"}. Thread-safe.
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

// Pseudonyms of each kind in one certificate; the counts count all.
inline constexpr std::size_t kPseudonymsMax = 100;

enum class ErasureState : unsigned char {
  Pending,  // invisible for good; bytes remain
  Done,
};

struct Certificate {
  std::uint64_t number = 0;
  ErasureState state = ErasureState::Pending;
  std::int64_t asked_ns = 0, invisible_ns = 0, gone_ns = 0;
  std::string asked_by;                        // as Principal::name
  std::optional<std::int64_t> from_ns, to_ns;  // of what was erased; none: from the beginning, to
                                               // the end
  bool with_names = false;                     // the names of devices or sensors went, too

  std::uint64_t devices = 0, series = 0;
  std::optional<std::uint64_t> readings, bytes;  // as counted when asked; none: it was not possible
  std::uint64_t rules = 0;                       // retention rules that named a device, gone too
  std::uint64_t messages = 0;                    // of `_rejected` that named one, gone too
  // Hexadecimal pseudonyms.
  std::vector<std::string> device_pseudonyms, series_pseudonyms;
  std::string owner_pseudonym;  // empty: not asked for by owner

  // Scopes whose values nobody can read since, whatever became of the bytes.
  std::uint64_t destroyed_keys = 0;
  // As its drives were when it was written; none: by a version that did not look.
  std::optional<ErasureLevel> level;
  std::string level_why;  // why no more than that; empty: Physical, or pending

  // Once done.
  std::uint64_t removed_files = 0, overwritten_bytes = 0, rewritten_bytes = 0;
};

// Whether all that it took was of whole devices, each of which has a key of its own.
inline bool is_of_whole_devices(const Certificate& certificate) {
  return certificate.with_names && certificate.devices > 0 && certificate.series_pseudonyms.empty();
}

// As it is stored.
std::string encode_certificate(const Certificate& certificate);
// Corruption, Unsupported.
Result<Certificate> decode_certificate(ByteView record);

// An index of certificates by device and owner, so that few are read to find some. It holds the
// beginnings of the pseudonyms that each names; one that names more than kTagsMax may be of
// anybody.
//
// Not thread-safe.
class CertificateIndex {
 public:
  static constexpr std::size_t kTagsMax = 4;

  // With a larger number than all before.
  void add(const Certificate& certificate);
  void remove_below(std::uint64_t number);
  // The largest number below `before` of one that may name both pseudonyms (hexadecimal; empty:
  // any).
  std::optional<std::uint64_t> newest_below(std::uint64_t before, std::string_view device,
                                            std::string_view owner) const;
  std::uint64_t memory_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  using Tag = std::uint32_t;
  struct Entry {
    std::uint64_t number = 0;
    std::array<Tag, kTagsMax> tags{};
    std::uint32_t count = 0;  // above kTagsMax: it may name anybody
  };

  static Tag tag_of(std::string_view pseudonym);
  static bool may_name(const Entry& entry, std::string_view pseudonym);

  std::deque<Entry> entries_;  // by number
};

}  // namespace edgecase::erase
