// The series of a database that somebody may read, with the identities they came with: what SHOW
// lists, and what SELECT looks for its measurements in. One thread; the service must outlive it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "influxql/executor.h"
#include "influxql/statement.h"
#include "query/query_service.h"
#include "query/series_scan.h"
#include "wire/identity.h"

namespace edgecase::influxql {

struct ReadableSeries {
  catalog::SeriesRow row = 0;
  catalog::SeriesEntry entry;
  wire::Identity identity;
};

// Ends the listing with its error.
using SeriesTaker = std::function<Status(const ReadableSeries& series)>;

// Every series of `database` that `asking` may read and whose measurement is one of `sources`
// (none: all; those with a statement inside are passed over) and that `where` does not exclude: of
// it, comparisons of tags count. Those of time and of the series' own field exclude nothing; other
// names that are no tag of it compare as an empty text. In the catalog's order. InvalidArgument: a
// wrong regular expression. NotFound: "database not found: x".
Status each_series(query::QueryService& service, const Asking& asking, const std::string& database,
                   const std::vector<Source>& sources, const std::optional<Expr>& where,
                   const SeriesTaker& take);

// The type of a series' first reading; nothing where it has none that can be read.
Result<std::optional<wire::ValueType>> type_of_series(query::QueryService& service,
                                                      const catalog::SeriesEntry& series);

}  // namespace edgecase::influxql
