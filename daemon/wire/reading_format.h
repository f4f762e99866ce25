// Readings as bytes for people and programs: csv, ndjson, json, line.
// Used by the daemon's answers, by export, and by the CLI. The table of a terminal is the CLI's
// own.
//
//   csv     header `namespace,device,sensor,time,value,type`, one reading a line, RFC 4180 quotes,
//           lines end in LF. type: float int bool text bytes; bytes are base64, and a content type
//           other than kDefaultContentType follows as `bytes;image/jpeg`.
//           With WindowColumns::Told more columns follow, of windows (wire/tiers.h).
//   ndjson  one object a line, as POST /api/v1/readings takes them. `type` is there for int and
//           bytes only; bytes also have `content_type`. `measurement`, `tags` and `field` are there
//           where the identity is not the one that the names give.
//   json    the same objects in one array.
//   line    Influx line protocol, of the series' identity, or `sensor,device=DEVICE value=VALUE
//           NANOSECONDS`: with the mapping of line_protocol.h it leads back to the same series.
//           It names no namespace; where several are asked for, LineNamespaces::Told, a comment `#
//           CONTEXT-DATABASE: NAMESPACE` stands before the readings of each, below a first line `#
//           DML`: as `influx -import` takes them, and `edgecase import`. A reading without a line
//           form becomes a comment line beginning with `#`, which parsers pass over: bytes, and
//           names that line protocol cannot quote (ending in `\`, empty, or a measurement beginning
//           with `#`).
//
// Floats print in the shortest form that reads back equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "wire/decimal.h"
#include "wire/encoding.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::wire {

enum class ReadingFormat : unsigned char { Csv, Ndjson, Json, Line };
enum class LineNamespaces : unsigned char { NotTold, Told };
// Whether windows of tiers may come, whose columns CSV tells of at its beginning.
enum class WindowColumns : unsigned char { NotTold, Told };
// A whole line in front of line protocol: `namespace_name` is that of what follows.
void append_line_context(std::string_view namespace_name, std::string& out);
Result<ReadingFormat> parse_reading_format(std::string_view name);
std::string_view content_type_of(ReadingFormat format);

// Appends to a buffer that the caller empties: begin(), reading()..., end().
class ReadingFormatter {
 public:
  explicit ReadingFormatter(ReadingFormat format,
                            LineNamespaces namespaces = LineNamespaces::NotTold,
                            WindowColumns windows = WindowColumns::NotTold)
      : format_(format),
        tells_namespaces_(format == ReadingFormat::Line && namespaces == LineNamespaces::Told),
        tells_windows_(windows == WindowColumns::Told) {}
  void begin(std::string& out);
  void reading(const Reading& reading, std::string& out);  // time_ns must be set
  // As reading() of each of these, with the names and the identity of `of`.
  void numbers(const Reading& of, const Numbers& numbers, std::string& out);
  void end(std::string& out);
  // What an object of this series has before its time; for NDJSON alone.
  void begin_column(const Reading& of, std::string& out);

  // Instead of reading(), where a text or bytes come in pieces: `value.text` means nothing then.
  // The same comes of it, but that CSV always quotes a text. False: that was all of it, since the
  // format has no form for such a value.
  [[nodiscard]] bool begin_text(const Reading& reading, std::string& out);
  void text(const Reading& reading, std::string_view piece, std::string& out);
  void end_text(const Reading& reading, std::string& out);

 private:
  void open_object(std::string& out);
  void tell_namespace(const Reading& reading, std::string& out);
  void tell_window(const Reading& reading, std::string& out);
  void append_csv(const Reading& reading, std::string& out);
  const Identity* identity_of_reading(const Reading& reading);

  // The identity of the readings before, by what they said of it.
  struct Told {
    std::string device, sensor, device_keys, body;
    std::uint16_t measurement_bytes = 0;
    Identity identity;
  };

  ReadingFormat format_;
  bool tells_namespaces_, tells_windows_;
  std::int64_t told_window_ns_ = 0;  // of the lines before; 0: they were readings
  std::string told_;                 // of the readings before; empty: none
  std::optional<Told> identity_;
  bool first_ = true;
  Base64Encoder base64_;
  DoublePrinter doubles_;
  TimePrinter times_;
};

// With quotes where RFC 4180 wants them, and around empty text and outer spaces.
void append_csv_field(std::string_view text, std::string& out);

}  // namespace edgecase::wire
