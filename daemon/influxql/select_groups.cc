// Choosing what a plan reads, from the outside in, and reading it.
#include <algorithm>
#include <span>
#include <utility>

#include "influxql/select_plan.h"

namespace edgecase::influxql {

// Whether a function takes it. A tag only where a statement in brackets gives it; and a number
// becomes neither a text nor a truth value, nor they each other.
Result<bool> SelectPlan::is_value(const Expr& name, const Column& column) const {
  if (column.is_tag) return has_inner_;
  if (column.kind != Cell::Kind::Text && column.kind != Cell::Kind::Bool) return true;
  EC_ASSIGN_OR_RETURN(const NameKind stored, stored_kind(name));
  return stored.is_tag || stored.kind == column.kind;
}

Result<FunctionPlan> SelectPlan::make_functions() const {
  Windows windows;
  windows.every_ns = choice_.every_ns;
  windows.offset_ns = choice_.offset_ns;
  windows.zone = zone();
  windows.span = span_;
  windows.is_descending = is_descending_;
  windows.fill = statement_->has_fill ? statement_->fill : Fill::Null;
  windows.has_fill = statement_->has_fill;
  windows.fill_number = statement_->fill_number;
  windows.fill_is_integer = statement_->fill_is_integer;
  windows.is_inherited = choice_.every_ns > 0 && grouping_.every_ns == 0;
  windows.limit = statement_->limit;
  windows.offset = statement_->offset;
  // What is null there, the statement around it leaves out anyway.
  if (is_inner_ && windows.fill == Fill::Null) {
    windows.fill = Fill::None;
    windows.has_fill = true;
  }
  return FunctionPlan::make(
      leaves_,
      [this](const Expr& name) -> Result<ColumnPlace> {
        const auto at = std::find(choice_.columns.begin(), choice_.columns.end(), column_of(name));
        if (at == choice_.columns.end()) return invalid_argument("no such name: " + name.text);
        EC_ASSIGN_OR_RETURN(const bool may_be_taken, is_value(name, *at));
        return ColumnPlace{static_cast<std::size_t>(at - choice_.columns.begin()),
                           at->is_tag ? Cell::Kind::Text : at->kind, at->is_tag, may_be_taken};
      },
      windows);
}

Status SelectPlan::choose() {
  Choice around;
  around.limit_tags = own_tags_;
  return choose(around);
}

Status SelectPlan::choose(const Choice& around) {
  choice_.is_descending = is_descending_;
  choice_.is_local = zone() != nullptr;
  std::set<std::string> tags(own_tags_.begin(), own_tags_.end());
  tags.insert(around.tags.begin(), around.tags.end());
  choice_.tags.assign(tags.begin(), tags.end());
  choice_.limit_tags = around.limit_tags;
  choice_.series_limit = around.series_limit + statement_->series_limit;
  choice_.series_offset = around.series_offset + statement_->series_offset;
  span_.narrow(around.span);
  if (!has_anything()) return ok();
  choice_.span = span_;
  if (has_functions_) {
    EC_TRY(check_windows());
    EC_ASSIGN_OR_RETURN(functions_, make_functions());
    choice_.span = functions_->span_to_read();
    choose_edge();
  }
  for (const auto& source : sources_) EC_TRY(source->choose(choice_));
  return group_units();
}

// first() reads no further than to the first value; last() the same from the other end.
void SelectPlan::choose_edge() {
  if (choice_.every_ns > 0 || has_inner_) return;
  const auto are_all = [&](std::string_view function) {
    return std::all_of(leaves_.begin(), leaves_.end(), [&](const Expr* leaf) {
      return leaf->kind == ExprKind::Call && leaf->text == function && leaf->operands.size() == 1;
    });
  };
  const bool asks_fields =
      std::any_of(choice_.columns.begin(), choice_.columns.end(),
                  [](const Column& column) { return column.is_condition && !column.is_tag; });
  are_edges_ =
      !asks_fields && functions_->takes_many(SIZE_MAX) && (are_all("first") || are_all("last"));
  if (are_edges_) {
    choice_.is_descending = leaves_.front()->text == "last";
    return;
  }
  const Expr* edge = nullptr;
  for (const Expr* leaf : leaves_) {
    if (leaf->kind == ExprKind::Name) continue;
    if (edge != nullptr || (leaf->text != "first" && leaf->text != "last")) return;
    edge = leaf;
  }
  if (edge == nullptr || edge->operands.size() != 1) return;
  const Column column = column_of(edge->operands.front());
  const auto at = std::find(choice_.columns.begin(), choice_.columns.end(), column);
  if (at == choice_.columns.end() || column.is_tag || column.kind == Cell::Kind::Null) return;
  edge_column_ = static_cast<std::size_t>(at - choice_.columns.begin());
  choice_.is_descending = edge->text == "last";
}

// Where nothing that is asked for is stored there are no rows, whatever else there is.
bool SelectPlan::has_anything() const {
  if (!has_functions_)
    return std::any_of(choice_.columns.begin(), choice_.columns.end(), [](const Column& column) {
      return !column.is_condition && (column.is_tag || column.kind != Cell::Kind::Null);
    });
  return !leaves_.empty();
}

Status SelectPlan::check_windows() const {
  if (choice_.every_ns == 0 || !span_.has_from() || !span_.has_to() || span_.from_ns > span_.to_ns)
    return ok();
  return query::check_limit(query::kWindowsLimit,
                            query::windows_between(span_.from_ns, span_.to_ns, choice_.every_ns),
                            account_.asking().limits.windows);
}

Status SelectPlan::group_units() {
  struct Keyed {
    std::string key;
    Ref ref;
  };
  std::vector<Keyed> keyed;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    for (std::size_t u = 0; u < sources_[s]->size(); ++u) {
      EC_ASSIGN_OR_RETURN(const UnitKey unit, sources_[s]->key(u));
      Keyed each{{}, {static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(u)}};
      append_key_part(unit.name, each.key);
      for (const std::string& tag : choice_.tags) append_key_part(tag_of(unit, tag), each.key);
      keyed.push_back(std::move(each));
    }
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i == 0 || keyed[i].key != keyed[i - 1].key)
      groups_.push_back({static_cast<std::uint32_t>(refs_.size()), 0});
    refs_.push_back(keyed[i].ref);
    ++groups_.back().count;
  }
  return ok();
}

