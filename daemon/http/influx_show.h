// SHOW statements that list what is stored: measurements, series, tag keys and values, field keys,
// and how many there are of them. Names that whoever asks may not read are left out. One thread.
#pragma once

#include <memory>

#include "influxql/executor.h"
#include "influxql/rows.h"
#include "influxql/statement.h"
#include "query/query_service.h"

namespace edgecase::http {

// Whether show_names() knows the verb.
bool is_listing(influxql::Verb verb);
// Looks through the catalog once, which tells `asking.reach` what devices the answer is about; what
// the names take meanwhile is let go of where `keeps` is false. `service` and the reach outlive the
// rows. NotFound: the database. Unsupported: a clause that is not obeyed here, by its name.
// InvalidArgument: a condition that is none.
Result<std::unique_ptr<influxql::RowSource>> show_names(influxql::Statement statement,
                                                        influxql::Asking asking,
                                                        query::QueryService& service, bool keeps);

}  // namespace edgecase::http
