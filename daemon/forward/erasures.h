// Erasures that targets have to be told of: durable with the erasure itself, kept until each target
// has answered, told in the order in which they were asked for, before anything that was committed
// later. EraseService plans them, targets' threads ask for the next one and note the answer.
//
//   key 'E' number               -> JSON: what is asked, and of each target how far it is. It names
//                                   nobody, and stays as long as the certificate of that number
//   key 'K' number               -> the key of its names
//   key 'N' number, 4 chunk      -> names, sealed (auth/hashing.h) under it: of each 1 flags (1: a
//                                   device, 2: of a device that goes whole, 4: gone here before,
//                                   8: with numbers), then namespace, device, sensor, identity,
//                                   each with 4 bytes of length before; with numbers: 4 each of
//                                   namespace, device, sensor, which version 1 of 'E' has not
//
// In `_forward` (records.h). Numbers are big-endian, 8 bytes where nothing is said. 'K' and 'N' are
// erased, bytes and all, once the last target has answered. 'N' is written ahead: without the 'E'
// of its number it means nothing, and without the 'K' nobody can read it.
//
// Thread-safe. `write_mutex_` is held while the engine makes an answer durable, `mutex_` across no
// I/O. Order: write_mutex_, then mutex_.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "erase/erase_target.h"
#include "forward/records.h"
#include "retention/eviction.h"

namespace edgecase::forward {

enum class ErasureStep : unsigned char {
  Waiting,      // the target is not asked yet, or has not answered
  Requested,    // it took the request; bytes go still, or it may forget what it took
  Confirmed,    // it is gone there
  NotProvable,  // nobody can ask for it there any more; names stay in its index
  NotPossible,  // it is there still
};
const char* step_name(ErasureStep step);
inline bool is_final(ErasureStep step) {
  return step != ErasureStep::Waiting && step != ErasureStep::Requested;
}

// What became of an erasure at a target.
struct TargetErasure {
  std::string target = {};
  ErasureStep step = ErasureStep::Waiting;
  std::string why = {};                          // in our own words: it names nobody
  std::vector<std::uint64_t> certificates = {};  // of an EdgeCase
  std::int64_t answered_ns = 0;
  bool lifts = false;  // its fences there are to be lifted
};

struct ErasureOrder {
  std::uint64_t number = 0;  // of the certificate here
  std::int64_t asked_ns = 0;
  bool has_all_times = false;
  erase::TimeRange range = {};
  erase::FenceKind fence = erase::FenceKind::Lasting;
  std::optional<std::int64_t> fence_to_ns = {};
  std::uint32_t chunks = 0;
};

// A series, or a device that goes whole with all that is said of it.
struct ErasedName {
  bool is_device = false;
  bool is_of_device = false;  // a series of such a device
  bool is_gone = false;       // it had gone here before: what its lines were called is not known
  std::string namespace_name = {}, device = {}, sensor = {};
  Bytes identity = {};        // wire/names.h; empty: a device
  catalog::SeriesId id = {};  // of a series; sensor 0: not known
};

// A target that readings went to; without selections it is not configured, and may hold anything.
struct WatchedTarget {
  std::string name;
  std::optional<std::vector<config::ForwardSelection>> selections;

  bool takes(const std::string& namespace_name, const std::string& device,
             const std::string& sensor) const;
  // All sensors of it, those that are to come too.
  bool takes_device(const std::string& namespace_name, const std::string& device) const;
  // Some of them, maybe.
  bool may_take_device(const std::string& namespace_name, const std::string& device) const;
};

class Summaries;  // summaries.h

class Erasures final : public erase::ErasureRelay {
 public:
  static constexpr std::size_t kNamesPerChunk = 256;
  static constexpr std::size_t kChunkBytes = 64u << 10;

  // Everything outlives it. Errors: the engine's; Unsupported.
  static Result<std::unique_ptr<Erasures>> open(Engine& engine, Records& records, Random& random,
                                                Clock& clock);

  // Some were lost to damage: their targets are not told of them. Known once it is open.
  bool is_damaged() const { return is_damaged_; }

  // All that have a place.
  void set_targets(std::vector<WatchedTarget> targets) EC_EXCLUDES(mutex_);
  // Targets that an erasure of these would be passed on to. `is_all`: they are not all that it
  // takes.
  std::vector<std::string> takers(const std::vector<catalog::SeriesEntry>& series,
                                  bool is_all) const EC_EXCLUDES(mutex_);

  bool may_hold(const std::string& namespace_name, const std::string& device,
                const std::string& sensor) const override EC_EXCLUDES(mutex_);
  // Told of what is erased before it was sent; null: nobody. While nobody erases.
  // `summaries`: what goes along of them; null: there are none.
  void tell(retention::UnsentReadings* unsent, const Summaries* summaries = nullptr) {
    unsent_ = unsent;
    summaries_ = summaries;
  }

