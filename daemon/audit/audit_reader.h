// Reads the audit log, and verifies that it holds what was written. Any thread; a cursor belongs to
// one, and must not outlive the log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit_log.h"

namespace edgecase::audit {

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
