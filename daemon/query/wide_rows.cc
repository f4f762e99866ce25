#include "query/wide_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "query/cursors.h"
#include "query/tiered_cursor.h"
#include "wire/decimal.h"
#include "wire/time_text.h"

namespace edgecase::query {
namespace {

std::optional<double> number_of(const wire::Value& value) {
  switch (value.type) {
    case wire::ValueType::Float64: return value.float64;
    case wire::ValueType::Int64: return static_cast<double>(value.int64);
    default: return std::nullopt;
  }
}

// From `from` to `to`, which may be further apart than an int64 tells.
double distance(std::int64_t from, std::int64_t to) {
  return static_cast<double>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
}

}  // namespace

Result<FillRule> parse_fill(std::string_view text) {
  if (text == "none") return FillRule{Fill::None};
  if (text == "null") return FillRule{Fill::Null};
  if (text == "previous") return FillRule{Fill::Previous};
  if (text == "linear") return FillRule{Fill::Linear};
  double number = 0;
  if (wire::read_number(text, number) == wire::NumberText::Number)
    return FillRule{Fill::Number, number};
  return invalid_argument("fill is none of none, null, previous, linear, or a number");
}

// The next reading of a column. Views that it comes with are valid no more once somebody lets go.
Status WideRows::advance(Column& column) {
  if (!column.behind.empty()) {
    const auto [time_ns, bits] = column.behind.back();
    column.behind.pop_back();
    column.head_ns = time_ns;
    column.head = column.are_floats ? wire::Value::of_float64(std::bit_cast<double>(bits))
                                    : wire::Value::of_int64(static_cast<std::int64_t>(bits));
    column.head_large = nullptr;
    return ok();
  }
  wire::Reading reading;
  EC_ASSIGN_OR_RETURN(column.has_head, column.cursor->next(reading));
  if (!column.has_head) return ok();
  column.head_ns = reading.time_ns.value_or(0);
  column.head = reading.value;
  column.head_large = column.cursor->large_text();
  if (reading.value.type < wire::ValueType::Text) {
    const wire::Numbers numbers = column.cursor->take_numbers(kWideNumbersAhead);
    column.are_floats = numbers.is_float;
    for (std::size_t i = numbers.size(); i > 0; --i)
      column.behind.emplace_back(numbers.times_ns[i - 1], numbers.bits[i - 1]);
    return ok();
  }
  column.head_type = reading.value.content_type;
  column.head.content_type = column.head_type;
  column.head_text = column.head_large == nullptr ? reading.value.text : std::string_view();
  column.head.text = column.head_text;
  return ok();
}

Status WideRows::begin() {
  for (Column& column : columns_) EC_TRY(advance(column));
  return ok();
}

std::optional<std::int64_t> WideRows::next_time() const {
  std::optional<std::int64_t> next;
  for (const Column& column : columns_) {
    if (!column.has_head) continue;
    const bool is_sooner =
        !next || (options_.descending ? column.head_ns > *next : column.head_ns < *next);
    if (is_sooner) next = column.head_ns;
  }
  const bool has_windows = options_.windows.every_ns > 0 && options_.fill.fill != Fill::None;
  return has_windows ? next_window(next) : next;
}

// Every window has its row: from the first one that is asked for, or has a reading.
std::optional<std::int64_t> WideRows::next_window(std::optional<std::int64_t> head_ns) const {
  const WideWindows& windows = options_.windows;
  const auto& begin = options_.descending ? windows.last_ns : windows.first_ns;
  const auto& end = options_.descending ? windows.first_ns : windows.last_ns;
  std::int64_t next = 0;
  if (rows_ == 0) {
    if (!head_ns) return std::nullopt;
    next = begin.value_or(*head_ns);
  } else {
    const std::int64_t step = options_.descending ? -windows.every_ns : windows.every_ns;
    if (__builtin_add_overflow(row_ns_, step, &next)) return head_ns;
  }
  // A first window may begin before all times there are.
  if (head_ns && (options_.descending ? *head_ns >= next : *head_ns <= next)) return head_ns;
  const bool is_behind = end && (options_.descending ? next < *end : next > *end);
  if (is_behind || (!head_ns && !end)) return std::nullopt;
  return next;
}

Result<bool> WideRows::next() {
  if (!std::exchange(has_begun_, true)) {
    EC_TRY(begin());
  } else {
    for (Column& column : columns_) {
      if (!column.has_head || column.head_ns != row_ns_) continue;
      column.has_previous = column.head_large == nullptr;
      column.previous_ns = column.head_ns;
      column.previous = column.head;
      column.previous_text.swap(column.head_text);
      column.previous_type.swap(column.head_type);
      column.previous.text = column.previous_text;
      column.previous.content_type = column.previous_type;
      EC_TRY(advance(column));
    }
  }
  if (rows_ >= options_.rows_max) return false;
  const auto next = next_time();
  if (!next) return false;
  row_ns_ = *next;
  ++rows_;
  if (options_.windows.every_ns > 0)
    EC_TRY(check_limit(kWindowsLimit, rows_, options_.windows.rows_max));
  return true;
}

bool WideRows::cell(std::size_t index, wire::Value& value, LargeText*& large) {
  const Column& column = columns_[index];
  large = nullptr;
  if (!column.has_head || column.head_ns != row_ns_) return fill(column, value);
  value = column.head;
  large = column.head_large;
  return true;
}

bool WideRows::fill(const Column& column, wire::Value& value) const {
  switch (options_.fill.fill) {
    case Fill::None:
    case Fill::Null: return false;
    case Fill::Number: value = wire::Value::of_float64(options_.fill.number); return true;
    case Fill::Previous: {
      // Newest first, the reading before in time is the one that comes next.
      const bool is_there = options_.descending ? column.has_head && column.head_large == nullptr
                                                : column.has_previous;
      if (is_there) value = options_.descending ? column.head : column.previous;
      return is_there;
    }
    case Fill::Linear: break;
  }
  if (!column.has_head || !column.has_previous) return false;
  const auto from = number_of(column.previous), to = number_of(column.head);
  if (!from || !to) return false;
  const bool is_up = column.head_ns > column.previous_ns;
  const double part =
      is_up ? distance(column.previous_ns, row_ns_) / distance(column.previous_ns, column.head_ns)
            : distance(row_ns_, column.previous_ns) / distance(column.head_ns, column.previous_ns);
  // Each by itself, as the difference may be no number.
  value = wire::Value::of_float64(*from * (1 - part) + *to * part);
  return true;
}

void WideRows::let_go() {
  for (Column& column : columns_) column.cursor->let_go();
}

// The heads stand in rows of later pieces, and what fills cells does so for long.
GivenReadings WideRows::take_given() {
  const bool keeps_all = options_.fill.fill == Fill::Previous || options_.fill.fill == Fill::Linear;
  GivenReadings all;
  for (Column& column : columns_) {
    GivenReadings fresh = column.cursor->take_given();
    all.add(column.kept);
    all.add(fresh);
    if (keeps_all) {
      column.kept.add(fresh);
    } else if (!fresh.empty()) {
      column.kept = std::move(fresh);
    }
  }
  return all;
}

bool WideRows::is_given_revoked() {
  return std::any_of(columns_.begin(), columns_.end(), [](Column& column) {
    return column.kept.is_revoked() || column.cursor->is_given_revoked();
  });
}

const LeftOut* WideRows::left_out() const {
  left_out_ = of_selection_;
  for (const Column& column : columns_)
    if (const LeftOut* const more = column.cursor->left_out()) left_out_.add(*more);
  return &left_out_;
}

// The lengths of the tiers that a question with `tiers` reads of a series.
std::vector<std::int64_t> QueryService::lengths_of_tiers(const wire::QueryRequest& request,
                                                         catalog::SeriesRow row) const {
  if (!request.tiers || marks_ == nullptr) return {};
  const auto entry = catalog_.series_at(row);
  return entry.ok() ? marks_->find(entry->id).every_ns : std::vector<std::int64_t>();
}

Result<std::unique_ptr<WideRows>> QueryService::wide(const auth::Principal& principal,
                                                     const wire::QueryRequest& request,
                                                     const FillRule& fill, Reach* reach) {
  EC_ASSIGN_OR_RETURN(Found found, find_readable(principal, request, reach));
  std::size_t count = found.series.size();
  for (const catalog::SeriesRow row : found.series)
    count += lengths_of_tiers(request, row).size() * wire::kWindowColumns.size();
  if (count > kWideColumnsMax) {
    return limit_reached(std::to_string(found.series.size()) + " series would be " +
                         std::to_string(count) + " columns, at most " +
                         std::to_string(kWideColumnsMax) +
                         " go side by side: ask for fewer, or for layout=long");
  }
  LeftOut left_out;
  for (LeftOutReadings& each : found.left_out) left_out.add(std::move(each));
  std::vector<WideRows::Column> columns;
  for (const catalog::SeriesRow row : found.series) {
    auto entry = catalog_.series_at(row);
    if (!entry.ok()) continue;
    wire::QueryRequest of_readings = request;
    of_readings.tiers = false;
    EC_ASSIGN_OR_RETURN(auto cursor, run(of_readings, {{row}, {}}, nullptr, reach, kWideTextBytes));
    columns.push_back({entry->namespace_name, entry->device, entry->sensor, std::move(cursor)});
    for (const std::int64_t every_ns : lengths_of_tiers(request, row)) {
      for (const wire::WindowColumn column : wire::kWindowColumns) {
        ReadOptions options;
        options.patience = reach == nullptr ? nullptr : reach->patience;
        options.direction = request.descending ? Direction::Reverse : Direction::Forward;
        auto windows = std::make_unique<TieredCursor>(
            engine_, catalog_, *marks_, std::vector{row}, TimeRange{request.from_ns, request.to_ns},
            options, kNoLimit, std::vector<LeftOutReadings>());
        windows->read_only(every_ns);
        columns.push_back(
            {entry->namespace_name, entry->device,
             wire::column_name(entry->sensor, column) + "@" + wire::format_duration(every_ns),
             std::make_unique<TierColumnCursor>(std::move(windows), column)});
      }
    }
  }
  if (reach != nullptr && request.tiers) reach->tiers = {};
  WideOptions options;
  options.fill = fill;
  options.descending = request.descending;
  options.rows_max = request.limit.value_or(UINT64_MAX);
  options.windows.every_ns = request.every_ns;
  options.windows.rows_max = limits().windows;
  if (request.every_ns > 0) {
    if (request.from_ns != kFirstTime)
      options.windows.first_ns = window_start(request.from_ns, request.every_ns);
    if (request.to_ns && *request.to_ns > request.from_ns)
      options.windows.last_ns = window_start(*request.to_ns - 1, request.every_ns);
  }
  return std::make_unique<WideRows>(std::move(columns), options, std::move(left_out));
}

}  // namespace edgecase::query
