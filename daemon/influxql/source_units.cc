#include "influxql/source_units.h"

#include <algorithm>
#include <utility>

#include "catalog/tier_spaces.h"
#include "influxql/points.h"
#include "influxql/select_plan.h"
#include "influxql/series_reader.h"
#include "influxql/series_view.h"

namespace edgecase::influxql {
namespace {

Cell::Kind kind_of_type(wire::ValueType type) {
  switch (type) {
    case wire::ValueType::Float64: return Cell::Kind::Float;
    case wire::ValueType::Int64: return Cell::Kind::Integer;
    case wire::ValueType::Bool: return Cell::Kind::Bool;
    case wire::ValueType::Text: return Cell::Kind::Text;
    case wire::ValueType::Bytes: break;
  }
  return Cell::Kind::Null;
}

std::string key_bytes(const wire::Identity& identity) {
  std::string key;
  append_key_part(identity.measurement, key);
  for (const auto& [tag, value] : identity.tags) {
    append_key_part(tag, key);
    append_key_part(value, key);
  }
  return key;
}

// Which series of a field may have the values that WHERE asks of tags, by what was noted of them
// when they were compared before. What nobody noted is noted now.
class EqualTags {
 public:
  EqualTags(const Choice& choice, const query::Measurement* known, const std::string& field,
            std::size_t series)
      : known_(known), field_(field) {
    if (known == nullptr) return;
    for (const auto& [tag, value] : choice.equal_tags) {
      Tag each{tag, query::tag_hash(value), known->hashes(field, tag), {}};
      if (each.known == nullptr) each.noted.resize(series);
      tags_.push_back(std::move(each));
    }
    notes_ = std::any_of(tags_.begin(), tags_.end(),
                         [](const Tag& each) { return each.known == nullptr; });
  }

  // To be noted each of them is looked at.
  bool may_be(std::size_t i) const {
    return notes_ || std::all_of(tags_.begin(), tags_.end(),
                                 [i](const Tag& each) { return (*each.known)[i] == each.wanted; });
  }
  void note(std::size_t i, const UnitKey& key) {
    if (!notes_) return;
    for (Tag& each : tags_)
      if (each.known == nullptr) each.noted[i] = query::tag_hash(tag_of(key, each.name));
  }
  void keep() {
    for (Tag& each : tags_) {
      if (each.known != nullptr) continue;
      known_->keep_hashes(
          field_, each.name,
          std::make_shared<const std::vector<std::uint32_t>>(std::move(each.noted)));
    }
  }

 private:
  struct Tag {
    std::string name;
    std::uint32_t wanted = 0;
    query::Measurement::Hashes known;
    std::vector<std::uint32_t> noted;
  };

