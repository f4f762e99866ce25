// Any bytes as questions in InfluxQL: they are understood or refused, in bounded depth; and SELECT
// is answered from a small store, or refused, in bounded work.
#include <string_view>
#include <utility>

#include "daemon/influxql/select_room.h"
#include "fuzz/fuzz_targets.h"
#include "influxql/statement.h"

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

// What a corpus and a mutation of it are likely to name.
constexpr std::string_view kLines =
    R"(cpu,host=a,zone=x v=1,n=1i,s="one",b=true 1000000000
cpu,host=a,zone=x v=2.5,n=2i 2000000000
cpu,host=b,zone=y v=-4,b=false 3000000000
cpu,host=c n=-9223372036854775808i,s="" 9223372036854775806
m,host=a v=10i,value=5,x=1 1000000000
m value=1e300,f=7,i=-1i -1000000000
)";

void answer(SelectRoom& room, std::unique_ptr<influxql::SelectStatement> select) {
  constexpr int kRowsMax = 10'000;
  auto rows = influxql::run_select(std::move(select), room.asking, room.service);
  if (!rows.ok()) return demand(!rows.status().message().empty());
  influxql::SeriesHead head;
  std::vector<influxql::Cell> row;
  for (int count = 0; count < kRowsMax;) {
    const auto has_series = (*rows)->next_series(head);
    if (!has_series.ok()) return demand(!has_series.status().message().empty());
    if (!*has_series) return;
    for (;; ++count) {
      const auto has_row = (*rows)->next_row(row);
      if (!has_row.ok()) return demand(!has_row.status().message().empty());
      if (!*has_row || count >= kRowsMax) break;
      demand(row.size() == head.columns.size());
    }
  }
}

SelectRoom& small_store() {
  static SelectRoom room;
  static const bool is_written = room.write(kLines);
  demand(is_written);
  room.asking.limits = {1'000, 100, 1'000, 1u << 20};
  return room;
}

}  // namespace

void take_influxql(std::string_view bytes) {
  constexpr std::size_t kMax = 64u << 10;
  constexpr std::size_t kStatementsMax = 64;
  using Of = influxql::Parameter::Kind;
  const influxql::Parameters parameters = {{"b", {Of::Bool, "true"}},   {"d", {Of::Duration, "2s"}},
                                           {"i", {Of::Integer, "-3"}},  {"n", {Of::Name, "v"}},
                                           {"p", {Of::Number, "-1.5"}}, {"r", {Of::Regex, "a|b"}},
                                           {"t", {Of::Text, "it's /"}}};
  auto parsed = influxql::parse_statements(bytes.substr(0, kMax), kStatementsMax, parameters);
  if (!parsed.ok()) {
    demand(!parsed.status().message().empty());
    return;
  }
  demand(parsed->size() <= kStatementsMax);
  for (influxql::Statement& each : *parsed) {
    if (each.select != nullptr) walk(*each.select, 0);
    if (each.where) walk(*each.where, 0);
    if (each.select != nullptr) answer(small_store(), std::move(each.select));
  }
}

}  // namespace edgecase::test
