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
#include <string>
#include <string_view>
#include <vector>

#include "auth/sha256.h"
#include "edgecase/bytes.h"
#include "edgecase/clock.h"
#include "edgecase/result.h"

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
  std::string selector;  // never a name: pseudonyms.h
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

}  // namespace edgecase::audit