  const query::Measurement* const known_;
  const std::string& field_;
  std::vector<Tag> tags_;
  bool notes_ = false;
};

}  // namespace

Result<std::unique_ptr<MeasurementUnits>> MeasurementUnits::find(ReadingAccount& account,
                                                                 const std::string& database,
                                                                 const Source& source,
                                                                 std::int64_t tier_ns) {
  std::unique_ptr<MeasurementUnits> made(new MeasurementUnits(account, tier_ns));
  Source named;
  named.name = source.name;
  named.regex = source.regex;
  std::vector<Source> sources;
  sources.push_back(std::move(named));
  query::Reach* const reach = account.asking().reach;
  const std::uint64_t withheld = reach == nullptr ? 0 : reach->withheld;
  EC_TRY(made->find_series(database, sources.front()));
  // Several sources may withhold different devices: the most that one withheld is told.
  if (reach != nullptr) reach->withheld = std::max(reach->withheld, withheld);
  return made;
}

Status MeasurementUnits::find_series(const std::string& database, const Source& source) {
  query::QueryService& service = account_.service();
  const Asking& asking = account_.asking();
  EC_ASSIGN_OR_RETURN(const query::QueryService::Rows rows,
                      service.readable(asking.principal, database, asking.purpose, asking.reach));
  std::shared_ptr<query::Measurement> found;
  if (tier_ns_ == 0 && !source.regex) {
    auto of = query::Measurement::of(service.catalog(), database, source.name, rows);
    known_ = service.measurements().find(of);
    if (known_ == nullptr) found = std::make_shared<query::Measurement>(std::move(of));
  }
  if (known_ != nullptr) {
    for (const auto& [field, of_field] : known_->fields) fields_[field].rows = of_field;
    tags_ = known_->tags;
    return ok();
  }
  std::vector<std::string> names;  // of the tags of the series before
  const auto take = [&](const ReadableSeries& series) {
    add_series(series);
    const wire::Identity::Tags& tags = series.identity.tags;
    const bool are_alike = std::equal(names.begin(), names.end(), tags.begin(), tags.end(),
                                      [](const auto& a, const auto& b) { return a == b.first; });
    if (are_alike) return ok();
    names.clear();
    for (const auto& tag : tags) names.push_back(tag.first);
    tags_.insert(names.begin(), names.end());
    return ok();
  };
  EC_TRY(each_of_rows(service.catalog(), rows, {source}, std::nullopt, asking.now_ns,
                      asking.reach == nullptr ? nullptr : asking.reach->patience, take));
  if (found == nullptr) return ok();
  found->tags = tags_;
  for (const auto& [name, field] : fields_) found->fields[name] = field.rows;
  known_ = found;
  service.measurements().keep(std::move(found));
  return ok();
}

void MeasurementUnits::add_series(const ReadableSeries& series) {
  const std::string& field = series.identity.field;
  if (tier_ns_ == 0) {
    fields_[field].rows.push_back(series.row);
    return;
  }
  if (!has_tier(account_.service(), series.entry.id, tier_ns_)) return;
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    Field& of_tier = fields_[wire::column_name(field, column)];
    of_tier.column = column;
    of_tier.rows.push_back(series.row);
  }
}

Result<std::optional<wire::ValueType>> MeasurementUnits::type_of(const ReadableSeries& series,
                                                                 const Field& field) const {
  if (tier_ns_ == 0) return type_of_series(account_.service(), series.entry);
  return type_of_column(account_.service(), series.entry, tier_ns_, field.column);
}

// What a column of the choice reads of a series with that field; none: it is of another one.
std::optional<TierField> MeasurementUnits::field_of(const std::string& column,
                                                    const std::string& field) const {
  if (tier_ns_ == 0) return column == field ? std::optional(TierField()) : std::nullopt;
  const auto name = wire::parse_column_name(column);
  if (!name || name->field != field) return std::nullopt;
  return TierField{tier_ns_, name->column};
}

// What an erasure takes of it.
catalog::SeriesId MeasurementUnits::given_by(const ReadableSeries& series) const {
  const catalog::SeriesId& id = series.entry.id;
  const auto space = account_.service().engine().find_namespace(
      catalog::tier_space_name(id.namespace_id, tier_ns_));
  if (tier_ns_ == 0 || !space.ok()) return id;
  return catalog::tier_series(space->id, id, catalog::TierColumn::Count);
}

Result<Cell::Kind> MeasurementUnits::kind_of(Field& field) {
  if (field.kind) return *field.kind;
  NameKind merged;
  const query::Reach* const reach = account_.asking().reach;
  for (const catalog::SeriesRow row : field.rows) {
    if (reach != nullptr && reach->patience != nullptr) EC_TRY(reach->patience->go_on());
    const ReadableSeries* const series = look_at(row);
    if (series == nullptr) continue;
    EC_ASSIGN_OR_RETURN(const std::optional<wire::ValueType> type, type_of(*series, field));
    if (type) merged.merge({kind_of_type(*type), false});
    if (merged.kind == Cell::Kind::Float) break;
  }
  field.kind = merged.kind;
  return merged.kind;
}

Result<NameKind> MeasurementUnits::find(const std::string& name) {
  const auto at = fields_.find(name);
  if (at != fields_.end()) {
    EC_ASSIGN_OR_RETURN(const Cell::Kind kind, kind_of(at->second));
    if (kind != Cell::Kind::Null) return NameKind{kind, false};
  }
  return NameKind{Cell::Kind::Null, tags_.contains(name)};
}

