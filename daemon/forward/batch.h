// A batch that goes to a target at once: readings as lines, in parts of one request each, and the
// keys of the stored readings that they are. Made by BatchReader, sent by Courier. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forward/cursor.h"
#include "wire/reading_key.h"

namespace edgecase::forward {

struct Batch {
  // A batch takes so much, beside one value that may be larger.
  static constexpr std::size_t kTextMaxBytes = 512u << 10;
  static constexpr std::size_t kLinesMax = 16'384;
  // A larger value goes to no target: it is counted as unfit.
  static constexpr std::size_t kValueMaxBytes = 4u << 20;

  struct Line {
    std::uint32_t end = 0;  // of its text
    NamespaceId namespace_id = 0;
    wire::ReadingKey key;
  };
  // Lines of one request, by number.
  struct Part {
    std::string database;  // at the target: of line protocol; else empty
    std::size_t begin = 0, end = 0;
  };

  std::string text;
  std::vector<Line> lines;
  std::vector<Part> parts;
  std::uint64_t revocations = 0;  // Engine::revocations() before it was read
  std::uint64_t unfit = 0;        // readings that no target of this kind can hold
  // For thinned targets: a line stands for all readings of so long from its time on.
  std::int64_t window_ns = 0;
  bool is_whole = true;  // nothing of the range is left behind it
  Place last;            // where it ends, if something is

  std::string_view text_of(std::size_t begin, std::size_t end) const {
    const std::size_t from = begin == 0 ? 0 : lines[begin - 1].end;
    return std::string_view(text).substr(from, begin == end ? 0 : lines[end - 1].end - from);
  }
  void clear() { *this = Batch(); }
};

inline Place place_of(const Batch::Line& line) {
  return {line.namespace_id, wire::make_reading_key(line.key)};
}

}  // namespace edgecase::forward
