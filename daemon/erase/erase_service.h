// Erasure, as people ask for it: by selector, or by what is said of devices, of all times with the
// names or of a range of times. With what of it stands in texts (find_mentions(), find_views()).
//
// erase() returns once nobody can read any of it: one durable batch takes the readings, the records
// of names, what was said of devices, the rules that named one, the messages in `_rejected` that
// did, and leaves a pending certificate and the fences (fences.h). drain() then has the engine
// remove the bytes, and completes certificates; it is called until it succeeds (erase_jobs.h),
// and after a restart again. Requests that wait share one drain().
//
// Records, in the engine's namespace `_erasures` (Placement::Metadata): 'C' number (8, big-endian)
// -> a certificate; 'F' fences.h; 'J' erase_jobs.h.
//
// Thread-safe. `erase_mutex_` has erasures begin one after another and is held while the engine
// makes the batch durable; `drain_mutex_` while the engine removes bytes; `mutex_` guards what is
// pending and is held across no I/O. Order: erase_mutex_ or drain_mutex_, then mutex_.
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

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/device_index.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "erase/erase_target.h"
#include "erase/fences.h"
#include "retention/retention_service.h"

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

// What remains of an erasure: when it was asked for, since when nobody can read what it took, when
// the bytes were gone, how much it was, and who it was of, by pseudonym alone.
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
  std::uint64_t windows = 0;                     // of tiers, that went along
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

inline constexpr std::size_t kCertificatesMax = 10'000;  // the oldest gives way
inline constexpr std::size_t kPendingMax = 4'000;        // erasures at once
// With as many, or as many ranges of keys, of which the engine takes 8,192 at least, no rest().
inline constexpr std::size_t kHurriedPending = 500;
inline constexpr std::uint64_t kHurriedRanges = 2'048;
// Series that a preview names; its sums count all.
inline constexpr std::size_t kPreviewSeriesMax = 1000;
// Readings that were ahead of the clock when they were erased are kept out too, within this.
inline constexpr std::int64_t kFenceAheadMaxNs = 3600LL * 1'000'000'000;

struct Amount {
  // None: it cannot be had now (a drive is away, or damaged).
  std::optional<std::uint64_t> readings, bytes;
  std::optional<std::int64_t> first_ns, last_ns;
};
struct ErasePreview {
  struct Series {
    catalog::SeriesEntry entry;
    Amount amount;
  };
  std::uint64_t devices = 0, series = 0;  // devices: that go whole
  Amount amount;
  std::uint64_t windows = 0;  // of tiers, that go along
  bool cuts_windows = false;  // the range does, and takes them whole
  bool is_everything = false;
  bool takes_whole_devices = false;  // and nothing else
  std::vector<Series> matched;
  std::vector<wire::LeftSelector> left;  // of several selectors those that take nothing
};

// How far an erasure goes, and in words why no further.
struct Reach {
  ErasureLevel level = ErasureLevel::Logical;
  std::string why = {};
};
// A line for the log, where it is not Physical.
std::string warning_of(const Reach& reach);

// Whether a glob may take everything there is.
enum class Everything : unsigned char { Refused, Allowed };

class EraseService {
 public:
  struct Parts {
    Engine& engine;
    catalog::Catalog& catalog;
    catalog::DeviceIndex& devices;
    retention::RetentionService& retention;
    Clock& clock;
    Random& random;
    DriveWatch::Look look = {};  // at the store's drives
  };
  // Everything in `parts` outlives it. Errors: the engine's, Corruption, Unsupported.
  static Result<std::unique_ptr<EraseService>> open(const Parts& parts);

  // What erase() would take. Errors as of resolve_target().
  Result<ErasePreview> preview(const auth::Principal& principal, const EraseRequest& request);
  // The pending certificate, durable; nothing of what it is about can be read any more. Errors: as
  // of resolve_target(); InvalidArgument (everything there is, by a glob, unless that is allowed;
  // more than kFencesMax devices and single series); LimitReached (kRangesPerFenceMax); Busy
  // (kPendingMax); the engine's: then nothing has changed, unless it is of the metadata drive
  // (IoError, OutOfSpace), when it may have.
  // `left`, which may be null, is told of selectors that take nothing.
  Result<Certificate> erase(const auth::Principal& principal, const EraseRequest& request,
                            Everything everything = Everything::Allowed,
                            std::vector<wire::LeftSelector>* left = nullptr)
      EC_EXCLUDES(erase_mutex_, mutex_);

