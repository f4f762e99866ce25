// JSON readings and single values as they are: /api/v1/readings, /api/v1/blob.
#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// Bodies over this are decoded and stored in pieces, so that a large one takes bounded memory:
// lines in pieces of about this size, an array in slices (wire/reading_json.h).
constexpr std::size_t kJsonPieceBytes = 1u << 20;

bool is_array(std::string_view body) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '[';
}

// How much of lines to decode at once.
std::size_t piece_bytes(std::string_view body) {
  if (body.size() <= kJsonPieceBytes) return body.size();
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

// Decodes one body and stores what is good of it.
class ReadingsStore {
 public:
  ReadingsStore(HttpContext& context, Call& call, wire::JsonDecodeOptions& options)
      : context_(context), call_(call), options_(options) {}

  // Lines, or one document that is not large.
  Status lines() {
    std::string_view rest = call_.body();
    std::uint64_t lines = 0;
    options_.take_lines = [this](const wire::ReadingBatch& slice) {
      EC_TRY(check_count(decoded_.good));
      return take(slice);
    };
    do {
      const std::string_view piece = rest.substr(0, piece_bytes(rest));
      rest.remove_prefix(piece.size());
      // Blank lines behind the last piece are no empty body.
      const bool is_first = piece.data() == call_.body().data();
      if (!is_first && piece.find_first_not_of(" \t\r\n") == std::string_view::npos) break;
      EC_TRY(decode(piece, lines));
      lines += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
      options_.form = wire::JsonDecodeOptions::Form::Lines;
    } while (!rest.empty());
    return ok();
  }
  // Looked through before: of one that is malformed further on nothing is stored.
  Status array() {
    options_.take_slice = [](const wire::ReadingBatch&) { return ok(); };
    wire::ReadingBatch batch;
    wire::JsonDecodeOutcome outcome;
    EC_TRY(wire::decode_readings_json(call_.body(), options_, batch, outcome));
    EC_TRY(check_count(outcome.good));
    options_.take_slice = [this](const wire::ReadingBatch& slice) { return take(slice); };
    return decode(call_.body(), 0);
  }

  // With more readings than a request may bring.
  bool is_answered() const { return is_answered_; }
  void answer() {
    const std::uint64_t stored = good_ - outcome_.not_stored();
    if (bad_.count + outcome_.of(ingest::Loss::Refused) > 0)
      return answer_partly(call_, stored, std::move(bad_), outcome_);
    set_loss_headers(call_, outcome_);
    call_.answer_json(200, "{\"stored\":" + std::to_string(stored) + ",\"rejected\":0" +
                               (call_.holder && call_.holder->is_second ? ",\"apart\":true" : "") +
                               loss_members(outcome_) + "}\n");
  }

 private:
  Status check_count(std::uint64_t more) {
    is_answered_ = context_.is_over_batch(call_, taken_, good_ + more - taken_);
    return is_answered_ ? invalid_argument("too many readings") : ok();
  }
  Status take(const wire::ReadingBatch& batch) {
    EC_TRY(context_.store(call_, batch, outcome_));
    taken_ += batch.readings.size();
    return ok();
  }
  Status decode(std::string_view piece, std::uint64_t first_line) {
    wire::ReadingBatch batch;
    EC_TRY(wire::decode_readings_json(piece, options_, batch, decoded_));
    EC_TRY(check_count(decoded_.good));
    EC_TRY(take(batch));
    good_ += decoded_.good;
    bad_.count += decoded_.bad;
    append_errors(std::move(decoded_.errors), first_line, options_.errors_max, bad_.errors);
    return ok();
  }

  HttpContext& context_;
  Call& call_;
  wire::JsonDecodeOptions& options_;
  wire::JsonDecodeOutcome decoded_;  // of the piece at hand
  std::uint64_t good_ = 0;           // that are readings
  std::uint64_t taken_ = 0;          // of them, stored
  ingest::Outcome outcome_;
  BadInput bad_;
  bool is_answered_ = false;
};

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

Result<std::unique_ptr<query::ReadingCursor>> open_value(HttpContext& context, const Call& call,
                                                         const BlobAddress& address) {
  wire::QueryRequest request;
  request.namespace_name = address.namespace_name;
  request.selection =
      wire::Selector{wire::escape_name(address.device), wire::escape_name(address.sensor)};
  if (!address.time_ns) {
    return context.parts.query.last(call.principal(), address.namespace_name, request.selection,
                                    call.parameter("purpose"));
  }
  request.purpose = call.parameter("purpose");
  // A client that stored it before the clock was right was told an undated time.
  const std::int64_t time_ns = context.parts.ingest.times().dated_ns(*address.time_ns);
  request.from_ns = time_ns;
  request.limit = 1;
  if (time_ns < std::numeric_limits<std::int64_t>::max()) request.to_ns = time_ns + 1;
  return context.parts.query.query(call.principal(), request);
}

constexpr const char* kPlainText = "text/plain; charset=utf-8";

void set_value_headers(Call& call, const wire::Reading& reading) {
  std::string time;
  wire::append_time(*reading.time_ns, time);
  call.response.set_header("X-EdgeCase-Time", time);
  // A stored page must not act as one of this server's.
  call.response.set_header("Content-Security-Policy", "sandbox; default-src 'none'");
}

// In pieces, as they are read.
void answer_large_value(Call& call, const wire::Reading& reading,
                        std::shared_ptr<query::ReadingCursor> cursor) {
  const bool is_text = reading.value.type == wire::ValueType::Text;
  const std::string content_type(is_text ? kPlainText : reading.value.content_type);
  // While a piece waits, it is a copy: the stream's.
  call.exchange.stream.on_slow([cursor] { cursor->let_go(); });
  call.watch(cursor->take_given());
  call.response.set_pieces(
      content_type,
      [cursor](PieceWriter& body) {
        cursor->let_go();
        const auto piece = cursor->large_text()->next_piece();
        const bool is_sent = piece.ok() && !piece->empty() && body.write(*piece);
        return is_sent ? Sent::More : Sent::Broken;
      },
      cursor->large_text()->size_bytes());
}

void answer_value(Call& call, const wire::Reading& reading) {
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
  call.answer_text(200, kPlainText, std::move(text));
}

}  // namespace

