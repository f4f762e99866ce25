// One record of the audit log, as bytes and as values. Pure functions; any thread.
//
// In the engine's namespace `_audit` (Placement::Metadata), numbers big-endian:
//   'R' sequence (8)  ->  hash (32) body
//   'S' sequence (8)  ->  nothing: with that record the clock went back
//   'H'               ->  version 1, sequence (8), its hash (32), bytes of all records so far (8)
//   'A'               ->  version 1, first sequence kept (8), hash of the one before (32), bytes
//                         cut (8)
//   'K'               ->  the key of pseudonyms (32)
// hash = SHA-256 of the hash of the record before (32 zero bytes for the first), the sequence (8),
// and the body:
//   version 1, flags (1: bit 0 clock trusted, bit 1 reaches more than is named), outcome (1),
//   time (8); operation, actor, token, namespace, selector, detail, each a varint length and bytes;
//   count (varint); how many devices (varint), each a pseudonym (8) and a count (varint)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "auth/sha256.h"
#include "edgecase/bytes.h"
#include "edgecase/clock.h"
#include "edgecase/result.h"

namespace edgecase::audit {

inline constexpr std::string_view kAuditNamespace = "_audit";

// More devices of one batch go into further records.
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
  std::string selector;  // never a name: pseudonyms.h
  std::string detail;
  std::uint64_t count = 0;  // readings
  std::vector<Target> targets;
  bool reaches_more = false;  // devices beside the targets: a glob
  auth::Digest hash{};
};

// At most kTargetsMax targets are kept.
Bytes encode_body(const Record& record);
// In a body that was encoded: known only once its record's work has ended.
void set_outcome(Bytes& body, Outcome outcome);
auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t sequence, ByteView body);

Bytes record_key(std::uint64_t sequence);
Bytes step_key(std::uint64_t sequence);
// Of a record or step.
std::uint64_t sequence_of(ByteView key);
Bytes record_value(const auth::Digest& hash, ByteView body);
// Fills hash and body's fields; Corruption says what is wrong.
Result<Record> decode_record(std::uint64_t sequence, ByteView value);
ByteView body_of(ByteView value);
std::int64_t time_of(ByteView body);

// What the log reached ('H'), and what it was cut back to ('A').
struct Mark {
  std::uint64_t sequence = 0;
  auth::Digest hash{};
  std::uint64_t bytes = 0;
};
inline constexpr char kHeadKey[] = "H";
inline constexpr char kAnchorKey[] = "A";
inline constexpr char kSecretKey[] = "K";
Bytes encode_mark(const Mark& mark);
Result<Mark> decode_mark(ByteView value);

}  // namespace edgecase::audit