  // Has the engine remove the bytes of what is pending. Errors: the engine's; it stays pending.
  Status drain() EC_EXCLUDES(drain_mutex_, erase_mutex_, mutex_);
  // DeviceIndex::forget_taken_back().
  Status forget_taken_back() { return parts_.devices.forget_taken_back(); }
  bool has_pending() const { return pending_count() > 0; }
  std::size_t pending_count() const EC_EXCLUDES(mutex_);
  // What the last drain() failed with, while something is pending.
  Status obstacle() const EC_EXCLUDES(mutex_);
  // Told when an erasure becomes pending. Set once, before the first erase().
  void on_pending(std::function<void()> observer) { observer_ = std::move(observer); }
  // Outlives this, or is taken back by null. While nobody erases.
  void pass_on_by(ErasureRelay* relay) { relay_ = relay; }

  // Told when bytes of erasures are gone, for who keeps names or values for later. By the thread
  // that called drain(); may be called as long as this is there.
  void on_gone(std::function<void()> observer) EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    on_gone_.push_back(std::move(observer));
  }

  // The certificate once it is done, or as it is after `timeout_ns` or when what holds it up will
  // take long (obstacle() is Unavailable). NotFound.
  Result<Certificate> wait(std::uint64_t number, std::int64_t timeout_ns) EC_EXCLUDES(mutex_);
  // Goes on after that, and earlier when somebody waits for a certificate, or much is pending: what
  // one drain() takes grows with what is stored, however much it is for.
  void rest(std::int64_t duration_ns) EC_EXCLUDES(mutex_);
  // From now on nobody waits or rests: the daemon stops.
  void end_waiting() EC_EXCLUDES(mutex_);
  Result<Certificate> certificate(std::uint64_t number) const;
  // How far an erasure would go now. `whole_devices`: each of them has a key of its own, where the
  // store is encrypted.
  Reach reach(const StoreDrives& drives, bool whole_devices) const;
  // What a certificate says of that; of one that does not, by what the drives are now.
  Reach reach_of(const Certificate& certificate) const;
  DriveWatch& drives() const { return *drives_; }
  // Newest first, `limit` at most, of those with a number below `before`; where a device or an
  // owner is named, of those that are of it.
  Result<std::vector<Certificate>> certificates(const std::optional<catalog::DeviceName>& device,
                                                const std::string& owner, std::size_t limit,
                                                std::uint64_t before = UINT64_MAX) const;

  Fences& fences() { return *fences_; }
  // Takes the fences of an erasure away, durably: what comes from then on is taken again. Answers
  // of how many series and devices. NotFound: it has none, or they were joined to those of a later
  // one.
  Result<std::size_t> lift(std::uint64_t number) EC_EXCLUDES(erase_mutex_, mutex_);

 private:
  struct Plan;
  struct Pending {
    bool with_names = false;
    std::uint64_t ranges = 0;          // of keys; since the start
    bool has_keys = false;             // of devices that it takes whole
    std::uint64_t destroyed_keys = 0;  // of them, since its certificate was written
  };

  explicit EraseService(const Parts& parts) : parts_(parts) {}
  Result<EraseTarget> resolve(const auth::Principal& principal, const EraseRequest& request) const;
  Status load() EC_EXCLUDES(erase_mutex_, mutex_);
  std::uint64_t windows_of(const catalog::SeriesEntry& entry, TimeRange range);
  Amount amount_of(const catalog::SeriesEntry& entry, TimeRange range);
  std::optional<std::int64_t> fence_end_ns(FenceKind kind,
                                           std::optional<std::int64_t> newest_ns) const;
  Status plan_fences(const EraseRequest& request, const catalog::Erased& names,
                     std::optional<std::int64_t> newest_ns, Plan& plan) const;
  catalog::Erased emptied(const EraseTarget& target, TimeRange range) const;
  void describe(const EraseRequest& request, const catalog::Erased& names,
                Certificate& certificate) const;
  Result<Certificate> make_invisible(const EraseRequest& request, const EraseTarget& target,
                                     const catalog::Erased& names, Plan& plan)
      EC_REQUIRES(erase_mutex_);
  void append_certificate(const Certificate& certificate, WriteBatch& batch) const;
  void give_way(WriteBatch& batch) EC_REQUIRES(erase_mutex_) EC_EXCLUDES(mutex_);
  void add_pending(const Certificate& certificate, std::uint64_t ranges) EC_EXCLUDES(mutex_);
  void index(const Certificate& certificate) EC_REQUIRES(erase_mutex_) EC_EXCLUDES(mutex_);
  std::optional<std::uint64_t> newest_below(std::uint64_t before, const std::string& device,
                                            const std::string& owner) const EC_EXCLUDES(mutex_);
  void tell_memory() EC_EXCLUDES(mutex_);
  bool is_hurried() const EC_REQUIRES(mutex_);
  // Nobody need wait for this certificate any longer.
  bool is_over(std::uint64_t number) const EC_REQUIRES(mutex_);
  Status merge_rejected();
  void forget_gone() EC_EXCLUDES(mutex_);
  Status note_destroyed(const std::vector<std::uint64_t>& numbers, std::uint64_t destroyed_keys,
                        const StoreDrives& drives) EC_REQUIRES(drain_mutex_);
  Status complete(const std::vector<std::uint64_t>& numbers, const ErasureReport& report,
                  const StoreDrives& drives) EC_REQUIRES(drain_mutex_);
  Status rewrite(const std::vector<std::uint64_t>& numbers,
                 const std::function<void(Certificate&)>& change) EC_REQUIRES(drain_mutex_)
      EC_EXCLUDES(mutex_);

  const Parts parts_;
  NamespaceId records_ = 0;
  std::unique_ptr<Fences> fences_;
  std::unique_ptr<DriveWatch> drives_;
  catalog::SetAside set_aside_{parts_.engine};  // for fences_
  std::function<void()> observer_;
  ErasureRelay* relay_ = nullptr;  // null: readings went nowhere

  // One erasure becomes invisible, or one drain() goes on, at a time. Each is held across I/O, and
  // taken in this order: drain_mutex_, erase_mutex_, mutex_.
  Mutex drain_mutex_;
  Mutex erase_mutex_;
  std::uint64_t next_number_ EC_GUARDED_BY(erase_mutex_) = 1;
  std::uint64_t oldest_number_ EC_GUARDED_BY(erase_mutex_) = 1;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> on_gone_ EC_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Pending> pending_ EC_GUARDED_BY(mutex_);  // by number
  CertificateIndex index_ EC_GUARDED_BY(mutex_);
  Status obstacle_ EC_GUARDED_BY(mutex_);
  std::size_t waiting_ EC_GUARDED_BY(mutex_) = 0;  // for certificates of what is pending
  bool waits_ended_ EC_GUARDED_BY(mutex_) = false;
};

