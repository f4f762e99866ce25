// Statements other than SELECT. SHOW (influx_show.cc) lists what is stored: measurements, series,
// tag keys and values, field keys, and how many there are of them; names that whoever asks may not
// read are left out. CREATE, ALTER, DROP and DELETE (influx_schema.cc) change what there is, each
// in the audit log as its command is (RecordedChange). One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "http/http_routes.h"
#include "influxql/executor.h"
#include "influxql/points.h"
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

// CREATE, ALTER, DROP and DELETE.
bool changes_schema(influxql::Verb verb);

// Does it, durably, in `database` where it names none. Answers what is to be said beside; empty:
// nothing, as in InfluxDB. Errors in InfluxDB's words where it has any; NotAllowed. What erases, or
// sets how long something is kept, needs a POST request.
Result<std::string> change_schema(HttpContext& context, Call& call,
                                  const influxql::Statement& statement,
                                  const std::string& database);

// As Go prints a duration, to the second, or below one to its largest unit: "1h0m5s", "12ms".
std::string go_duration(std::int64_t ns);
// How long a shard is that InfluxDB would choose for what is kept so long.
std::string shard_text(std::int64_t kept_ns);

}  // namespace edgecase::http
