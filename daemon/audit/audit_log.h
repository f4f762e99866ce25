// The audit log: who did what to which data, when, and what became of it. Records form a chain of
// SHA-256, by pages, in the engine's namespace `_audit` (page.h); why: DESIGN.md.
//
//   Result<Ticket> ticket = log.append(record);   // before the write that it describes
//   Status status = engine.write(batch, Durability::Sync);
//   if (!status.ok()) log.amend(*ticket, status);
//   else status = log.settle(*ticket);            // the answer may leave
//
// Records wait in a queue of bounded size. The log is the engine's commit companion: in strict mode
// each group commit takes along what waits, so that a record and what it describes share one sync;
// batched, the thread has that done at least once in kBatchedDelayNs. With the mode off nothing is
// appended, and what is there can be read.
//
// Limits: at kQueueRecordsMax or kQueueBytesMax append() says Busy in strict mode; batched, it has
// the queue written and waits for kBackPressureNs, then drops the record: it is counted, and a
// record of how many were lost follows. What is urgent finds room for kUrgentRecordsMax more. While
// a drive takes no records, strict ones are durable in a file beside the log (page.h).
// Thread-safe. Must outlive all who append; destroy it before
// the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "audit/page.h"
#include "auth/authorize.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "observe/logger.h"

namespace edgecase::audit {

enum class Mode : unsigned char { Off, Batched, Strict };

struct AuditOptions {
  Mode mode = Mode::Batched;
  std::int64_t retention_ns = INT64_MAX;      // older records are cut off; INT64_MAX: none
  std::uint64_t size_limit_bytes = 1u << 30;  // of all records; beyond it the oldest are cut off
  std::string head_directory = {};            // on the other drive
  std::string spare_directory = {};           // of page.h; empty: none
  bool runs_thread = true;                    // without it, tick() is called by somebody
};

// Everything must outlive the log. `logger` may be null.
struct AuditParts {
  Engine& engine;
  FileSystem& file_system;
  Clock& clock;
  Random& random;  // one that nobody can predict
  observe::Logger* logger = nullptr;
};

// Records that were appended together: the last one's sequence, and how many they are. None: 0.
struct Ticket {
  std::uint64_t last = 0;
  std::uint64_t count = 0;
};

class AuditLog final : public CommitCompanion {
 public:
  static constexpr std::size_t kQueueRecordsMax = 8'192;
  static constexpr std::size_t kQueueBytesMax = 4u << 20;
  static constexpr std::size_t kUrgentRecordsMax = 256;          // beyond both
  static constexpr std::size_t kCommitBytesMax = 1u << 20;       // of one group commit
  static constexpr std::size_t kDueRecords = 1'024;              // batched: written early
  static constexpr std::int64_t kBatchedDelayNs = 500'000'000;   // with the write, within 1 s
  static constexpr std::int64_t kBackPressureNs = 200'000'000;   // batched
  static constexpr std::uint64_t kHeadSpacing = 256;             // records between two 'H'
  static constexpr std::int64_t kHeadFileNs = 10'000'000'000;    // at most between two, and
  static constexpr std::uint64_t kHeadFileSpacing = 16'384;      // records
  static constexpr std::int64_t kCutSpacingNs = 60'000'000'000;  // between two looks
  static constexpr std::uint64_t kCutRecordsMax = 65'536;        // at once
  static constexpr std::int64_t kClockStepNs = 1'000'000'000;    // a smaller one is no event
  static constexpr std::int64_t kTrustNs = 100'000'000;          // asked of the clock so often
  static constexpr std::size_t kPseudonymsMax = 65'536;          // remembered

  // Reads where the log ends. What does not fit the checkpoints is logged, and recorded. Errors:
  // the engine's, Corruption of the last record or of a checkpoint.
  static Result<std::unique_ptr<AuditLog>> open(const AuditOptions& options,
                                                const AuditParts& parts);
  ~AuditLog() override;

  // Writes what waits, and the head on both drives. Nothing may be appended after it.
  void stop() EC_EXCLUDES(mutex_, spare_mutex_);

  Mode mode() const { return options_.mode; }
  bool is_on() const { return options_.mode != Mode::Off; }
  const RecordNames& names() const { return *names_; }
  // The same as names().of_device(), remembered by the numbers that the catalog gives.
  std::uint64_t device_pseudonym(NamespaceId namespace_id, std::uint32_t device_id,
                                 std::string_view namespace_name, std::string_view device)
      EC_EXCLUDES(pseudonyms_mutex_);