Status MeasurementUnits::list(std::map<std::string, NameKind>& fields,
                              std::set<std::string>& tags) {
  for (auto& [name, field] : fields_) {
    EC_ASSIGN_OR_RETURN(const Cell::Kind kind, kind_of(field));
    if (kind != Cell::Kind::Null) fields[name].merge({kind, false});
  }
  tags.insert(tags_.begin(), tags_.end());
  return ok();
}

bool MeasurementUnits::is_asked(const std::string& field) const {
  return std::any_of(choice_.columns.begin(), choice_.columns.end(), [&](const Column& column) {
    return !column.is_tag && column.kind != Cell::Kind::Null && column.name == field;
  });
}

const ReadableSeries* MeasurementUnits::look_at(catalog::SeriesRow row) const {
  looked_at_.row = row;
  const bool is_there =
      account_.service().catalog().read_series(row, looked_at_.entry, looked_at_.identity);
  return is_there ? &looked_at_ : nullptr;
}

Status MeasurementUnits::choose(const Choice& choice) {
  choice_ = choice;
  compares_fields_ =
      std::any_of(choice.columns.begin(), choice.columns.end(),
                  [](const Column& column) { return column.is_condition && !column.is_tag; });
  EC_TRY(gather());
  fields_.clear();
  EC_TRY(account_.count_series(rows_.size()));
  return choice_.series_limit > 0 || choice_.series_offset > 0 ? limit_series() : ok();
}

// By tag set; of tag sets that no field is asked of none is kept, but where they count.
Status MeasurementUnits::gather() {
  const bool are_counted = choice_.series_limit > 0 || choice_.series_offset > 0;
  struct Found {
    std::string key;
    catalog::SeriesRow row;
  };
  std::vector<Found> found;
  std::set<catalog::SeriesRow> seen;  // of a tier, of which several fields are of one series
  query::QueryService::Rows read;
  for (const auto& [name, field] : fields_) {
    if (!are_counted && !is_asked(name)) continue;
    EqualTags equal(choice_, known_.get(), name, field.rows.size());
    for (std::size_t i = 0; i < field.rows.size(); ++i) {
      const catalog::SeriesRow row = field.rows[i];
      if (!equal.may_be(i)) continue;
      const ReadableSeries* const series = look_at(row);
      if (series == nullptr || (tier_ns_ > 0 && !seen.insert(row).second)) continue;
      const UnitKey key{series->identity.measurement, series->identity.tags};
      equal.note(i, key);
      if (!may_hold(choice_, key)) continue;
      found.push_back({key_bytes(series->identity), row});
      read.push_back(row);
    }
    equal.keep();
  }
  account_.tell(read);
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0 || found[i].key != found[i - 1].key)
      units_.push_back({static_cast<std::uint32_t>(rows_.size()), 0});
    rows_.push_back(found[i].row);
    ++units_.back().count;
  }
  return ok();
}

// InfluxDB's: in the order of keys that have the names of tags before their values, so that who
// lacks one comes elsewhere than in the answer; without SLIMIT, SOFFSET leaves nothing.
Status MeasurementUnits::limit_series() {
  std::map<std::string, std::set<std::string>> groups;
  const auto group_of = [&](const UnitKey& key) {
    std::string names, values;
    for (const std::string& tag : choice_.limit_tags) {
      const std::string_view value = tag_of(key, tag);
      if (value.empty()) continue;
      names.append(tag) += '|';
      values.append("|").append(value);
    }
    return names + values.substr(values.empty() ? 0 : 1);
  };
  for (std::size_t i = 0; i < units_.size(); ++i) {
    EC_ASSIGN_OR_RETURN(const UnitKey unit, key(i));
    groups[unit.name].insert(group_of(unit));
  }
  std::vector<Unit> left;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    EC_ASSIGN_OR_RETURN(const UnitKey unit, key(i));
    const auto& of_name = groups[unit.name];
    const auto place = std::distance(of_name.begin(), of_name.find(group_of(unit)));
    if (place >= choice_.series_offset && place - choice_.series_offset < choice_.series_limit)
      left.push_back(units_[i]);
  }
  units_ = std::move(left);
  return ok();
}

