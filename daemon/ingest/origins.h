// The stores that forward to this one, their origins. Each batch says two things (kOriginHeader):
//
//   store   the sender's store, a number that it drew once
//   run     drawn each time that it begins; and the runs before of which it does not know whether
//           they are known here
//
// Two copies of one store are told apart by them: the second one goes on behind a run that is not
// the last any more. It is another holder then, and is called a second one. Devices belong to
// numbers (catalog.h); a holder has several once an admin has handed one over to it: a store that
// was restored goes on with what the lost one sent.
//
// Kept in the engine's namespace `_origins` on the metadata drive, made with the first of them:
//
//   key 4 number -> version 1 or 2; 16 store, 8 run, 16 store before it was handed over (0: it was
//                   not); 4 number of the holder that has it (its own: itself); 1 byte of flags, 1:
//                   a second one, 2: restored (version 2 alone); 8 nanoseconds since 1970 when it
//                   came; the name of the token that it came with
//
// A restored one may have begun further runs since its backup: the first that comes with its
// store's number goes on with it.
//
// Numbers are big-endian. Thread-safe; the lock is held while a record is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"

namespace edgecase::ingest {

// "STORE RUN RUN…": 32 hexadecimal digits, then 16 of each run, the newest first.
struct OriginClaim {
  static constexpr std::size_t kRunsMax = 256;
  std::string store;
  std::vector<std::string> runs;
};
Result<OriginClaim> parse_origin(std::string_view text);

struct Origin {
  catalog::OriginNumber number = 0;
  std::string store, run, store_before;
  catalog::OriginNumber holder = 0;  // its own, where nobody else has it
  bool is_second = false;
  bool is_restored = false;  // and nobody has come as it since
  std::int64_t since_ns = 0;
  std::string by;
};

class Origins {
 public:
  static constexpr std::size_t kOriginsMax = 4'096;

  // Errors: the engine's; Unsupported: of a newer version.
  static Result<std::unique_ptr<Origins>> open(Engine& engine, Clock& clock);

  struct Holder {
    std::vector<catalog::OriginNumber> numbers;  // its own first
    bool is_second = false;                      // a store of the same number is another holder
    bool is_new = false;                         // since this call
  };
  // The holder that brings something. What is new of it is durable on return. LimitReached:
  // kOriginsMax.
  Result<Holder> enter(const OriginClaim& claim, const std::string& by) EC_EXCLUDES(mutex_);
  // The holder that asks for something. NotFound: it has brought nothing yet.
  Result<Holder> find(const OriginClaim& claim) const EC_EXCLUDES(mutex_);

  std::vector<Origin> list() const EC_EXCLUDES(mutex_);
  // Takes those of a backup, under their numbers, durable on return. What is here already stays:
  // the numbers that another store has here. InvalidArgument: one cannot be; LimitReached:
  // kOriginsMax.
  Result<std::vector<catalog::OriginNumber>> restore(const std::vector<Origin>& saved)
      EC_EXCLUDES(mutex_);
  // What `number` brought is `heir`'s from now on. InvalidArgument: one of them has been handed
  // over; NotFound.
  Status hand_over(catalog::OriginNumber number, catalog::OriginNumber heir) EC_EXCLUDES(mutex_);

 private:
  Origins(Engine& engine, Clock& clock) : engine_(engine), clock_(clock) {}
  Status load() EC_REQUIRES(mutex_);
  Status limit_of_origins() const;
  const Origin* find_origin(const OriginClaim& claim) const EC_REQUIRES(mutex_);
  Holder holder_of(const Origin& origin) const EC_REQUIRES(mutex_);
  Status write(const std::vector<Origin>& changed) EC_REQUIRES(mutex_);

  Engine& engine_;
  Clock& clock_;
  mutable Mutex mutex_;
  NamespaceId id_ EC_GUARDED_BY(mutex_) = 0;  // 0: none yet
  std::map<catalog::OriginNumber, Origin> all_ EC_GUARDED_BY(mutex_);
};

Bytes encode_origin(const Origin& origin);
Result<Origin> decode_origin(catalog::OriginNumber number, ByteView bytes);

}  // namespace edgecase::ingest
