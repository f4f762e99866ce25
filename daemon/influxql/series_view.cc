#include "influxql/series_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "catalog/tier_spaces.h"
#include "influxql/formula.h"
#include "influxql/time_windows.h"
#include "wire/time_text.h"

namespace edgecase::influxql {

Status each_series(query::QueryService& service, const Asking& asking, const std::string& database,
                   const std::vector<Source>& sources, const std::optional<Expr>& where,
                   const SeriesTaker& take) {
  EC_ASSIGN_OR_RETURN(const std::vector<catalog::SeriesRow> rows,
                      service.readable(asking.principal, database, asking.purpose, asking.reach));
  return each_of_rows(service.catalog(), rows, sources, where, asking.now_ns,
                      asking.reach == nullptr ? nullptr : asking.reach->patience, take);
}

Status each_of_rows(const catalog::Catalog& catalog, std::span<const catalog::SeriesRow> rows,
                    const std::vector<Source>& sources, const std::optional<Expr>& where,
                    std::int64_t now_ns, Patience* patience, const SeriesTaker& take) {
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
  std::map<std::string, std::size_t, std::less<>> names;
  std::optional<Formula> condition;
  if (where) {
    TimeSpan span;
    EC_ASSIGN_OR_RETURN(const std::optional<Expr> rest, split_time(*where, now_ns, nullptr, span));
    if (rest) {
      EC_ASSIGN_OR_RETURN(
          condition, Formula::compile(*rest, [&](const Expr& named) {
            return Result<std::size_t>(names.try_emplace(named.text, names.size()).first->second);
          }));
    }
  }
  std::vector<Cell> cells(names.size());
  for (Cell& cell : cells) cell.kind = Cell::Kind::Text;
  std::vector<char> known(names.size());
  std::size_t looked = 0;
  constexpr std::size_t kRowsPerTurn = 256;
  ReadableSeries series;
  std::string measurement;
  for (const catalog::SeriesRow row : rows) {
    if (patience != nullptr && ++looked % kRowsPerTurn == 0) EC_TRY(patience->go_on());
    if (!sources.empty()) {
      catalog.read_measurement(row, measurement);
      if (!is_meant(measurement)) continue;
    }
    series.row = row;
    if (!catalog.read_series(row, series.entry, series.identity)) continue;
    if (!is_meant(series.identity.measurement)) continue;
    if (condition) {
      for (const auto& [name, i] : names) {
        cells[i].text.clear();
        known[i] = name == series.identity.field ? 0 : 1;
        if (name == "_name") cells[i].text = series.identity.measurement;
      }
      for (const auto& [key, value] : series.identity.tags) {
        const auto found = names.find(key);
        if (found == names.end()) continue;
        known[found->second] = 1;
        if (key != "_name") cells[found->second].text = value;
      }
      if (!condition->may_hold(cells, known)) continue;
    }
    EC_TRY(take(series));
  }
  return ok();
}

namespace {

void take_names(const Expr& where, std::vector<std::string>& names) {
  if (where.kind == ExprKind::Name) names.push_back(where.text);
  for (const Expr& operand : where.operands) take_names(operand, names);
}

// Whether it compares tags alone, as it may.
Status check_tags(const Expr& where) {
  if (where.kind == ExprKind::Group) return check_tags(where.operands.front());
  if (where.kind == ExprKind::Name)
    return invalid_argument("invalid condition expression: " + where.text);
  const Status not_taken = invalid_argument(
      "invalid condition in WHERE: a tag is compared with a text, a regular expression or a tag, "
      "by = != =~ !~");
  if (where.kind != ExprKind::Chain || where.operands.size() < 2) return not_taken;
  const Operator op = where.operators[1];
  if (op == Operator::And || op == Operator::Or) {
    for (const Expr& operand : where.operands) EC_TRY(check_tags(operand));
    return ok();
  }
  const bool is_equality = op == Operator::Equal || op == Operator::NotEqual;
  const bool is_match = op == Operator::Matches || op == Operator::NotMatches;
  if (where.operands.size() != 2 || (!is_equality && !is_match)) return not_taken;
  bool has_name = false;
  for (const Expr& side : where.operands) {
    const bool is_name = side.kind == ExprKind::Name;
    has_name = has_name || is_name;
    const bool may_be = is_name || side.kind == (is_match ? ExprKind::Regex : ExprKind::Text);
    if (!may_be || (side.cast != Cast::None && side.cast != Cast::Tag)) return not_taken;
  }
  if (!has_name || (is_match && where.operands[1].kind != ExprKind::Regex)) return not_taken;
  return ok();
}

}  // namespace

Result<NamedSeries> NamedSeries::make(const catalog::Catalog& catalog, std::string namespace_name,
                                      const std::vector<Source>& sources,
                                      std::optional<Expr> where) {
  NamedSeries named(catalog, std::move(namespace_name), sources, std::move(where));
  if (!named.where_) return named;
  std::vector<std::string> names;
  take_names(*named.where_, names);
  const std::vector<catalog::SeriesRow> rows =
      catalog.select_rows(named.namespace_name_, wire::Selector());
  const auto has_no_field = [&names](const ReadableSeries& series) {
    const bool is_field =
        std::find(names.begin(), names.end(), series.identity.field) != names.end();
    return is_field ? invalid_argument("fields not supported in WHERE clause during deletion")
                    : ok();
  };
  EC_TRY(each_of_rows(catalog, rows, sources, std::nullopt, 0, nullptr, has_no_field));
  EC_TRY(check_tags(*named.where_));
  return named;
}

Result<std::vector<catalog::SeriesRow>> NamedSeries::find(query::Reach* reach) const {
  std::vector<catalog::SeriesRow> found;
  const std::vector<catalog::SeriesRow> rows =
      catalog_.select_rows(namespace_name_, wire::Selector());
  const auto take = [&](const ReadableSeries& series) {
    found.push_back(series.row);
    if (reach != nullptr) reach->add(series.entry.namespace_name, series.entry.device);
    return ok();
  };
  EC_TRY(each_of_rows(catalog_, rows, sources_, where_, 0, nullptr, take));
  return found;
}

namespace {

// The type of numbers that have become windows all.
Result<std::optional<wire::ValueType>> type_of_tiers(query::QueryService& service,
                                                     const catalog::SeriesEntry& series) {
  std::optional<wire::ValueType> type;
  if (service.marks() == nullptr) return type;
  for (const std::int64_t every_ns : service.marks()->find(series.id).every_ns) {
    EC_ASSIGN_OR_RETURN(type, type_of_column(service, series, every_ns, wire::WindowColumn::First));
    if (type) break;
  }
  return type;
}

}  // namespace

Result<std::int64_t> tier_of_policy(const query::QueryService& service, const std::string& database,
                                    const std::string& policy) {
  if (policy.empty() || policy == kPolicyOfReadings) return std::int64_t{0};
  if (service.rules() != nullptr) {
    for (const wire::Tier& tier : service.rules()->tiers_of(database))
      if (wire::format_duration(tier.every_ns) == policy) return tier.every_ns;
  }
  return invalid_argument("retention policy not found: " + policy);
}

bool has_tier(const query::QueryService& service, const catalog::SeriesId& series,
              std::int64_t every_ns) {
  if (service.marks() == nullptr) return false;
  const std::vector<std::int64_t> lengths = service.marks()->find(series).every_ns;
  return std::find(lengths.begin(), lengths.end(), every_ns) != lengths.end();
}

Result<std::optional<wire::ValueType>> type_of_column(query::QueryService& service,
                                                      const catalog::SeriesEntry& series,
                                                      std::int64_t every_ns,
                                                      wire::WindowColumn column) {
  std::optional<wire::ValueType> type;
  const auto space =
      service.engine().find_namespace(catalog::tier_space_name(series.id.namespace_id, every_ns));
  if (!space.ok()) return type;
  EC_ASSIGN_OR_RETURN(
      const auto windows,
      query::TierWindows::open(service.engine(), {space->id, every_ns}, series.id, INT64_MIN,
                               std::nullopt, query::kAllTierColumns, without_damaged()));
  for (; windows->valid() && !type; windows->next()) {
    if (const auto value = wire::value_of(windows->window(), column)) type = value->type;
  }
  EC_TRY(windows->status());
  return type;
}

namespace {

// The type of the first reading, or of the last one; `is_any`: whether there are readings at all.
Result<std::optional<wire::ValueType>> type_at_end(query::QueryService& service,
                                                   const catalog::SeriesEntry& series,
                                                   Direction direction, bool& is_any) {
  is_any = false;
  ReadOptions options;
  options.direction = direction;
  options.large_value_bytes = query::kLargeTextBytes;
  options.summaries = true;
  // Any reading will do; where none can be had, why.
  Status away;
  options.passes_drive_away = true;
  options.on_damage = [&away](const DamagedKeys& keys) {
    if (keys.why.code() == StatusCode::Unavailable) away = keys.why;
  };
  const query::TimeRange all{INT64_MIN, std::nullopt};
  auto scan =
      service.engine().scan(series.id.namespace_id, query::key_range(series.id, all), options);
  // A namespace that is dropped meanwhile has no types.
  if (scan.status().code() == StatusCode::NotFound) {
    is_any = true;
    return std::optional<wire::ValueType>();
  }
  EC_TRY(scan.status());
  NumberSummary known;
  is_any = (*scan)->valid();
  if (is_any && (*scan)->take_summary({}, known))
    return std::optional(known.type == NumberType::Float ? wire::ValueType::Float64
                                                         : wire::ValueType::Int64);
  EC_TRY((*scan)->status());
  if (!is_any) {
    EC_TRY(away);
    return std::optional<wire::ValueType>();
  }
  const ByteView bytes = (*scan)->value();
  if (!(*scan)->valid()) return (*scan)->status();
  wire::Value value;
  if (bytes.empty()) return std::optional(wire::ValueType::Text);
  if (!wire::decode_value(bytes, value)) return std::optional<wire::ValueType>();
  return std::optional(value.type);
}

}  // namespace

Result<std::optional<wire::ValueType>> type_of_series(query::QueryService& service,
                                                      const catalog::SeriesEntry& series) {
  bool is_any = false;
  EC_ASSIGN_OR_RETURN(const std::optional<wire::ValueType> first,
                      type_at_end(service, series, Direction::Forward, is_any));
  if (!is_any) return type_of_tiers(service, series);
  if (first == wire::ValueType::Float64) return first;
  // A client that writes a whole number, or that it has none, and numbers with a fraction then.
  EC_ASSIGN_OR_RETURN(const std::optional<wire::ValueType> last,
                      type_at_end(service, series, Direction::Reverse, is_any));
  // InfluxDB's order, where types differ.
  for (const wire::ValueType type : {wire::ValueType::Float64, wire::ValueType::Int64,
                                     wire::ValueType::Text, wire::ValueType::Bool}) {
    if (first == type || last == type) return std::optional(type);
  }
  return first ? first : last;
}

}  // namespace edgecase::influxql
