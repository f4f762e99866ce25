// SELECT of InfluxQL, as InfluxDB 1.x answers it: the entry that http/influx_query.h calls. The
// answer is made row by row while it is read; what it holds meanwhile is bounded by
// query::QueryLimits. Authorisation, purposes and withheld devices are those of
// query::QueryService. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "influxql/points.h"
#include "influxql/statement.h"
#include "query/query_service.h"

namespace edgecase::influxql {

// The question's circumstances: who asks, where and when.
struct Asking {
  auth::Principal principal;
  std::string database;
  std::string policy;  // of measurements that name none; empty: autogen
  std::string purpose;
  query::Reach* reach = nullptr;  // outlives the answer; its patience is asked while it is made
  std::int64_t now_ns = 0;
  query::QueryLimits limits = {};
};

// `statement` is taken over; `service` must outlive the answer. InvalidArgument, with InfluxDB's
// words: the statement asks for what cannot be answered. NotFound: the database. LimitReached.
Result<std::unique_ptr<RowSource>> run_select(std::unique_ptr<SelectStatement> statement,
                                              const Asking& asking, query::QueryService& service);

// What run_select() would do, a line a row: columns, time range, series, groups, windows. With
// `analyze` it is done, and rows, points and time are told.
Result<std::unique_ptr<RowSource>> explain_select(std::unique_ptr<SelectStatement> statement,
                                                  const Asking& asking,
                                                  query::QueryService& service, bool analyze);

}  // namespace edgecase::influxql
