// A message becomes readings: the route says how (CONTRACT section 5).
//
// - `auto`: a number; true/false alone; a JSON object or array, each leaf a reading; other UTF-8
//   text; else bytes. What begins with `{` must be JSON; what only begins with `[` may be text.
//   White space, NULs at the end and a byte order mark around it are no part of it.
// - What a number is, and what `nan` or `0x1F` is, here and elsewhere: wire/NUMBERS.md. In a JSON
//   object a value that is none costs itself alone; `left_out` counts those nobody could read.
// - Sensor: the route's name, then the leaf's keys and indexes joined by `.`; "value" when both are
//   empty. The later of two leaves with one name is called `name~2`.
// - Numbers are float64; integers beyond 2^53 lose digits. JSON null is skipped. JSON texts are
//   texts.
// - Leaves that a pointer of the rule used as device, sensor or time are not stored again. A time
//   that is absent or null, or cannot be read, means: time of arrival. Whether one that can be read
//   is believed, others decide (ingest/reading_times.h).
// - With `records` each element of that array is a message of its own: its time and names are
//   looked up in it, then in the whole. One that has none costs itself; what lies beside is stored
//   too.
// - An empty payload (which is how MQTT clears a retained message) and one without any value are
//   ignored, not rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "edgecase/status.h"
#include "mqtt/topic_rule.h"
#include "wire/reading.h"

namespace edgecase::mqtt {

enum class DecodeOutcome : std::uint8_t {
  Readings,  // at least one in the batch
  Ignored,   // nothing to store, on purpose
  Rejected,  // `reason` says why
};

struct DecodeResult {
  DecodeOutcome outcome = DecodeOutcome::Ignored;
  std::string reason;          // for people: of Rejected, of Ignored, and of what was left out
  std::uint32_t skipped = 0;   // JSON nulls, and values that mean "none"
  std::uint32_t left_out = 0;  // values of the message that nobody can read, beside its readings
  std::size_t records = 0;     // that lie in it, by the rule's `records`
  std::string device_levels;   // what the device's name was made of, where it may be another's too
  const TopicRule* rule = nullptr;
  const Route* route = nullptr;
  std::string time_problem;  // why a time in it cannot be read: then that of arrival counts
};

// Appends to `batch`, all readings or none. They borrow from `payload` and from the batch.
DecodeResult decode_message(const std::vector<TopicRule>& rules,
                            const config::LimitSettings& limits, std::string_view topic,
                            std::string_view payload, wire::ReadingBatch& batch);

// A JSON document as the flat list of its leaves, in the order they come (json_leaves.cc). Reads
// any JSON value; a scalar is one leaf whose pointer is empty. Nothing is built but the list, and
// depth and number of leaves are limited while reading.

// Refused: JSON knows no such value, and nobody could say which it is; it costs itself alone.
enum class JsonKind : std::uint8_t { Null, Bool, Number, Text, Refused };

struct JsonLeaf {
  std::string pointer;  // RFC 6901: "/data/temp", "/list/0"
  JsonKind kind = JsonKind::Null;
  bool boolean = false;
  double number = 0;
  std::string text;  // of Text; of Number and Refused: as it stood there
  // A long Text instead, which nothing but a value may be: what lies between its quotes in the
  // document (wire/json_text.h).
  std::string_view long_text;
};

struct JsonLimits {
  std::size_t depth = 32;
  std::size_t leaves = 1'024;
};

// A value that is none in JSON, as firmware prints it, is what wire/NUMBERS.md says: a number
// (`+5`, `.5`), Null (`nan`, nothing), or Refused (`0x1F`, `1e400`). InvalidArgument: not JSON,
// invalid UTF-8, a limit (named in the message).
Result<std::vector<JsonLeaf>> read_json_leaves(std::string_view text, const JsonLimits& limits);

// "/a/b~1c" is well formed (RFC 6901) and names something: InvalidArgument otherwise.
Status check_json_pointer(std::string_view pointer);

// Whether `pointer` is `root` or leads below it; its part behind the last `/`.
bool lies_at_or_below(std::string_view root, std::string_view pointer);
std::string_view last_token(std::string_view pointer);

// The sensor name of what lies below `root` (a pointer): tokens joined by `.`, `/` inside a key
// becomes `.` too.
std::string name_below(std::string_view root, std::string_view pointer);

}  // namespace edgecase::mqtt
