#include "http/influx_query.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "influxql/formula.h"
#include "influxql/series_view.h"
#include "influxql/time_windows.h"
#include "query/left_out.h"
#include "query/series_scan.h"

namespace edgecase::http {
namespace {

using influxql::Cell;
using influxql::Expr;
using influxql::ExprKind;
using influxql::Operator;
using influxql::Statement;
using influxql::Verb;

// What the names are of.
enum class Listed : unsigned char { Measurements, Series, TagKeys, TagValues, FieldKeys };

struct Listing {
  Listed listed = Listed::Measurements;
  bool is_counted = false;  // …CARDINALITY: how many there are
};

std::optional<Listing> listing_of(Verb verb) {
  switch (verb) {
    case Verb::ShowMeasurements: return Listing{Listed::Measurements, false};
    case Verb::ShowSeries: return Listing{Listed::Series, false};
    case Verb::ShowTagKeys: return Listing{Listed::TagKeys, false};
    case Verb::ShowTagValues: return Listing{Listed::TagValues, false};
    case Verb::ShowFieldKeys: return Listing{Listed::FieldKeys, false};
    case Verb::ShowMeasurementCardinality: return Listing{Listed::Measurements, true};
    case Verb::ShowSeriesCardinality: return Listing{Listed::Series, true};
    case Verb::ShowTagKeyCardinality: return Listing{Listed::TagKeys, true};
    case Verb::ShowTagValuesCardinality: return Listing{Listed::TagValues, true};
    case Verb::ShowFieldKeyCardinality: return Listing{Listed::FieldKeys, true};
    default: return std::nullopt;
  }
}

// `time`, `LIMIT` and the like apart, WHERE compares tags with texts and expressions. Any other
// comparison says nothing about names: what is left of `where` is answered, and nothing where it
// excludes nothing.
Result<std::optional<Expr>> of_tags(const Expr& where) {
  if (where.kind == ExprKind::Group) return of_tags(where.operands[0]);
  if (where.kind != ExprKind::Chain) return invalid_argument("invalid condition in WHERE");
  const Operator op = where.operators[1];
  if (op == Operator::And || op == Operator::Or) {
    Expr rest = where;
    rest.operands.clear();
    rest.operators.clear();
    for (const Expr& operand : where.operands) {
      EC_ASSIGN_OR_RETURN(std::optional<Expr> part, of_tags(operand));
      // What holds always makes an OR hold always.
      if (!part && op == Operator::Or) return std::optional<Expr>();
      if (!part) continue;
      rest.operators.push_back(rest.operands.empty() ? Operator::None : op);
      rest.operands.push_back(*std::move(part));
    }
    if (rest.operands.empty()) return std::optional<Expr>();
    if (rest.operands.size() == 1) return std::optional<Expr>(Expr(rest.operands[0]));
    return std::optional<Expr>(std::move(rest));
  }
  const bool is_order = op == Operator::Less || op == Operator::LessOrEqual ||
                        op == Operator::Greater || op == Operator::GreaterOrEqual;
  if (is_order) return invalid_argument("invalid tag comparison operator");
  if (influxql::precedence_of(op) != influxql::precedence_of(Operator::Equal) ||
      where.operands.size() != 2)
    return invalid_argument("invalid condition in WHERE");
  const auto is_of = [&](std::size_t side, std::initializer_list<ExprKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), where.operands[side].kind) != kinds.end();
  };
  const bool is_tag =
      (is_of(0, {ExprKind::Name}) && is_of(1, {ExprKind::Name, ExprKind::Text, ExprKind::Regex})) ||
      (is_of(0, {ExprKind::Text}) && is_of(1, {ExprKind::Name}));
  if (!is_tag) return std::optional<Expr>();
  return std::optional<Expr>(where);
}

