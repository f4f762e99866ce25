#include "bench/sensor_lines.h"

#include <charconv>

#include "edgecase/random.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

struct Field {
  const char* name;
  std::int64_t start;  // in units of the last decimal
  int decimals;
  std::uint64_t step;  // at most, from one reading to the next
};

// What a weather and energy node reports.
constexpr Field kLineFields[] = {
    {"temperature", 215, 1, 2}, {"humidity", 482, 1, 4}, {"pressure", 10132, 1, 1},
    {"co2", 640, 0, 9},         {"light", 3100, 0, 120}, {"voltage", 23010, 2, 25},
    {"current", 145, 2, 12},    {"power", 3330, 1, 60},  {"battery", 987, 1, 1},
    {"signal", 67, 0, 3},
};
constexpr std::size_t kFieldCount = sizeof kLineFields / sizeof kLineFields[0];

void append_number(std::string& out, std::int64_t number) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

void append_decimal(std::string& out, std::int64_t number, int decimals) {
  std::int64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  if (number < 0) {
    out += '-';
    number = -number;
  }
  append_number(out, number / scale);
  if (decimals == 0) return;
  out += '.';
  std::string rest = std::to_string(number % scale);
  out.append(static_cast<std::size_t>(decimals) - rest.size(), '0').append(rest);
}

}  // namespace

std::vector<std::string> make_sensor_bodies(const SensorLineOptions& options) {
  SeededRandom random(options.seed);
  std::vector<std::int64_t> walks;
  for (std::uint32_t device = 0; device < options.devices; ++device) {
    for (std::uint32_t i = 0; i < options.fields; ++i) {
      const Field& field = kLineFields[i % kFieldCount];
      const auto spread = static_cast<std::uint64_t>(field.start / 5 + 1);
      walks.push_back(field.start + static_cast<std::int64_t>(random.below(spread)));
    }
  }
  std::vector<std::string> bodies;
  for (std::uint64_t line = 0; line < options.lines; ++line) {
    if (line % options.lines_per_body == 0) bodies.emplace_back();
    std::string& body = bodies.back();
    const std::uint64_t device = line % options.devices;
    body += "node,device=node-";
    append_number(body, static_cast<std::int64_t>(device));
    for (std::uint32_t i = 0; i < options.fields; ++i) {
      const Field& field = kLineFields[i % kFieldCount];
      std::int64_t& walk = walks[device * options.fields + i];
      walk += static_cast<std::int64_t>(random.below(2 * field.step + 1)) -
              static_cast<std::int64_t>(field.step);
      body += i == 0 ? ' ' : ',';
      body += field.name;
      if (i >= kFieldCount) append_number(body, static_cast<std::int64_t>(i / kFieldCount));
      body += '=';
      append_decimal(body, walk, field.decimals);
    }
    body += ' ';
    append_number(body, options.start_ns + static_cast<std::int64_t>(line / options.devices) *
                                               kNanosecondsPerSecond);
    body += '\n';
  }
  return bodies;
}

}  // namespace edgecase::cli::bench
