// The answer of one statement, series after series and row after row, as it is made: whoever shows
// it (http/influx_query.h) takes what it has room for. Nothing is built up that grows with the
// answer. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/result.h"
#include "query/given_readings.h"

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

}  // namespace edgecase::influxql
