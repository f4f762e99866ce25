// Summaries of hours between two EdgeCases. For each device and hour of its readings: how many went
// there, and a checksum over them, signed by who sent them and again by who holds them. Both keep
// that one document, and `edgecase report --verify` checks it without a store.
//
//   summary  {"summary":1,"store","namespace","device","hour","readings","checksum","made",
//             "signature"}
//   receipt  {"receipt":1,"summary":{a summary},"namespace","device","readings","checksum","made",
//             "signature"}
//
// `store` is the number of the sender's (Lineage). Names in the summary are those that were sent,
// in the receipt those that the device has there, with what is there of the same sensors. `hour` is
// its beginning. The checksum is the SHA-256, in hex, over each sensor that has readings, by name:
// its name, 0, their count, 0, and the SHA-256 over their lines in the order of time: as NDJSON,
// from the time on (what verify compares). Of a value of kLargeBytes or more its size stands for
// it. Changing that needs a new number; tests/golden/summary-v1.json is one of the first.
//
//   key 'Y' 4 namespace, 4 device, 8 hour, then 0 and a target's name, or 1 and 4 number of an
//           origin -> the receipt; where there is none {"summary","why"}
//   key 'P' name of a target -> 1 version, 8 position up to which hours are summed up
//
// In `_forward` (records.h), numbers big-endian, the hour with its sign flipped. An erasure takes
// those of its devices and hours along. Thread-safe; the lock is held while records are written.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "erase/erase_target.h"
#include "forward/records.h"
#include "sign/signature.h"

namespace edgecase::forward {

inline constexpr std::int64_t kSummedHourNs = 3600LL * 1'000'000'000;

struct SummedSeries {
  std::string sensor;  // as it was sent
  catalog::SeriesId id;
};

struct HourSum {
  std::uint64_t readings = 0;
  std::string checksum;
  std::vector<std::string> sensors;  // that have some, by name
};

// What of an hour counts.
struct HourWish {
  std::int64_t hour_ns = 0;
  CommitPosition after = 0, upto = UINT64_MAX;
  std::int64_t from_ns = INT64_MIN;
  std::uint64_t value_max_bytes = UINT64_MAX;
  std::function<Result<bool>(const Place&)> leaves_out = {};
};

// Nothing: something of it was committed behind `upto`. Errors: the engine's.
Result<std::optional<HourSum>> sum_hour(Engine& engine, std::vector<SummedSeries> series,
                                        const HourWish& wish);

class Summaries {
 public:
  static constexpr int kVersion = 1;
  static constexpr std::uint64_t kLargeBytes = 128u << 10;
  // Beyond it the eighth of the oldest hours goes.
  static constexpr std::size_t kKeptMax = 20'000;
  static constexpr std::size_t kSensorsMax = 4'096;  // of a device that have readings in an hour

  // Gives the secret that this store signs by (sign/signature.h).
  using Secret = std::function<Result<Bytes>()>;
  // All outlive it. Without `secret` nothing is signed: Unsupported.
  Summaries(Engine& engine, const catalog::Catalog& catalog, Records& records, Clock& clock,
            Random& random, Secret secret)
      : engine_(engine),
        catalog_(catalog),
        records_(records),
        clock_(clock),
        random_(random),
        secret_(std::move(secret)) {}

  bool can_sign() const { return secret_ != nullptr; }
  Result<nlohmann::json> signed_by_us(nlohmann::json document) const;
  // A summary of this store's.
  Result<nlohmann::json> summary(const std::string& store, const std::string& namespace_name,
                                 const std::string& device, std::int64_t hour_ns,
                                 const HourSum& sum) const;

  // Signs what is held here of what `store` says that it has sent, and keeps that. InvalidArgument:
  // the summary is none, not signed, or another store's. NotFound: the device is none of its.
  Result<nlohmann::json> receipt(const nlohmann::json& summary,
                                 const std::vector<std::string>& sensors, std::string_view store,
                                 catalog::Origins origins) EC_EXCLUDES(mutex_);

  struct Kept {
    catalog::SeriesId id;  // of its device
    std::int64_t hour_ns = 0;
    std::string text;
  };
  // Durable on return; what was erased since `revocations` is not kept. `target`: of what went
  // there.
  Status keep(const std::string& target, const std::vector<Kept>& some, std::uint64_t revocations)
      EC_EXCLUDES(mutex_);
  Status keep_position(const std::string& target, CommitPosition position);
  // 0: nothing is summed up yet.
  Result<CommitPosition> position(const std::string& target) const;
  // With the target's place.
  Status forget(const std::string& target) EC_EXCLUDES(mutex_);
  // Erases those of a namespace, which is dropped.
  Status forget_namespace(NamespaceId namespace_id) EC_EXCLUDES(mutex_);

  struct Page {
    std::vector<nlohmann::json> documents;
    std::string next;  // empty: that was all
  };
  // Lists what went to a target, or, without a name, what came from origins; `kPageMax` of them
  // behind Page::next of the page before.
  static constexpr std::size_t kPageMax = 200;
  Result<Page> list(const std::string& target, const std::string& behind) const;

  // The records that an erasure takes.
  Status tell_erased(const catalog::Catalog& catalog, const erase::EraseTarget& target,
                     erase::TimeRange range, const catalog::SpanTaker& take) const;

 private:
  Status keep_as(const Bytes& whose, const std::vector<Kept>& some, std::uint64_t revocations)
      EC_EXCLUDES(mutex_);
  // `written` of them have come.
  Status make_room(std::size_t written) EC_REQUIRES(mutex_);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  Records& records_;
  Clock& clock_;
  Random& random_;
  const Secret secret_;
  Mutex mutex_;
  std::optional<std::size_t> count_ EC_GUARDED_BY(mutex_);  // nothing: it is not known yet
};

// What a receipt says of its summary.
bool is_receipt(const nlohmann::json& document);
bool confirms(const nlohmann::json& receipt);

}  // namespace edgecase::forward
