// Any bytes as questions in InfluxQL: they are understood or refused, in bounded depth.
#include <string_view>

#include "fuzz/fuzz_targets.h"
#include "influxql/parser.h"

namespace edgecase::test {
namespace {

// Brackets and calls, and the five ranks of operators inside each.
constexpr int kDepthMax = 8 * influxql::kNestingMax;

void walk(const influxql::Expr& each, int depth) {
  demand(depth <= kDepthMax);
  const bool is_chain = each.kind == influxql::ExprKind::Chain;
  demand(each.operators.size() == (is_chain ? each.operands.size() : 0));
  for (const influxql::Expr& operand : each.operands) walk(operand, depth + 1);
}

void walk(const influxql::SelectStatement& select, int depth) {
  demand(!select.fields.empty() && !select.sources.empty());
  for (const influxql::Field& field : select.fields) walk(field.value, depth);
  for (const influxql::Expr& dimension : select.group_by) walk(dimension, depth);
  if (select.where) walk(*select.where, depth);
  for (const influxql::Source& source : select.sources) {
    if (source.inner != nullptr) walk(*source.inner, depth + 1);
  }
}

}  // namespace

void take_influxql(std::string_view bytes) {
  constexpr std::size_t kMax = 64u << 10;
  constexpr std::size_t kStatementsMax = 64;
  const influxql::Parameters parameters = {{"p", {influxql::Parameter::Kind::Number, "-1.5"}}};
  const auto parsed = influxql::parse_statements(bytes.substr(0, kMax), kStatementsMax, parameters);
  if (!parsed.ok()) {
    demand(!parsed.status().message().empty());
    return;
  }
  demand(parsed->size() <= kStatementsMax);
  for (const influxql::Statement& each : *parsed) {
    if (each.select != nullptr) walk(*each.select, 0);
    if (each.where) walk(*each.where, 0);
  }
}

}  // namespace edgecase::test
