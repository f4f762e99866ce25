#include "catch_up.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

std::string key_of(const wire::Reading& reading) {
  std::string key(reading.namespace_name);
  return key.append("/").append(reading.device).append("/").append(reading.sensor);
}

std::string time_text(std::int64_t time_ns) {
  std::string text;
  wire::append_time(time_ns, text);
  return text;
}

// Whole lines.
Status decode(std::string_view lines, const TakeReading& take) {
  if (lines.find_first_not_of('\n') == std::string_view::npos) return ok();
  wire::ReadingBatch batch;
  wire::JsonDecodeOutcome outcome;
  wire::JsonDecodeOptions options;
  options.form = wire::JsonDecodeOptions::Form::Lines;
  const Status status = wire::decode_readings_json(lines, options, batch, outcome);
  if (!status.ok() || outcome.bad > 0)
    return io_error("the daemon's answer is no list of readings");
  for (const wire::Reading& reading : batch.readings) {
    if (!reading.time_ns) return io_error("the daemon's answer is no list of readings");
    if (!take(reading)) return cancelled("no more readings are wanted");
  }
  return ok();
}

Status get_readings(DaemonClient& client, const std::string& path, const TakeReading& take) {
  ReadingLines lines(take);
  Status taken;
  const Status status = client.get(path, [&](std::string_view piece) {
    taken = lines.push(piece);
    return taken.ok();
  });
  EC_TRY(taken);
  EC_TRY(status);
  return lines.finish();
}

Parameters parameters_of(const wire::Reading& reading, const std::string& purpose) {
  Parameters parameters = {
      {"ns", std::string(reading.namespace_name)},
      {"select", wire::escape_name(reading.device) + "/" + wire::escape_name(reading.sensor)}};
  if (!purpose.empty()) parameters.emplace_back("purpose", purpose);
  return parameters;
}

// What was erased meanwhile, or may be read no more, is no failure.
Status unless_gone(const Status& status) {
  const bool is_gone =
      status.code() == StatusCode::NotFound || status.code() == StatusCode::NotAllowed;
  return is_gone ? ok() : status;
}

}  // namespace

Status ReadingLines::push(std::string_view piece) {
  const std::size_t end = piece.rfind('\n');
  if (end == std::string_view::npos) {
    rest_ += piece;
    return ok();
  }
  rest_ += piece.substr(0, end + 1);
  const std::string lines = std::exchange(rest_, std::string(piece.substr(end + 1)));
  return decode(lines, take_);
}

Status ReadingLines::finish() {
  return rest_.empty() ? ok() : io_error("the daemon's answer broke off");
}

CatchUp::CatchUp(DaemonClient& client, const NamespaceArguments& namespaces,
                 wire::SelectionTexts selection, std::string purpose)
    : client_(client),
      namespaces_(namespaces),
      selection_(std::move(selection)),
      purpose_(std::move(purpose)) {}

bool CatchUp::Newest::is_before(std::int64_t time_ns) const {
  return (wire::is_undated_time(time_ns) ? undated_ns : dated_ns) < time_ns;
}

void CatchUp::Newest::add(std::int64_t time_ns) {
  std::int64_t& newest_ns = wire::is_undated_time(time_ns) ? undated_ns : dated_ns;
  newest_ns = std::max(newest_ns, time_ns);
}

CatchUp::Newest* CatchUp::newest_of(const wire::Reading& reading) {
  std::string key = key_of(reading);
  const auto found = series_.find(key);
  if (found != series_.end()) return &found->second;
  if (series_.size() >= kSeriesMax) return nullptr;
  return &series_.emplace(std::move(key), Newest()).first->second;
}

Status CatchUp::for_each_last(const TakeReading& take) {
  Parameters parameters = {{"ns", namespaces_.parameter()}};
  append_selection(selection_, parameters);
  if (!purpose_.empty()) parameters.emplace_back("purpose", purpose_);
  const Status status = get_readings(client_, path_with(wire::routes::kLast, parameters), take);
  expect_what_is_not_there();
  return unless_gone(status);
}

