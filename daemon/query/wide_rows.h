// Readings with a column for each series, aligned by time or by windows: what `layout=wide`
// answers. Columns are cursors of one series each, merged by their times, so that memory grows with
// the columns and not with the rows. One thread; lives no longer than the service.
//
// A row is a time at which a column has a reading; with windows and a fill also each window between
// the first and the last, or from and to where they are given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "query/query_service.h"

namespace edgecase::query {

// A column holds an open scan, some 100 KB with what it has decoded.
inline constexpr std::size_t kWideColumnsMax = 256;
// The next value of each column lies in memory; larger texts and bytes come in pieces.
inline constexpr std::uint64_t kWideTextBytes = 4u << 10;
// How many numbers behind it are taken at once.
inline constexpr std::size_t kWideNumbersAhead = 128;

// What stands where a column has no reading.
enum class Fill : unsigned char {
  None,      // nothing, and no row where no column has one
  Null,      // nothing
  Previous,  // the reading before it in time; none of a large text
  Linear,    // between the numbers before and behind it
  Number,
};
struct FillRule {
  Fill fill = Fill::None;
  double number = 0;
};
// "none", "null", "previous", "linear", or a number.
Result<FillRule> parse_fill(std::string_view text);

// Rows that windows have, where they are filled; both are times of rows.
struct WideWindows {
  std::int64_t every_ns = 0;  // 0: there are none
  std::optional<std::int64_t> first_ns, last_ns;
  std::uint64_t rows_max = 0;
};

struct WideOptions {
  FillRule fill;
  bool descending = false;
  std::uint64_t rows_max = UINT64_MAX;
  WideWindows windows;
};

class WideRows {
 public:
  struct Column {
    std::string namespace_name, device, sensor;
    std::unique_ptr<ReadingCursor> cursor;
    // Its next reading. The text is a copy, unless it is large.
    bool has_head = false;
    std::int64_t head_ns = 0;
    wire::Value head = {};
    std::string head_text = {}, head_type = {};
    LargeText* head_large = nullptr;
    // Numbers behind it, of one type, where they were at hand; the last first.
    std::vector<std::pair<std::int64_t, std::uint64_t>> behind = {};
    bool are_floats = false;
    // The one that stood in a row before.
    bool has_previous = false;
    std::int64_t previous_ns = 0;
    wire::Value previous = {};
    std::string previous_text = {}, previous_type = {};
    GivenReadings kept = {};  // what head and previous were made of, at least
  };
  WideRows(std::vector<Column> columns, const WideOptions& options, LeftOut left_out)
      : columns_(std::move(columns)), options_(options), of_selection_(std::move(left_out)) {}

  const std::vector<Column>& columns() const { return columns_; }
  // To the next row; false at the end. Errors as of ReadingCursor; LimitReached: too many windows.
  Result<bool> next();
  std::int64_t time_ns() const { return row_ns_; }
  // The cell of a column in this row. False: it is empty. `large` is not null where the text is to
  // be read from it, once.
  bool cell(std::size_t column, wire::Value& value, LargeText*& large);

  void let_go();
  GivenReadings take_given();
  // Whether something that waits to stand in a row was revoked.
  bool is_given_revoked();
  const LeftOut* left_out() const;

 private:
  Status advance(Column& column);
  Status begin();
  std::optional<std::int64_t> next_time() const;
  std::optional<std::int64_t> next_window(std::optional<std::int64_t> head_ns) const;
  bool fill(const Column& column, wire::Value& value) const;

  std::vector<Column> columns_;
  const WideOptions options_;
  const LeftOut of_selection_;
  mutable LeftOut left_out_;  // that, and of all columns
  bool has_begun_ = false;
  std::int64_t row_ns_ = 0;
  std::uint64_t rows_ = 0;
};

}  // namespace edgecase::query