Result<UnitKey> MeasurementUnits::key(std::size_t unit) const {
  const ReadableSeries* const series = look_at(rows_[units_[unit].first]);
  if (series == nullptr) return not_found("the series is gone");
  return UnitKey{series->identity.measurement, series->identity.tags};
}

Status MeasurementUnits::open_parts(std::size_t unit, std::vector<FeedPart>& parts,
                                    std::vector<Cell>& tags) {
  tags.resize(choice_.columns.size());
  bool has_tags = false;
  for (std::uint32_t i = 0; i < units_[unit].count; ++i) {
    const catalog::SeriesRow row = rows_[units_[unit].first + i];
    const ReadableSeries* const series = look_at(row);
    if (series == nullptr) continue;  // dropped since
    const std::size_t first = parts.size();
    const wire::Identity& identity = series->identity;
    if (!std::exchange(has_tags, true)) {
      set_tags(choice_, {identity.measurement, identity.tags}, tags);
      if (!compares_fields_ && choice_.where && !choice_.where->is_true(tags)) return ok();
    }
    for (std::size_t c = 0; c < choice_.columns.size(); ++c) {
      const Column& column = choice_.columns[c];
      if (column.is_tag || column.kind == Cell::Kind::Null) continue;
      const auto field = field_of(column.name, identity.field);
      if (!field || joins_part(choice_.columns, c, first, parts)) continue;
      // Windows that may stand for readings: those that begin where these do.
      const bool is_plain = choice_.offset_ns == 0 && !choice_.is_local;
      auto reader = std::make_unique<SeriesReader>(account_, row, given_by(*series), choice_.span,
                                                   choice_.is_descending, column.kind,
                                                   is_plain ? choice_.every_ns : 0, *field);
      EC_TRY(reader->begin());
      parts.push_back({c, std::move(reader)});
    }
  }
  return ok();
}

Status MeasurementUnits::add_parts(std::size_t unit, std::vector<FeedPart>& parts) {
  std::vector<Cell> tags;
  return open_parts(unit, parts, tags);
}

Result<std::unique_ptr<PointSource>> MeasurementUnits::open(std::size_t unit) {
  std::vector<FeedPart> parts;
  std::vector<Cell> tags;
  EC_TRY(open_parts(unit, parts, tags));
  std::unique_ptr<PointSource> points =
      join_fields(std::move(parts), choice_.columns, std::move(tags), choice_.is_descending);
  if (compares_fields_) points = filter_points(std::move(points), *choice_.where);
  return points;
}

namespace {

// Rows of the statement in brackets as points of the one around it.
class InnerPoints final : public PointSource {
 public:
  InnerPoints(std::unique_ptr<PointSource> rows, const Choice& choice,
              const std::vector<std::optional<std::size_t>>& places, std::vector<Cell> tags)
      : rows_(std::move(rows)), choice_(choice), places_(places), tags_(std::move(tags)) {}

