// Requests of InfluxQL statements, as /query and /api/v2/query take them: parsed, planned one after
// another, then answered as the reader takes it. What is not done here is an error, never a yes.
#pragma once

#include <string>
#include <string_view>

#include "http/http_routes.h"
#include "http/influx_text.h"
#include "influxql/statement.h"
#include "wire/json_text.h"

namespace edgecase::http {

inline constexpr std::size_t kInfluxQueryMaxBytes = 64u << 10;
// A form with statements and their parameters, each byte of both as `%00`, and what is short.
inline constexpr std::size_t kInfluxFormMaxBytes = 7 * kInfluxQueryMaxBytes;

struct InfluxQuestion {
  std::string text;
  std::string database;  // what statements without ON speak of
  std::string policy;    // the same of measurements without one; empty: autogen
  std::string purpose;   // what is read for it
  influxql::Parameters parameters = {};
  InfluxShape shape = {};
};

// A body of this type is the statements themselves.
inline constexpr std::string_view kInfluxQlType = "application/vnd.influxql";

// What `$name` stands for: the members of a JSON object. InvalidArgument: it is none.
Result<influxql::Parameters> bound_parameters(const wire::Json& json);

// What the parameters of a request, a form in its body and its Accept say of the answer.
Result<InfluxShape> influx_shape_of(const Call& call);

// Answers {"results":[{"statement_id":0,…},…]}, or CSV. A statement that fails has its error in its
// result, and those behind it are not executed. Names and readings that the principal may not see
// are left out. 400: the text is no such list of statements, or none of them is offered; then
// nothing was done.
void answer_influx_question(HttpContext& context, Call& call, const InfluxQuestion& question);

}  // namespace edgecase::http
