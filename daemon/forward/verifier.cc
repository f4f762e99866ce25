#include "forward/forwarding.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "forward/eraser.h"
#include "wire/contract.h"
#include "wire/escaping.h"
#include "wire/json_text.h"
#include "wire/reading.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kHourNs = 3600LL * 1'000'000'000;
constexpr std::int64_t kMillisecondNs = 1'000'000;

std::int64_t floor_of(std::int64_t time_ns, std::int64_t unit_ns) {
  const std::int64_t rest = time_ns % unit_ns;
  return time_ns - (rest < 0 ? rest + unit_ns : rest);
}

Status status_of(const Answer& answer) {
  if (answer.verdict == Verdict::Denied) return not_allowed(answer.why);
  return unavailable("the target: " + answer.why);
}

Status may_not_read() {
  return not_allowed("the target lets this token not read; to do: give it `read` there");
}

// What is the same number has the same text, however the target writes it.
std::string number_text(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string row_text(std::int64_t time_ns, const std::string& value) {
  return std::to_string(time_ns) + " " + value;
}

// The part of a reading's line that is the same under every name.
std::string_view behind_names(std::string_view line) {
  return line.substr(std::min(line.find(",\"time\":\""), line.size()));
}

}  // namespace

struct Verifier::Series {
  catalog::SeriesEntry entry;
  wire::Identity identity;
};

Verifier::Verifier(Engine& engine, const catalog::Catalog& catalog, Clock& clock, Asked& asked,
                   const config::ForwardSettings& settings, const config::ForwardTarget& target,
                   const Shape& shape, const retention::RetentionService* rules)
    : engine_(engine),
      catalog_(catalog),
      clock_(clock),
      asked_(asked),
      target_(target),
      watched_{settings.name, target.selections},
      database_(settings.database),
      namespace_(settings.namespace_name),
      pseudonyms_(shape.salt),
      windows_(engine, shape.every_ns, rules),
      kind_(asked, settings, target),
      lines_(wire::ReadingFormat::Line),
      objects_(wire::ReadingFormat::Ndjson) {}

Result<VerifyPage> Verifier::page(const VerifyRequest& request) {
  if (const Answer answer = kind_.find_kind(); answer.verdict != Verdict::Taken)
    return status_of(answer);
  if (!kind_.cannot().empty())
    return unsupported(
        "this target cannot be asked what it holds; it is no EdgeCase, InfluxDB 1 "
        "or VictoriaMetrics that answers where it takes lines");
  // By number: new ones come behind those that were compared.
  std::vector<catalog::SeriesRow> rows = catalog_.select_rows("", wire::Selector());
  std::sort(rows.begin(), rows.end());
  const std::int64_t begin_ns = request.from_ns.value_or(INT64_MIN);
  catalog::SeriesRow first = 0;
  std::int64_t from_ns = begin_ns;
  if (!request.behind.empty()) {
    const char* const end = request.behind.data() + request.behind.size();
    const auto row = std::from_chars(request.behind.data(), end, first);
    const bool has_colon = row.ec == std::errc() && row.ptr != end && *row.ptr == ':';
    const auto time =
        has_colon ? std::from_chars(row.ptr + 1, end, from_ns) : std::from_chars_result{};
    if (!has_colon || time.ec != std::errc() || time.ptr != end) {
      return invalid_argument("behind is not what a page before answered as next");
    }
  }
  VerifyPage page;
  const std::int64_t until_ns = clock_.boot_ns() + kPageNs;
  for (auto row = std::lower_bound(rows.begin(), rows.end(), first); row != rows.end(); ++row) {
    if (*row != first) from_ns = begin_ns;
    const auto entry = catalog_.series_at(*row);
    if (!entry.ok() || !watched_.takes(entry->namespace_name, entry->device, entry->sensor))
      continue;
    EC_ASSIGN_OR_RETURN(const std::optional<std::int64_t> rest,
                        compare(*entry, request, from_ns, until_ns, page));
    if (rest) {
      page.next = std::to_string(*row) + ":" + std::to_string(*rest);
      return page;
    }
    if (clock_.boot_ns() < until_ns && page.again.size() < kAgainMax) continue;
    if (row + 1 != rows.end())
      page.next = std::to_string(*row + 1) + ":" + std::to_string(begin_ns);
    return page;
  }
  return page;
}