  // Time and sequence are set here.
  Result<Ticket> append(Record record) EC_EXCLUDES(mutex_);
  Result<Ticket> append(Draft draft) EC_EXCLUDES(mutex_);
  Result<Ticket> append(std::vector<Draft> drafts) EC_EXCLUDES(mutex_);
  // Appends that something is about to be erased. It joins the queue though that is full of what a
  // drive does not take, and the next commit, the erasure's, takes along everything up to it.
  Result<Ticket> append_urgent(Record record) EC_EXCLUDES(mutex_);
  // What the records tell of has failed: they say so, or where they are written by now, another one
  // like `record` does.
  void amend(Ticket ticket, Record record, const Status& failure) EC_EXCLUDES(mutex_);
  // Strict: returns when it is durable, or with why it is not. Otherwise Ok.
  Status settle(Ticket ticket) EC_EXCLUDES(mutex_, spare_mutex_);
  // Whether settle() would have nothing to wait for.
  bool is_settled(Ticket ticket) const {
    return mode() != Mode::Strict ||
           settled_sequence_.load(std::memory_order_acquire) >= ticket.last;
  }
  // append() and settle().
  Status note(Record record);
  // Strict: whether records can be written; asked before what cannot be taken back.
  Status ready() const EC_EXCLUDES(mutex_, spare_mutex_);
  // Something that was refused, where nobody waits for the record: it is durable with what comes
  // next, or by the thread. No device: "".
  void note_denied(std::string_view operation, const auth::Principal& principal,
                   std::string_view namespace_name, std::string_view device);
  // A login that was refused as too many: gathered into one record a minute.
  void note_throttled() EC_EXCLUDES(mutex_);

  struct State {
    std::uint64_t sequence = 0;  // of the last durable record
    auth::Digest hash{};         // its hash
    std::uint64_t first = 1;     // of the first one kept
    std::uint64_t records = 0;   // appended since the start
    std::uint64_t queued = 0;
    std::uint64_t failures = 0;  // writes of the log, or of its head file, that failed
    std::uint64_t lost = 0;      // dropped at a full queue
    Status failure;              // of the last write; Ok when that succeeded
    Status head_failure;         // the same of the head file
  };
  State state() const EC_EXCLUDES(mutex_);

  // What the thread does now and then: writes what is due, heads, cuts. Returns at once otherwise.
  void tick() EC_EXCLUDES(mutex_, spare_mutex_);
  // Everything appended before is durable and readable.
  Status flush() EC_EXCLUDES(mutex_);
  NamespaceId records() const { return records_; }
  Engine& engine() const { return parts_.engine; }
  FileSystem& file_system() const { return parts_.file_system; }
  const std::string& head_directory() const { return options_.head_directory; }

  void add_to(WriteBatch& batch) override EC_EXCLUDES(mutex_);
  void committed(const Status& status) override EC_EXCLUDES(mutex_);

 private:
  struct Waiting {
    Draft draft;
    bool went_back = false;  // the clock
  };

