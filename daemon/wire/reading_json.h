// Decodes the body of POST /api/v1/readings: one object, an array of them, or NDJSON.
//
//   {"namespace"?,"device","sensor","time"?,"value","type"?,"content_type"?,
//    "measurement"?,"tags"?,"field"?}
//
// A line may hold a column, many readings of a series, in place of one: "time" is that of the
// first, "values" (an array) replaces "value", and "steps" has the nanoseconds from each reading to
// the next, one fewer than there are values. Forwarding sends these (forward/courier.h).
//
// A window of a tier has "window":"1m" and its columns in place of "value" (tiers.h).
//
// measurement, tags (an object of texts) and field: the series' identity, as exports have it.
// time: RFC 3339 text, or whole nanoseconds since 1970; null: none. type: float, int, bool, text,
// bytes; left out, numbers are float64, true and false bool, strings text. bytes are base64.
// Anything else in an object is refused: a misspelt key must not lose data in silence.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kJsonDepthMax = 32;
// In a document of more than a slice's bytes; a double has 767 digits at most.
inline constexpr std::size_t kJsonNumberMaxBytes = 4'096;

// A slice of an array ends with the reading that reaches one of these, so that an array of any size
// takes bounded memory: a reading is several times larger than the shortest text of one.
inline constexpr std::size_t kJsonSliceReadings = 16'384;
inline constexpr std::size_t kJsonSliceBytes = 1u << 20;

// A column has as many readings at most.
inline constexpr std::size_t kJsonColumnMax = kJsonSliceReadings;

// Takes what an array has brought so far; the batch is cleared then. An error ends the decoding.
using JsonSliceTaker = std::function<Status(const ReadingBatch&)>;

struct JsonDecodeOptions {
  std::string_view default_namespace = kDefaultNamespace;
  std::size_t depth_max = kJsonDepthMax;
  std::size_t keys_max = 64;    // of one object
  std::size_t errors_max = 20;  // bad readings named; all are counted
  // Lines: one that begins with `[` is a bad line, and no array.
  enum class Form : unsigned char { Any, Lines } form = Form::Any;
  std::int64_t time_unit_ns = 1;  // what a number as the time counts, since 1970
  // Takes slices of one document, an array above all; what is left at its end stays in the batch.
  // An error further on does not take back a slice that was taken.
  JsonSliceTaker take_slice = {};
  // The same of lines: columns are many readings in little text.
  JsonSliceTaker take_lines = {};
};

struct JsonDecodeOutcome {
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
  std::vector<LineError> errors;  // `line`: of NDJSON, or the element's number in an array
};

// Appends the good readings to `batch` and describes the bad ones in `outcome`. Names and values
// are checked (names.h, reading_key.h); they live in the batch, except the default namespace, which
// is borrowed from `options`.
//
// InvalidArgument, with nothing appended: an empty body, or one that is no JSON as a whole (an
// array with a syntax error has no elements to trust). A bad line of NDJSON spoils only itself.
Status decode_readings_json(std::string_view body, const JsonDecodeOptions& options,
                            ReadingBatch& batch, JsonDecodeOutcome& outcome);

}  // namespace edgecase::wire
