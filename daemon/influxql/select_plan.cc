// Making a plan, from the inside out; choosing and reading: select_groups.cc.
#include "influxql/select_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "influxql/source_units.h"

namespace edgecase::influxql {
namespace {

Cast cast_of(const NameKind& kind) {
  if (kind.is_tag) return Cast::Tag;
  switch (kind.kind) {
    case Cell::Kind::Float: return Cast::Float;
    case Cell::Kind::Integer: return Cast::Integer;
    case Cell::Kind::Text: return Cast::String;
    case Cell::Kind::Bool: return Cast::Boolean;
    default: return Cast::None;
  }
}

std::string_view text_of(const NameKind& kind) {
  return kind.is_tag ? "tag" : influxql::text_of(kind.kind);
}

// Whether it can be asked for each row: what compares, counts or is a truth value.
Status check_form(const Expr& where) {
  switch (where.kind) {
    case ExprKind::Group: return check_form(where.operands.front());
    case ExprKind::Bool: return ok();
    case ExprKind::Chain:
      if (where.operators[1] != Operator::And && where.operators[1] != Operator::Or) return ok();
      for (const Expr& operand : where.operands) EC_TRY(check_form(operand));
      return ok();
    default: return invalid_argument("invalid condition expression: " + influxql::text_of(where));
  }
}

// What an operator makes of two types.
Result<NameKind> combined(const Expr& whole, Operator op, const NameKind& left,
                          const NameKind& right) {
  if (!left.is_known()) return right;
  if (!right.is_known()) return left;
  Expr chain;
  chain.kind = ExprKind::Chain;
  chain.operands.resize(2);
  chain.operands[1].text = "right";
  chain.operators = {Operator::None, op};
  EC_ASSIGN_OR_RETURN(
      const Formula formula,
      Formula::compile(
          chain,
          [](const Expr& named) { return Result<std::size_t>(named.text.empty() ? 0u : 1u); },
          FormulaOf::Where));
  std::vector<Cell> cells(2);
  cells[0].kind = left.is_tag ? Cell::Kind::Text : left.kind;
  cells[1].kind = right.is_tag ? Cell::Kind::Text : right.kind;
  Cell result;
  formula.evaluate(cells, result);
  if (result.kind != Cell::Kind::Null) return NameKind{result.kind, false};
  return invalid_argument("type error: " + influxql::text_of(whole) + ": incompatible types: " +
                          std::string(text_of(left)) + " and " + std::string(text_of(right)));
}

}  // namespace

Column column_of(const Expr& name) {
  Column column;
  column.name = name.text;
  switch (name.cast) {
    case Cast::Float: column.kind = Cell::Kind::Float; break;
    case Cast::Integer:
    case Cast::Unsigned: column.kind = Cell::Kind::Integer; break;
    case Cast::String: column.kind = Cell::Kind::Text; break;
    case Cast::Boolean: column.kind = Cell::Kind::Bool; break;
    case Cast::Tag: column.is_tag = true; break;
    case Cast::None:
    case Cast::Field: break;
  }
  return column;
}

Result<std::unique_ptr<SelectPlan>> SelectPlan::make(ReadingAccount& account,
                                                     std::unique_ptr<SelectStatement> statement,
                                                     const Around& around) {
  std::unique_ptr<SelectPlan> plan(new SelectPlan(account));
  plan->statement_ = std::move(statement);
  EC_TRY(plan->read_statement(around));
  EC_TRY(plan->find_sources());
  EC_TRY(plan->expand());
  EC_TRY(plan->resolve_names());
  EC_TRY(plan->resolve_where());
  EC_TRY(plan->make_formulas());
  EC_TRY(plan->make_outputs());
  return plan;
}

Status SelectPlan::read_statement(const Around& around) {
  SelectStatement& select = *statement_;
  is_inner_ = around.is_inner;
  is_descending_ = is_inner_ ? around.is_descending : select.is_descending;
  if (select.into) return unsupported("SELECT ... INTO is not offered here: nothing was written");
  if (!select.time_zone.empty()) {
    EC_ASSIGN_OR_RETURN(zone_, wire::TimeZone::find(select.time_zone));
  }
  const std::int64_t now_ns = account_.asking().now_ns;
  if (select.where) {
    EC_ASSIGN_OR_RETURN(where_, split_time(*select.where, now_ns, zone(), span_));
    if (where_) EC_TRY(check_form(*where_));
    if (where_) EC_TRY(check_condition(*where_));
  }
  EC_ASSIGN_OR_RETURN(grouping_, check_grouping(select.group_by, now_ns, zone()));
  if (grouping_.every_ns > 0 && !span_.has_to()) span_.to_ns = now_ns;
  choice_.every_ns = grouping_.every_ns > 0 ? grouping_.every_ns : around.every_ns;
  choice_.offset_ns = grouping_.every_ns > 0 ? grouping_.offset_ns : around.offset_ns;
  std::erase_if(select.fields, [this](const Field& field) {
    const bool is_time = field.value.kind == ExprKind::Name && field.value.text == "time";
    if (is_time && !field.alias.empty()) time_name_ = field.alias;
    return is_time;
  });
  // Around it brackets mean nothing.
  for (Field& field : select.fields) {
    while (field.value.kind == ExprKind::Group) {
      Expr inside = std::move(field.value.operands.front());
      field.value = std::move(inside);
    }
  }
  EC_ASSIGN_OR_RETURN(has_functions_, check_fields(select, grouping_.every_ns > 0));
  if (has_functions_) account_.set_keeps(Keeps::Group);
  if (is_inner_ && select.is_descending && !is_descending_)
    return invalid_argument("subqueries must be ordered in the same direction as the query itself");
  return ok();
}

Status SelectPlan::check_source(const Source& source) const {
  if (source.name.empty() && !source.regex) return invalid_argument("invalid measurement");
  return ok();
}

Status SelectPlan::find_sources() {
  for (Source& source : statement_->sources) {
    if (source.inner != nullptr) {
      const Around around{true, is_descending_, choice_.every_ns, choice_.offset_ns};
      EC_ASSIGN_OR_RETURN(std::unique_ptr<SelectPlan> inner,
                          make(account_, std::move(source.inner), around));
      sources_.push_back(std::make_unique<InnerUnits>(std::move(inner)));
      has_inner_ = true;
      continue;
    }
    const std::string& database =
        source.database.empty() ? account_.asking().database : source.database;
    if (database.empty()) return invalid_argument("database name required");
    EC_TRY(check_source(source));
    const std::string& policy = source.policy.empty() ? account_.asking().policy : source.policy;
    EC_ASSIGN_OR_RETURN(const std::int64_t tier_ns,
                        tier_of_policy(account_.service(), database, policy));
    EC_ASSIGN_OR_RETURN(std::unique_ptr<MeasurementUnits> found,
                        MeasurementUnits::find(account_, database, source, tier_ns));
    sources_.push_back(std::move(found));
  }
  return ok();
}

// Wildcards of fields and of GROUP BY.
Status SelectPlan::expand() {
  const bool groups_wildly =
      std::any_of(grouping_.tags.begin(), grouping_.tags.end(),
                  [](const Expr& each) { return each.kind != ExprKind::Name; });
  std::map<std::string, NameKind> fields;
  std::set<std::string> tags;
  const bool is_wild = has_wildcard(statement_->fields);
  if (is_wild || groups_wildly) {
    for (const auto& source : sources_) EC_TRY(source->list(fields, tags));
  }
  std::set<std::string> own;
  for (const Expr& each : grouping_.tags) {
    if (each.kind == ExprKind::Name) {
      own.insert(each.text);
    } else if (each.kind == ExprKind::Wildcard) {
      own.insert(tags.begin(), tags.end());
    } else {
      EC_ASSIGN_OR_RETURN(const Pattern pattern, Pattern::compile(each.text));
      std::copy_if(tags.begin(), tags.end(), std::inserter(own, own.end()),
                   [&](const std::string& tag) { return pattern.matches(tag); });
    }
  }
  own_tags_.assign(own.begin(), own.end());
  if (!is_wild) return ok();
  std::vector<NamedKind> stored;
  for (const auto& [name, kind] : fields) stored.push_back({name, kind});
  if (!fields.empty() && !groups_wildly) {
    for (const std::string& tag : tags) {
      if (!own.contains(tag)) stored.push_back({tag, {Cell::Kind::Null, true}});
    }
  }
  std::stable_sort(stored.begin(), stored.end(),
                   [](const NamedKind& a, const NamedKind& b) { return a.name < b.name; });
  EC_ASSIGN_OR_RETURN(statement_->fields, expand_wildcards(std::move(statement_->fields), stored));
  return ok();
}

Result<NameKind> SelectPlan::stored_kind(const Expr& name) const {
  NameKind merged;
  for (const auto& source : sources_) {
    EC_ASSIGN_OR_RETURN(const NameKind kind, source->find(name.text));
    merged.merge(kind);
  }
  return merged;
}

Status SelectPlan::resolve(Expr& name) const {
  if (name.cast != Cast::None && name.cast != Cast::Field) return ok();
  EC_ASSIGN_OR_RETURN(const NameKind merged, stored_kind(name));
  if (name.cast != Cast::Field || !merged.is_tag) name.cast = cast_of(merged);
  return ok();
}

std::size_t SelectPlan::place_of(const Column& column) {
  std::vector<Column>& columns = choice_.columns;
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at != columns.end()) return static_cast<std::size_t>(at - columns.begin());
  columns.push_back(column);
  return columns.size() - 1;
}

