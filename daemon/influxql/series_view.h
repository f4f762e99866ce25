// The series of a database that somebody may read, with the identities they came with: what SHOW
// lists, and what SELECT looks for its measurements in. One thread; the service must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "influxql/executor.h"
#include "influxql/statement.h"
#include "query/query_service.h"
#include "query/series_scan.h"
#include "wire/names.h"
#include "wire/tiers.h"

namespace edgecase::influxql {

struct ReadableSeries {
  catalog::SeriesRow row = 0;
  catalog::SeriesEntry entry;  // without the bytes of its identity
  wire::Identity identity;
};

// Ends the listing with its error.
using SeriesTaker = std::function<Status(const ReadableSeries& series)>;

// Every series of `database` that `asking` may read and whose measurement is one of `sources`
// (none: all; those with a statement inside are passed over) and that `where` does not exclude: of
// it, comparisons of tags count. Those of time and of the series' own field exclude nothing; other
// names that are no tag of it compare as an empty text. Those of a device follow one another.
// InvalidArgument: a wrong regular expression. NotFound: "database not found: x".
Status each_series(query::QueryService& service, const Asking& asking, const std::string& database,
                   const std::vector<Source>& sources, const std::optional<Expr>& where,
                   const SeriesTaker& take);

// The same of `rows`, whoever asks.
Status each_of_rows(const catalog::Catalog& catalog, std::span<const catalog::SeriesRow> rows,
                    const std::vector<Source>& sources, const std::optional<Expr>& where,
                    std::int64_t now_ns, Patience* patience, const SeriesTaker& take);

// The series that a statement which erases names, of all of a namespace. WHERE may compare tags
// with texts, regular expressions and each other; the time is not in it.
class NamedSeries {
 public:
  // Everything outlives it. InvalidArgument, with InfluxDB's words: a field in WHERE; a wrong
  // regular expression; what is no such comparison, lest more goes than was meant.
  static Result<NamedSeries> make(const catalog::Catalog& catalog, std::string namespace_name,
                                  const std::vector<Source>& sources, std::optional<Expr> where);
  // In the catalog's order. `reach`: is told the devices; null: nobody is.
  Result<std::vector<catalog::SeriesRow>> find(query::Reach* reach) const;

 private:
  NamedSeries(const catalog::Catalog& catalog, std::string namespace_name,
              const std::vector<Source>& sources, std::optional<Expr> where)
      : catalog_(catalog),
        namespace_name_(std::move(namespace_name)),
        sources_(sources),
        where_(std::move(where)) {}

  const catalog::Catalog& catalog_;
  std::string namespace_name_;
  const std::vector<Source>& sources_;
  std::optional<Expr> where_;
};

// The tier that a retention policy of a database is, as the length of its windows; 0: the policy is
// `autogen`, or none: readings. InvalidArgument: "retention policy not found: x".
inline constexpr std::string_view kPolicyOfReadings = "autogen";
Result<std::int64_t> tier_of_policy(const query::QueryService& service, const std::string& database,
                                    const std::string& policy);
// Whether it keeps windows of a series.
bool has_tier(const query::QueryService& service, const catalog::SeriesId& series,
              std::int64_t every_ns);
// The type of a column of these; nothing where no window has it.
Result<std::optional<wire::ValueType>> type_of_column(query::QueryService& service,
                                                      const catalog::SeriesEntry& series,
                                                      std::int64_t every_ns,
                                                      wire::WindowColumn column);

// The type of a series' readings; nothing where none can be read. Where the first and the last one
// differ, InfluxDB's order holds: float, integer, text, truth value. Those between are not read.
Result<std::optional<wire::ValueType>> type_of_series(query::QueryService& service,
                                                      const catalog::SeriesEntry& series);

}  // namespace edgecase::influxql