void post_readings(HttpContext& context, Call& call) {
  const std::string default_namespace =
      call.has("ns") ? call.parameter("ns") : std::string(wire::kDefaultNamespace);
  if (const Status asked = wire::check_name("namespace", default_namespace); !asked.ok()) {
    return call.answer_error(asked);
  }
  wire::JsonDecodeOptions options;
  options.default_namespace = default_namespace;
  options.depth_max = context.parts.settings.limits.json_depth;
  options.keys_max = context.parts.settings.limits.json_keys;
  options.errors_max = context.line_errors();
  ReadingsStore store(context, call, options);
  const bool is_long_array = is_array(call.body()) && call.body().size() > kJsonPieceBytes;
  const Status status = is_long_array ? store.array() : store.lines();
  if (store.is_answered()) return;
  if (!status.ok()) return call.answer_error(status);
  store.answer();
}

void put_blob(HttpContext& context, Call& call) {
  auto address = blob_address(context, call);
  if (!address.ok()) return call.answer_error(address.status());
  if (call.body().empty()) return call.answer_error(invalid_argument("the body is empty"));
  const std::string& content_type = call.exchange.head.content_type;
  const std::int64_t time_ns =
      address->time_ns ? *address->time_ns : context.parts.ingest.times().take_arrival_time();
  wire::ReadingBatch batch;
  wire::Reading& reading = batch.readings.emplace_back();
  reading.namespace_name = address->namespace_name;
  reading.device = address->device;
  reading.sensor = address->sensor;
  reading.time_ns = time_ns;
  reading.value = wire::Value::of_bytes(
      call.body(), content_type.empty() ? wire::kDefaultContentType : content_type);
  ingest::Outcome outcome;
  if (const Status status = context.store(call, batch, outcome); !status.ok()) {
    return call.answer_error(status);
  }
  if (outcome.of(ingest::Loss::Refused) > 0) return answer_partly(call, 0, {}, outcome);
  if (outcome.of(ingest::Loss::Erased) + outcome.of(ingest::Loss::Evicted) > 0) {
    return call.answer_error(
        invalid_argument("its time was erased or evicted, and is not taken again"));
  }
  set_loss_headers(call, outcome);
  std::string answer = "{\"time\":\"";
  wire::append_time(time_ns, answer);
  call.answer_json(201, answer + "\",\"bytes\":" + std::to_string(call.body().size()) +
                            loss_members(outcome) + "}\n");
}

