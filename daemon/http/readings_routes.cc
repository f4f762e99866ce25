// JSON readings and single values as they are: /api/v1/readings, /api/v1/blob.
#include <algorithm>
#include <limits>

#include "http/http_routes.h"
#include "http/refusal.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"
#include "wire/reading_key.h"
#include "wire/routes.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// NDJSON is decoded and stored in pieces of about this size, so that a large body takes bounded
// memory.
constexpr std::size_t kJsonPieceBytes = 1u << 20;

// How much of `body` to decode at once. Lines can be taken apart; an array can not.
std::size_t piece_bytes(std::string_view body) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  const bool lines = first != std::string_view::npos && body[first] == '{';
  if (!lines || body.size() <= kJsonPieceBytes) return body.size();
  const std::size_t line_end = body.find('\n', kJsonPieceBytes);
  return line_end == std::string_view::npos ? body.size() : line_end + 1;
}

void append_errors(std::vector<wire::LineError> from, std::uint64_t first_line, std::size_t limit,
                   std::vector<wire::LineError>& to) {
  for (wire::LineError& error : from) {
    if (to.size() == limit) return;
    if (error.line != 0) error.line += first_line;
    to.push_back(std::move(error));
  }
}

void post_readings(HttpContext& context, Call& call) {
  const std::string default_namespace =
      call.has("ns") ? call.parameter("ns") : std::string(wire::kDefaultNamespace);
  if (const Status status = wire::check_name("namespace", default_namespace); !status.ok()) {
    return call.answer_error(status);
  }
  wire::JsonDecodeOptions options;
  options.default_namespace = default_namespace;
  options.depth_max = context.parts.settings.limits.json_depth;
  options.keys_max = context.parts.settings.limits.json_keys;
  options.errors_max = context.line_errors();
  std::string_view rest = call.body();
  wire::ReadingBatch batch;
  std::vector<wire::LineError> errors;
  std::uint64_t stored = 0, rejected = 0, lines = 0;
  do {
    const std::string_view piece = rest.substr(0, piece_bytes(rest));
    rest.remove_prefix(piece.size());
    wire::JsonDecodeOutcome outcome;
    batch.clear();
    // Blank lines behind the last piece are no empty body.
    if (stored + rejected > 0 && piece.find_first_not_of(" \t\r\n") == std::string_view::npos)
      break;
    Status status = wire::decode_readings_json(piece, options, batch, outcome);
    std::uint64_t erased = 0;
    if (status.ok() && context.is_over_batch(call, stored, outcome.good)) return;
    if (status.ok()) status = context.store(call, batch, &erased);
    if (!status.ok()) return call.answer_error(status);
    stored += outcome.good - erased;
    rejected += outcome.bad + erased;
    if (erased > 0) outcome.errors.push_back({0, erased_message(erased)});
    append_errors(std::move(outcome.errors), lines, options.errors_max, errors);
    lines += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
  } while (!rest.empty());
  if (rejected > 0) return answer_bad_lines(call, stored, rejected, errors);
  call.answer_json(200, "{\"stored\":" + std::to_string(stored) + ",\"rejected\":0}\n");
}

struct BlobAddress {
  std::string namespace_name, device, sensor;
  std::optional<std::int64_t> time_ns;
};

Result<BlobAddress> blob_address(const HttpContext& context, const Call& call) {
  const std::string_view path =
      std::string_view(call.request.path).substr(std::string_view(wire::routes::kBlob).size() + 1);
  const std::size_t first = path.find('/');
  const std::size_t second = first == std::string_view::npos ? first : path.find('/', first + 1);
  if (second == std::string_view::npos) {
    return invalid_argument("the path is /api/v1/blob/NAMESPACE/DEVICE/SENSOR");
  }
  BlobAddress address;
  address.namespace_name = path.substr(0, first);
  address.device = path.substr(first + 1, second - first - 1);
  address.sensor = path.substr(second + 1);
  EC_TRY(wire::check_name("namespace", address.namespace_name));
  EC_TRY(wire::check_name("device", address.device));
  EC_TRY(wire::check_name("sensor", address.sensor));
  if (call.has("time")) {
    EC_ASSIGN_OR_RETURN(address.time_ns,
                        wire::parse_time_ns(call.parameter("time"), context.parts.clock.wall_ns()));
  }
  return address;
}

