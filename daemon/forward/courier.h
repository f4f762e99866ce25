// A batch on its way to a target: the batch itself, the target's answers, the courier that brings
// the one and judges the others, and the pace at which it goes. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/machine.h"
#include "forward/cursor.h"
#include "forward/records.h"
#include "net/channel.h"
#include "wire/reading.h"

namespace edgecase::forward {

// What a target says to a request.
enum class Verdict : unsigned char {
  Taken,
  Refused,  // of these lines something is wrong, or they are too many: fewer may do
  Later,    // it asks for patience
  Away,     // it is not reached, or the connection broke off: what became of them is not known
  Denied,   // the token or the user may not
  Wrong,    // what answers is no target, or not this one
  Stopped,  // the daemon stops, or the target changes
  Stale,    // what was read has been erased since
};

struct Answer {
  Verdict verdict = Verdict::Taken;
  int status = 0;        // of HTTP; 0: none came
  std::string why = {};  // one line, with what to do; empty: taken
  std::optional<std::int64_t> retry_after_ns = {};
  std::uint64_t not_kept = 0;  // of those that were taken
  // The target knows another holder of this store's number: what goes there is kept apart.
  bool is_apart = false;
};

// Carries requests to a target: HttpTarget, or a test's.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // `count` lines, of one request.
  virtual Answer carry(const std::string& database, std::string_view lines, std::size_t count) = 0;
};

// A batch that goes to a target at once: readings as lines, in parts of one request each, and the
// keys of the stored readings that they are. Made by BatchReader, sent by Courier.
//
// Lines of line protocol, of texts and of bytes are whole. Of a number that goes to an EdgeCase a
// line is its value alone: a request brings all of a series as one column (wire/reading_json.h).
struct Batch {
  // A batch takes so much, beside one value that may be larger.
  static constexpr std::size_t kTextMaxBytes = 512u << 10;
  static constexpr std::size_t kLinesMax = 16'384;
  // A larger value goes to no target: it is counted as unfit.
  static constexpr std::size_t kValueMaxBytes = 4u << 20;

  static constexpr std::uint32_t kWhole = UINT32_MAX;

  struct Line {
    std::uint32_t end = 0;  // of its text
    NamespaceId namespace_id = 0;
    wire::ReadingKey key;
    std::uint32_t column = kWhole;  // of which it is a value
  };
  struct Column {
    std::string head;  // of its object, up to the time
    bool is_int = false;
  };
  // Lines of one request, by number.
  struct Part {
    std::string database;  // at the target: of line protocol; else empty
    std::size_t begin = 0, end = 0;
  };

  std::string text;
  std::vector<Line> lines;
  std::vector<Column> columns;
  std::size_t head_bytes = 0;  // of all columns
  std::vector<Part> parts;
  // Rules of its series that the target does not know, a line of PUT /api/v1/retention each.
  std::string rules;
  // What they say, of which series; the same of the columns that it has there beside it.
  std::vector<std::pair<catalog::SeriesId, std::string>> said, said_of_columns;
  std::uint64_t revocations = 0;  // Engine::revocations() before it was read
  std::uint64_t unfit = 0;        // readings that no target of this kind can hold
  UnsentCounts unsent = {};       // of windows that are not whole any more
  // Where windows are among the lines: one stands for all readings of so long from its time on, at
  // most.
  std::int64_t window_ns = 0;
  bool is_whole = true;  // nothing of the range is left behind it
  Place last;            // where it ends, if something is

  bool is_full(std::size_t lines_max = kLinesMax) const {
    return text.size() + head_bytes >= kTextMaxBytes || lines.size() >= lines_max;
  }
  std::string_view text_of(std::size_t line) const {
    const std::size_t from = line == 0 ? 0 : lines[line - 1].end;
    return std::string_view(text).substr(from, lines[line].end - from);
  }
  // The request that brings these lines.
  std::string body_of(std::size_t begin, std::size_t end) const;
  void clear() { *this = Batch(); }
};

inline Place place_of(const Batch::Line& line) {
  return {line.namespace_id, wire::make_reading_key(line.key)};
}

struct Delivery {
  Answer last;                 // Taken: all of it is there, but for what was refused
  std::uint64_t taken = 0;     // lines
  std::uint64_t not_kept = 0;  // of these
  bool is_apart = false;       // as of Answer
  std::vector<std::pair<std::size_t, int>> refused;  // lines, by number, and the status for each
  std::string refused_why;                           // what was said of the last of them
  bool refuses_all = false;                          // with Refused: whatever is sent
};

// What is refused is halved, down to the line that is wrong, which costs itself alone. A target
// that refuses everything is told from one that refuses a line: a line that it took before must be
// taken again.
class Courier {
 public:
  // Requests in a row that are refused before a line that was taken is tried again.
  static constexpr std::size_t kRefusedInRowMax = 64;
  static constexpr std::size_t kProbeMaxBytes = 16u << 10;

  explicit Courier(Carrier& carrier) : carrier_(carrier) {}

  // `still_holds` is asked before each request: whether all of the batch may be sent still.
  Delivery deliver(const Batch& batch, const std::function<bool()>& still_holds);
  // The line that was taken last does not stay in memory.
  void forget() { probe_.clear(); }

 private:
  bool takes_probe();

  Carrier& carrier_;
  std::string probe_, probe_database_;  // a line that was taken; empty: none yet
};

// The pace of one target: when it is asked, and for how much at once. Rests after no answer, the
// budget of the link, how long commits gather, and how many lines a batch has. It goes by the
// times that it is given, so that a fleet can be simulated (tests/bench/fleet/).
//
//   a request that took long ─► the next waits as long, has half as many lines
//   none, or one too many    ─► full jitter up to 60 s, or Retry-After and up to a quarter more
//
// Each has one request on its way: together they ask for what a target takes, however many they
// are.
class Pace {
 public:
  static constexpr std::int64_t kGatherNs = 10'000'000, kGatherMaxNs = 1'000'000'000;
  static constexpr std::int64_t kDeniedNs = 60'000'000'000;
  static constexpr std::int64_t kStaleNs = 5'000'000;  // what was read is read again
  static constexpr std::int64_t kSlowNs = 2'000'000'000;
  static constexpr std::size_t kLinesMin = 256, kLinesStep = 512;

  // `random` outlives it. `budget`: bytes a second; 0: whatever the link takes.
  Pace(Random& random, bool is_local, std::uint64_t budget)
      : backoff_(random), random_(random), is_local_(is_local), budget_(budget) {}

  // A batch was sent, whatever came of it.
  void sent(std::int64_t now_ns, std::int64_t took_ns, std::uint64_t bytes);
  // It was taken.
  void taken(std::int64_t took_ns);
  // For how long nothing is sent after an answer that was none.
  std::int64_t rest_ns(const Answer& answer);
  // Somebody says that it can be reached.
  void hurry() { backoff_.reset(); }

  std::int64_t budget_until_ns() const { return budget_until_ns_; }
  std::int64_t gather_ns() const { return std::clamp(took_ns_, kGatherNs, kGatherMaxNs); }
  std::size_t lines_max() const { return lines_max_; }

 private:
  void halve() { lines_max_ = std::max(lines_max_ / 2, kLinesMin); }

  net::Backoff backoff_;
  Random& random_;
  const bool is_local_;
  const std::uint64_t budget_;
  std::int64_t budget_until_ns_ = 0, took_ns_ = 0;
  std::size_t lines_max_ = Batch::kLinesMax;
};

}  // namespace edgecase::forward