  Result<bool> next(Point& point) override {
    EC_ASSIGN_OR_RETURN(const bool has_row, rows_->next(row_));
    if (!has_row) return false;
    point.time_ns = row_.time_ns;
    point.cells.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Cell& cell = point.cells[i];
      copy_cell(places_[i] ? row_.cells[*places_[i]] : tags_[i], cell);
      const Cell::Kind kind = choice_.columns[i].kind;
      const bool is_number = cell.kind == Cell::Kind::Float || cell.kind == Cell::Kind::Integer;
      if (is_number && (kind == Cell::Kind::Float || kind == Cell::Kind::Integer))
        cast_cell(cell, kind);
    }
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    EC_ASSIGN_OR_RETURN(const bool has_any, rows_->next_many(many_));
    if (!has_any) return false;
    std::swap(rows.times_ns, many_.times_ns);
    rows.columns.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      NumberRows::Column& column = rows.columns[i];
      if (places_[i]) {
        const bool is_wanted_again = std::find(places_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                               places_.end(), places_[i]) != places_.end();
        NumberRows::Column& from = many_.columns[*places_[i]];
        if (is_wanted_again) {
          column = from;
        } else {
          std::swap(column, from);
        }
        cast_column(column, choice_.columns[i].kind);
      } else {
        column.kind = tags_[i].kind;
        if (tags_[i].kind == Cell::Kind::Text) column.text = tags_[i].text;
      }
    }
    return true;
  }
  void expect_all() override { rows_->expect_all(); }

 private:
  // Numbers become each other; else they stay what they are.
  static void cast_column(NumberRows::Column& column, Cell::Kind kind) {
    if (column.is_alike() || column.kind == kind ||
        (kind != Cell::Kind::Float && kind != Cell::Kind::Integer))
      return;
    NumberRows::Column cast;
    cast.kind = kind;
    Cell cell;
    for (std::size_t row = 0; row < column.bits.size(); ++row) {
      column.get(row, cell);
      if (cell.kind != Cell::Kind::Null) cast_cell(cell, kind);
      cast.add(cell);
    }
    std::swap(column, cast);
  }

  NumberRows many_;
  const std::unique_ptr<PointSource> rows_;
  const Choice& choice_;
  const std::vector<std::optional<std::size_t>>& places_;
  const std::vector<Cell> tags_;
  Point row_;
};

}  // namespace

Result<NameKind> InnerUnits::find(const std::string& name) {
  for (const SelectPlan::Output& output : plan_->outputs()) {
    if (output.name == name && output.kind.is_known()) return output.kind;
  }
  const std::vector<std::string>& tags = plan_->own_tags();
  return NameKind{Cell::Kind::Null, std::find(tags.begin(), tags.end(), name) != tags.end()};
}

Status InnerUnits::list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) {
  for (const SelectPlan::Output& output : plan_->outputs()) fields[output.name].merge(output.kind);
  tags.insert(plan_->own_tags().begin(), plan_->own_tags().end());
  return ok();
}

Status InnerUnits::choose(const Choice& choice) {
  choice_ = choice;
  for (Column& column : choice_.columns) {
    const auto& outputs = plan_->outputs();
    const auto at = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const auto& output) { return output.name == column.name; });
    places_.emplace_back();
    if (at != outputs.end()) {
      places_.back() = static_cast<std::size_t>(at - outputs.begin());
      continue;
    }
    // Any tag that it is grouped by can be asked for in WHERE, as a field only its own.
    const std::vector<std::string>& own = plan_->own_tags();
    column.is_tag =
        column.is_condition || std::find(own.begin(), own.end(), column.name) != own.end();
  }
  EC_TRY(plan_->choose(choice));
  for (std::size_t i = 0; i < plan_->size(); ++i) {
    if (choice_.where_of_rows) {
      EC_ASSIGN_OR_RETURN(const UnitKey group, plan_->key(i));
      std::vector<Cell> cells;
      set_tags(choice_, group, cells);
      std::vector<char> known(cells.size());
      for (std::size_t c = 0; c < known.size(); ++c)
        known[c] = !places_[c] && choice_.columns[c].is_tag ? 1 : 0;
      if (!choice_.where_of_rows->may_hold(cells, known)) continue;
    }
    groups_.push_back(static_cast<std::uint32_t>(i));
  }
  return ok();
}

Result<std::unique_ptr<PointSource>> InnerUnits::open(std::size_t unit) {
  EC_ASSIGN_OR_RETURN(const UnitKey group, key(unit));
  std::vector<Cell> tags;
  set_tags(choice_, group, tags);
  EC_ASSIGN_OR_RETURN(std::unique_ptr<PointSource> rows, plan_->open(groups_[unit]));
  // Unlike a tag of what is stored, one that is missing is an empty text.
  for (std::size_t i = 0; i < tags.size(); ++i) {
    if (choice_.columns[i].is_tag) tags[i].kind = Cell::Kind::Text;
  }
  std::unique_ptr<PointSource> points =
      std::make_unique<InnerPoints>(std::move(rows), choice_, places_, std::move(tags));
  if (choice_.where_of_rows) points = filter_points(std::move(points), *choice_.where_of_rows);
  return points;
}

}  // namespace edgecase::influxql
