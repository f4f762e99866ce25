// The outcome of readings that were handed over: those that are not there as they were sent, by
// cause (Outcome; LossLedger keeps the sums of all), and those that are, by device, for the audit
// log (StoredDevices). Each way in reports it to whoever sent them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "audit/audit_log.h"
#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "retention/retention_service.h"
#include "wire/reading.h"

namespace edgecase::ingest {

enum class Loss : std::uint8_t {
  Expired,   // older than its rule keeps: it was gone when it was stored, or its tier is made
  Replaced,  // another one of the same batch, behind it, has its series and time
  Erased,    // its time was erased, and is not taken again
  Evicted,   // its time made room for later ones
  Refused,   // cannot be stored for good: a limit, a name, a value, a scope. Never acknowledged
};
inline constexpr std::size_t kLosses = 5;
inline constexpr std::array<std::string_view, kLosses> kLossNames = {
    "expired", "replaced", "erased", "evicted", "refused"};

struct Outcome {
  // Reasons that are kept in words.
  static constexpr std::size_t kReasonsMax = 10;

  // Set by whoever tells its sender of parts: what can never be stored costs itself alone then.
  bool takes_parts = false;
  std::array<std::uint64_t, kLosses> counts{};
  std::uint64_t out_of_scope = 0;            // of those refused: the token may not write them
  StatusCode refused_code = StatusCode::Ok;  // of the first one refused
  std::vector<std::string> reasons;

  std::uint64_t of(Loss loss) const { return counts[static_cast<std::size_t>(loss)]; }
  std::uint64_t& of(Loss loss) { return counts[static_cast<std::size_t>(loss)]; }
  // Counts readings that nobody finds now.
  std::uint64_t not_stored() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    return all;
  }
  // Acknowledged all the same.
  std::uint64_t lost() const { return not_stored() - of(Loss::Refused); }
  void refuse(const wire::Reading& reading, const Status& why);
};

// A reading that was taken and not kept.
struct LostReading {
  const wire::Reading* reading = nullptr;
  Loss loss = Loss::Expired;
};

