// The current version and its manifest: a log of edits, MANIFEST-<n>, that CURRENT names.
//
// An edit counts once it is synced. A manifest that is full, or that failed a write or a sync, is
// given up: MANIFEST-<n+1> begins with the whole state, is synced, and CURRENT is replaced (write
// CURRENT.new, sync, rename, sync the directory). Until an edit succeeds somewhere the old manifest
// stays and may hold the failed edit, so files that a failed edit names must be kept until a later
// one succeeds. Opening changes nothing: the first edit after it starts a new manifest.
//
// A manifest lies twice in its file (log/log.h): damage of one copy loses nothing, is told,
// and goes with the next manifest. One of an older version that lies there once is read as well.
//
// CURRENT holds the name of the manifest and a line feed; CURRENT.copy, which is written before it,
// the same, in case that one is lost.
//
// Thread-safe. Edits are applied one after another; their mutex is held across the manifest's I/O.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"
#include "log/log.h"
#include "version/version.h"

namespace edgecase::engine {

// Ids of namespaces that were dropped. Ids are never used again, so that one that is here stays.
// One writer at a time; readers beside it without a lock.
class DroppedIds {
 public:
  bool empty() const { return words_.load(std::memory_order_acquire) == nullptr; }

  bool contains(NamespaceId id) const {
    const Words* words = words_.load(std::memory_order_acquire);
    const std::size_t at = id / kWordBits;
    if (words == nullptr || at >= words->count) return false;
    return (words->bits[at].load(std::memory_order_acquire) >> id % kWordBits & 1) != 0;
  }

  void insert(NamespaceId id) {
    const std::size_t at = id / kWordBits;
    const Words* words = words_.load(std::memory_order_relaxed);
    if (words == nullptr || at >= words->count) words = grow(words, at + 1);
    words->bits[at].fetch_or(std::uint64_t{1} << id % kWordBits, std::memory_order_release);
  }

 private:
  static constexpr std::size_t kWordBits = 64;

  struct Words {
    std::size_t count = 0;
    std::unique_ptr<std::atomic<std::uint64_t>[]> bits;
  };