  Status tell_kept(const catalog::Catalog& catalog, const erase::EraseTarget& target,
                   erase::TimeRange range, const catalog::SpanTaker& take) const override;
  Status plan(const erase::PassedErasure& erasure, const catalog::Catalog& catalog,
              const erase::EraseTarget& target, WriteBatch& batch) override EC_EXCLUDES(mutex_);
  void planned(std::uint64_t number) override EC_EXCLUDES(mutex_);
  Status lift(std::uint64_t number) override EC_EXCLUDES(write_mutex_, mutex_);

  // The first that the target is to be asked for.
  std::optional<ErasureOrder> next(const std::string& target) const EC_EXCLUDES(mutex_);
  // The first of which it has certificates that say nothing for good yet.
  std::optional<std::pair<std::uint64_t, TargetErasure>> pending_there(
      const std::string& target) const EC_EXCLUDES(mutex_);
  // The first whose fences it is to lift.
  std::optional<std::pair<std::uint64_t, TargetErasure>> next_lift(const std::string& target) const
      EC_EXCLUDES(mutex_);
  // Corruption: they cannot be read any more.
  Result<std::vector<ErasedName>> names(const ErasureOrder& order, std::uint32_t chunk) const;
  // Durable on return. With the last answer names and key go.
  Status note(std::uint64_t number, const TargetErasure& answer) EC_EXCLUDES(write_mutex_, mutex_);
  // It has lifted them, or cannot. Durable on return.
  Status note_lifted(std::uint64_t number, const std::string& target)
      EC_EXCLUDES(write_mutex_, mutex_);
  // What it took since its last sync may be forgotten there: it is asked again.
  void ask_again(const std::string& target) EC_EXCLUDES(mutex_);
  // It will never be asked.
  Status forget(const std::string& target) EC_EXCLUDES(write_mutex_, mutex_);

  // How many wait for it.
  std::size_t waiting(const std::string& target) const EC_EXCLUDES(mutex_);
  // What became of one erasure at each target; empty: no target is concerned.
  Result<std::vector<TargetErasure>> of(std::uint64_t number) const EC_EXCLUDES(mutex_);

 private:
  struct Entry {
    ErasureOrder order = {};
    std::vector<TargetErasure> targets = {};
  };
  class ChunkWriter;
  class Planning;

  Erasures(Engine& engine, Records& records, Random& random, Clock& clock)
      : engine_(engine), records_(records), random_(random), clock_(clock) {}
  Status load() EC_EXCLUDES(mutex_);
  Result<Entry> entry_of(std::uint64_t number) const EC_EXCLUDES(mutex_);
  Status write(std::uint64_t number, Entry next) EC_REQUIRES(write_mutex_) EC_EXCLUDES(mutex_);
  static std::string encode(const Entry& entry);
  static Result<Entry> decode(std::uint64_t number, ByteView value);

  Engine& engine_;
  Records& records_;
  Random& random_;  // used while one erasure is planned
  Clock& clock_;
  bool is_damaged_ = false;
  retention::UnsentReadings* unsent_ = nullptr;
  const Summaries* summaries_ = nullptr;
  Mutex write_mutex_;
  mutable Mutex mutex_;
  std::vector<WatchedTarget> targets_ EC_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Entry> open_ EC_GUARDED_BY(mutex_);  // with a target that is not final
  std::optional<Entry> planned_ EC_GUARDED_BY(mutex_);         // not durable yet
};

// Keys of these records, and how far targets are. Inside daemon/forward/ only.

inline constexpr char kOrders = 'E', kKeys = 'K', kNames = 'N';

inline Bytes key_of(char kind, std::uint64_t number) {
  Bytes key(1, kind);
  append_number(number, key);
  return key;
}

// Everything that begins with it.
inline void erase_all(NamespaceId id, const Bytes& prefix, WriteBatch& batch) {
  const catalog::KeySpan span = catalog::span_of_prefix(id, prefix);
  batch.erase_range(id, span.lower, span.upper);
}

inline bool is_open(const std::vector<TargetErasure>& targets) {
  return std::any_of(targets.begin(), targets.end(),
                     [](const TargetErasure& each) { return !is_final(each.step) || each.lifts; });
}

template <typename Targets>
auto find_target(Targets& targets, const std::string& name) {
  return std::find_if(targets.begin(), targets.end(),
                      [&name](const TargetErasure& each) { return each.target == name; });
}

// A target that answers before its own sync is asked again at a start; an EdgeCase is not.
inline bool may_be_forgotten(const TargetErasure& each) {
  return each.step == ErasureStep::Requested && each.certificates.empty();
}

inline ReadOptions uncached() {
  ReadOptions options;
  options.fill_cache = false;
  return options;
}

}  // namespace edgecase::forward