Status CatchUp::begin() {
  std::vector<std::string> undated;  // behind which the newest that has a time is to be looked for
  EC_TRY(for_each_last([&](const wire::Reading& last) {
    shown(last);
    if (!wire::is_undated_time(*last.time_ns)) return true;
    Parameters parameters = parameters_of(last, purpose_);
    parameters.emplace_back("to", time_text(wire::kUndatedFromNs));
    parameters.emplace_back("desc", "true");
    parameters.emplace_back("limit", "1");
    undated.push_back(path_with(wire::routes::kQuery, parameters));
    return true;
  }));
  for (const std::string& path : undated) {
    EC_TRY(unless_gone(get_readings(client_, path, [this](const wire::Reading& reading) {
      shown(reading);
      return true;
    })));
  }
  return ok();
}

Status CatchUp::show_newest(std::size_t count, const TakeReading& take) {
  // They belong to the series whose last ones are newest.
  std::vector<std::pair<std::int64_t, std::string>> newest;
  const auto is_newer = [](const auto& a, const auto& b) { return a.first > b.first; };
  EC_TRY(for_each_last([&](const wire::Reading& last) {
    Parameters parameters = parameters_of(last, purpose_);
    parameters.emplace_back("desc", "true");
    parameters.emplace_back("limit", std::to_string(count));
    newest.emplace_back(*last.time_ns, path_with(wire::routes::kQuery, parameters));
    std::push_heap(newest.begin(), newest.end(), is_newer);
    if (newest.size() <= count) return true;
    std::pop_heap(newest.begin(), newest.end(), is_newer);
    newest.pop_back();
    return true;
  }));
  wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const auto& [last_ns, path] : newest) {
    EC_TRY(unless_gone(get_readings(client_, path, [&](const wire::Reading& reading) {
      std::string line;
      formatter.reading(reading, line);
      lines.emplace_back(*reading.time_ns, std::move(line));
      return true;
    })));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  ReadingLines readings([&](const wire::Reading& reading) {
    if (const Newest* const of_series = newest_of(reading))
      repeats_.emplace(of_series, *reading.time_ns);
    return take(reading);
  });
  for (const auto& [time_ns, line] : lines) {
    const Status status = readings.push(line);
    if (status.code() == StatusCode::Cancelled) return ok();
    EC_TRY(status);
  }
  return ok();
}

void CatchUp::shown(const wire::Reading& reading) {
  if (Newest* newest = newest_of(reading); newest != nullptr) newest->add(*reading.time_ns);
}

Status CatchUp::show_missed(const TakeReading& take) {
  struct Behind {
    std::string path;
    Newest* newest;
    Newest before;
  };
  std::vector<Behind> behind;
  EC_TRY(for_each_last([&](const wire::Reading& last) {
    Newest* const newest = newest_of(last);
    if (newest == nullptr || !newest->is_before(*last.time_ns)) return true;
    Parameters parameters = parameters_of(last, purpose_);
    if (newest->dated_ns != INT64_MIN) {
      parameters.emplace_back("from", time_text(newest->dated_ns));
    }
    behind.push_back({path_with(wire::routes::kQuery, parameters), newest, *newest});
    return true;
  }));
  for (const Behind& each : behind) {
    EC_TRY(unless_gone(get_readings(client_, each.path, [&](const wire::Reading& reading) {
      if (!each.before.is_before(*reading.time_ns)) return true;
      if (repeats_.size() < kRepeatsMax) repeats_.emplace(each.newest, *reading.time_ns);
      return take(reading);
    })));
  }
  return ok();
}

bool CatchUp::skips(const wire::Reading& reading) {
  if (repeats_.empty()) return false;
  const auto found = series_.find(key_of(reading));
  return found != series_.end() && repeats_.erase({&found->second, *reading.time_ns}) > 0;
}

}  // namespace edgecase::cli
