// Periods in which the clock was not trusted, and what is known of them since: enough to give their
// readings a time once it is. A reading that arrives in such a period without a time is stored
// under an undated one (wire/time_text.h) that says which moment of which boot it was.
//
// Records, in the namespace `_undated` on the metadata drive, numbers big-endian:
//   'P' slot (4)  ->  version (1), state (1), estimated or not (1), boot time of the slot's first
//                     nanosecond (8), wall time known to be past by then (8), wall time of the boot
//                     (8), wall time known to be to come by its end (8), boot id
// They name neither devices nor anybody else. A record is in the batch that brings the first
// reading of its period, or in an earlier one, and says `Dated` before the first of them is moved.
// One that cannot be read counts as one of an unknown boot.
//
// Thread-safe. At most wire::kUndatedSlots periods of about 100 bytes; of those that are done the
// newest kDonePeriodsMax are kept, so that what an export took of them is recognised.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"
#include "erase/fences.h"
#include "wire/reading.h"

namespace edgecase::ingest {

inline constexpr std::size_t kDonePeriodsMax = 64;
inline constexpr std::size_t kBootIdMaxBytes = 64;

struct UndatedPeriod {
  enum class State : std::uint8_t {
    Waits,  // for the clock
    Dated,  // its readings are being moved
    Done,   // none is left
  };
  std::uint32_t slot = 0;
  State state = State::Waits;
  bool is_estimate = false;        // of another boot than the one whose clock was right
  std::int64_t first_boot_ns = 0;  // what the slot's first nanosecond stands for
  std::int64_t not_before_ns = 0;  // no reading of it is older, by what the store knew
  std::int64_t boot_at_ns = 0;     // once dated: the wall time of the boot
  std::int64_t not_after_ns = 0;   // no reading of it is younger; 0: not known yet
  std::string boot_id;

  std::int64_t first_ns() const;
  std::int64_t end_ns() const;
  // How long after the boot something of that time arrived, and when that was.
  std::int64_t moment_ns(std::int64_t time_ns) const;
  std::int64_t dated_ns(std::int64_t time_ns) const;
};

class UndatedPeriods {
 public:
  // `boot_id` tells this boot from all others. Errors: the engine's.
  static Result<std::unique_ptr<UndatedPeriods>> open(Engine& engine, Clock& clock, Random& random,
                                                      std::string boot_id);

  // Where the clock is trusted, the periods of this boot that wait get the time that it says, and
  // those of earlier boots the time of this one as their end, durable on return: before anything
  // that arrives from now on is stored, so that it cannot end up before them. Whoever calls has no
  // Pass. Errors: the engine's.
  Status date_this_boot(erase::Fences& fences);

  // The undated time of this moment; none where the clock is trusted, no slot is left, or the drive
  // is too full for the first record.
  std::optional<std::int64_t> arrival_ns();
  // The time that an undated one turned out to be; any other as it is.
  std::int64_t dated_ns(std::int64_t time_ns) const;
  bool is_dated(const wire::Reading& reading) const;

  // The records that `times` need and that are not durable yet, before the readings; which they are
  // for confirm(), once the batch is durable.
  std::vector<std::uint32_t> append_records(std::span<const std::int64_t> times,
                                            WriteBatch& batch) const;
  void confirm(std::span<const std::uint32_t> slots);

  // By slot, which is the order in which they began.
  std::vector<UndatedPeriod> periods() const;
  // Durable on return, and known then. Of too many that are done the oldest are forgotten.
  Status change(std::span<const UndatedPeriod> changed);
  // Another one whenever readings may have got, or are getting, their own times.
  std::uint64_t changes() const { return changes_.load(); }
  const std::string& boot_id() const { return boot_id_; }

  // While it is held no reading is between its undated time and its own.
  Mutex& moves_mutex() EC_RETURN_CAPABILITY(moves_mutex_) { return moves_mutex_; }

 private:
  struct Entry {
    UndatedPeriod period;
    bool is_durable = false;
  };
  using Entries = std::map<std::uint32_t, Entry>;

  UndatedPeriods(Engine& engine, Clock& clock, Random& random, std::string boot_id);
  Status load();
  bool needs_moment(const UndatedPeriod& period) const;
  void begin_anew() EC_REQUIRES(mutex_);
  bool make_namespace();
  Entry* begin_period(std::int64_t boot_ns) EC_REQUIRES(mutex_);
  static void forget_done(Entries& entries, std::vector<std::uint32_t>& forgotten);

  Engine& engine_;
  Clock& clock_;
  Random& random_;
  const std::string boot_id_;
  std::optional<NamespaceId> records_;   // none before the first period
  std::atomic<bool> waits_here_{false};  // whether date_this_boot() may have something to do
  Mutex change_mutex_;                   // one change() at a time, its write included
  Mutex moves_mutex_;                    // behind the gate of the fences

  std::atomic<std::uint64_t> changes_{0};

  mutable Mutex mutex_;
  Entries entries_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::ingest
