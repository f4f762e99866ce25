// One record of the audit log as values, the keys of the log, and its checkpoints. Pure functions;
// any thread.
//
// In the engine's namespace `_audit` (Placement::Metadata), numbers big-endian:
//   'R' sequence (8)  ->  page.h: that record and those before it, back to the page before
//   'S' sequence (8)  ->  nothing: with that record the clock went back; it begins a page
//   'H'               ->  version 1, sequence (8) of the last record of a page, the page's hash
//   (32),
//                         bytes of all pages so far (8)
//   'A'               ->  version 1, first sequence kept (8), hash of the page before (32), bytes
//                         cut (8)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/hashing.h"
#include "edgecase/bytes.h"
#include "edgecase/clock.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "wire/reading_key.h"
#include "wire/selector.h"

namespace edgecase::audit {

inline constexpr std::string_view kAuditNamespace = "_audit";

// More devices of one batch go into further records; of a read, they are counted.
inline constexpr std::size_t kTargetsMax = 64;
// Longer texts are cut.
inline constexpr std::size_t kTextMaxBytes = 256;

// What became of it. Numbers are written: never change one.
enum class Outcome : unsigned char {
  Ok = 0,
  Denied = 1,
  NotFound = 2,
  Invalid = 3,
  Busy = 4,
  OutOfSpace = 5,
  IoError = 6,
  Unavailable = 7,
  Corruption = 8,
  Failed = 9,
  Begun = 10,  // a change is about to be made; what became of it is said by a later record
};
std::string_view outcome_name(Outcome outcome);
Outcome outcome_of(const Status& status);
Outcome outcome_of_http(int http_status);

struct Target {
  std::uint64_t pseudonym = 0;
  std::uint64_t count = 0;

  bool operator==(const Target&) const = default;
};

struct Record {
  std::uint64_t sequence = 0;  // from 1, without holes
  std::int64_t time_ns = 0;
  ClockTrust trust = ClockTrust::Trusted;
  Outcome outcome = Outcome::Ok;
  std::string operation;  // "ingest", "query", "token.create"
  std::string actor;      // the principal's name
  std::string token;      // its id, where one was shown
  std::string namespace_name;
  std::string selector;  // never a name: hashing.h
  std::string detail;
  std::uint64_t count = 0;  // readings
  std::vector<Target> targets;
  // Devices beside the targets: how many, where that is known, ...
  std::uint64_t more_devices = 0;
  bool reaches_more = false;  // ... and whether there are, or may be any: a glob
  auth::Digest hash{};        // of its page
};

Bytes page_key(std::uint64_t last_sequence);
Bytes step_key(std::uint64_t sequence);
// The sequence in the key of a page (its last record's) or step.
std::uint64_t sequence_of(ByteView key);

// What the log reached ('H'), and what it was cut back to ('A').
struct Mark {
  std::uint64_t sequence = 0;
  auth::Digest hash{};
  std::uint64_t bytes = 0;
};
inline constexpr char kHeadKey[] = "H";
inline constexpr char kAnchorKey[] = "A";
Bytes encode_mark(const Mark& mark);
Result<Mark> decode_mark(ByteView value);

// Numbers and texts of the audit log as bytes. Inside daemon/audit only. Pure functions; any
// thread.

inline constexpr std::size_t kHashBytes = 32;

void append_varint(Bytes& out, std::uint64_t value);
// The digest in the first kHashBytes, which must be there.
auth::Digest digest_of(ByteView bytes);

// Takes bytes apart; once it has failed, everything is empty. The bytes must outlive it.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  unsigned char byte();
  std::uint64_t number() { return wire::read_big_endian(take(8)); }
  std::uint64_t varint();
  std::string text() { return std::string(take(varint())); }
  ByteView take(std::uint64_t size);
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
  bool failed_ = false;
};

// Pseudonyms that stand in the audit log for devices, owners and other names (auth/hashing.h).
// Their first 64 bits are kept, so a certificate of an erasure begins with the same 16 digits.
// Thread-safe. Remembers those made last.
class RecordNames {
 public:
  static constexpr std::size_t kRememberedMax = 4'096;

  explicit RecordNames(auth::Pseudonyms pseudonyms) : pseudonyms_(std::move(pseudonyms)) {}

  std::uint64_t of_device(std::string_view namespace_name, std::string_view device) const;
  // The name of any other text; one of another kind never looks the same. "~" and 16 hex digits.
  std::string of_text(std::string_view kind, std::string_view text) const;

  // Nothing of names that were asked for stays in memory.
  void forget() const EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    known_.clear();
  }

  // What may be written of a selector: globs without a literal character (`*`, `?*`) as they are,
  // everything else as a pseudonym. A device named exactly becomes a target.
  void describe(std::string_view namespace_name, const wire::Selector& selector,
                Record& record) const;
  // The same of several, with `, ` between; of more than kSelectorsTold no more than that they may
  // be any.
  static constexpr std::size_t kSelectorsTold = 8;
  void describe(std::string_view namespace_name, std::span<const wire::Selector> selectors,
                Record& record) const;

 private:
  std::uint64_t of(std::string_view kind, std::string_view namespace_name,
                   std::string_view name) const;
  std::string part(std::string_view kind, std::string_view namespace_name,
                   std::string_view glob) const;

  const auth::Pseudonyms pseudonyms_;
  mutable Mutex mutex_;
  mutable std::unordered_map<std::string, std::uint64_t> known_ EC_GUARDED_BY(mutex_);
};

std::string pseudonym_text(std::uint64_t pseudonym);  // 16 hex digits

// Whether the record reaches over devices that it does not name, and this may be one.
bool may_reach(const Record& record, std::string_view namespace_name, std::string_view device);

// Whether the record is of the device, or may be: it reaches over devices that it does not name.
bool concerns(const Record& record, std::uint64_t pseudonym, std::string_view namespace_name,
              std::string_view device);

}  // namespace edgecase::audit
