// Influx line protocol to readings.
//
//   measurement[,tag=value...] field=value[,field=value...] [timestamp]
//
// One line is one instant; each field becomes a reading (CONTRACT section 6):
//   device  `DOMAIN.ENTITY_ID` of the tags `domain` and `entity_id` (Home Assistant), else the
//           value of the tag `device` (but of a system input of Telegraf, where that is a disk),
//           else of the tag `host`, else the measurement
//   sensor  measurement and the field's key, joined by `.`; a field named `value` is left out. Then
//           the tags that do not name the device, as `{key=value,...}` in the order of their keys.
//           `/` and control characters become `:`, what is too long is cut (names.h). A line whose
//           name by the rule of version 0.1 is stored goes on there (KnownSeries)
//   value   `1`, `1.5e3`: float64 · `1i`, `1u`: int64 · t T true True TRUE f F false False FALSE:
//           bool · `"..."`: text, in which `\"` and `\\` are escapes and line breaks are allowed
//
// `\` escapes a comma, a space and (not in the measurement) an equals sign; before anything else it
// is itself. Blank lines and lines that begin with `#` are skipped, a carriage return before the
// line feed too; where LineContexts::Followed, `# CONTEXT-DATABASE: NAMESPACE` names the namespace
// of the lines that follow, `# CONTEXT-WINDOW: 1m` says that they are windows of tiers
// (tiers.h) up to `# CONTEXT-WINDOW:`, and the statements of InfluxDB's own exports,
// `CREATE …` between `# DDL` and `# DML`, are passed over. A line is taken whole or not at all:
// what is wrong with it becomes a LineError, and decoding goes on with the next line.
//
// Use: while (decoder.next(batch)) { hand the batch over; batch.clear_readings(); }
// One thread. Readings borrow from the body and from the batch; where a name is equal to that of an
// earlier line of the same slice, its view has mostly the same address, also where it is equal to
// one of an earlier slice under the same ReadingBatch::text_id(). Most series of names that come
// again are numbered (ReadingBatch::numbering).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "wire/line_names.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kFieldsPerLineMax = 8'192;
// A slice ends after the line that reaches this many readings, so that a body of any size takes
// bounded memory: a reading is many times larger than the shortest field. So many
// stay in a processor's own cache for all that is done with them until they are stored.
inline constexpr std::size_t kReadingsPerSlice = 2'048;

enum class InfluxVersion : unsigned char { V1, V2 };

// Nanoseconds in one unit. V1: "" n ns u us µ ms s m h. V2: "" ns us ms s. InvalidArgument names
// the ones there are.
Result<std::int64_t> parse_precision_ns(std::string_view text, InfluxVersion version);

// A comment in files (reading_format.h); what comes over HTTP says where it belongs by itself.
inline constexpr std::string_view kLineContext = "# CONTEXT-DATABASE:";
inline constexpr std::string_view kLineWindow = "# CONTEXT-WINDOW:";
enum class LineContexts : unsigned char { PassedOver, Followed };

struct LineProtocolOptions {
  std::string_view namespace_name = kDefaultNamespace;  // must outlive the readings
  std::int64_t unit_ns = 1;                             // of timestamps
  std::size_t error_limit = 20;                         // bad lines that are named
  LineContexts contexts = LineContexts::PassedOver;
  const LineRules* rules = nullptr;  // outlives the decoder; names given to it have their own
};

class LineProtocolDecoder {
 public:
  // `body` must outlive the decoder and every reading. `names`, which must outlive the decoder,
  // knows names from other bodies that were decoded into the same batch, and remembers those of
  // this one.
  LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options, LineNames& names);
  LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options);
  LineProtocolDecoder(const LineProtocolDecoder&) = delete;
  LineProtocolDecoder& operator=(const LineProtocolDecoder&) = delete;

  // Adds the next slice to `batch`, which must be empty. False: the body is used up and `batch` is
  // empty.
  bool next(ReadingBatch& batch);

  // Bytes of the body that are still to be decoded.
  std::size_t left() const { return static_cast<std::size_t>(end_ - position_); }
  std::uint64_t good_lines() const { return good_lines_; }
  std::uint64_t bad_lines() const { return bad_lines_; }
  // The first `error_limit` bad lines.
  const std::vector<LineError>& errors() const { return errors_; }

 private:
  bool decode_line(ReadingBatch& batch);  // false: bad, and why_ says why
  bool decode_names(ReadingBatch& batch);
  bool decode_fields(ReadingBatch& batch);
  bool decode_field_key(ReadingBatch& batch, Reading& reading);
  bool join_windows(ReadingBatch& batch, std::size_t first);
  bool decode_value(ReadingBatch& batch, Value& value);
  bool decode_number(Value& value);
  bool decode_integer(const char* begin, Value& value);
  bool decode_text(ReadingBatch& batch, Value& value);
  bool decode_bool(Value& value);
  bool decode_timestamp(std::int64_t& time_ns);
  void skip_to_content();
  std::string_view rest_of_line();
  void take_comment(std::string_view line);
  void skip_bad_line(const char* begin);
  void skip_blanks();
  bool at_line_end() const;
  bool fail(std::string why);

  const char* position_;
  const char* const end_;
  const LineProtocolOptions options_;
  std::string_view namespace_name_;       // of the line at hand
  const bool ascii_;                      // the whole body: no text needs a UTF-8 check
  std::unique_ptr<LineNames> own_names_;  // null: somebody else's
  LineNames& names_;
  std::string scratch_;

  std::uint64_t line_ = 1;
  std::string why_;
  std::uint64_t good_lines_ = 0;
  std::uint64_t bad_lines_ = 0;
  std::vector<LineError> errors_;
  bool in_statements_ = false;  // behind "# DDL"
  // Below kLineWindow: of windows, the columns of the line at hand.
  std::int64_t window_ns_ = 0;  // 0: lines are readings
  std::vector<std::string_view> columns_;
};

}  // namespace edgecase::wire
