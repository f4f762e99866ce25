// A batch that goes to a target at once: readings as lines, in parts of one request each, and the
// keys of the stored readings that they are. Made by BatchReader, sent by Courier. One thread.
//
// Lines of line protocol, of texts and of bytes are whole. Of a number that goes to an EdgeCase a
// line is its value alone: a request brings all of a series as one column (wire/reading_json.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "forward/cursor.h"
#include "forward/records.h"
#include "wire/reading_key.h"

namespace edgecase::forward {

struct Batch {
  // A batch takes so much, beside one value that may be larger.
  static constexpr std::size_t kTextMaxBytes = 512u << 10;
  static constexpr std::size_t kLinesMax = 16'384;
  // A larger value goes to no target: it is counted as unfit.
  static constexpr std::size_t kValueMaxBytes = 4u << 20;

  static constexpr std::uint32_t kWhole = UINT32_MAX;

  struct Line {
    std::uint32_t end = 0;  // of its text
    NamespaceId namespace_id = 0;
    wire::ReadingKey key;
    std::uint32_t column = kWhole;  // of which it is a value
  };
  struct Column {
    std::string head;  // of its object, up to the time
    bool is_int = false;
  };
  // Lines of one request, by number.
  struct Part {
    std::string database;  // at the target: of line protocol; else empty
    std::size_t begin = 0, end = 0;
  };

  std::string text;
  std::vector<Line> lines;
  std::vector<Column> columns;
  std::size_t head_bytes = 0;  // of all columns
  std::vector<Part> parts;
  // Rules of its series that the target does not know, a line of PUT /api/v1/retention each.
  std::string rules;
  std::vector<std::pair<catalog::SeriesId, std::string>> said;  // what they say, of which series
  std::uint64_t revocations = 0;  // Engine::revocations() before it was read
  std::uint64_t unfit = 0;        // readings that no target of this kind can hold
  UnsentCounts unsent = {};       // of windows that are not whole any more
  // For thinned targets: a line stands for all readings of so long from its time on.
  std::int64_t window_ns = 0;
  bool is_whole = true;  // nothing of the range is left behind it
  Place last;            // where it ends, if something is

  bool is_full(std::size_t lines_max = kLinesMax) const {
    return text.size() + head_bytes >= kTextMaxBytes || lines.size() >= lines_max;
  }
  std::string_view text_of(std::size_t line) const {
    const std::size_t from = line == 0 ? 0 : lines[line - 1].end;
    return std::string_view(text).substr(from, lines[line].end - from);
  }
  // The request that brings these lines.
  std::string body_of(std::size_t begin, std::size_t end) const;
  void clear() { *this = Batch(); }
};

inline Place place_of(const Batch::Line& line) {
  return {line.namespace_id, wire::make_reading_key(line.key)};
}

}  // namespace edgecase::forward
