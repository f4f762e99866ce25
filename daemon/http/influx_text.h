// Rows of InfluxQL as InfluxDB 1.x writes them: JSON or CSV, as one document or in chunks of rows.
// Used by influx_answer.h alone. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "influxql/points.h"

namespace edgecase::http {

// How a request wants its answer.
struct InfluxShape {
  bool is_csv = false;
  bool is_pretty = false;
  std::int64_t epoch_ns = 0;   // times are counts of this unit; 0: RFC 3339, and in CSV nanoseconds
  std::size_t chunk_rows = 0;  // 0: not in chunks
};

// Calls come in this order, for each statement: (begin_series row* end_series)* end_statement; then
// end. Each appends to `out`.
class InfluxText {
 public:
  virtual ~InfluxText() = default;
  virtual void begin_series(std::size_t statement, const influxql::SeriesHead& head,
                            std::string& out) = 0;
  // `zone` says in which offset times are told.
  virtual void row(const std::vector<influxql::Cell>& cells, const influxql::RowSource& zone,
                   std::string& out) = 0;
  // The same of the rows from `first` to before `last`.
  virtual void rows(const influxql::NumberRows& rows, std::size_t first, std::size_t last,
                    const influxql::RowSource& zone, std::string& out) = 0;
  // `goes_on`: more rows of this series come; `more`: more of this statement.
  virtual void end_series(bool goes_on, bool more, std::string& out) = 0;
  // What went wrong, and what is said beside; empty: nothing.
  virtual void end_statement(std::size_t statement, std::string_view error, std::string_view notice,
                             std::string& out) = 0;
  virtual void end(std::string& out) = 0;
};

std::unique_ptr<InfluxText> make_influx_text(const InfluxShape& shape);

// As Go's encoding/json prints it: the shortest digits that read back equal, with an exponent below
// 1e-6 and from 1e21 on. JSON has no word for what is no number: null.
void append_go_number(double value, std::string& out);
// The same without an exponent, as Go's FormatFloat(…, 'f', -1, 64).
void append_plain_number(double value, std::string& out);
// RFC 3339 with as many digits of the second as it needs, `offset_s` seconds east of UTC.
void append_go_time(std::int64_t time_ns, std::int64_t offset_s, std::string& out);

}  // namespace edgecase::http
