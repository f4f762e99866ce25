// A SELECT before anything is looked up: is it right, in InfluxDB's words (select_check.cc); what
// wildcards in its fields stand for, their columns and texts (fields.cc). No state; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "influxql/statement.h"
#include "influxql/time_windows.h"
#include "influxql/units.h"

namespace edgecase::influxql {

// GROUP BY, taken apart.
struct Grouping {
  std::vector<Expr> tags;     // names, wildcards and regular expressions
  std::int64_t every_ns = 0;  // 0: no time()
  std::int64_t offset_ns = 0;
};

Result<Grouping> check_grouping(const std::vector<Expr>& group_by, std::int64_t now_ns,
                                const wire::TimeZone* zone);
// Fields without those that are the time. `needs_function`: GROUP BY time stands in this very
// statement. True: there are functions.
Result<bool> check_fields(const SelectStatement& select, bool needs_function);
Status check_condition(const Expr& where);

// As InfluxDB writes it in its errors.
std::string text_of(const Expr& expression);
std::string_view text_of(Cell::Kind kind);
// What a field is called, by itself: its alias, its function, the names in it.
std::string name_of(const Field& field);

// Names, outside of functions and in them.
void each_name(Expr& expression, const std::function<void(Expr& name)>& visit);
// Functions, and names outside of functions: what stands between operators. Those inside of abs()
// and the like, too.
void each_leaf(const Expr& expression, const std::function<void(const Expr& leaf)>& visit);
bool is_literal(const Expr& expression);
// DISTINCT v as distinct(v).
void make_calls_of_distinct(Expr& expression);

struct NamedKind {
  std::string name;
  NameKind kind;
};
// `stored` is what there is, in the order of the names. InvalidArgument, with InfluxDB's words.
Result<std::vector<Field>> expand_wildcards(std::vector<Field> fields,
                                            const std::vector<NamedKind>& stored);
bool has_wildcard(const std::vector<Field>& fields);

// The names in the arguments of top() and bottom(), which are columns as well.
std::vector<const Expr*> names_beside(const Field& field);
// Names of all columns but the time's; two never have the same one, but where they were given it.
std::vector<std::string> column_names(const std::vector<Field>& fields);

}  // namespace edgecase::influxql
