// Cells, points, rows, samples: what the steps of a SELECT hand to each other. Points of a group
// are read one by one, or many as columns of numbers. Spending is what it may use up. One thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/iterator.h"
#include "edgecase/status.h"
#include "query/series_scan.h"
#include "wire/reading.h"

namespace edgecase::influxql {

// One value of a row.
struct Cell {
  enum class Kind : unsigned char { Null, Time, Integer, Float, Bool, Text };

  Kind kind = Kind::Null;
  std::int64_t integer = 0;  // Time: nanoseconds since 1970; Bool: 0 or 1
  double number = 0;
  std::string text;  // UTF-8
};

// The same as an assignment, quicker where there is no text.
inline void copy_cell(const Cell& from, Cell& to) {
  to.kind = from.kind;
  to.integer = from.integer;
  to.number = from.number;
  if (from.kind == Cell::Kind::Text) to.text = from.text;
}

struct SeriesHead {
  std::string name;
  std::vector<std::pair<std::string, std::string>> tags;  // of GROUP BY, ordered by key
  std::vector<std::string> columns;                       // as many as cells in each row
};

struct NumberRows;  // influxql/points.h

// The answer of one statement, series after series and row after row, as it is made: whoever shows
// it (http/influx_query.h) takes what it has room for. Nothing is built up that grows with the
// answer.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // To the next series, whether or not the rows of this one were all taken; false behind the last.
  // After an error only destruction is allowed.
  virtual Result<bool> next_series(SeriesHead& head) = 0;
  // To the next row of the series at hand; false at its end. `row` is overwritten, its memory used
  // again.
  virtual Result<bool> next_row(std::vector<Cell>& row) = 0;
  // PointSource::next_many(), of the rows of the series at hand.
  virtual Result<bool> next_rows(NumberRows& /*rows*/) { return false; }
  // Between two calls, for who waits in between: what it reads from is let go of, where something
  // of it was revoked or memory is short (query::ReadingCursor::let_go).
  virtual void let_go() {}
  // What the rows since the last call were made of: whoever shows them drops them where one of
  // these is revoked before it was sent.
  virtual query::GivenReadings take_given() { return {}; }
  // Whether something of that was revoked.
  virtual bool is_given_revoked() { return false; }
  // Seconds east of UTC in which this time is told.
  virtual std::int64_t offset_s(std::int64_t /*time_ns*/) const { return 0; }
  // What is said beside the answer, in words; empty: nothing. For instance that readings of it lie
  // on a drive that is away.
  virtual std::string notice() const { return {}; }
};

// The values that one instant has; a field without a value then is null.
struct Point {
  std::int64_t time_ns = 0;
  std::vector<Cell> cells;  // as many as columns were asked for
};

// Rows of numbers side by side: times, and of each column as many numbers as there are times.
struct NumberRows {
  struct Column {
    // Or Integer. Where points are on their way to functions and formulas also Bool; and Text or
    // Null, which every row has alike, and which have no bits.
    Cell::Kind kind = Cell::Kind::Float;
    std::vector<std::uint64_t> bits;  // of a double, or of a signed integer
    std::vector<char> has;            // 0: null
    std::string text;                 // of a tag

    bool is_alike() const { return kind == Cell::Kind::Text || kind == Cell::Kind::Null; }
    bool has_all(std::size_t begin, std::size_t count) const {
      return std::memchr(has.data() + begin, 0, count) == nullptr;
    }

    void add(const Cell& cell);  // of another kind: null
    void add(std::uint64_t number_bits) {
      bits.push_back(number_bits);
      has.push_back(1);
    }
    void get(std::size_t row, Cell& cell) const;
  };

  std::vector<std::int64_t> times_ns;
  std::vector<Column> columns;

  std::size_t size() const { return times_ns.size(); }
  bool empty() const { return times_ns.empty(); }
  void clear();                                       // the columns stay
  void keep(const std::vector<std::uint32_t>& rows);  // of these the others go; in order
  void drop(std::size_t count);                       // the first ones go
};

