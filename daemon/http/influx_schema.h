// Statements of InfluxQL that change what there is: databases, how long they are kept, what is
// erased. Each is in the audit log as its command is (RecordedChange). One thread.
#pragma once

#include <cstdint>
#include <string>

#include "http/http_routes.h"
#include "influxql/statement.h"

namespace edgecase::http {

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