Result<std::optional<std::int64_t>> Verifier::compare(const catalog::SeriesEntry& entry,
                                                      const VerifyRequest& request,
                                                      std::int64_t from_ns, std::int64_t until_ns,
                                                      VerifyPage& page) {
  if (target_.from == config::ForwardFrom::Time) from_ns = std::max(from_ns, target_.from_ns);
  if (windows_.every_ns() > 0) return compare_windows(entry, request, from_ns, until_ns, page);
  const catalog::SeriesEntry there = pseudonyms_.of(entry);
  const auto identity = catalog::identity_of(there);
  if (!identity.ok()) return std::optional<std::int64_t>();
  const Series series{there, *identity};
  while (true) {
    std::vector<Local> some;
    std::optional<std::int64_t> rest;
    {
      ReadOptions options;
      options.fill_cache = false;
      options.newer_than = request.after;
      options.large_value_bytes = kBytesAtOnce;
      const KeyRange keys = erase::range_of_series(entry.id, {from_ns, request.to_ns});
      EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(entry.id.namespace_id, keys, options));
      std::size_t bytes = 0;
      for (; at->valid(); at->next()) {
        wire::ReadingKey key;
        if (at->position() > request.upto || !wire::decode_reading_key(at->key(), key) ||
            wire::is_undated_time(key.time_ns)) {
          continue;
        }
        if (some.size() == kReadingsAtOnce || bytes > kBytesAtOnce) {
          rest = key.time_ns;
          break;
        }
        EC_ASSIGN_OR_RETURN(const auto large, at->large_value());
        if (large != nullptr) {
          ++page.unchecked;
          continue;
        }
        wire::Reading reading;
        const ByteView value = at->value();
        if (!at->valid()) break;
        if (!wire::decode_value(value, reading.value)) continue;
        reading.time_ns = key.time_ns;
        Local local{key.time_ns, Bytes(at->key()), {}, at->position() <= request.shown};
        if (!describe(series, reading, local.as_it_is)) continue;
        bytes += local.as_it_is.size();
        some.push_back(std::move(local));
      }
      EC_TRY(at->status());
    }
    if (!some.empty()) {
      EC_ASSIGN_OR_RETURN(const bool is_shown, compare_some(series, some, request, until_ns, page));
      if (!is_shown) return std::optional(some.front().time_ns);
    }
    if (!rest || clock_.boot_ns() > until_ns || page.again.size() == kAgainMax) return rest;
    from_ns = *rest;
  }
}