void put_blob(HttpContext& context, Call& call) {
  auto address = blob_address(context, call);
  if (!address.ok()) return call.answer_error(address.status());
  if (call.body().empty()) return call.answer_error(invalid_argument("the body is empty"));
  const std::string& content_type = call.exchange.head.content_type;
  const std::int64_t time_ns = address->time_ns.value_or(context.parts.clock.wall_ns());
  wire::ReadingBatch batch;
  wire::Reading& reading = batch.readings.emplace_back();
  reading.namespace_name = address->namespace_name;
  reading.device = address->device;
  reading.sensor = address->sensor;
  reading.time_ns = time_ns;
  reading.value = wire::Value::of_bytes(
      call.body(), content_type.empty() ? wire::kDefaultContentType : content_type);
  if (const Status status = context.store(call, batch); !status.ok()) {
    return call.answer_error(status);
  }
  std::string answer = "{\"time\":\"";
  wire::append_time(time_ns, answer);
  call.answer_json(201, answer + "\",\"bytes\":" + std::to_string(call.body().size()) + "}\n");
}

Result<std::unique_ptr<query::ReadingCursor>> open_value(HttpContext& context, const Call& call,
                                                         const BlobAddress& address) {
  wire::QueryRequest request;
  request.namespace_name = address.namespace_name;
  request.selector = {wire::escape_name(address.device), wire::escape_name(address.sensor)};
  if (!address.time_ns) {
    return context.parts.query.last(call.principal(), address.namespace_name, request.selector,
                                    call.parameter("purpose"));
  }
  request.purpose = call.parameter("purpose");
  request.from_ns = *address.time_ns;
  request.limit = 1;
  if (*address.time_ns < std::numeric_limits<std::int64_t>::max()) {
    request.to_ns = *address.time_ns + 1;
  }
  return context.parts.query.query(call.principal(), request);
}

void answer_value(Call& call, const wire::Reading& reading) {
  std::string time;
  wire::append_time(*reading.time_ns, time);
  call.response.set_header("X-EdgeCase-Time", time);
  // A stored page must not act as one of this server's.
  call.response.set_header("Content-Security-Policy", "sandbox; default-src 'none'");
  std::string text;
  switch (reading.value.type) {
    case wire::ValueType::Bytes: {
      const std::string content_type(reading.value.content_type);
      return call.answer_text(200, content_type.c_str(), std::string(reading.value.text));
    }
    case wire::ValueType::Text: text = reading.value.text; break;
    case wire::ValueType::Bool: text = reading.value.boolean ? "true" : "false"; break;
    case wire::ValueType::Int64: text = std::to_string(reading.value.int64); break;
    case wire::ValueType::Float64: wire::append_double(reading.value.float64, text); break;
  }
  call.answer_text(200, "text/plain; charset=utf-8", std::move(text));
}

void get_blob(HttpContext& context, Call& call) {
  auto address = blob_address(context, call);
  if (!address.ok()) return call.answer_error(address.status());
  auto cursor = open_value(context, call, *address);
  if (!cursor.ok()) return call.answer_error(cursor.status());
  wire::Reading reading;
  const auto found = (*cursor)->next(reading);
  if (!found.ok()) return call.answer_error(found.status());
  if (!*found) {
    return call.answer_error(
        not_found(address->device + "/" + address->sensor + " holds no value at that time"));
  }
  answer_value(call, reading);
}

}  // namespace

void add_readings_routes(Router& router, HttpContext& context) {
  router.add("POST", wire::routes::kReadings, Effect::Changes,
             [&context](Call& call) { post_readings(context, call); });
  const std::string blobs = std::string(wire::routes::kBlob) + "/*";
  router.add("PUT", blobs, Effect::Changes, [&context](Call& call) { put_blob(context, call); });
  router.add("GET", blobs, Effect::Reads, [&context](Call& call) { get_blob(context, call); });
}

}  // namespace edgecase::http
