// SELECT of InfluxQL, as InfluxDB 1.x answers it: the entry that http/influx_query.h calls. The
// answer is made row by row while it is read; what it holds meanwhile is bounded by SelectLimits.
// Authorisation, purposes and withheld devices are those of query::QueryService. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "influxql/rows.h"
#include "influxql/statement.h"
#include "query/query_service.h"

namespace edgecase::influxql {

// Limits of one statement; an error names the one that is reached.
struct SelectLimits {
  std::uint64_t points = 200'000'000;    // read from the store
  std::uint64_t series = 100'000;        // that match
  std::uint64_t windows = 1'000'000;     // of GROUP BY time, in all
  std::uint64_t held_bytes = 16u << 20;  // of values that a function needs at once
};

// The question's circumstances: who asks, where and when.
struct Asking {
  auth::Principal principal;
  std::string database;
  std::string purpose;
  query::Reach* reach = nullptr;  // outlives the answer; its patience is asked while it is made
  std::int64_t now_ns = 0;
  SelectLimits limits = {};
};

// `statement` is taken over; `service` must outlive the answer. InvalidArgument, with InfluxDB's
// words: the statement asks for what cannot be answered. NotFound: the database. LimitReached.
Result<std::unique_ptr<RowSource>> run_select(std::unique_ptr<SelectStatement> statement,
                                              const Asking& asking, query::QueryService& service);

}  // namespace edgecase::influxql
