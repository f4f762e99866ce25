// What POST /api/v1/readings takes: one object, an array of them, or NDJSON.
//
//   {"namespace"?,"device","sensor","time"?,"value","type"?,"content_type"?}
//
// time: RFC 3339 text, or whole nanoseconds since 1970. type: float, int, bool, text, bytes; left
// out, numbers are float64, true and false bool, strings text. bytes are base64. Anything else in
// an object is refused: a misspelt key must not lose data in silence.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kJsonDepthMax = 32;

struct JsonDecodeOptions {
  std::string_view default_namespace = kDefaultNamespace;
  std::size_t depth_max = kJsonDepthMax;
  std::size_t keys_max = 64;    // of one object
  std::size_t errors_max = 20;  // bad readings named; all are counted
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