Status SelectPlan::resolve_names() {
  Status status;
  for (Field& field : statement_->fields) {
    make_calls_of_distinct(field.value);
    each_name(field.value, [&](Expr& name) {
      if (!status.ok()) return;
      status = resolve(name);
      place_of(column_of(name));
    });
  }
  return status;
}

// A name that is nowhere stored is a tag that none has.
Status SelectPlan::resolve_where() {
  if (!where_) return ok();
  Status status;
  each_name(*where_, [&](Expr& name) {
    if (status.ok()) status = resolve(name);
  });
  EC_TRY(status);
  const Formula::Place place = [this](const Expr& name) {
    Column column = column_of(name);
    column.is_condition = true;
    if (column.kind == Cell::Kind::Null) column.is_tag = true;
    return Result<std::size_t>(place_of(column));
  };
  EC_ASSIGN_OR_RETURN(choice_.where, Formula::compile(*where_, place, FormulaOf::Where));
  EC_ASSIGN_OR_RETURN(choice_.where_of_rows,
                      Formula::compile(*where_, place, FormulaOf::WhereOfRows));
  note_equal_tags(*where_);
  return ok();
}

void SelectPlan::note_equal_tags(const Expr& where) {
  if (where.kind == ExprKind::Group) return note_equal_tags(where.operands.front());
  if (where.kind != ExprKind::Chain) return;
  const auto are_all = [&](Operator op) {
    return std::all_of(where.operators.begin() + 1, where.operators.end(),
                       [op](Operator each) { return each == op; });
  };
  if (are_all(Operator::And)) {
    for (const Expr& operand : where.operands) note_equal_tags(operand);
    return;
  }
  if (where.operands.size() != 2 || !are_all(Operator::Equal)) return;
  const bool is_turned = where.operands[0].kind == ExprKind::Text;
  const Expr& name = where.operands[is_turned ? 1 : 0];
  const Expr& text = where.operands[is_turned ? 0 : 1];
  if (name.kind != ExprKind::Name || text.kind != ExprKind::Text || name.text == "_name") return;
  if (column_of(name).is_tag) choice_.equal_tags.emplace_back(name.text, text.text);
}