Result<UnitKey> SelectPlan::key(std::size_t group) const {
  const Ref& ref = refs_[groups_[group].first];
  EC_ASSIGN_OR_RETURN(const UnitKey unit, sources_[ref.source]->key(ref.unit));
  UnitKey key;
  key.name = unit.name;
  for (const std::string& tag : choice_.tags)
    key.tags.emplace_back(tag, std::string(tag_of(unit, tag)));
  return key;
}

bool SelectPlan::gives_number_rows() const {
  return functions_ && functions_->gives_number_rows() &&
         std::all_of(shape_.fields.begin(), shape_.fields.end(), [](const Formula& field) {
           return field.gives_numbers([](std::size_t) { return true; });
         });
}

// Null: its functions need its points.
Result<std::unique_ptr<WindowFeed>> SelectPlan::open_feed(std::size_t group) {
  std::unique_ptr<WindowFeed> feed;
  const auto refs = std::span(refs_).subspan(groups_[group].first, groups_[group].count);
  const bool has_parts =
      functions_ && !edge_column_ && std::all_of(refs.begin(), refs.end(), [&](const Ref& ref) {
        return sources_[ref.source]->has_parts();
      });
  if (!has_parts || !functions_->takes_many(1)) return feed;
  std::vector<FeedPart> parts;
  for (const Ref& ref : refs) EC_TRY(sources_[ref.source]->add_parts(ref.unit, parts));
  for (const FeedPart& part : parts) {
    if (are_edges_) part.reader->expect_edge();
  }
  if (!functions_->takes_many(parts.size())) return feed;
  tells_lacks_ = !is_inner_ && functions_->tells_lacks();
  feed = std::make_unique<WindowFeed>(std::move(parts), choice_.is_descending, tells_lacks_);
  return feed;
}

Result<std::unique_ptr<PointSource>> SelectPlan::open(std::size_t group) {
  tells_lacks_ = false;
  EC_ASSIGN_OR_RETURN(std::unique_ptr<WindowFeed> feed, open_feed(group));
  if (feed != nullptr)
    return make_rows(functions_->open(std::move(feed), account_.spending()), shape_);
  const std::size_t count = groups_[group].count;
  const PointFeed::Open open_unit = [this, first = groups_[group].first](std::size_t unit) {
    const Ref& ref = refs_[first + unit];
    return sources_[ref.source]->open(ref.unit);
  };
  if (functions_ && !edge_column_ && functions_->takes_many(count))
    return make_rows(functions_->open(count, open_unit, account_.spending()), shape_);
  std::vector<std::unique_ptr<PointSource>> units;
  for (std::size_t i = 0; i < count; ++i) {
    EC_ASSIGN_OR_RETURN(std::unique_ptr<PointSource> unit, open_unit(i));
    units.push_back(std::move(unit));
  }
  std::unique_ptr<PointSource> points = merge_points(std::move(units), choice_.is_descending);
  if (edge_column_)
    points = edge_points(std::move(points), *edge_column_, choice_.is_descending != is_descending_);
  if (functions_) points = functions_->open(std::move(points), account_.spending());
  return make_rows(std::move(points), shape_);
}

}  // namespace edgecase::influxql