class PointSource {
 public:
  virtual ~PointSource() = default;
  // To the next point, in the order of time (or against it, where that was asked for); points of
  // the same instant in the order of their series. False at the end. `point` is overwritten, its
  // memory used again. After an error only destruction is allowed.
  virtual Result<bool> next(Point& point) = 0;
  // The same of many, where they are at hand as numbers alone: `rows` is overwritten, or given away
  // for another one. False: next() has what comes, or knows that nothing does.
  virtual Result<bool> next_many(NumberRows& /*rows*/) { return false; }
  // Before the first of them: all will be taken, so that many may be read at once.
  virtual void expect_all() {}
};

// Takes the values that a field has in a window, many at once where they are at hand so.
class ValueTaker {
 public:
  virtual ~ValueTaker() = default;
  // Whether what is known of many numbers will do in their place.
  virtual bool takes(const NumberSummary& summary) = 0;
  virtual Status take(const NumberSummary& summary) = 0;
  // Whether count and sum of a window's doubles will do in their place, and nothing else is asked
  // of a summary. Only where windows follow each other without a gap, all of one length.
  virtual bool takes_sums() const { return false; }
  virtual Status take(const wire::Numbers& numbers) = 0;
  virtual Status take(std::int64_t time_ns, const Cell& value) = 0;
};

// What one statement may still use up. Shared by all that works for it.
class Spending {
 public:
  Spending(std::uint64_t windows_max, std::uint64_t held_bytes_max)
      : windows_max_(windows_max), held_bytes_max_(held_bytes_max) {}

  // One window more is answered, or so many. LimitReached.
  Status add_window() { return add_windows(1); }
  Status add_windows(std::uint64_t count);
  // Whether so many more could be, before the first of them is made. LimitReached.
  Status expect_windows(std::uint64_t count) const;
  // Values that have to be kept until their window ends. LimitReached.
  Status hold(std::uint64_t bytes);
  void release(std::uint64_t bytes) { held_bytes_ -= bytes; }

 private:
  const std::uint64_t windows_max_;
  const std::uint64_t held_bytes_max_;
  std::uint64_t windows_ = 0;
  std::uint64_t held_bytes_ = 0;
};

// Arithmetic of single values, for functions. No state.
Cell integer_cell(std::int64_t value);
Cell float_cell(double value);
// A number of a summary.
Cell number_cell(const NumberSummary& summary, std::uint64_t bits);
// What a tier keeps of a window, as of values of that type. None: it has others, or none at all.
std::optional<NumberSummary> summary_of(const query::TierWindow& window, std::int64_t last_ns,
                                        Cell::Kind kind);
// Takes integers and floats.
double as_number(const Cell& cell);
// Both are of one kind. False before true.
bool is_less(const Cell& a, const Cell& b);

// Integers wrap, as in InfluxDB.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b);
std::int64_t wrapped_difference(std::int64_t a, std::int64_t b);
// Towards zero; what does not fit is INT64_MIN.
std::int64_t whole_of(double number);
// Null: bytes.
void set_cell(const wire::Value& value, Cell& cell);
// A value as another type: numbers become each other; what cannot be is null. InfluxDB's casts.
void cast_cell(Cell& cell, Cell::Kind kind);

// What functions hand to each other: a value of a time, as it comes to be.
struct Sample {
  std::int64_t time_ns = 0;
  Cell value;                // Null: the window has none
  std::vector<Cell> beside;  // of the chosen point; empty where none was chosen
  bool is_lacking = false;   // its window cannot be answered: nothing stands for it
};

// Bytes that are held of what a statement may hold, until this goes.
class HeldBytes {
 public:
  explicit HeldBytes(Spending& spending) : spending_(spending) {}
  ~HeldBytes() { release_all(); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  Status hold(std::uint64_t bytes);  // LimitReached
  void release(std::uint64_t bytes);
  void release_all() { release(held_); }
  Spending& spending() { return spending_; }

 private:
  Spending& spending_;
  std::uint64_t held_ = 0;
};

std::uint64_t bytes_of(const Sample& sample);

// First in, first out.
class SampleQueue {
 public:
  explicit SampleQueue(Spending& spending) : held_(spending) {}

  Status push(Sample sample);  // LimitReached
  bool pop(Sample& sample);    // false: it is empty

 private:
  HeldBytes held_;
  std::deque<Sample> samples_;
};

enum class Pull : unsigned char {
  Taken,
  Later,  // more points have to be read first
  Ended,
};

class SampleStream {
 public:
  virtual ~SampleStream() = default;
  virtual Result<Pull> pull(Sample& sample) = 0;
};

}  // namespace edgecase::influxql