  // The smaller table stays: a reader may be in it.
  const Words* grow(const Words* old, std::size_t count_min) {
    auto words = std::make_unique<Words>();
    words->count = std::max<std::size_t>({count_min, old == nullptr ? 0 : 2 * old->count, 16});
    words->bits = std::make_unique<std::atomic<std::uint64_t>[]>(words->count);
    for (std::size_t i = 0; old != nullptr && i < old->count; ++i)
      words->bits[i].store(old->bits[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    all_.push_back(std::move(words));
    words_.store(all_.back().get(), std::memory_order_release);
    return all_.back().get();
  }

  std::vector<std::unique_ptr<const Words>> all_;
  std::atomic<const Words*> words_{nullptr};
};

class VersionSet {
 public:
  // Starts an empty store: the manifest first, CURRENT last.
  static Result<std::unique_ptr<VersionSet>> create(FileSystem& file_system,
                                                    std::string metadata_directory,
                                                    const StoreId& store_id,
                                                    KeyRing* keys = nullptr);
  // Reads what CURRENT names. Errors: Corruption, Unsupported, IoError.
  static Result<std::unique_ptr<VersionSet>> recover(FileSystem& file_system,
                                                     std::string metadata_directory,
                                                     const StoreId& store_id,
                                                     KeyRing* keys = nullptr);

  // What recover() found to be wrong with one copy of the manifest, and whether one lacked the last
  // edit: it was being written when the power failed or the process ended, or is damaged.
  Status damage() const;
  bool copies_differed() const;
  // Reads both copies from the drive. Where one is damaged a new manifest begins; answers what was
  // wrong, Ok if nothing was.
  Status scrub();

  // What was read may be in the page cache only, after a kill; if a sync had failed before it, no
  // later one writes that out. Begins a new manifest, so that before anything is removed or reused
  // that an older state names, this one outlives a power cut. On a full drive it syncs what is
  // there.
  Status make_durable();

  // Whether erased ranges are pending, or an old manifest resists that may name their keys.
  bool has_erasures() const { return has_erasures_.load(std::memory_order_acquire); }
  // Whether some of them were erased up to this sequence, or none are pending but an old manifest.
  bool has_erasures(SequenceNumber through) const;
  std::vector<RangeDelete> pending_erasures() const;
  // Nothing is left of erased ranges up to this sequence but what manifests say: begins a new one
  // that does not name them, and overwrites all others. After an error they are pending still, or
  // has_erasures() says that an old manifest is left.
  Status finish_erasures(SequenceNumber through);

  // Begins a new manifest, which does not name the keys of files that were, and overwrites all
  // others.
  Status forget_past();

  std::shared_ptr<const Version> current() const;
  VersionState state() const;
  SequenceNumber flushed_sequence() const {
    MutexLock lock(mutex_);
    return state_.flushed_sequence;
  }
  // Range deletes that merges have not applied everywhere, or that are pending as erased.
  std::size_t waiting_range_deletes() const;

  // Durable and current on return. After an error neither holds for certain; see above. What is of
  // a namespace that was dropped meanwhile is left out, and its files become obsolete.
  Status apply(const VersionEdit& edit);

  // The files that edits removed and that nobody can read any more, since every version that named
  // them is gone: the caller unlinks them. Each is handed out once.
  std::vector<ObsoleteFile> take_obsolete_files();
  // Removed files that somebody may still read; whether there are any.
  std::vector<ObsoleteFile> obsolete_files() const;
  bool has_obsolete_files() const;

  // The first of `count` numbers in a row that are the caller's alone. Noted in the manifest if
  // need be.
  Result<FileNumber> take_file_numbers(std::uint64_t count);

  Result<NamespaceId> create_namespace(std::string_view name, const NamespaceOptions& options);
  Result<NamespaceInfo> find_namespace(std::string_view name) const;
  Result<NamespaceInfo> find_namespace(NamespaceId id) const;
  // Unreadable on return; the files become obsolete. NotFound, or as apply().
  Status drop_namespace(NamespaceId id);
  // Ids are given out without gaps and never again.
  bool was_given_out(NamespaceId id) const {
    return id != 0 && id < namespace_id_limit_.load(std::memory_order_acquire);
  }
  bool has_namespace(NamespaceId id) const { return was_given_out(id) && !dropped_.contains(id); }
  const DroppedIds& dropped() const { return dropped_; }

  // Applies an edit of rules alone, which take effect at `now_ns`; durable on return. Busy:
  // kRetentionRulesMax.
  Status change_retention(VersionEdit& edit, std::int64_t now_ns);
  // Namespaces that were dropped are left out.
  Status give_up(std::vector<GivenUp> given_up);
  // Null when there was never a rule; then it costs a load.
  std::shared_ptr<const RetentionRules> retention() const;
  // Memory of the rules, and, in whole mebibytes, of the lists of files.
  std::uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  std::uint64_t manifest_number() const { return manifest_number_.load(); }
  std::uint64_t manifest_bytes_written() const { return bytes_written_.load(); }

 private:
  VersionSet(FileSystem& file_system, std::string metadata_directory, const StoreId& store_id,
             KeyRing* keys);

  Status read_manifest();
  Status apply_locked(const VersionEdit& edit) EC_REQUIRES(edit_mutex_);
  Status log_edit(const VersionEdit& edit, const VersionState& next) EC_REQUIRES(edit_mutex_);
  Status append(const Bytes& payload) EC_REQUIRES(edit_mutex_);
  Status start_manifest(const VersionState& state) EC_REQUIRES(edit_mutex_);
  Status renew_manifest(const VersionState& state) EC_REQUIRES(edit_mutex_);
  Status replace_current(std::uint64_t number);
  Status remove_other_manifests(std::uint64_t kept) EC_REQUIRES(edit_mutex_);
  void retire(const VersionEdit& edit, const VersionState& next);
  void install(VersionState next);

  // A version that was current, and what the edit after it removed.
  struct Retired {
    std::weak_ptr<const Version> version;
    std::vector<ObsoleteFile> files;
  };

  FileSystem& file_system_;
  const std::string metadata_directory_;
  const StoreId store_id_;
  KeyRing* const keys_;  // null: not encrypted

  Mutex edit_mutex_;  // held across manifest I/O; taken before mutex_
  std::unique_ptr<DoubledLogWriter> manifest_ EC_GUARDED_BY(edit_mutex_);  // null: start one
  LogCopies found_;        // by recover(), not changed afterwards
  Status current_damage_;  // the same: what was wrong with CURRENT
  std::uint64_t next_manifest_number_ EC_GUARDED_BY(edit_mutex_) = 1;
  std::uint64_t manifest_end_bytes_ EC_GUARDED_BY(edit_mutex_) = 0;
  std::uint64_t edits_ EC_GUARDED_BY(edit_mutex_) = 0;

  mutable Mutex mutex_;
  VersionState state_ EC_GUARDED_BY(mutex_);
  FileNumber next_file_number_ EC_GUARDED_BY(mutex_) = 1;
  std::deque<Retired> retired_ EC_GUARDED_BY(mutex_);  // oldest first

  std::atomic<NamespaceId> namespace_id_limit_{1};
  DroppedIds dropped_;                         // written under edit_mutex_
  std::atomic<bool> manifest_is_left_{false};  // one that resisted removal
  std::atomic<bool> has_erasures_{false};
  std::atomic<bool> has_retention_{false};
  std::atomic<std::uint64_t> memory_bytes_{0};
  std::atomic<std::uint64_t> manifest_number_{0};
  std::atomic<std::uint64_t> bytes_written_{0};
};

// Numbers for the files of one flush or merge, which reserves them before the files are made: a
// drive that refuses the manifest's edit refuses it then. Owned by one thread.
class FileNumberBlock {
 public:
  // What is left is kept if it is enough.
  Status reserve(VersionSet& versions, std::uint64_t count) {
    if (end_ - next_ >= count) return ok();
    EC_ASSIGN_OR_RETURN(next_, versions.take_file_numbers(count));
    end_ = next_ + count;
    return ok();
  }

  FileNumber take() {
    EC_CHECK(next_ < end_);
    return next_++;
  }

 private:
  FileNumber next_ = 0;
  FileNumber end_ = 0;
};

}  // namespace edgecase::engine