Result<std::optional<std::int64_t>> Verifier::compare_windows(const catalog::SeriesEntry& entry,
                                                              const VerifyRequest& request,
                                                              std::int64_t from_ns,
                                                              std::int64_t until_ns,
                                                              VerifyPage& page) {
  const std::int64_t every_ns = windows_.every_ns();
  retention::Leaving why = retention::Leaving::Expired;
  const std::int64_t oldest_ns = windows_.whole_from_ns(entry.id, why);
  const catalog::SeriesEntry there = pseudonyms_.of(entry);
  std::array<Series, wire::kWindowColumns.size()> columns;
  std::array<std::vector<Local>, wire::kWindowColumns.size()> some;
  const auto index_of = [](wire::WindowColumn column) { return static_cast<std::size_t>(column); };
  for (wire::WindowColumn column : wire::kWindowColumns) {
    Series& series = columns[index_of(column)];
    series.entry = column_of(there, column);
    EC_ASSIGN_OR_RETURN(series.identity, catalog::identity_of(series.entry));
  }
  while (true) {
    // Windows of which everything was sent.
    struct Whole {
      std::int64_t begin_ns;
      bool is_settled;
    };
    std::vector<Whole> whole;
    std::optional<std::int64_t> rest;
    {
      ReadOptions options;
      options.fill_cache = false;
      const KeyRange keys = erase::range_of_series(entry.id, {from_ns, request.to_ns});
      EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(entry.id.namespace_id, keys, options));
      std::optional<std::int64_t> window_ns;
      bool is_sent = false, is_newer = false, is_settled = true;
      const auto end_window = [&] {
        if (window_ns && *window_ns >= oldest_ns && is_sent && !is_newer)
          whole.push_back({*window_ns, is_settled});
        is_sent = is_newer = false;
        is_settled = true;
      };
      for (; at->valid(); at->next()) {
        wire::ReadingKey key;
        if (!wire::decode_reading_key(at->key(), key) || wire::is_undated_time(key.time_ns))
          continue;
        if (const std::int64_t begin_ns = window_begin_ns(key.time_ns, every_ns);
            window_ns != begin_ns) {
          end_window();
          window_ns = begin_ns;
          if (whole.size() == kWindowsAtOnce) {
            rest = key.time_ns;
            break;
          }
        }
        (at->position() > request.upto ? is_newer : is_sent) = true;
        is_settled = is_settled && at->position() <= request.shown;
        if (at->position() <= request.after) is_newer = true;  // it may not have gone
      }
      EC_TRY(at->status());
      if (!rest) end_window();
    }
    for (const auto& window : whole) {
      const wire::ReadingKey key{entry.id.device, entry.id.sensor, window.begin_ns};
      EC_TRY(windows_.compute(
          entry.id.namespace_id, key, nullptr, page.unchecked,
          [&](wire::WindowColumn column, const wire::Value& value) {
            const std::size_t i = index_of(column);
            wire::Reading reading;
            reading.time_ns = window.begin_ns;
            reading.value = value;
            Local local{window.begin_ns, wire::make_reading_key(key), {}, window.is_settled};
            if (describe(columns[i], reading, local.as_it_is)) some[i].push_back(std::move(local));
          }));
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (some[i].empty()) continue;
      EC_ASSIGN_OR_RETURN(const bool is_shown,
                          compare_some(columns[i], some[i], request, until_ns, page));
      if (!is_shown) return std::optional(whole.front().begin_ns);
      some[i].clear();
    }
    if (!rest || clock_.boot_ns() > until_ns || page.again.size() == kAgainMax) return rest;
    from_ns = *rest;
  }
}

bool Verifier::describe(const Series& series, const wire::Reading& given, std::string& text) {
  wire::Reading reading = given;
  reading.namespace_name = namespace_.empty() ? std::string_view(series.entry.namespace_name)
                                              : std::string_view(namespace_);
  reading.device = series.entry.device;
  reading.sensor = series.entry.sensor;
  wire::SeriesIdentity identity;
  identity.body = series.entry.identity;
  if (!identity.body.empty()) reading.identity = &identity;
  if (kind_.kind() == Eraser::Kind::EdgeCase) {
    std::string line;
    objects_.reading(reading, line);
    if (line.ends_with('\n')) line.pop_back();
    text = behind_names(line);
    return true;
  }
  const wire::Value& value = reading.value;
  const bool is_number = value.type == wire::ValueType::Float64 ||
                         value.type == wire::ValueType::Int64 ||
                         value.type == wire::ValueType::Bool;
  std::string line;
  lines_.reading(reading, line);
  if (line.starts_with('#')) return false;
  if (kind_.kind() == Eraser::Kind::Victoria) {
    text = std::to_string(floor_of(*reading.time_ns, kMillisecondNs) / kMillisecondNs);
    return is_number;
  }
  std::string value_text;
  switch (value.type) {
    case wire::ValueType::Float64: value_text = number_text(value.float64); break;
    case wire::ValueType::Int64: value_text = std::to_string(value.int64); break;
    case wire::ValueType::Bool: value_text = value.boolean ? "true" : "false"; break;
    case wire::ValueType::Text: value_text = value.text; break;
    case wire::ValueType::Bytes: return false;
  }
  text = row_text(*reading.time_ns, value_text);
  return true;
}

