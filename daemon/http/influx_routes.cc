// What clients of InfluxDB speak to: /write, /api/v2/write, /ping, /query.
#include <algorithm>

#include "http/http_routes.h"
#include "http/influx_query.h"
#include "http/refusal.h"
#include "wire/line_protocol.h"
#include "wire/names.h"
#include "wire/routes.h"

namespace edgecase::http {
namespace {

std::string database_of(const Call& call, wire::InfluxVersion version) {
  std::string name = call.parameter(version == wire::InfluxVersion::V1 ? "db" : "bucket");
  // "database/policy" is how v2 clients address v1; there are no policies here.
  if (version == wire::InfluxVersion::V2) name.resize(std::min(name.find('/'), name.size()));
  return name.empty() ? std::string(wire::kDefaultNamespace) : name;
}

void write_lines(HttpContext& context, Call& call, wire::InfluxVersion version) {
  name_influx_version(call);
  const auto unit_ns = wire::parse_precision_ns(call.parameter("precision"), version);
  if (!unit_ns.ok()) return call.answer_error(unit_ns.status());
  const std::string database = database_of(call, version);
  if (const Status status = wire::check_name("database", database); !status.ok()) {
    return call.answer_error(status);
  }
  wire::LineProtocolOptions options;
  options.namespace_name = database;
  options.unit_ns = *unit_ns;
  options.error_limit = context.line_errors();
  LineSpares::Loan spare = context.line_spares.take(database);
  wire::LineProtocolDecoder decoder(call.body(), options, spare->names);
  ingest::IngestRequest request(call.principal(), &call.pacing, call.body().size(), spare->buffers);
  wire::ReadingBatch& batch = spare->batch;
  std::uint64_t taken = 0;
  ingest::Outcome outcome;
  while (decoder.next(batch)) {
    const std::size_t more = batch.readings.size();
    if (taken + more > context.points_per_batch()) break;
    if (const Status status = context.store(call, batch, request, outcome); !status.ok()) {
      return call.answer_error(status);
    }
    taken += more;
    batch.clear_readings();
  }
  if (const Status status = context.parts.ingest.finish(request); !status.ok())
    return call.answer_error(status);
  if (context.is_over_batch(call, taken, batch.readings.size())) return;
  if (decoder.bad_lines() + outcome.of(ingest::Loss::Refused) > 0) {
    return answer_partly(call, taken - outcome.not_stored(),
                         {decoder.bad_lines(), decoder.errors()}, outcome);
  }
  set_loss_headers(call, outcome);
  call.response.status = 204;
}

// From the target, else from a form in the body: clients do either.
std::string query_parameter(const Call& call, const Parameters& form, const char* name) {
  if (call.has(name)) return call.parameter(name);
  const auto found = form.lower_bound(name);
  return found == form.end() || found->first != name ? std::string() : found->second;
}

}  // namespace

void influx_query(HttpContext& context, Call& call) {
  name_influx_version(call);
  Parameters form;
  if (call.request.content_type.starts_with("application/x-www-form-urlencoded"))
    add_parameters(call.body(), form);
  const std::string text = query_parameter(call, form, "q");
  const std::string database = query_parameter(call, form, "db");
  auto answer = answer_influx_query(
      {text, database, call.principal(), context.parts.settings.limits.query_statements},
      context.parts.catalog);
  if (answer.ok()) {
    return answer_in_pieces(call, "application/json", std::move(answer).value());
  }
  if (answer.status().code() != StatusCode::Unsupported) return call.answer_error(answer.status());
  // Some clients look for a statement's error, some at the status alone.
  wire::Json body = wire::Json::parse(error_body(call.request.path, answer.status()));
  body["results"] = {{{"statement_id", 0}, {"error", answer.status().message()}}};
  call.answer_json(400, wire::dump(body));
}

// As version 1.8: a body only where a client asks for one.
void get_influx_ping(HttpContext& /*context*/, Call& call) {
  name_influx_version(call);
  const std::string verbose = call.parameter("verbose");
  call.response.status = 204;
  if (verbose.empty() || verbose == "0" || verbose == "false") return;
  call.answer_json(200, std::string("{\"version\":\"") + kInfluxVersion + "\"}\n");
}

void name_influx_version(Call& call) {
  call.response.set_header("X-Influxdb-Version", kInfluxVersion);
  call.response.set_header("X-Influxdb-Build", "EdgeCase");
}

void post_influx_write(HttpContext& context, Call& call) {
  write_lines(context, call, wire::InfluxVersion::V1);
}

void post_influx_write_v2(HttpContext& context, Call& call) {
  write_lines(context, call, wire::InfluxVersion::V2);
}

}  // namespace edgecase::http
