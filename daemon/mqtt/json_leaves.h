// A JSON document as the flat list of its leaves, in the order they come. Reads any JSON value; a
// scalar is one leaf whose pointer is empty. Nothing is built but the list, and depth and number of
// leaves are limited while reading. Pointers are those of RFC 6901. Functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::mqtt {

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