Status SelectPlan::make_formulas() {
  const auto add_leaf = [this](const Expr& leaf) {
    if (leaf_places_.emplace(influxql::text_of(leaf), leaves_.size()).second)
      leaves_.push_back(&leaf);
  };
  for (const Field& field : statement_->fields) {
    if (has_functions_) {
      each_leaf(field.value, add_leaf);
      for (const Expr* name : names_beside(field)) add_leaf(*name);
    }
  }
  const Formula::Place place = [this](const Expr& named) {
    return Result<std::size_t>(has_functions_ ? leaf_places_.at(influxql::text_of(named))
                                              : place_of(column_of(named)));
  };
  for (const Field& field : statement_->fields) {
    EC_ASSIGN_OR_RETURN(Formula formula, Formula::compile(field.value, place));
    shape_.fields.push_back(std::move(formula));
    for (const Expr* name : names_beside(field)) {
      EC_ASSIGN_OR_RETURN(Formula beside, Formula::compile(*name, place));
      shape_.fields.push_back(std::move(beside));
    }
  }
  if (has_functions_) return ok();  // LIMIT and OFFSET hold for each function
  shape_.limit = statement_->limit;
  shape_.offset = statement_->offset;
  shape_.fill = statement_->has_fill ? statement_->fill : Fill::Null;
  shape_.fill_value.kind = statement_->fill_is_integer ? Cell::Kind::Integer : Cell::Kind::Float;
  shape_.fill_value.number = statement_->fill_number;
  shape_.fill_value.integer = static_cast<std::int64_t>(statement_->fill_number);
  shape_.columns = choice_.columns;
  return ok();
}