// Finds the readings of a batch that another one behind them replaces: the same series and time,
// another value. The same value twice is the same reading twice. Keeps its memory for the next
// batch. One thread.
class ReplacedSearch {
 public:
  // Their places in the batch, until the next call.
  std::span<const std::uint32_t> find(std::span<const wire::Reading> readings,
                                      std::span<const catalog::SeriesId> ids,
                                      std::span<const std::int64_t> times);
  std::size_t memory_bytes() const {
    return pieces_.capacity() * sizeof(Piece) +
           (table_.capacity() + found_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  // Readings of the batch that follow one another, of one device and time, with sensors of one
  // block: 64 numbers that follow one another, of which each has a bit.
  struct Piece {
    std::uint32_t first = 0;  // its place in the batch
    std::uint64_t sensors = 0;
  };

  bool is_anything_twice(std::span<const catalog::SeriesId> ids,
                         std::span<const std::int64_t> times);
  bool cut_pieces(std::span<const catalog::SeriesId> ids, std::span<const std::int64_t> times);

  KeyedHash hash_;  // senders choose times
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> table_;  // of open addressing, half full at most; 0: free
  std::vector<std::uint32_t> found_;
};

// Readings that were not kept, since the start, of all ways in. Thread-safe.
class LossLedger {
 public:
  // Devices that are told apart. Beyond, the counts of the one whose last loss was longest ago join
  // the others'.
  static constexpr std::size_t kDevicesMax = 64;

  using Counts = std::array<std::uint64_t, kLosses>;
  struct Device {
    std::string namespace_name, name;
    Counts counts{};
    std::int64_t last_ns = 0;  // wall time of the last one
  };

  // `generation` is the catalog's: when something is erased, the names that are kept here go, and
  // their counts join the others'. What an erasure's fence refuses is counted there, too: the name
  // of an erased device is not kept again.
  void note(Loss loss, const wire::Reading& reading, std::int64_t now_ns, std::uint64_t generation);
  std::uint64_t total(Loss loss) const {
    return totals_[static_cast<std::size_t>(loss)].load(std::memory_order_relaxed);
  }
  struct Told {
    std::vector<Device> devices;  // in the order of their names
    Counts others{};              // of all that are not among these
  };
  Told tell(std::uint64_t generation);

 private:
  void forget_names(std::uint64_t generation) EC_REQUIRES(mutex_);
  void join_others(const Device& device) EC_REQUIRES(mutex_);

  std::array<std::atomic<std::uint64_t>, kLosses> totals_{};
  Mutex mutex_;
  std::uint64_t generation_ EC_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<std::string, std::string>, Device, std::less<>> devices_ EC_GUARDED_BY(mutex_);
  Counts others_ EC_GUARDED_BY(mutex_){};
};

// When the audit log tells that a device sends only what is not kept: a record by device and cause
// at the first loss, and one each kSpacingNs as long as that goes on. Devices beyond kDevicesMax
// share one record. Holds pseudonyms, no names. Thread-safe.
class LossRecords {
 public:
  static constexpr std::size_t kDevicesMax = 256;
  static constexpr std::int64_t kSpacingNs = std::int64_t{3'600} * 1'000'000'000;

  struct Due {
    std::optional<std::uint64_t> pseudonym;  // none: of the devices that share a record
    std::uint64_t readings = 0;              // lost since the record before
  };
  // More losses of a device. A record is due: what it says. `now_ns` counts from the boot.
  std::optional<Due> note(std::uint64_t pseudonym, Loss cause, std::uint64_t readings,
                          std::int64_t now_ns);

 private:
  struct Entry {
    std::optional<std::int64_t> told_ns = {};
    std::uint64_t untold = 0;
  };
  using Causes = std::array<Entry, kLosses>;

  Mutex mutex_;
  std::map<std::uint64_t, Causes> devices_ EC_GUARDED_BY(mutex_);
  Causes others_ EC_GUARDED_BY(mutex_);
};

// Counts what was not kept where each is told of it. Thread-safe.
class Losses {
 public:
  // The operation of the audit log's records.
  static constexpr std::string_view kOperation = "ingest.lost";

  // `retention` and `audit` may be null. All outlive it.
  Losses(Engine& engine, Clock& clock, const catalog::Catalog& catalog,
         retention::RetentionService* retention, audit::AuditLog* audit)
      : engine_(engine), clock_(clock), catalog_(catalog), retention_(retention), audit_(audit) {}

  // Appends readings of a slice that are in the engine and not there: another one of the slice
  // replaces them, or their rule keeps nothing that old.
  void append_lost(std::span<const wire::Reading> readings, std::span<const catalog::SeriesId> ids,
                   std::span<const std::int64_t> times, ReplacedSearch& search,
                   std::vector<LostReading>& lost) const;

  // `lost` of what a request brought: those, and the readings that were `written`. Some of these
  // may be among the lost.
  void account(const auth::Principal& principal, std::span<const wire::Reading> written,
               std::span<const LostReading> lost, Outcome& outcome);
  LossLedger& ledger() { return ledger_; }

 private:
  void record(const auth::Principal& principal, std::span<const wire::Reading> written,
              std::span<const LostReading> lost);

  Engine& engine_;
  Clock& clock_;
  const catalog::Catalog& catalog_;
  retention::RetentionService* const retention_;
  audit::AuditLog* const audit_;
  LossLedger ledger_;
  LossRecords records_;
};

// The bringer of the readings from this one on, up to the next author's, for the audit log: where
// that is not the batch's principal.
struct Author {
  std::size_t first_reading = 0;
  std::string_view name;   // as a principal's
  std::string_view token;  // its id; empty: none
};

// Counts the readings of one commit by device and by who brought them, for the audit log. Owned by
// one thread.
class StoredDevices {
 public:
  static constexpr std::string_view kOperation = "ingest";

  // `authors` are those of these readings; what is stored of them outlives drafts(). The same one
  // may come several times, between others.
  void add(audit::AuditLog& log, std::span<const wire::Reading> readings,
           std::span<const catalog::SeriesId> ids, std::span<const Author> authors);
  // A record for up to audit::kTargetsMax devices of one namespace and one author; what has no
  // author of its own is the principal's.
  std::vector<audit::Draft> drafts(const auth::Principal& principal) const;
  void clear();
  std::size_t memory_bytes() const {
    return devices_.capacity() * sizeof(Device) + index_.capacity() * sizeof(std::uint32_t);
  }

 private:
  struct Device {
    std::size_t author = 0;  // 0: none of its own; else behind that many of authors_
    NamespaceId namespace_id = 0;
    std::uint32_t id = 0;
    audit::Target target;

    auto place() const { return std::tuple(author, namespace_id, id); }
  };
  struct Namespace {
    NamespaceId id = 0;
    std::string name;
  };

  std::size_t author_of(const Author& author);
  Device& device_of(audit::AuditLog& log, std::size_t author, const wire::Reading& reading,
                    const catalog::SeriesId& id);
  std::string_view namespace_name(NamespaceId id) const;  // empty: not met yet
  std::uint32_t& place_of(NamespaceId namespace_id, std::uint32_t id);
  void make_index_larger();

  std::vector<Device> devices_;
  // An index over devices without an author: how many devices there were with it; 0: none. As many
  // as a power of two, half of them taken at most; the next ones are looked at where one is.
  std::vector<std::uint32_t> index_;
  std::size_t indexed_ = 0;
  std::vector<Namespace> namespaces_;
  std::vector<Author> authors_;
  std::unordered_map<std::string_view, std::size_t> author_numbers_;
};

}  // namespace edgecase::ingest