Result<bool> Verifier::compare_some(const Series& series, const std::vector<Local>& some,
                                    const VerifyRequest& request, std::int64_t until_ns,
                                    VerifyPage& page) {
  Found found;
  while (true) {
    found = {};
    EC_TRY(fetch_some(series, some, found));
    const bool may_come = std::any_of(some.begin(), some.end(), [&found](const Local& each) {
      return !each.is_settled && !found.there.contains(each.as_it_is) &&
             !found.too_long.contains(each.time_ns);
    });
    if (!may_come || !request.wait) break;
    if (clock_.boot_ns() >= until_ns) return false;
    if (!request.wait(kLookAgainNs)) return unavailable("the daemon stops");
  }
  std::map<std::int64_t, VerifyPage::Hour> hours;
  for (const Local& each : some) {
    if (found.too_long.contains(each.time_ns)) {
      ++page.unchecked;
      continue;
    }
    ++page.readings;
    VerifyPage::Hour& hour = hours[floor_of(each.time_ns, kHourNs)];
    ++hour.here;
    if (found.there.contains(each.as_it_is)) continue;
    Place place{series.entry.id.namespace_id, each.key};
    EC_ASSIGN_OR_RETURN(const bool is_refused, request.is_refused(place));
    if (is_refused) {
      ++page.refused;
      continue;
    }
    ++hour.missing;
    ++page.missing;
    if (page.again.size() < kAgainMax)
      page.again.push_back({std::move(place), 0, clock_.wall_ns()});
  }
  for (auto& [begin_ns, hour] : hours) {
    if (hour.missing == 0 || page.hours.size() == kHoursMax) continue;
    hour.namespace_name = series.entry.namespace_name;
    hour.device = series.entry.device;
    hour.sensor = series.entry.sensor;
    hour.begin_ns = begin_ns;
    page.hours.push_back(std::move(hour));
  }
  return true;
}

Status Verifier::fetch_some(const Series& series, std::span<const Local> some, Found& found) {
  EC_ASSIGN_OR_RETURN(auto there, fetch(series, some.front().time_ns, some.back().time_ns));
  if (there) {
    found.there.merge(*there);
    return ok();
  }
  if (some.front().time_ns == some.back().time_ns) {
    found.too_long.insert(some.front().time_ns);
    return ok();
  }
  const std::size_t half = some.size() / 2;
  EC_TRY(fetch_some(series, some.first(half), found));
  return fetch_some(series, some.subspan(half), found);
}

Result<Verifier::Answered> Verifier::fetch(const Series& series, std::int64_t first_ns,
                                           std::int64_t last_ns) {
  switch (kind_.kind()) {
    case Eraser::Kind::EdgeCase: return fetch_edgecase(series, first_ns, last_ns);
    case Eraser::Kind::Influx1: return fetch_influx(series, first_ns, last_ns);
    default: return fetch_victoria(series, first_ns, last_ns);
  }
}

