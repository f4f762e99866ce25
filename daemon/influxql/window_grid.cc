#include "influxql/window_grid.h"

#include "wire/time_text.h"

namespace edgecase::influxql {
namespace {

// Sums that stay between InfluxDB's first and last time.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return b < 0 ? kMinTime : kMaxTime;
  return result < kMinTime ? kMinTime : result > kMaxTime ? kMaxTime : result;
}

// Never negative.
std::int64_t rest_of(std::int64_t time_ns, std::int64_t every_ns) {
  const std::int64_t rest = time_ns % every_ns;
  return rest < 0 ? rest + every_ns : rest;
}

std::int64_t floor_seconds(std::int64_t time_ns) {
  const std::int64_t whole = time_ns / wire::kNanosecondsPerSecond;
  return time_ns % wire::kNanosecondsPerSecond < 0 ? whole - 1 : whole;
}

}  // namespace

WindowGrid::WindowGrid(std::int64_t every_ns, std::int64_t offset_ns, const wire::TimeZone* zone,
                       const TimeSpan& span)
    : every_ns_(every_ns), offset_ns_(offset_ns), zone_(zone), span_(span) {}

std::int64_t WindowGrid::zone_offset_ns(std::int64_t time_ns) const {
  if (zone_ == nullptr) return 0;
  return zone_->offset_at(floor_seconds(time_ns)) * wire::kNanosecondsPerSecond;
}

// Windows are not moved by a clock's change that is as long as they are.
bool WindowGrid::is_small(std::int64_t shift_ns) const {
  return shift_ns != 0 && shift_ns > -every_ns_ && shift_ns < every_ns_;
}

Window WindowGrid::window_of(std::int64_t time_ns) const {
  if (!is_cut()) return {span_.from_ns, span_.to_ns + 1};
  const std::int64_t time = sum(time_ns, -offset_ns_);
  const std::int64_t zone = zone_offset_ns(time);
  // Each by itself: their sum may not fit.
  std::int64_t behind = rest_of(time, every_ns_);
  const std::int64_t zone_missing = every_ns_ - rest_of(zone, every_ns_);
  behind = behind >= zone_missing ? behind - zone_missing : behind - zone_missing + every_ns_;

  Window window{sum(time, -behind), sum(time, every_ns_ - behind)};
  if (zone_ != nullptr) {
    const std::int64_t shift = zone - zone_offset_ns(window.from_ns);
    if (is_small(shift)) window.from_ns = sum(window.from_ns, shift);

    // Clocks that go back lengthen the window before; ones that go forward shorten it, unless the
    // change lies behind it.
    const std::int64_t end_zone = zone_offset_ns(window.end_ns);
    const std::int64_t end_shift = zone - end_zone;
    if (is_small(end_shift)) {
      const std::int64_t end = sum(window.end_ns, end_shift);
      if (end_shift > 0 || zone_offset_ns(end) == end_zone) window.end_ns = end;
    }
  }
  window.from_ns = sum(window.from_ns, offset_ns_);
  window.end_ns = sum(window.end_ns, offset_ns_);
  return window;
}

std::int64_t WindowGrid::shown_time(std::int64_t time_ns) const {
  const std::int64_t from = window_of(time_ns).from_ns;
  return from == kMinTime ? 0 : from;
}

std::int64_t WindowGrid::step(std::int64_t from_ns, bool is_descending,
                              std::int64_t& zone_offset_ns) const {
  std::int64_t next = sum(from_ns, is_descending ? -every_ns_ : every_ns_);
  if (zone_ == nullptr) return next;
  const std::int64_t offset = this->zone_offset_ns(next - 1);
  if (offset == zone_offset_ns) return next;
  const std::int64_t shift = zone_offset_ns - offset;
  if (is_small(shift)) next = sum(next, shift);
  zone_offset_ns = offset;
  return next;
}

}  // namespace edgecase::influxql