void get_blob(HttpContext& context, Call& call) {
  auto address = blob_address(context, call);
  if (!address.ok()) return call.answer_error(address.status());
  auto cursor = open_value(context, call, *address);
  if (!cursor.ok()) return call.answer_error(cursor.status());
  wire::Reading reading;
  const auto found = (*cursor)->next(reading);
  if (!found.ok()) return call.answer_error(found.status());
  if (const query::LeftOut* const left_out = (*cursor)->left_out();
      !*found && left_out != nullptr && !left_out->empty())
    return call.answer_error(left_out->status());
  if (!*found) {
    return call.answer_error(
        not_found(address->device + "/" + address->sensor + " holds no value at that time"));
  }
  set_value_headers(call, reading);
  if ((*cursor)->large_text() != nullptr)
    return answer_large_value(call, reading, std::move(cursor).value());
  call.watch((*cursor)->take_given());
  answer_value(call, reading);
}

namespace {

// What is told to this asker: devices beyond its scope are among the others.
ingest::LossLedger::Told visible_losses(const HttpContext& context,
                                        const auth::Principal& principal) {
  ingest::LossLedger::Told told =
      context.parts.ingest.losses().tell(context.parts.catalog.generation());
  std::erase_if(told.devices, [&](const ingest::LossLedger::Device& device) {
    const wire::Selector all_of_it{wire::escape_name(device.name), "*"};
    if (auth::authorize(auth::Operation::Read, principal, device.namespace_name, all_of_it).ok())
      return false;
    for (std::size_t i = 0; i < ingest::kLosses; ++i) told.others[i] += device.counts[i];
    return true;
  });
  return told;
}

}  // namespace

void set_loss_headers(Call& call, const ingest::Outcome& outcome) {
  static constexpr std::array<const char*, ingest::kLosses> kHeaders = {
      "X-EdgeCase-Expired", "X-EdgeCase-Replaced", "X-EdgeCase-Erased", "X-EdgeCase-Evicted",
      nullptr};
  for (std::size_t i = 0; i < ingest::kLosses; ++i) {
    if (kHeaders[i] == nullptr || outcome.counts[i] == 0) continue;
    call.response.set_header(kHeaders[i], std::to_string(outcome.counts[i]));
  }
}

std::string loss_members(const ingest::Outcome& outcome) {
  std::string members;
  for (std::size_t i = 0; i < ingest::kLosses; ++i) {
    if (i == static_cast<std::size_t>(ingest::Loss::Refused) || outcome.counts[i] == 0) continue;
    members +=
        ",\"" + std::string(ingest::kLossNames[i]) + "\":" + std::to_string(outcome.counts[i]);
  }
  return members;
}

