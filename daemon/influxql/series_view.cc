#include "influxql/series_view.h"

#include <algorithm>
#include <utility>

#include "influxql/formula.h"
#include "influxql/time_condition.h"

namespace edgecase::influxql {

Status each_series(query::QueryService& service, const Asking& asking, const std::string& database,
                   const std::vector<Source>& sources, const std::optional<Expr>& where,
                   const SeriesTaker& take) {
  std::vector<Pattern> patterns;
  for (const Source& source : sources) {
    if (!source.regex) continue;
    EC_ASSIGN_OR_RETURN(Pattern pattern, Pattern::compile(*source.regex));
    patterns.push_back(std::move(pattern));
  }
  const auto is_meant = [&](std::string_view measurement) {
    return sources.empty() ||
           std::any_of(sources.begin(), sources.end(),
                       [&](const Source& each) {
                         return !each.regex && each.inner == nullptr && each.name == measurement;
                       }) ||
           std::any_of(patterns.begin(), patterns.end(),
                       [&](const Pattern& each) { return each.matches(measurement); });
  };
  std::vector<std::string> names;
  std::optional<Formula> condition;
  if (where) {
    TimeSpan span;
    EC_ASSIGN_OR_RETURN(const std::optional<Expr> rest,
                        split_time(*where, asking.now_ns, nullptr, span));
    if (rest) {
      EC_ASSIGN_OR_RETURN(condition, Formula::compile(*rest, [&](const Expr& named) {
                            names.push_back(named.text);
                            return Result<std::size_t>(names.size() - 1);
                          }));
    }
  }
  std::vector<Cell> cells(names.size());
  for (Cell& cell : cells) cell.kind = Cell::Kind::Text;
  std::vector<char> is_field(names.size());
  std::size_t looked = 0;
  constexpr std::size_t kRowsPerTurn = 256;
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::SeriesRow> rows,
                      service.readable(asking.principal, database, asking.purpose, asking.reach));
  ReadableSeries series;
  std::string measurement;
  for (const catalog::SeriesRow row : rows) {
    if (asking.reach != nullptr && asking.reach->patience != nullptr &&
        ++looked % kRowsPerTurn == 0)
      EC_TRY(asking.reach->patience->go_on());
    if (!sources.empty()) {
      service.catalog().read_measurement(row, measurement);
      if (!is_meant(measurement)) continue;
    }
    auto entry = service.catalog().series_at(row);
    if (!entry.ok()) continue;
    series.row = row;
    series.entry = *std::move(entry);
    auto identity = catalog::identity_of(series.entry);
    if (!identity.ok()) continue;
    series.identity = *std::move(identity);
    if (!is_meant(series.identity.measurement)) continue;
    if (condition) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        cells[i].text.clear();
        is_field[i] = names[i] == series.identity.field;
        for (const auto& [key, value] : series.identity.tags) {
          if (key != names[i]) continue;
          cells[i].text = value;
          is_field[i] = false;
        }
        if (names[i] == "_name") cells[i].text = series.identity.measurement;
      }
      const auto known = [&](std::size_t place) {
        return is_field[place] != 0 ? nullptr : &cells[place];
      };
      if (!condition->may_hold(known)) continue;
    }
    EC_TRY(take(series));
  }
  return ok();
}

Result<std::optional<wire::ValueType>> type_of_series(query::QueryService& service,
                                                      const catalog::SeriesEntry& series) {
  ReadOptions options;
  options.large_value_bytes = query::kLargeTextBytes;
  options.on_damage = [](const DamagedKeys&) {};
  const query::TimeRange all{INT64_MIN, std::nullopt};
  auto scan =
      service.engine().scan(series.id.namespace_id, query::key_range(series.id, all), options);
  // A namespace that is dropped meanwhile has no types.
  if (scan.status().code() == StatusCode::NotFound) return std::optional<wire::ValueType>();
  EC_TRY(scan.status());
  if (!(*scan)->valid()) return std::optional<wire::ValueType>();
  const ByteView bytes = (*scan)->value();
  if (!(*scan)->valid()) return (*scan)->status();
  wire::Value value;
  if (bytes.empty()) return std::optional(wire::ValueType::Text);
  if (!wire::decode_value(bytes, value)) return std::optional<wire::ValueType>();
  return std::optional(value.type);
}

}  // namespace edgecase::influxql