Result<Verifier::Answered> Verifier::fetch_edgecase(const Series& series, std::int64_t first_ns,
                                                    std::int64_t last_ns) {
  const std::string select =
      wire::escape_name(series.entry.device) + "/" + wire::escape_name(series.entry.sensor);
  std::string path =
      std::string(wire::routes::kQuery) + "?format=ndjson&ns=" +
      wire::percent_encode(namespace_.empty() ? series.entry.namespace_name : namespace_) +
      "&select=" + wire::percent_encode(select) +
      "&from=" + wire::percent_encode(wire::time_text(first_ns));
  // The last instant of time has none behind it.
  if (last_ns != INT64_MAX) path += "&to=" + wire::percent_encode(wire::time_text(last_ns + 1));
  HttpAnswer http;
  const Answer answer = asked_.ask("GET", path, http);
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (http.status == 403) return may_not_read();
  std::set<std::string> lines;
  if (http.status == 404) return Answered(std::move(lines));
  if (http.status != 200)
    return unavailable("the target answers " + std::to_string(http.status) + " to a query");
  if (http.is_cut) return Answered();
  std::string_view rest = http.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace(behind_names(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Answered(std::move(lines));
}

Result<Verifier::Answered> Verifier::fetch_influx(const Series& series, std::int64_t first_ns,
                                                  std::int64_t last_ns) {
  InfluxAsker influx(asked_);
  const std::string database = database_.empty() ? series.entry.namespace_name : database_;
  std::set<std::string> found;
  bool is_there = false, is_refused = false;
  std::string which;
  Answer answer = influx.find_database(database, is_there, is_refused);
  if (answer.verdict == Verdict::Taken && is_there && !is_refused) {
    answer = influx.series_condition(database, series.identity.measurement, series.identity.tags,
                                     which, is_refused);
  }
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (is_refused) return may_not_read();
  if (!is_there) return Answered(std::move(found));
  InfluxRows rows;
  answer = influx.query(database,
                        "SELECT " + InfluxAsker::name_text(series.identity.field) + " FROM " +
                            InfluxAsker::name_text(series.identity.measurement) + which +
                            (which.empty() ? " WHERE " : " AND ") + "time >= " +
                            std::to_string(first_ns) + " AND time <= " + std::to_string(last_ns),
                        rows);
  if (rows.is_cut) return Answered();
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (rows.is_refused) return may_not_read();
  for (const auto& row : rows.values) {
    if (row.size() < 2) continue;
    found.insert(row[0] + " " + row[1]);
    // A float without decimals, or with other ones.
    double number = 0;
    const char* const end = row[1].data() + row[1].size();
    const auto read = std::from_chars(row[1].data(), end, number);
    if (read.ec == std::errc() && read.ptr == end) found.insert(row[0] + " " + number_text(number));
  }
  return Answered(std::move(found));
}

Result<Verifier::Answered> Verifier::fetch_victoria(const Series& series, std::int64_t first_ns,
                                                    std::int64_t last_ns) {
  const std::string& measurement = series.identity.measurement;
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : series.identity.tags) labels[key] = value;
  labels["db"] = database_.empty() ? series.entry.namespace_name : database_;
  labels["__name__"] =
      measurement.empty() ? series.identity.field : measurement + "_" + series.identity.field;
  std::string selector;
  for (const auto& [key, value] : labels)
    selector += (selector.empty() ? "{" : ",") + label_text(key, value);
  const auto seconds = [](std::int64_t time_ns) {
    const std::int64_t ms = floor_of(time_ns, kMillisecondNs) / kMillisecondNs;
    return std::to_string(ms / 1000) + "." + std::to_string(1000 + ms % 1000).substr(1);
  };
  HttpAnswer http;
  const Answer answer =
      asked_.ask("GET",
                 "/api/v1/export?start=" + seconds(first_ns) + "&end=" + seconds(last_ns) +
                     "&match[]=" + wire::percent_encode(selector + "}"),
                 http);
  if (answer.verdict != Verdict::Taken) return status_of(answer);
  if (http.status == 403) return may_not_read();
  if (http.status != 200)
    return unavailable("the target answers " + std::to_string(http.status) + " to an export");
  if (http.is_cut) return Answered();
  std::set<std::string> times;
  std::string_view rest = http.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const Json json = Json::parse(rest.substr(0, end), nullptr, false);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Other series may have these labels and more.
    if (!json.is_object() || !json.contains("metric") || json["metric"].size() != labels.size() ||
        !json.contains("timestamps")) {
      continue;
    }
    for (const Json& each : json["timestamps"])
      if (each.is_number_integer()) times.insert(std::to_string(each.get<std::int64_t>()));
  }
  return Answered(std::move(times));
}

}  // namespace edgecase::forward
