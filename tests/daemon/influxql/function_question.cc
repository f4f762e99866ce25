#include "daemon/influxql/function_question.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "influxql/functions.h"
#include "influxql/statement.h"

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;

constexpr double kSecondNs = 1e9;

Cell cell_of(const std::string& text, Kind kind) {
  Cell cell;
  if (text.empty()) return cell;
  cell.kind = kind;
  if (kind == Kind::Float) cell.number = std::stod(text);
  if (kind == Kind::Integer) cell.integer = std::stoll(text);
  if (kind == Kind::Bool) cell.integer = text == "true" ? 1 : 0;
  if (kind == Kind::Text) cell.text = text;
  return cell;
}

class TablePoints : public PointSource {
 public:
  explicit TablePoints(std::vector<Point> points) : points_(std::move(points)) {}
  Result<bool> next(Point& point) override {
    if (at_ == points_.size()) return false;
    point = points_[at_++];
    return true;
  }

 private:
  std::vector<Point> points_;
  std::size_t at_ = 0;
};

std::vector<Point> table_of(const std::vector<QuestionPoint>& rows, bool is_descending) {
  std::vector<Point> points;
  for (const QuestionPoint& row : rows) {
    Point point;
    point.time_ns = std::llround(row.seconds * kSecondNs);
    point.cells = {cell_of(row.v, Kind::Float), cell_of(row.i, Kind::Integer),
                   cell_of(row.b, Kind::Bool), cell_of(row.s, Kind::Text),
                   cell_of(row.host, Kind::Text)};
    points.push_back(std::move(point));
  }
  if (is_descending) std::reverse(points.begin(), points.end());
  return points;
}

void add_leaves(const Expr& value, std::vector<const Expr*>& leaves) {
  leaves.push_back(&value);
  if (value.kind != ExprKind::Call || (value.text != "top" && value.text != "bottom")) return;
  for (std::size_t i = 1; i + 1 < value.operands.size(); ++i) leaves.push_back(&value.operands[i]);
}

std::string text_of_number(double number, int digits = 9) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string text_of_cell(const Cell& cell) {
  switch (cell.kind) {
    case Kind::Null: return "null";
    case Kind::Float: return text_of_number(cell.number);
    case Kind::Bool: return cell.integer != 0 ? "true" : "false";
    case Kind::Text: return "'" + cell.text + "'";
    default: return std::to_string(cell.integer);
  }
}

Result<std::string> answer(const std::vector<QuestionPoint>& rows, const SelectStatement& select,
                           Spending& spending) {
  Windows windows;
  std::optional<wire::TimeZone> zone;
  if (!select.time_zone.empty()) {
    EC_ASSIGN_OR_RETURN(zone, wire::TimeZone::find(select.time_zone));
    windows.zone = &*zone;
  }
  if (select.where) EC_TRY(split_time(*select.where, 0, windows.zone, windows.span).status());
  for (const Expr& each : select.group_by) {
    windows.every_ns = each.operands[0].integer;
    if (each.operands.size() > 1) windows.offset_ns = each.operands[1].integer;
  }
  windows.is_descending = select.is_descending;
  windows.fill = select.fill;
  windows.has_fill = select.has_fill;
  windows.fill_number = select.fill_number;
  windows.fill_is_integer = select.fill_is_integer;
  windows.limit = select.limit;
  windows.offset = select.offset;

  std::vector<const Expr*> leaves;
  for (const Field& field : select.fields) add_leaves(field.value, leaves);
  EC_ASSIGN_OR_RETURN(
      const FunctionPlan plan,
      FunctionPlan::make(
          leaves,
          [](const Expr& name) -> Result<ColumnPlace> {
            if (name.text == "host") return ColumnPlace{4, Kind::Text, true, false};
            const std::size_t index = std::string("vibs").find(name.text);
            if (index == std::string::npos) return ColumnPlace{0, Kind::Null, false, true};
            constexpr Kind kKinds[] = {Kind::Float, Kind::Integer, Kind::Bool, Kind::Text};
            return ColumnPlace{index, kKinds[index], false, true};
          },
          windows));

  std::vector<Point> points = table_of(rows, select.is_descending);
  const TimeSpan span = plan.span_to_read();
  std::erase_if(points, [&](const Point& point) {
    return point.time_ns < span.from_ns || point.time_ns > span.to_ns;
  });
  const std::unique_ptr<PointSource> source =
      plan.open(std::make_unique<TablePoints>(std::move(points)), spending);
  std::string text;
  Point point;
  for (;;) {
    EC_ASSIGN_OR_RETURN(const bool has_point, source->next(point));
    if (!has_point) return text;
    if (!text.empty()) text += "; ";
    text += text_of_number(static_cast<double>(point.time_ns) / kSecondNs, 12) + ":";
    for (const Cell& cell : point.cells) text += " " + text_of_cell(cell);
  }
}

}  // namespace

std::vector<QuestionPoint> question_points() {
  return {
      {10, "a", "1.5", "4", "true", "x"}, {10, "b", "2.5", "7", "false", "y"},
      {20, "a", "3", "2", "", "x"},       {25, "b", "-1", "9", "true", "z"},
      {70, "a", "8", "", "false", ""},    {80, "a", "8", "4", "", "x"},
      {85, "b", "0.5", "3", "true", "a"}, {200, "a", "2", "2", "false", "b"},
      {215, "b", "7", "1", "false", "y"}, {230, "b", "6", "8", "", "y"},
  };
}

std::string rows_of(const std::vector<QuestionPoint>& points, const std::string& statement,
                    std::uint64_t held_bytes_max) {
  const auto parsed = parse_statements(statement, 1);
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().to_string());
  Spending spending(100'000, held_bytes_max);
  const auto text = answer(points, *parsed->front().select, spending);
  // Whatever was held is let go of, also after an error.
  CHECK(spending.hold(held_bytes_max).ok());
  return text.ok() ? *text : "ERR " + text.status().message();
}

}  // namespace edgecase::influxql