// What each field is, for who asks this statement in brackets; and whether its types fit together.
Status SelectPlan::make_outputs() {
  std::vector<Cell::Kind> leaf_kinds;
  if (has_functions_ && !leaves_.empty()) {
    EC_ASSIGN_OR_RETURN(const FunctionPlan plan, make_functions());
    leaf_kinds = plan.kinds();
  }
  for (const Field& field : statement_->fields) {
    EC_ASSIGN_OR_RETURN(const NameKind kind, kind_of(field.value, leaf_kinds));
    outputs_.push_back({name_of(field), kind});
    for (const Expr* name : names_beside(field)) {
      EC_ASSIGN_OR_RETURN(const NameKind beside, kind_of(*name, leaf_kinds));
      outputs_.push_back({name->text, beside});
    }
  }
  return ok();
}

Result<NameKind> SelectPlan::kind_of(const Expr& expression,
                                     const std::vector<Cell::Kind>& leaf_kinds) const {
  switch (expression.kind) {
    case ExprKind::Name: {
      const Column column = column_of(expression);
      return NameKind{column.kind, column.is_tag};
    }
    case ExprKind::Call: break;
    case ExprKind::Group: return kind_of(expression.operands.front(), leaf_kinds);
    case ExprKind::Chain: {
      EC_ASSIGN_OR_RETURN(NameKind kind, kind_of(expression.operands.front(), leaf_kinds));
      for (std::size_t i = 1; i < expression.operands.size(); ++i) {
        EC_ASSIGN_OR_RETURN(const NameKind next, kind_of(expression.operands[i], leaf_kinds));
        EC_ASSIGN_OR_RETURN(kind, combined(expression, expression.operators[i], kind, next));
      }
      return kind;
    }
    case ExprKind::Float:
    case ExprKind::Unsigned: return NameKind{Cell::Kind::Float, false};
    case ExprKind::Integer: return NameKind{Cell::Kind::Integer, false};
    case ExprKind::Text: return NameKind{Cell::Kind::Text, false};
    case ExprKind::Bool: return NameKind{Cell::Kind::Bool, false};
    default: return NameKind{};
  }
  if (!is_math_function(expression.text))
    return NameKind{leaf_kinds[leaf_places_.at(influxql::text_of(expression))], false};
  NameKind first;
  for (std::size_t i = 0; i < expression.operands.size(); ++i) {
    EC_ASSIGN_OR_RETURN(const NameKind kind, kind_of(expression.operands[i], leaf_kinds));
    if (i == 0) first = kind;
  }
  const bool keeps_type = expression.text == "abs" || expression.text == "floor" ||
                          expression.text == "ceil" || expression.text == "round";
  return keeps_type ? first : NameKind{Cell::Kind::Float, false};
}

std::vector<std::string> SelectPlan::columns() const {
  std::vector<std::string> names = column_names(statement_->fields);
  names.insert(names.begin(), time_name_);
  return names;
}

}  // namespace edgecase::influxql
