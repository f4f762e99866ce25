// The ranges of keys of an erasure, of which there may be more than one batch, or memory, holds:
// they are written ahead as jobs, records of `_erasures`, 'J' number of the erasure (8) count (4),
// big-endian. The batch with the certificate of that number makes them count; they are done then,
// again and again until that is durable. A job is erased in the batch that does what it says; one
// whose erasure has no certificate by the next start, for nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "erase/erase_service.h"
#include "observe/logger.h"
#include "wire/reading.h"

namespace edgecase::erase {

// Keys of EraseService's records. Inside daemon/erase only.

inline constexpr char kCertificateRecord = 'C';

inline Bytes certificate_key(std::uint64_t number) {
  Bytes key(1, kCertificateRecord);
  wire::append_big_endian(number, key);
  return key;
}

inline constexpr std::string_view kErasuresNamespace = "_erasures";
// One more range is the record itself.
inline constexpr std::size_t kRangesPerJob = kRangeDeletesPerBatchMax - 1;

// What one erasure takes. One thread; no other erasure meanwhile.
class ErasureRanges {
 public:
  ErasureRanges(Engine& engine, NamespaceId records, std::uint64_t number)
      : engine_(engine), records_(records), number_(number) {}

  // Adds a span; two that touch, one after the other, become one. Errors: the engine's.
  Status add(catalog::KeySpan span);
  // Adds what is not written ahead to `batch`, which is to hold the certificate; puts come after.
  void append_to(WriteBatch& batch) const;
  std::uint64_t count() const { return count_; }
  // The erasure comes to nothing: before anybody tried to write the certificate. After an error its
  // number must not be used again before the next start.
  Status abandon();

 private:
  Status write_ahead();

  Engine& engine_;
  const NamespaceId records_;
  const std::uint64_t number_;
  std::vector<catalog::KeySpan> spans_;  // kRangesPerJob at most
  std::uint32_t jobs_ = 0;               // written ahead
  std::uint64_t count_ = 0;              // with those
};

// Does what records say. Errors: the engine's; what is done stays done.
Status run_jobs(Engine& engine, NamespaceId records);

// The same at start, before anybody reads names: those that are to go are not to be seen.
Status resume_jobs(Engine& engine);

inline constexpr std::int64_t kFirstPauseNs = 20'000'000;
inline constexpr std::int64_t kLongestPauseNs = 5'000'000'000;
inline constexpr std::int64_t kAwayPauseNs = 1'000'000'000;
// What is asked after a long round is to be gone within a second, too.
inline constexpr std::int64_t kLongestRestNs = 500'000'000;
// Between looks for terms that were taken back from devices, while nothing is erased.
inline constexpr std::int64_t kTakenBackPauseNs = 30'000'000'000;

// The thread `erase`: has EraseService drain what is pending, at start too, until it succeeds. As
// long as that took it rests afterwards, kLongestRestNs at most, while nobody waits: one erasure
// begins at once, and of many that follow one another more are done together.
//
// Use: start it when the service is open, destroy it before. A drive that is away is looked for
// every kAwayPauseNs.
class EraseWorker {
 public:
  EraseWorker(EraseService& service, observe::Logger& logger);
  // Lets a drain() under way finish; nobody waits for certificates any more.
  ~EraseWorker();

 private:
  void run() EC_EXCLUDES(mutex_);
  // Returns when something is asked for, the worker is to stop, or time is up.
  void wait_for_work(std::int64_t patience_ns) EC_REQUIRES(mutex_);
  void tell(const Status& status);
  void look_at_drives();

  EraseService& service_;
  observe::Logger& logger_;
  Reach reach_;  // as it was said last; the thread's
  Mutex mutex_;
  CondVar changed_;
  bool is_asked_ EC_GUARDED_BY(mutex_) = false;
  bool is_stopping_ EC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace edgecase::erase