void append_escaped(std::string_view text, std::string_view marked, std::string& out) {
  for (const char c : text) {
    if (marked.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
}

// As it stands at the begin of a line: "cpu,host=a".
std::string key_text(const wire::Identity& identity) {
  std::string text;
  append_escaped(identity.measurement, ", ", text);
  for (const auto& [key, value] : identity.tags) {
    text += ',';
    append_escaped(key, ",= ", text);
    text += '=';
    append_escaped(value, ",= ", text);
  }
  return text;
}

std::string_view field_type(wire::ValueType type) {
  switch (type) {
    case wire::ValueType::Float64: return "float";
    case wire::ValueType::Int64: return "integer";
    case wire::ValueType::Bool: return "boolean";
    case wire::ValueType::Text: break;
    case wire::ValueType::Bytes: break;
  }
  return "string";
}

// A look through the series: what of them is listed.
class Look {
 public:
  static Result<std::shared_ptr<Look>> make(Statement statement, Listing listing,
                                            influxql::Asking asking, query::QueryService& service) {
    EC_ASSIGN_OR_RETURN(NameFilter filter, NameFilter::make(statement.match));
    influxql::TimeSpan span;
    if (statement.where) {
      EC_ASSIGN_OR_RETURN(std::optional<Expr> rest,
                          influxql::split_time(*statement.where, asking.now_ns, nullptr, span));
      statement.where.reset();
      if (rest) {
        EC_ASSIGN_OR_RETURN(statement.where, of_tags(*rest));
      }
    }
    return std::shared_ptr<Look>(new Look(std::move(statement), listing, std::move(asking), service,
                                          std::move(filter), span));
  }

  Status through(const Names::Take& take) {
    // The reach is told once: later looks are for the same answer.
    query::Reach* const told = std::exchange(told_, nullptr);
    types_.clear();
    return influxql::each_series(service_, asking_, asking_.database, statement_.sources,
                                 statement_.where,
                                 [&](const influxql::ReadableSeries& series) -> Status {
                                   EC_ASSIGN_OR_RETURN(const bool is_listed, list(series, take));
                                   if (is_listed && told != nullptr)
                                     told->add(series.entry.namespace_name, series.entry.device);
                                   return ok();
                                 });
  }
  query::QueryService& service() const { return service_; }
  // Windows of this length are looked at, whose columns are fields; 0: readings.
  void read_tier(std::int64_t every_ns) { tier_ns_ = every_ns; }

 private:
  Look(Statement statement, Listing listing, influxql::Asking asking, query::QueryService& service,
       NameFilter filter, influxql::TimeSpan span)
      : statement_(std::move(statement)),
        listing_(listing),
        asking_(std::move(asking)),
        service_(service),
        filter_(std::move(filter)),
        span_(span),
        told_(asking_.reach) {}

  Result<bool> list(const influxql::ReadableSeries& series, const Names::Take& take) {
    const wire::Identity& identity = series.identity;
    const std::string& measurement = identity.measurement;
    if (listing_.listed == Listed::Measurements && !filter_.takes(measurement)) return false;
    if (tier_ns_ > 0 && !influxql::has_tier(service_, series.entry.id, tier_ns_)) return false;
    if (span_.has_from() || span_.has_to()) {
      EC_ASSIGN_OR_RETURN(const bool has_readings,
                          tier_ns_ > 0 ? has_window(series.entry) : has_reading(series.entry.id));
      if (!has_readings) return false;
    }
    switch (listing_.listed) {
      case Listed::Measurements: take({{}, measurement, {}}); return true;
      case Listed::Series:
        // The answer is one list of all; a count is of each measurement.
        key_ = key_text(identity);
        take(listing_.is_counted ? Name{measurement, {}, key_} : Name{{}, measurement, key_});
        return true;
      case Listed::FieldKeys: return list_field(series, take);
      case Listed::TagKeys:
        for (const auto& [key, value] : identity.tags) take({measurement, key, {}});
        return !identity.tags.empty();
      case Listed::TagValues: break;
    }
    bool is_any = false;
    for (const auto& [key, value] : identity.tags) {
      if (!filter_.takes(key)) continue;
      take({measurement, key, value});
      is_any = true;
    }
    return is_any;
  }

  Result<bool> list_field(const influxql::ReadableSeries& series, const Names::Take& take) {
    const wire::Identity& identity = series.identity;
    if (tier_ns_ > 0) return list_columns(series, take);
    if (listing_.is_counted) {
      take({identity.measurement, identity.field, {}});
      return true;
    }
    key_.assign(identity.measurement).append(1, '\0').append(identity.field);
    const auto known = types_.find(key_);
    // A field with floats is one of floats to SELECT: its first series tell of other types.
    if (known != types_.end() && known->second.has_floats && known->second.read >= kTypesRead) {
      take({identity.measurement, identity.field, field_type(wire::ValueType::Float64)});
      return true;
    }
    EC_ASSIGN_OR_RETURN(const std::optional<wire::ValueType> type,
                        influxql::type_of_series(service_, series.entry));
    if (!type) return false;
    take({identity.measurement, identity.field, field_type(*type)});
    if (known == types_.end() && types_.size() == kFieldsMax) return true;
    FieldTypes& types = known == types_.end() ? types_[key_] : known->second;
    ++types.read;
    types.has_floats = types.has_floats || type == wire::ValueType::Float64;
    return true;
  }

  Result<bool> list_columns(const influxql::ReadableSeries& series, const Names::Take& take) {
    bool is_any = false;
    for (const wire::WindowColumn column : wire::kWindowColumns) {
      EC_ASSIGN_OR_RETURN(const std::optional<wire::ValueType> type,
                          influxql::type_of_column(service_, series.entry, tier_ns_, column));
      if (!type) continue;
      const std::string name = wire::column_name(series.identity.field, column);
      take({series.identity.measurement, name,
            listing_.is_counted ? std::string() : std::string(field_type(*type))});
      is_any = true;
    }
    return is_any;
  }

  Result<bool> has_window(const catalog::SeriesEntry& series) const {
    const auto space = service_.engine().find_namespace(
        catalog::tier_space_name(series.id.namespace_id, tier_ns_));
    if (!space.ok()) return false;
    EC_ASSIGN_OR_RETURN(
        const auto windows,
        query::TierWindows::open(service_.engine(), {space->id, tier_ns_}, series.id, span_.from_ns,
                                 std::nullopt, query::tier_bit(catalog::TierColumn::Count),
                                 without_damaged()));
    return windows->valid() && windows->window().begin_ns <= span_.to_ns;
  }

  Result<bool> has_reading(const catalog::SeriesId& series) const {
    if (span_.from_ns > span_.to_ns) return false;
    ReadOptions options;
    options.fill_cache = false;
    options.large_value_bytes = query::kLargeTextBytes;
    options.on_damage = [](const DamagedKeys&) {};
    const query::TimeRange range{span_.from_ns, span_.to_ns + 1};
    auto scan =
        service_.engine().scan(series.namespace_id, query::key_range(series, range), options);
    // A namespace that is dropped meanwhile has none.
    if (scan.status().code() == StatusCode::NotFound) return false;
    EC_TRY(scan.status());
    if ((*scan)->valid()) return true;
    EC_TRY((*scan)->status());
    return false;
  }

  Statement statement_;
  Listing listing_;
  influxql::Asking asking_;
  query::QueryService& service_;
  NameFilter filter_;
  influxql::TimeSpan span_;
  query::Reach* told_;
  std::int64_t tier_ns_ = 0;
  std::string key_;
  // To read the types of a series takes two scans: of these many series of each field.
  static constexpr std::size_t kTypesRead = 256;
  static constexpr std::size_t kFieldsMax = 4096;
  struct FieldTypes {
    std::size_t read = 0;
    bool has_floats = false;
  };
  std::map<std::string, FieldTypes> types_;  // by measurement and field, in this look
};

// What of the names is shown.
struct Cut {
  std::int64_t offset = 0, limit = INT64_MAX;
  bool is_estimate = false;  // InfluxDB's word for a count of all; here it is exact
};

// What listings and counts share.
class ShowRows : public influxql::RowSource {
 public:
  ShowRows(std::shared_ptr<Look> look, Cut cut)
      : engine_(look->service().engine()),
        is_damaged_(look->service().catalog().is_damaged()),
        cut_(cut),
        given_(engine_),
        seen_(engine_.revocations()),
        names_([look = std::move(look)](const Names::Take& take) { return look->through(take); }) {
    given_.add_all();
  }

  // Looks for the first name: an error is answered before anything else is, and the reach is told.
  Status begin(bool keeps) {
    Name name;
    EC_TRY(names_.peek(name).status());
    if (!keeps) names_.drop();
    return ok();
  }

  void let_go() override {
    const std::uint64_t now = engine_.revocations();
    if (std::exchange(seen_, now) == now) return;
    // What was given before was taken: what comes is looked up anew.
    names_.drop();
    given_ = query::GivenReadings(engine_);
    given_.add_all();
  }
  // A name may be that of several series: whatever is erased may be one of them.
  query::GivenReadings take_given() override {
    query::GivenReadings next(engine_);
    next.add_all();
    return std::exchange(given_, std::move(next));
  }
  std::string notice() const override {
    return is_damaged_ ? query::lost_names().why.message() : std::string();
  }

 protected:
  Engine& engine_;
  const bool is_damaged_;
  const Cut cut_;
  query::GivenReadings given_;
  std::uint64_t seen_;  // revocations
  Names names_;
};

// The names themselves, OFFSET and LIMIT of each group.
class NameRows final : public ShowRows {
 public:
  NameRows(std::shared_ptr<Look> look, Cut cut, Listed listed)
      : ShowRows(std::move(look), cut), listed_(listed) {}

  Result<bool> next_series(influxql::SeriesHead& head) override {
    for (;;) {
      // What is left behind a LIMIT is not shown.
      EC_ASSIGN_OR_RETURN(bool has_name, peek_of_group());
      while (is_in_group_ && has_name) {
        if (is_one_list()) return false;
        names_.pop();
        EC_ASSIGN_OR_RETURN(has_name, peek_of_group());
      }
      if (!has_any_) return false;
      group_ = name_.group;
      is_in_group_ = true;
      named_ = 0;
      has_name = true;
      for (std::int64_t passed = 0; passed < cut_.offset && has_name; ++passed) {
        names_.pop();
        EC_ASSIGN_OR_RETURN(has_name, peek_of_group());
      }
      if (!has_name) continue;
      describe(head);
      return true;
    }
  }

  Result<bool> next_row(std::vector<Cell>& row) override {
    if (named_ == cut_.limit) return false;
    EC_ASSIGN_OR_RETURN(const bool has_name, peek_of_group());
    if (!has_name) return false;
    ++named_;
    const bool has_two = listed_ == Listed::TagValues || listed_ == Listed::FieldKeys;
    row.resize(has_two ? 2 : 1);
    for (Cell& cell : row) cell.kind = Cell::Kind::Text;
    row[0].text = listed_ == Listed::Series ? name_.second : name_.first;
    if (has_two) row[1].text = name_.second;
    names_.pop();
    return true;
  }

 private:
  bool is_one_list() const { return listed_ == Listed::Measurements || listed_ == Listed::Series; }
  // Whether there is a name, and it is one of the group at hand.
  Result<bool> peek_of_group() {
    EC_ASSIGN_OR_RETURN(has_any_, names_.peek(name_));
    return has_any_ && is_in_group_ && name_.group == group_;
  }
  void describe(influxql::SeriesHead& head) const {
    head = {group_, {}, {}};
    switch (listed_) {
      case Listed::Measurements: head = {"measurements", {}, {"name"}}; return;
      case Listed::Series: head.columns = {"key"}; return;
      case Listed::TagKeys: head.columns = {"tagKey"}; return;
      case Listed::TagValues: head.columns = {"key", "value"}; return;
      case Listed::FieldKeys: head.columns = {"fieldKey", "fieldType"}; return;
    }
  }

  const Listed listed_;
  Name name_;  // the next one
  bool has_any_ = false;
  std::string group_;  // at hand
  bool is_in_group_ = false;
  std::int64_t named_ = 0;
};

// How many names each measurement has, or how many there are in all. OFFSET and LIMIT are of the
// one row that each count is, as in InfluxDB.
class CountRows final : public ShowRows {
 public:
  CountRows(std::shared_ptr<Look> look, Cut cut, Listed listed)
      : ShowRows(std::move(look), cut),
        is_one_(listed == Listed::Measurements || cut.is_estimate) {}

  Result<bool> next_series(influxql::SeriesHead& head) override {
    if (cut_.offset > 0) return false;
    Name name;
    EC_ASSIGN_OR_RETURN(bool has_name, names_.peek(name));
    if (!has_name && !(cut_.is_estimate && !has_begun_)) return false;
    has_begun_ = true;
    const std::string group(name.group);
    for (count_ = 0; has_name && (is_one_ || name.group == group); ++count_) {
      names_.pop();
      EC_ASSIGN_OR_RETURN(has_name, names_.peek(name));
    }
    head = {is_one_ ? std::string() : group,
            {},
            {cut_.is_estimate ? "cardinality estimation" : "count"}};
    is_counted_ = true;
    return true;
  }
  Result<bool> next_row(std::vector<Cell>& row) override {
    if (!std::exchange(is_counted_, false)) return false;
    row.assign(1, Cell{});
    row[0].kind = Cell::Kind::Integer;
    row[0].integer = count_;
    return true;
  }

 private:
  const bool is_one_;  // a single count, of all
  bool has_begun_ = false;
  std::int64_t count_ = 0;
  bool is_counted_ = false;  // and not given yet
};

}  // namespace

bool is_listing(Verb verb) {
  return listing_of(verb).has_value();
}

Result<std::unique_ptr<influxql::RowSource>> show_names(Statement statement,
                                                        influxql::Asking asking,
                                                        query::QueryService& service, bool keeps) {
  const auto listing = listing_of(statement.verb);
  if (!listing) return unsupported("this statement lists no names");
  if (statement.is_descending) return unsupported("SHOW in descending order is not offered here");
  if (!statement.group_by.empty()) return unsupported("SHOW with GROUP BY is not offered here");
  std::int64_t of_tier_ns = 0;
  for (const influxql::Source& source : statement.sources) {
    if (source.inner) return unsupported("SHOW of a statement in brackets is not offered here");
    if (!source.database.empty() && source.database != asking.database)
      return unsupported("SHOW names another database behind ON, not behind FROM, here");
    EC_ASSIGN_OR_RETURN(const std::int64_t tier_ns,
                        influxql::tier_of_policy(service, asking.database, source.policy));
    if (&source != &statement.sources.front() && tier_ns != of_tier_ns)
      return unsupported("SHOW of several retention policies at once is not offered here");
    of_tier_ns = tier_ns;
  }
  const auto make = [&](auto rows) -> Result<std::unique_ptr<influxql::RowSource>> {
    EC_TRY(rows->begin(keeps));
    return std::unique_ptr<influxql::RowSource>(std::move(rows));
  };
  Cut cut;
  cut.offset = statement.offset;
  if (statement.limit > 0) cut.limit = statement.limit;
  const Listed listed = listing->listed;
  cut.is_estimate = listing->is_counted && !statement.is_exact && statement.sources.empty() &&
                    !statement.where &&
                    (listed == Listed::Measurements || listed == Listed::Series);
  EC_ASSIGN_OR_RETURN(std::shared_ptr<Look> look,
                      Look::make(std::move(statement), *listing, std::move(asking), service));
  look->read_tier(of_tier_ns);
  if (listing->is_counted) return make(std::make_unique<CountRows>(std::move(look), cut, listed));
  return make(std::make_unique<NameRows>(std::move(look), cut, listed));
}

}  // namespace edgecase::http
