// Points of one group of series, read one by one. Conditions, functions and formulas of a SELECT
// take and give them. One thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "edgecase/iterator.h"
#include "edgecase/result.h"
#include "influxql/rows.h"
#include "wire/reading.h"

namespace edgecase::influxql {

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

}  // namespace edgecase::influxql