  AuditLog(const AuditOptions& options, const AuditParts& parts);
  Status load() EC_EXCLUDES(mutex_, spare_mutex_);
  // Before anybody else has the log; the engine's locks come before mutex_ everywhere else.
  Status load_end() EC_NO_THREAD_SAFETY_ANALYSIS;
  void compare_heads(const std::optional<Mark>& head) EC_EXCLUDES(mutex_);
  void distrust(const std::string& what) EC_EXCLUDES(mutex_);
  void note_unchecked(const Status& away);
  void note_finding(const char* operation, Outcome outcome, const std::string& what)
      EC_EXCLUDES(mutex_);
  bool make_room() EC_REQUIRES(mutex_);
  bool is_full() const EC_REQUIRES(mutex_) { return is_full(0, kQueueBytesMax); }
  bool is_full(std::size_t more_records, std::size_t bytes_max) const EC_REQUIRES(mutex_);
  bool is_due() const EC_REQUIRES(mutex_);
  std::uint64_t last_sequence() const EC_REQUIRES(mutex_) {
    return durable_.sequence + queue_.size();
  }
  Ticket push_all(std::span<Draft> drafts) EC_REQUIRES(mutex_);
  Result<Ticket> append_drafts(std::span<Draft> drafts) EC_EXCLUDES(mutex_);
  void push(Draft draft) EC_REQUIRES(mutex_);
  void enqueue(Draft draft) EC_REQUIRES(mutex_);
  std::size_t take_waiting() EC_EXCLUDES(mutex_);
  void append_page(std::size_t begin, std::size_t end, WriteBatch& batch);
  Status write_until(std::uint64_t sequence) EC_EXCLUDES(mutex_);
  void run() EC_EXCLUDES(mutex_);
  void watch_clock();
  void note_unrecorded() EC_EXCLUDES(mutex_);
  Status write_checkpoint() EC_EXCLUDES(mutex_);
  enum class HeadFile : unsigned char { IfDue, Now };
  void write_head(HeadFile when) EC_EXCLUDES(mutex_);
  // audit_open.cc
  struct SparedPage {
    std::uint64_t last = 0;
    Bytes body;
    bool is_first = false;
  };
  Status load_spare() EC_EXCLUDES(mutex_, spare_mutex_);
  void take_in_spared(SparePages& spare) EC_EXCLUDES(mutex_);
  void make_spare() EC_EXCLUDES(spare_mutex_);
  SparedPage next_spared(std::uint64_t sequence) EC_EXCLUDES(mutex_);
  bool spare_until(std::uint64_t sequence) EC_EXCLUDES(mutex_, spare_mutex_);
  void clear_spare() EC_EXCLUDES(mutex_, spare_mutex_);
  void cut() EC_EXCLUDES(mutex_);
  bool waits_for_leap(std::int64_t expiry_now_ns);
  Result<Mark> find_cut(const Mark& anchor, std::uint64_t last, std::int64_t keep_from_ns,
                        std::uint64_t excess_bytes);
  Status cut_to(const Mark& from, const Mark& to) EC_EXCLUDES(mutex_);
  void report(const char* what, const Status& failure);

  const AuditOptions options_;
  const AuditParts parts_;
  NamespaceId records_ = 0;
  std::unique_ptr<const RecordNames> names_;

  Mutex pseudonyms_mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> known_pseudonyms_
      EC_GUARDED_BY(pseudonyms_mutex_);

  bool pages_are_lost_ = false;  // seen at the start

  mutable Mutex mutex_;  // held for no I/O
  CondVar changed_;      // the thread's
  CondVar room_;         // batched: for some in the queue
  // Sequences begin at durable_.sequence + 1.
  std::deque<Waiting> queue_ EC_GUARDED_BY(mutex_);
  std::size_t queue_bytes_ EC_GUARDED_BY(mutex_) = 0;
  // How many at the front of the queue are with a commit, and not changed.
  std::size_t in_flight_ EC_GUARDED_BY(mutex_) = 0;
  Mark durable_ EC_GUARDED_BY(mutex_);
  std::uint64_t spared_sequence_ EC_GUARDED_BY(mutex_) = 0;  // what the spare pages reach
  std::atomic<std::uint64_t> settled_sequence_{0};  // the later of both, for who does not wait
  // Sequence: the first one kept; hash: of the one before.
  Mark anchor_ EC_GUARDED_BY(mutex_);
  std::uint64_t head_written_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t last_time_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t trust_at_ns_ EC_GUARDED_BY(mutex_) = INT64_MAX;  // when trust_ was asked for
  ClockTrust trust_ EC_GUARDED_BY(mutex_) = ClockTrust::Untrusted;
  bool due_ EC_GUARDED_BY(mutex_) = false;  // batched: the next commit takes the queue along
  // Up to which one commit takes all.
  std::uint64_t urgent_sequence_ EC_GUARDED_BY(mutex_) = 0;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  std::uint64_t appended_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t failures_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t lost_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t lost_told_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t throttled_ EC_GUARDED_BY(mutex_) = 0;
  Status failure_ EC_GUARDED_BY(mutex_);
  Status head_failure_ EC_GUARDED_BY(mutex_);

  // The commit's, of which there is one at a time: from add_to() to committed().
  std::vector<const Waiting*> taken_;
  Mark in_flight_head_;
  std::uint64_t head_due_sequence_ = 0;  // from where on a commit takes the head along
  bool in_flight_has_head_ = false;

  mutable Mutex spare_mutex_;  // held across I/O, and before mutex_
  std::optional<SparePages> spare_ EC_GUARDED_BY(spare_mutex_);

