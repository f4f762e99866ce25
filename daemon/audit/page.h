// The audit log as values and as bytes: records, the pages of records, the spare pages, and the
// head beside the values.
//
// A page: records that one commit took along, as one entry of the engine, with one
// hash. Most are like others of their page but for time and counts: what is alike is there once.
// Pure functions; any thread.
//
// In the engine's namespace `_audit` (its keys: below), numbers of fixed size big-endian, `zigzag`
// a signed number as varint:
//   'R' sequence of the last record (8)  ->  hash (32) body
// hash = SHA-256 of the hash of the page before (32 zero bytes for the first), the sequence of the
// last record (8), and the body:
//   version 1; how many records (varint); time of the first (8), how much later the last is
//   (zigzag) how many descriptions (varint), each a varint length and
//     flags (1: bit 0 reaches more than is named); operation, actor, token, namespace, selector,
//     detail, each a varint length and bytes; how many devices (varint), each a pseudonym (8)
//   of each record: number of its description (varint); 2 * outcome + clock trusted (1); how much
//     later than the one before (zigzag; the first: 0); readings (varint); how many devices more
//     than those named (varint); readings of each device (varint)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/hashing.h"
#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::audit {

// One record of the audit log as values, the keys of the log, and its checkpoints. Pure functions;
// any thread.
//
// In the engine's namespace `_audit` (Placement::Metadata), numbers big-endian:
//   'R' sequence (8)  ->  a page: that record and those before it, back to the page before
//   'S' sequence (8)  ->  nothing: with that record the clock went back; it begins a page
//   'H'               ->  version 1, sequence (8) of the last record of a page, the page's hash
//   (32),
//                         bytes of all pages so far (8)
//   'A'               ->  version 1, first sequence kept (8), hash of the page before (32), bytes
//                         cut (8)

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

inline constexpr std::size_t kPageRecordsMax = 1'024;
// Bytes of a page's descriptions, as if none were alike; it ends beyond that.
inline constexpr std::size_t kPageBytesMax = 128u << 10;

// A record as it waits for its page: what is the same for many as bytes, the rest as numbers.
struct Draft {
  Bytes description;
  std::int64_t time_ns = 0;
  ClockTrust trust = ClockTrust::Trusted;
  Outcome outcome = Outcome::Ok;
  std::uint64_t count = 0;
  std::uint64_t more_devices = 0;
  std::vector<std::uint64_t> target_counts;

  std::size_t memory_bytes() const {
    return sizeof(Draft) + description.size() + 8 * target_counts.size();
  }
};

// Without time and trust. At most kTargetsMax targets are kept; texts are cut at kTextMaxBytes.
Draft draft_of(const Record& record);

// The same of a record that says no more than this; its count is that of all targets, at most
// kTargetsMax.
struct Stored {
  std::string_view operation, actor, token, namespace_name;
};
Draft draft_of(const Stored& stored, std::span<const Target> targets);

// A page of 1 to kPageRecordsMax records.
Bytes encode_page(std::span<const Draft* const> drafts);
auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t last_sequence, ByteView body);
Bytes page_value(const auth::Digest& hash, ByteView body);
ByteView body_of(ByteView value);

// What is said of a page before its records.
struct PageHead {
  std::uint64_t first = 0, last = 0;  // sequences
  std::int64_t first_ns = 0, last_ns = 0;
  auth::Digest hash{};
};
// Corruption says what is wrong. decode_page() alone looks at the records.
Result<PageHead> decode_page_head(std::uint64_t last_sequence, ByteView value);

struct Page {
  PageHead head;
  std::vector<Record> records;  // with the page's hash
};
// Asked of each description, which is a record without what differs from one to the next.
using Wanted = std::function<bool(const Record& description)>;
// Decodes the records that are wanted, or all. Where none is, no more is looked at than that.
Result<Page> decode_page(std::uint64_t last_sequence, ByteView value, const Wanted& wanted = {});

inline constexpr char kSpareFileName[] = "AUDIT-SPARE";
// The queue of the log is full before: a record takes less, but for the longest.
inline constexpr std::uint64_t kSpareBytes = 2u << 20;

// A spare file for strict records while the log's drive takes no more. It is made in good time, so
// that what is read then has its record before it is answered. Its pages join the log once that
// takes them, or after a restart, under the same sequences.
//
// File AUDIT-SPARE in the metadata directory, numbers big-endian; frames one behind the other, as
// far as they are whole, then zeros:
//   length of the page (4), sequence of its last record (8), page: hash (32) body, as above;
//   the hash is over that of the frame before (32 zero bytes for the first)
// In an encrypted store, of such a frame
//   2^31 + length of what follows (4), sequence and page as one, sealed (edgecase/bytes.h): its
//   place is that of the frame in the file
// A key that opens the store opens them, also when the master key has changed. Frames of the other
// kind, and those of another store, are none. One thread at a time.
class SparePages {
 public:
  // `sealer` is the store's, null where that is in clear; it and `file_system` must outlive this.
  // NotFound: there is none, or one whose making was cut short, which is removed. OutOfSpace: nor
  // room for one.
  static Result<SparePages> open(FileSystem& file_system, const std::string& directory,
                                 Sealer* sealer);
  static Result<SparePages> create(FileSystem& file_system, const std::string& directory,
                                   Sealer* sealer);

  // What is in it, oldest first.
  const std::vector<Record>& found() const { return found_; }
  void forget_found() { found_ = {}; }
  // How much was behind that when it was opened, and is overwritten: of a page that was cut short,
  // which nobody was told was durable, or what was damaged, or is none of this store's.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

  // Whether it holds nothing that has to go from there.
  bool empty() const { return written_ == 0; }
  // A page behind the others; durable on return. OutOfSpace: the file is full.
  Status append(std::uint64_t last_sequence, ByteView body);
  // Nothing is left of what was in it.
  Status clear();

 private:
  struct Frame {
    std::uint64_t bytes = 0;  // of it in the file
    std::uint64_t last = 0;
    Bytes page;
  };

  SparePages(FileSystem& file_system, std::unique_ptr<LogFile> file, Sealer* sealer)
      : file_system_(&file_system),
        path_(file->path()),
        capacity_bytes_(file->capacity_bytes()),
        file_(std::move(file)),
        sealer_(sealer) {}
  std::optional<Frame> frame_at_end(ByteView bytes) const;
  void read_frames(ByteView bytes);
  Bytes encode_frame(std::uint64_t last_sequence, ByteView page) const;
  Status overwrite(std::uint64_t begin);
  Status write(std::uint64_t offset, ByteView bytes);

  FileSystem* file_system_;
  std::string path_;
  std::uint64_t capacity_bytes_;
  std::unique_ptr<LogFile> file_;  // null: it is to be opened again
  Sealer* sealer_;
  std::uint64_t end_ = 0;      // of the frames
  std::uint64_t written_ = 0;  // of what may not be zero; not before `end_`
  std::uint64_t dropped_bytes_ = 0;
  auth::Digest hash_{};  // of the last frame
  std::vector<Record> found_;
};

// The head of the audit log beside the values, on the other drive than the log itself: who cuts the
// log's end off has to change both. A line of text and its SHA-256, replaced atomically.
//
// In the values directory; the engine leaves names alone that are not its own.
inline constexpr char kHeadFileName[] = "AUDIT-HEAD";

// Durable on return.
Status write_head_file(FileSystem& file_system, const std::string& directory, const Mark& head);
// nullopt: there is none. Corruption: it is not what was written.
Result<std::optional<Mark>> read_head_file(FileSystem& file_system, const std::string& directory);

}  // namespace edgecase::audit