wire::Json losses_json(const HttpContext& context, const auth::Principal& principal) {
  using wire::Json;
  const auto add_counts = [](const ingest::LossLedger::Counts& counts, Json& json) {
    for (std::size_t i = 0; i < ingest::kLosses; ++i) {
      if (counts[i] > 0) json[std::string(ingest::kLossNames[i])] = counts[i];
    }
  };
  Json json = Json::object();
  for (std::size_t i = 0; i < ingest::kLosses; ++i) {
    json[std::string(ingest::kLossNames[i])] =
        context.parts.ingest.losses().total(static_cast<ingest::Loss>(i));
  }
  const ingest::LossLedger::Told told = visible_losses(context, principal);
  json["devices"] = Json::array();
  for (const ingest::LossLedger::Device& device : told.devices) {
    Json each = {{"namespace", device.namespace_name}, {"device", device.name}};
    add_counts(device.counts, each);
    each["last"] = wire::time_text(device.last_ns);
    json["devices"].push_back(std::move(each));
  }
  json["other_devices"] = Json::object();
  add_counts(told.others, json["other_devices"]);
  return json;
}

std::string loss_metrics(const HttpContext& context, const auth::Principal& principal) {
  std::vector<std::pair<observe::Labels, std::uint64_t>> values;
  const auto add_counts = [&](const std::string& namespace_name, const std::string& device,
                              const ingest::LossLedger::Counts& counts) {
    for (std::size_t i = 0; i < ingest::kLosses; ++i) {
      if (counts[i] == 0) continue;
      values.push_back({{{"namespace", namespace_name},
                         {"device", device},
                         {"cause", std::string(ingest::kLossNames[i])}},
                        counts[i]});
    }
  };
  const ingest::LossLedger::Told told = visible_losses(context, principal);
  for (const ingest::LossLedger::Device& device : told.devices)
    add_counts(device.namespace_name, device.name, device.counts);
  add_counts("", "", told.others);
  return observe::render_counter(
      "edgecase_ingest_not_stored_by_device_total",
      "Readings not kept as they were sent, by device and cause; without a device: of all others.",
      values);
}

void answer_partly(Call& call, std::uint64_t stored, BadInput bad, const ingest::Outcome& outcome) {
  const std::uint64_t refused = outcome.of(ingest::Loss::Refused);
  const std::uint64_t rejected = bad.count + refused;
  std::vector<wire::LineError>& errors = bad.errors;
  for (const std::string& reason : outcome.reasons) errors.push_back({0, reason});
  // Telegraf takes "partial write" and "unable to parse" for final, and does not send these again.
  std::string message = stored > 0 || bad.count == 0 ? "partial write" : "";
  if (bad.count > 0) message += std::string(message.empty() ? "" : ": ") + "unable to parse";
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const bool has_line = errors[i].line != 0;
    message += i > 0 ? "; " : has_line ? " " : ": ";
    if (has_line) message += "line " + std::to_string(errors[i].line) + ": ";
    message += errors[i].message;
    list.push_back({{"line", errors[i].line}, {"message", errors[i].message}});
  }
  if (rejected > errors.size()) {
    message += "; and " + std::to_string(rejected - errors.size()) + " more";
  }
  message += " dropped=" + std::to_string(rejected);
  const bool only_scopes = bad.count == 0 && refused == outcome.out_of_scope;
  const StatusCode code = bad.count > 0 ? StatusCode::InvalidArgument : outcome.refused_code;
  nlohmann::ordered_json body =
      nlohmann::ordered_json::parse(error_body(call.request.path, Status(code, message)));
  auto& error = body["error"].is_object() ? body["error"] : body;
  if (!errors.empty() && errors[0].line != 0) error["line"] = errors[0].line;
  body["stored"] = stored;
  body["rejected"] = rejected;
  for (std::size_t i = 0; i < ingest::kLosses; ++i) {
    if (i != static_cast<std::size_t>(ingest::Loss::Refused) && outcome.counts[i] > 0)
      body[std::string(ingest::kLossNames[i])] = outcome.counts[i];
  }
  body["errors"] = std::move(list);
  set_loss_headers(call, outcome);
  call.answer_json(
      only_scopes ? 403 : 400,
      body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace edgecase::http