  // The thread's (or tick()'s).
  std::int64_t clock_offset_ns_ = 0;
  // The time that readings expire by less that since the machine was started, when cut() looked
  // last, and when it leapt.
  std::optional<std::int64_t> expiry_offset_ns_;
  std::optional<std::int64_t> leapt_boot_ns_;
  std::int64_t next_minute_ns_ = 0;
  std::uint64_t head_file_sequence_ = 0;
  std::int64_t head_file_at_ns_ = 0;
  std::thread thread_;
};

// A record with who asked, ready to be filled in.
Record record_of(std::string_view operation, const auth::Principal& principal);

// Reads the audit log, and verifies that it holds what was written. Any thread; a cursor belongs to
// one, and must not outlive the log.

struct ListRequest {
  std::optional<std::int64_t> from_ns = {};
  std::optional<std::int64_t> to_ns = {};
  // Records that are of this device, or may be (concerns()); empty: all.
  std::string namespace_name = {};
  std::string device = {};
  // Not empty: records that name this owner, or are of its devices, or may be.
  std::string owner = {};
  std::vector<std::uint64_t> owned = {};  // pseudonyms: of those it has, and had when it was erased
  // Whether any of those it has is one that is meant. Asked once for each selector, mostly.
  using NameTest = std::function<bool(std::string_view namespace_name, std::string_view device)>;
  std::function<bool(const NameTest& is_meant)> any_owned = {};
  std::uint64_t limit = UINT64_MAX;
  bool descending = false;
};

// Records by sequence, of one snapshot. `from` and `to` are looked up, not scanned for.
class RecordCursor {
 public:
  static Result<std::unique_ptr<RecordCursor>> open(AuditLog& log, ListRequest request);

  // False: the end. After an error only destruction is allowed.
  Result<bool> next(Record& record);
  // Between two calls of next(), for who waits in between: where something was revoked since
  // (Engine::revocations()) it reads on in what is stored then.
  void let_go();

 private:
  // Sequences [first, end) within which time does not go back by more than kClockStepNs.
  struct Stretch {
    std::uint64_t first = 0, end = 0;
  };

  RecordCursor(AuditLog& log, ListRequest request);
  Status find_stretches();
  enum class Edge : unsigned char { First, Last };  // of a page: which of its records is compared
  Result<std::uint64_t> first_at(const Stretch& stretch, std::int64_t time_ns, Edge edge);
  void seek(const Stretch& stretch);
  Status come_back();
  Result<bool> next_page();
  bool is_of_wanted(const Record& description);
  bool is_of_owner(const Record& description);
  bool is_in_time(const Record& record) const;

  ListRequest request_;
  const std::uint64_t pseudonym_;
  const std::string owner_;  // as a record's detail names it
  // Whether records of a namespace and a selector may be of the owner's devices.
  std::map<std::string, bool> may_reach_owned_;
  Wanted wanted_;  // empty: every record
  Engine& engine_;
  const NamespaceId records_;
  ReadOptions read_;
  std::unique_ptr<Iterator> at_;    // null: it let go
  Bytes resting_at_;                // then; empty: at the end of what the last stretch has
  std::vector<Record> page_;        // the next record last
  std::vector<Stretch> stretches_;  // the next one last
  std::uint64_t listed_ = 0;
};

struct Fault {
  std::uint64_t sequence = 0;
  std::string what;
};
struct Verification {
  static constexpr std::size_t kFaultsMax = 20;  // told; more are counted

  std::uint64_t records = 0, first = 0, last = 0;
  auth::Digest head{};
  std::uint64_t fault_count = 0;
  std::vector<Fault> faults;
  // Why the head beside the values, or the one that was told, could not be compared, which is no
  // fault of the log; empty: they were.
  std::string unchecked;
};

// Walks the whole chain, and compares its end with the head in memory, with the checkpoint, and
// with the head file on the other drive, if that is there; and with `told`, a head that somebody
// kept, as reports tell them. Errors: the engine's.
Result<Verification> verify(AuditLog& log, const std::optional<Mark>& told = {});

// How the record of a cut tells where the log begins from then on.
inline constexpr std::string_view kCutOperation = "audit.cut";
inline constexpr std::string_view kMismatchOperation = "audit.mismatch";
std::string cut_detail(const Mark& anchor);

}  // namespace edgecase::audit
