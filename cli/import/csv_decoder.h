// CSV as ReadingFormatter writes it (wire/reading_format.h), back into readings.
//
// The header names the columns, in any order: device, sensor, time and value must be there,
// namespace and type may. time is what parse_absolute_time_ns() takes. Without a type, numbers are
// floats, true and false are bools, the rest is text; a cell that says that there is no value
// (empty, `nan`, `NULL`: wire/NUMBERS.md) is no reading, unless its type is text. Quotes as in
// RFC 4180, lines end in LF or CRLF. A bad record costs itself alone; where a quote is never
// closed, its first line.
//
// What export writes with --layout wide is known by its first line: `time`, and else names with a
// slash. Its cells tell their types, a text by its quotes (daemon/http/reading_pieces.h).
//
// A file that is not EdgeCase's own says in its form which columns are what. It may be wide: a
// column for each sensor, whose name is the column's; then a cell costs itself alone, and `NA`,
// `N/A`, `None` without quotes are no readings.
//
// What spreadsheets make of such a file is taken too: a byte order mark, `sep=;`, TRUE and True,
// 5.0 for an int, columns and rows without anything in them; other separators and decimal marks
// where the form says so. What they destroyed (times, digits) is refused.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_options.h"
#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::wire {

class TimeZone;
}  // namespace edgecase::wire

namespace edgecase::cli {

// The format of times in a file that is not EdgeCase's own (time_format.cc): --time-format of
// `import`.
//
// A count since 1970 in a unit (unix, unix_ms, unix_us, unix_ns), or a pattern of strptime(3)'s
// letters, of which these are known: %Y %y %m %d %j %H %I %p %M %S %f %b %B %z %s %T %F %D %R %%.
// %f is digits behind a decimal point, as many as there are; %b and %B are English. White space in
// the pattern is any, or none. Immutable.
class TimeFormat {
 public:
  // InvalidArgument: neither a unit nor a pattern that says day and time.
  static Result<TimeFormat> parse(std::string_view text);

  // What a whole number counts, in nanoseconds; 0: this is a pattern.
  std::int64_t unit_ns() const { return unit_ns_; }

  // InvalidArgument: not so, no such day, or beyond what 64-bit nanoseconds hold. `zone`: whose
  // clock it is where the text names no offset; null: such a text is refused.
  Result<std::int64_t> read(std::string_view text, const wire::TimeZone* zone) const;

 private:
  std::int64_t unit_ns_ = 0;
  std::string pattern_;  // without %T, %F and the like
};

struct CsvForm {
  char delimiter = ',';
  char decimal_mark = '.';
  Zone zone = nullptr;  // whose clock times without an offset are
  std::optional<TimeFormat> time_format = {};

  // Names of columns of the first line; empty: as export has them.
  std::vector<std::string> time_columns = {};  // read together, with a blank between them
  std::string device_column = {};
  std::string device = {};                      // of every reading, in place of a column
  std::string sensor_column = {};               // the file is long: a reading a line
  std::vector<std::string> value_columns = {};  // of a wide file; "*", or none: all others

  // Whether the first line is read otherwise than export's.
  bool is_foreign() const {
    return !time_columns.empty() || !device_column.empty() || !device.empty() ||
           !sensor_column.empty() || !value_columns.empty();
  }
};

class CsvDecoder {
 public:
  // A slice ends with the record that reaches this; one of a wide file is not cut.
  static constexpr std::size_t kReadingsPerSlice = 8'192;
  static constexpr std::size_t kValueColumnsMax = 4'096;

  // `body` and `default_namespace` outlive the decoder and its readings. InvalidArgument: a header
  // that is none.
  static Result<CsvDecoder> create(std::string_view body, std::string_view default_namespace,
                                   std::size_t error_limit, const CsvForm& form = {});

  // Adds the next slice to `batch`, which must be empty. False: the body is used up.
  bool next(wire::ReadingBatch& batch);

  // Bytes of the body that are still to be decoded.
  std::size_t left() const { return rest_.size(); }
  // Whether a time was written as a number without a format that says so.
  bool counts_times() const { return counts_times_; }
  // Records, or cells of a wide file, that say that there is no value.
  std::uint64_t no_values() const { return no_values_; }
  std::uint64_t bad_lines() const { return bad_lines_; }
  const std::vector<wire::LineError>& errors() const { return errors_; }

 private:
  enum Column : unsigned char { kNamespace, kDevice, kSensor, kTime, kValue, kType, kColumns };

  CsvDecoder(std::string_view body, std::string_view default_namespace, std::size_t error_limit,
             const CsvForm& form)
      : rest_(body),
        default_namespace_(default_namespace),
        error_limit_(error_limit),
        form_(form) {}

  // A column of a wide file.
  struct ValueColumn {
    std::size_t index = 0;
    std::string sensor;
    std::string device = {}, namespace_name = {};  // of a file of --layout wide
  };

  Status take_header();
  Status take_own_header();
  bool is_own_wide() const;
  Status take_own_wide_header();
  Status take_foreign_header();
  Status unknown_column(std::string_view name) const;
  std::string other_delimiter() const;
  Status find_column(std::string_view name, std::size_t& index) const;
  bool is_blank_record() const;
  // The next record's fields. Views into the body, or into `batch` where quotes were taken out.
  Status take_record(wire::ReadingBatch& batch);
  Status take_quoted_field(std::string_view& text, wire::ReadingBatch& batch);
  Status add_readings(std::uint64_t line, wire::ReadingBatch& batch);
  Status add_own_wide_readings(std::uint64_t line, wire::ReadingBatch& batch);
  Result<std::optional<wire::Value>> build_own_cell(const ValueColumn& column,
                                                    wire::ReadingBatch& batch) const;
  // A reading with all but sensor and value; then these, and the reading into `batch`.
  Result<wire::Reading> begin_reading();
  Status add_reading(wire::Reading reading, std::string_view value, wire::ReadingBatch& batch);
  Result<std::int64_t> time_of_record();
  // nullopt: it says that there is no value.
  Result<std::optional<wire::Value>> build_value(std::string_view text,
                                                 wire::ReadingBatch& batch) const;
  void tell(std::uint64_t line, const Status& why);
  std::string_view field(Column column) const;

  std::string_view rest_;
  const std::string_view default_namespace_;
  const std::size_t error_limit_;
  CsvForm form_;
  std::array<std::size_t, kColumns> columns_{};  // of a record; SIZE_MAX: not there
  std::vector<std::size_t> time_columns_;
  std::vector<ValueColumn> value_columns_;  // empty: the file is long
  std::size_t column_count_ = 0;
  std::vector<std::string_view> fields_;
  std::vector<bool> are_quoted_;  // of these
  bool is_own_wide_ = false;
  std::uint64_t line_ = 1;
  bool counts_times_ = false;
  std::uint64_t no_values_ = 0;
  std::uint64_t bad_lines_ = 0;
  std::vector<wire::LineError> errors_;
};

}  // namespace edgecase::cli
