#include "forward/batch.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "wire/decimal.h"

namespace edgecase::forward {
namespace {

// Whether a step leads there.
bool has_step(const Batch::Line& from, const Batch::Line& to) {
  std::int64_t step_ns = 0;
  return !__builtin_sub_overflow(to.key.time_ns, from.key.time_ns, &step_ns);
}

// One object of the readings of a column; of one reading it is as any other.
void append_column(const Batch& batch, const Batch::Column& column,
                   std::span<const std::size_t> lines, std::string& body) {
  body += column.head;
  wire::append_time(batch.lines[lines.front()].key.time_ns, body);
  const char* before = "\",\"steps\":[";
  for (std::size_t i = 1; i < lines.size(); ++i) {
    body += before;
    body +=
        std::to_string(batch.lines[lines[i]].key.time_ns - batch.lines[lines[i - 1]].key.time_ns);
    before = ",";
  }
  before = lines.size() == 1 ? "\",\"value\":" : "],\"values\":[";
  for (const std::size_t line : lines) {
    body += before;
    body += batch.text_of(line).substr(0, batch.text_of(line).size() - 1);
    before = ",";
  }
  if (lines.size() > 1) body += ']';
  if (column.is_int) body += ",\"type\":\"int\"";
  body += "}\n";
}

}  // namespace

std::string Batch::body_of(std::size_t begin, std::size_t end) const {
  std::string body;
  if (begin == end) return body;
  std::vector<std::size_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  // In windows the columns of several series take turns.
  std::stable_sort(numbers.begin(), numbers.end(), [this](std::size_t a, std::size_t b) {
    return lines[a].column < lines[b].column;
  });
  for (std::size_t i = 0; i < numbers.size();) {
    const std::uint32_t column = lines[numbers[i]].column;
    std::size_t upto = i + 1;
    if (column == kWhole) {
      body += text_of(numbers[i]);
    } else {
      while (upto < numbers.size() && lines[numbers[upto]].column == column &&
             has_step(lines[numbers[upto - 1]], lines[numbers[upto]])) {
        ++upto;
      }
      append_column(*this, columns[column], std::span(numbers).subspan(i, upto - i), body);
    }
    i = upto;
  }
  return body;
}

}  // namespace edgecase::forward