// Mentions of what is erased in texts that the store keeps: messages in the namespace `_rejected`,
// which go, and views in `_views`, which lose the series. No state; called under the erasure's
// locks.

// Names looked for in each message; an erasure of more devices takes every message.
inline constexpr std::size_t kMentionedNamesMax = 64;
// In texts, shorter names are looked for in topics alone: they would be everywhere.
inline constexpr std::size_t kMentionMinBytes = 3;

// Whether a device's name is one level or several of the topic (these joined by `/` or `.`).
bool topic_names(std::string_view topic, std::string_view device);
// Whether the name stands in the text, with no letter or digit beside it.
bool text_names(std::string_view text, std::string_view name);

// Keys of messages that name a device, or a sensor together with its device; all, where they cannot
// be read since a drive is away or damaged.
std::vector<catalog::KeySpan> find_mentions(Engine& engine, const catalog::Catalog& catalog,
                                            const catalog::Erased& erased);

// A view of the page that shows a series that is erased.
struct ViewMention {
  NamespaceId namespace_id = 0;
  Bytes key;    // whose bytes go; empty: those of every view
  Bytes value;  // the view without the series, under that key; empty: the view goes
};

// Views are read as the page writes them: {"charts":[["NS/DEVICE/SENSOR", ...], ...]}, each name
// percent-encoded. A view that is none goes where it holds a name; all go where they cannot be
// read.
std::vector<ViewMention> find_views(Engine& engine, const catalog::Erased& erased);

}  // namespace edgecase::erase
