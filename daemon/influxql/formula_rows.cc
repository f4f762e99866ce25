// Formulas of many rows side by side: the same as of one row after another, by loops over columns
// where numbers are compared or counted.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "influxql/formula.h"

namespace edgecase::influxql {
namespace {

using CellKind = Cell::Kind;
using NumberColumn = NumberRows::Column;

bool is_of_number(CellKind kind) {
  return kind == CellKind::Float || kind == CellKind::Integer;
}

// The results of rows of the same kind, but for those that are null.
void add_row(const Cell& cell, NumberColumn& made) {
  const bool has_value = cell.kind != CellKind::Null;
  if (has_value && made.kind == CellKind::Null) made.kind = cell.kind;
  const bool is_float = cell.kind == CellKind::Float;
  made.bits.push_back(!has_value ? 0
                      : is_float ? std::bit_cast<std::uint64_t>(cell.number)
                                 : static_cast<std::uint64_t>(cell.integer));
  made.has.push_back(has_value ? 1 : 0);
}

using Floats = std::span<const std::uint64_t>;  // their bits

// Sets `made` to what `of_two` gives for each pair.
template <typename OfTwo>
void compare_rows(Floats a, Floats b, const OfTwo& of_two, NumberColumn& made) {
  made.kind = CellKind::Bool;
  made.bits.resize(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    made.bits[i] = of_two(std::bit_cast<double>(a[i]), std::bit_cast<double>(b[i])) ? 1 : 0;
}
template <typename OfTwo>
void count_rows(Floats a, Floats b, const OfTwo& of_two, NumberColumn& made) {
  made.kind = CellKind::Float;
  made.bits.resize(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    made.bits[i] = std::bit_cast<std::uint64_t>(
        of_two(std::bit_cast<double>(a[i]), std::bit_cast<double>(b[i])));
}

// False: it is an operator of whole numbers alone.
bool apply_rows(Operator op, Floats a, Floats b, NumberColumn& made) {
  switch (op) {
    case Operator::Equal: compare_rows(a, b, std::equal_to<>(), made); return true;
    case Operator::NotEqual: compare_rows(a, b, std::not_equal_to<>(), made); return true;
    case Operator::Less: compare_rows(a, b, std::less<>(), made); return true;
    case Operator::LessOrEqual: compare_rows(a, b, std::less_equal<>(), made); return true;
    case Operator::Greater: compare_rows(a, b, std::greater<>(), made); return true;
    case Operator::GreaterOrEqual: compare_rows(a, b, std::greater_equal<>(), made); return true;
    case Operator::Add: count_rows(a, b, std::plus<>(), made); return true;
    case Operator::Subtract: count_rows(a, b, std::minus<>(), made); return true;
    case Operator::Multiply: count_rows(a, b, std::multiplies<>(), made); return true;
    case Operator::Divide:
      count_rows(
          a, b, [](double x, double y) { return y == 0 ? 0 : x / y; }, made);
      return true;
    default: return false;
  }
}

}  // namespace

// A cell that all rows have, or a column that they have: of the rows, or made.
struct Formula::Many {
  Cell cell;
  const NumberColumn* of_rows = nullptr;
  std::optional<NumberColumn> made;

  const NumberColumn* column() const { return made ? &*made : of_rows; }
  CellKind kind() const { return column() != nullptr ? column()->kind : cell.kind; }
  void get(std::size_t row, Cell& result) const {
    if (column() == nullptr) return copy_cell(cell, result);
    column()->get(row, result);
  }
  bool is_all_truth() const {
    return kind() == CellKind::Bool &&
           (column() == nullptr || column()->has_all(0, column()->has.size()));
  }
  bool is_true(std::size_t row) const {
    return column() == nullptr ? cell.integer != 0
                               : column()->has[row] != 0 && column()->bits[row] != 0;
  }
  // The bits of floats; where they are not at hand so, they are put into `made_so`.
  std::span<const std::uint64_t> floats(std::size_t rows,
                                        std::vector<std::uint64_t>& made_so) const {
    const bool is_float = kind() == CellKind::Float;
    if (column() == nullptr) {
      const double number = is_float ? cell.number : static_cast<double>(cell.integer);
      made_so.assign(rows, std::bit_cast<std::uint64_t>(number));
      return made_so;
    }
    if (is_float) return column()->bits;
    made_so.resize(rows);
    for (std::size_t i = 0; i < rows; ++i)
      made_so[i] = std::bit_cast<std::uint64_t>(
          static_cast<double>(static_cast<std::int64_t>(column()->bits[i])));
    return made_so;
  }
};

void Formula::evaluate(const NumberRows& rows, Many& result) const {
  std::vector<Cell> none;
  switch (kind_) {
    case Kind::Constant:
    case Kind::Pattern: return evaluate(none, result.cell);
    case Kind::Cell: {
      const NumberColumn& column = rows.columns[place_];
      if (column.is_alike()) return column.get(0, result.cell);
      result.of_rows = &column;
      return;
    }
    case Kind::OneOf: {
      const NumberColumn& column = rows.columns[place_];
      const bool is_found =
          column.kind == CellKind::Text &&
          std::binary_search(texts_.begin(), texts_.end(), column.text) == is_one_;
      result.cell.kind = CellKind::Bool;
      result.cell.integer = is_found ? 1 : 0;
      return;
    }
    case Kind::Math: {
      Many first, second;
      operands_.front().evaluate(rows, first);
      if (operands_.size() > 1) operands_.back().evaluate(rows, second);
      Cell a, b, computed;
      result.made.emplace().kind = CellKind::Null;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        first.get(i, a);
        second.get(i, b);
        compute(a, b, computed);
        add_row(computed, *result.made);
      }
      return;
    }
    case Kind::Chain: break;
  }
  operands_.front().evaluate(rows, result);
  for (std::size_t i = 1; i < operands_.size(); ++i) {
    Many right, combined;
    operands_[i].evaluate(rows, right);
    combine(operators_[i], result, operands_[i], right, rows.size(), combined);
    std::swap(result, combined);
  }
}

void Formula::combine(Operator op, const Many& left, const Formula& right_side, const Many& right,
                      std::size_t rows, Many& result) const {
  const NumberColumn *of_left = left.column(), *of_right = right.column();
  if (of_left == nullptr && of_right == nullptr)
    return combine(op, left.cell, right_side, right.cell, result.cell);
  NumberColumn& made = result.made.emplace();
  const bool are_numbers = is_of_number(left.kind()) && is_of_number(right.kind());
  const bool are_whole = left.kind() == CellKind::Integer && right.kind() == CellKind::Integer;
  std::vector<std::uint64_t> left_so, right_so;
  if (are_numbers && !are_whole &&
      apply_rows(op, left.floats(rows, left_so), right.floats(rows, right_so), made)) {
    made.has.assign(rows, 1);
    for (const NumberColumn* each : {of_left, of_right}) {
      for (std::size_t i = 0; each != nullptr && i < rows; ++i) made.has[i] &= each->has[i];
    }
    if (made.kind != CellKind::Bool) return;
    // A comparison with nothing is false.
    for (std::size_t i = 0; i < rows; ++i) made.bits[i] &= static_cast<std::uint64_t>(made.has[i]);
    made.has.assign(rows, 1);
    return;
  }
  const bool is_logic = op == Operator::And || op == Operator::Or;
  if (is_logic && left.is_all_truth() && right.is_all_truth()) {
    made.kind = CellKind::Bool;
    made.has.assign(rows, 1);
    for (std::size_t i = 0; i < rows; ++i) {
      const bool a = left.is_true(i), b = right.is_true(i);
      made.bits.push_back((op == Operator::And ? a && b : a || b) ? 1 : 0);
    }
    return;
  }
  made.kind = CellKind::Null;
  Cell a, b, combined;
  for (std::size_t i = 0; i < rows; ++i) {
    left.get(i, a);
    right.get(i, b);
    combine(op, a, right_side, b, combined);
    add_row(combined, made);
  }
}

void Formula::evaluate(const NumberRows& rows, NumberRows::Column& result) const {
  Many all;
  evaluate(rows, all);
  if (all.made && is_of_number(all.made->kind)) {
    std::swap(result, *all.made);
  } else if (all.of_rows != nullptr) {
    result = *all.of_rows;
  } else {
    result.kind = is_of_number(all.cell.kind) ? all.cell.kind : CellKind::Float;
    result.bits.clear();
    result.has.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) result.add(all.cell);
  }
  if (result.kind != CellKind::Float) return;
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    if (std::isnan(std::bit_cast<double>(result.bits[i]))) result.has[i] = 0;
  }
}

void Formula::find_true(const NumberRows& rows, std::vector<std::uint32_t>& which) const {
  Many all;
  evaluate(rows, all);
  which.clear();
  if (all.kind() != CellKind::Bool) return;
  which.resize(rows.size());
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    which[count] = i;
    count += all.is_true(i) ? 1u : 0u;
  }
  which.resize(count);
}

bool Formula::gives_numbers(const std::function<bool(std::size_t place)>& is_number) const {
  switch (kind_) {
    case Kind::Constant: return is_of_number(constant_.kind);
    case Kind::Cell: return is_number(place_);
    case Kind::Pattern:
    case Kind::OneOf: return false;
    case Kind::Math:
    case Kind::Chain: break;
  }
  const bool are_counted = std::all_of(operators_.begin(), operators_.end(), [](Operator op) {
    return op == Operator::None || op >= Operator::Add;
  });
  return are_counted && std::all_of(operands_.begin(), operands_.end(), [&](const Formula& each) {
           return each.gives_numbers(is_number);
         });
}

}  // namespace edgecase::influxql
