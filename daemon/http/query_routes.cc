// Routes that read: /api/v1/query, last, series, devices, namespaces.
#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "config/configuration.h"
#include "forward/forwarding.h"
#include "http/http_routes.h"
#include "http/reading_pieces.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/names.h"
#include "wire/reading_format.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::http {
namespace {

// Refuses more windows than there may be before anything is read, where the range has a beginning;
// elsewhere they are counted while they are answered.
Status check_windows(const HttpContext& context, const wire::QueryRequest& request,
                     std::int64_t now_ns) {
  const std::int64_t end_ns = request.to_ns.value_or(now_ns);
  const bool is_endless = request.from_ns == std::numeric_limits<std::int64_t>::min();
  if (request.every_ns == 0 || is_endless || request.from_ns >= end_ns) return ok();
  const std::uint64_t count = query::windows_between(request.from_ns, end_ns - 1, request.every_ns);
  return query::check_limit(query::kWindowsLimit,
                            std::min(count, request.limit.value_or(UINT64_MAX)),
                            context.parts.query.limits().windows);
}

// For a drawing of the range with so many points of each series: windows of which minmax gives two
// each. They are aligned to the epoch, so that one more than fits may be met.
Status set_points(const Call& call, std::int64_t now_ns, wire::QueryRequest& request) {
  EC_ASSIGN_OR_RETURN(const auto points, limit_parameter(call, "points"));
  if (!points) return ok();
  if (request.every_ns != 0 || request.aggregate)
    return invalid_argument("points chooses windows itself: leave out every and agg");
  if (!call.has("from")) return invalid_argument("points needs from, where the drawing begins");
  constexpr std::uint64_t kPointsMin = 4;
  if (*points < kPointsMin) return invalid_argument("points is less than 4");
  const std::int64_t to_ns = request.to_ns.value_or(now_ns);
  if (to_ns <= request.from_ns) return ok();
  const std::uint64_t windows = *points / 2 - 1;
  const std::uint64_t span_ns =
      static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(request.from_ns);
  const std::uint64_t every_ns = span_ns / windows + (span_ns % windows != 0 ? 1 : 0);
  request.every_ns = static_cast<std::int64_t>(
      std::min<std::uint64_t>(every_ns, std::numeric_limits<std::int64_t>::max()));
  request.aggregate = wire::Aggregate::MinMax;
  return ok();
}

Result<wire::QueryRequest> query_request(const HttpContext& context, const Call& call) {
  if (call.has("transfer"))
    EC_TRY(config::check_location(context.parts.settings.storage, call.parameter("transfer")));
  const std::int64_t now_ns = context.parts.clock.wall_ns();
  wire::QueryRequest request;
  request.namespace_name = namespace_parameter(call);
  EC_ASSIGN_OR_RETURN(request.selection, selection_parameters(call));
  EC_ASSIGN_OR_RETURN(request.selection, context.by_names_here(call, std::move(request.selection)));
  if (call.has("from")) {
    EC_ASSIGN_OR_RETURN(request.from_ns, wire::parse_time_ns(call.parameter("from"), now_ns));
  }
  if (call.has("to")) {
    EC_ASSIGN_OR_RETURN(request.to_ns, wire::parse_time_ns(call.parameter("to"), now_ns));
  }
  if (call.has("every")) {
    EC_ASSIGN_OR_RETURN(request.every_ns, wire::parse_duration_ns(call.parameter("every")));
    if (request.every_ns == 0) return invalid_argument("every is zero");
  }
  if (call.has("agg")) {
    EC_ASSIGN_OR_RETURN(request.aggregate, wire::parse_aggregate(call.parameter("agg")));
  }
  EC_TRY(set_points(call, now_ns, request));
  EC_ASSIGN_OR_RETURN(request.limit, limit_parameter(call));
  EC_TRY(check_windows(context, request, now_ns));
  EC_ASSIGN_OR_RETURN(request.descending, flag_parameter(call, "desc"));
  request.purpose = call.parameter("purpose");
  request.owner = call.parameter("owner");
  request.of_purpose = call.parameter("of_purpose");
  request.of_objection = call.parameter("object");
  for (const char* name : {"owner", "of_purpose", "object"}) {
    if (call.has(name)) EC_TRY(wire::check_name(name, call.parameter(name)));
  }
  EC_ASSIGN_OR_RETURN(request.of_labels, label_parameters(call));
  EC_ASSIGN_OR_RETURN(request.tiers, flag_parameter(call, "tiers"));
  EC_ASSIGN_OR_RETURN(request.exports, flag_parameter(call, "export"));
  return request;
}

void tell_withheld(Call& call, std::uint64_t devices) {
  if (devices > 0) call.response.set_header(wire::routes::kWithheldHeader, std::to_string(devices));
}

// With `explain`: what an answer would be made of, in place of the answer.
class ExplainedPieces final : public PieceSource {
 public:
  explicit ExplainedPieces(std::unique_ptr<query::ReadingCursor> cursor)
      : cursor_(std::move(cursor)) {}

  Result<bool> fill(std::string& piece) override {
    wire::Reading reading;
    std::uint64_t rows = 0;
    const ThreadReads before = thread_reads();
    for (;; ++rows) {
      EC_ASSIGN_OR_RETURN(const bool more, cursor_->next(reading));
      if (!more) break;
    }
    const query::ReadAccount account = cursor_->account();
    const ThreadReads after = thread_reads();
    piece += "{\"rows\":" + std::to_string(rows) +
             ",\"groups_from_metadata\":" + std::to_string(account.groups_from_metadata) +
             ",\"readings_from_metadata\":" + std::to_string(account.readings_from_metadata) +
             ",\"readings_decoded\":" + std::to_string(account.readings_decoded) +
             ",\"groups_decoded\":" + std::to_string(after.groups - before.groups) +
             ",\"metadata_bytes\":" + std::to_string(after.metadata_bytes - before.metadata_bytes) +
             ",\"values_bytes\":" + std::to_string(after.values_bytes - before.values_bytes) +
             "}\n";
    return false;
  }
  void let_go() override { cursor_->let_go(); }
  query::GivenReadings take_given() override { return cursor_->take_given(); }
  const query::LeftOut* left_out() const override { return cursor_->left_out(); }

 private:
  const std::unique_ptr<query::ReadingCursor> cursor_;
};

enum class Layout : unsigned char { Long, Wide };

Result<Layout> layout_parameter(const Call& call) {
  const std::string text = call.parameter("layout");
  if (text == "wide") {
    for (const char* name : {"moment", "explain"}) {
      if (call.has(name)) return invalid_argument(std::string(name) + " is of layout=long");
    }
    return Layout::Wide;
  }
  if (!text.empty() && text != "long") return invalid_argument("layout is none of long, wide");
  if (call.has("fill")) return invalid_argument("fill is of layout=wide: cells without a reading");
  return Layout::Long;
}

Result<wire::ReadingFormat> wide_format(const Call& call) {
  if (!call.has("format")) return wire::ReadingFormat::Ndjson;
  if (!parse_columnar_format(call.parameter("format"))) {
    EC_ASSIGN_OR_RETURN(const auto format, wire::parse_reading_format(call.parameter("format")));
    if (format != wire::ReadingFormat::Line) return format;
  }
  return invalid_argument("layout=wide is of csv, ndjson and json");
}

// What of the answer is made of windows, and what is not there though it was once.
void tell_tiers(Call& call, const query::TierNote& tiers) {
  if (const std::string text = tiers.text(); !text.empty())
    call.response.set_header(wire::routes::kTiersHeader, text);
}

Status answer_wide(const HttpContext& context, Call& call, const wire::QueryRequest& request) {
  EC_ASSIGN_OR_RETURN(const wire::ReadingFormat format, wide_format(call));
  query::FillRule fill;
  if (call.has("fill")) {
    EC_ASSIGN_OR_RETURN(fill, query::parse_fill(call.parameter("fill")));
  }
  query::Reach reach;
  reach.patience = call.exchange.patience;
  auto rows = context.parts.query.wide(call.principal(), request, fill, &reach);
  tell_withheld(call, reach.withheld);
  EC_TRY(rows.status());
  if (reach.has_identities) call.response.set_header(wire::routes::kNotToldHeader, "identity");
  tell_tiers(call, reach.tiers);
  call.exchange.audit.reach = std::move(reach);
  const std::string content_type(wire::content_type_of(format));
  answer_in_pieces(
      call, content_type.c_str(),
      std::make_shared<WidePieces>(*std::move(rows), format, namespace_parameter(call).empty()));
  return ok();
}

// `reach.series` is what a file of columns says of its series.
void answer_columns(const HttpContext& context, Call& call, ColumnarFormat format,
                    std::unique_ptr<query::ReadingCursor> cursor,
                    const std::vector<catalog::SeriesRow>& series) {
  auto pieces = ColumnarPieces::create(
      context, format, series, std::move(cursor),
      asks_for_tiers(call) ? columnar::WindowColumns::Told : columnar::WindowColumns::NotTold);
  if (!pieces.ok()) return call.answer_error(pieces.status());
  answer_in_pieces(call, content_type_of(format), *std::move(pieces));
}

void answer_readings(const HttpContext& context, Call& call,
                     Result<std::unique_ptr<query::ReadingCursor>> cursor, query::Reach reach,
                     const std::vector<catalog::SeriesRow>& series, bool rows_tell_lacks = false) {
  tell_withheld(call, reach.withheld);
  if (cursor.ok()) tell_tiers(call, reach.tiers);
  reach.series = nullptr;
  if (const auto columnar = parse_columnar_format(call.parameter("format"))) {
    if (!cursor.ok()) return call.answer_error(cursor.status());
    call.exchange.audit.reach = std::move(reach);
    return answer_columns(context, call, *columnar, *std::move(cursor), series);
  }
  auto format = call.has("format") ? wire::parse_reading_format(call.parameter("format"))
                                   : Result<wire::ReadingFormat>(wire::ReadingFormat::Ndjson);
  if (format.ok() && *format == wire::ReadingFormat::Csv && reach.has_identities)
    call.response.set_header(wire::routes::kNotToldHeader, "identity");
  if (cursor.ok()) call.exchange.audit.reach = std::move(reach);
  if (!format.ok()) return call.answer_error(format.status());
  if (!cursor.ok()) return call.answer_error(cursor.status());
  const std::string content_type(wire::content_type_of(*format));
  auto pieces =
      std::make_shared<ReadingPieces>(std::move(cursor).value(), formatter_for(call, *format));
  if (rows_tell_lacks) pieces->names_lacks();
  answer_in_pieces(call, content_type.c_str(), std::move(pieces));
}

void append_time_member(const char* name, const std::optional<std::int64_t>& time_ns,
                        std::string& out) {
  out += std::string(",\"") + name + "\":";
  if (!time_ns) {
    out += "null";
    return;
  }
  out += '"';
  wire::append_time(*time_ns, out);
  out += '"';
}

// What SeriesInfo and DeviceInfo share, as the end of a JSON object.
template <typename Info>
void append_amounts(const Info& info, std::string& out) {
  if (info.damaged) out += ",\"damaged\":true";
  out += ",\"count\":" + std::to_string(info.count);
  append_time_member("first", info.first_ns, out);
  append_time_member("last", info.last_ns, out);
  out += ",\"bytes\":" + std::to_string(info.stored_bytes) + ",\"rate\":";
  wire::append_double(info.readings_per_second, out);
  out += '}';
}

void append_item(const query::SeriesInfo& info, std::string& out) {
  out += "{\"namespace\":";
  wire::append_json_string(info.namespace_name, out);
  out += ",\"device\":";
  wire::append_json_string(info.device, out);
  out += ",\"sensor\":";
  wire::append_json_string(info.sensor, out);
  append_amounts(info, out);
}

void append_item(const query::DeviceInfo& info, std::string& out) {
  out += "{\"namespace\":";
  wire::append_json_string(info.namespace_name, out);
  out += ",\"device\":";
  wire::append_json_string(info.device, out);
  out += ",\"series\":" + std::to_string(info.series);
  append_amounts(info, out);
}

// {"NAME":[item, ...]}
template <typename Listing, typename Info>
class ListPieces final : public PieceSource {
 public:
  ListPieces(const char* name, Listing listing)
      : head_(std::string("{\"") + name + "\":["), listing_(std::move(listing)) {}

  Result<bool> fill(std::string& piece) override {
    piece += std::exchange(head_, {});
    while (piece.size() < kPieceBytes) {
      EC_ASSIGN_OR_RETURN(const bool more, listing_.next(info_));
      if (!more) {
        piece += ']';
        if (!listing_.left_out()->empty())
          piece += ",\"left_out\":" + wire::compact(query::left_out_json(*listing_.left_out()));
        piece += "}\n";
        return false;
      }
      if (!std::exchange(is_first_, false)) piece += ',';
      append_item(info_, piece);
    }
    return true;
  }
  void let_go() override { listing_.let_go(); }
  query::GivenReadings take_given() override { return listing_.take_given(); }
  const query::LeftOut* left_out() const override { return listing_.left_out(); }
  bool names_left_out() const override { return true; }

 private:
  std::string head_;
  Listing listing_;
  Info info_;
  bool is_first_ = true;
};

template <typename Info, typename Listing>
void answer_list(Call& call, const char* name, Result<Listing> listing, query::Reach reach) {
  tell_withheld(call, reach.withheld);
  if (!listing.ok()) return call.answer_error(listing.status());
  call.exchange.audit.reach = std::move(reach);
  answer_in_pieces(call, "application/json",
                   std::make_shared<ListPieces<Listing, Info>>(name, std::move(listing).value()));
}

// `after`: a device, as NAMESPACE/DEVICE where all namespaces are asked for.
Result<catalog::DevicePage> page_parameters(const Call& call) {
  catalog::DevicePage page;
  EC_ASSIGN_OR_RETURN(const auto limit, limit_parameter(call));
  if (limit) page.limit = *limit;
  if (!call.has("after")) return page;
  const std::string after = call.parameter("after");
  const std::size_t slash = after.find('/');
  if (slash != std::string::npos) {
    page.after = {after.substr(0, slash), after.substr(slash + 1)};
  } else if (namespace_parameter(call).empty()) {
    return invalid_argument("with all namespaces after is written NAMESPACE/DEVICE");
  } else {
    page.after = {namespace_parameter(call), after};
  }
  return page;
}

}  // namespace

void get_query(HttpContext& context, Call& call) {
  auto request = query_request(context, call);
  const auto layout = layout_parameter(call);
  if (!request.ok()) return call.answer_error(request.status());
  if (!layout.ok()) return call.answer_error(layout.status());
  if (*layout == Layout::Wide) {
    const Status answered = answer_wide(context, call, *request);
    if (!answered.ok()) call.answer_error(answered);
    return;
  }
  auto moment = moment_parameter(context, call);
  if (!moment.ok()) return call.answer_error(moment.status());
  std::vector<catalog::SeriesRow> series;
  query::Reach reach;
  const std::string format = call.parameter("format");
  if (parse_columnar_format(format)) reach.series = &series;
  // Line protocol and files of columns have no rows without a value.
  const bool tells_lacks = (request->every_ns > 0 || request->aggregate) && format != "line" &&
                           !parse_columnar_format(format);
  if (tells_lacks) request->lacks_to_ns = context.parts.clock.wall_ns();
  reach.patience = call.exchange.patience;
  auto cursor =
      *moment ? context.parts.query.query_at(call.principal(), *request, std::move(*moment), &reach)
              : context.parts.query.query(call.principal(), *request, &reach);
  const auto explains = flag_parameter(call, "explain");
  if (!explains.ok()) return call.answer_error(explains.status());
  if (!*explains || !cursor.ok())
    return answer_readings(context, call, std::move(cursor), std::move(reach), series, tells_lacks);
  tell_withheld(call, reach.withheld);
  reach.series = nullptr;
  call.exchange.audit.reach = std::move(reach);
  answer_in_pieces(call, "application/json",
                   std::make_shared<ExplainedPieces>(std::move(cursor).value()));
}

void get_last(HttpContext& context, Call& call) {
  const auto selection = selection_parameters(call);
  if (!selection.ok()) return call.answer_error(selection.status());
  std::vector<catalog::SeriesRow> series;
  query::Reach reach;
  if (parse_columnar_format(call.parameter("format"))) reach.series = &series;
  reach.patience = call.exchange.patience;
  auto cursor = context.parts.query.last(call.principal(), namespace_parameter(call), *selection,
                                         call.parameter("purpose"), &reach);
  answer_readings(context, call, std::move(cursor), std::move(reach), series);
}

void get_series(HttpContext& context, Call& call) {
  const auto selection = selection_parameters(call);
  const auto exports = flag_parameter(call, "export");
  Status status = selection.status();
  if (status.ok()) status = exports.status();
  auto moment = moment_parameter(context, call);
  if (status.ok()) status = moment.status();
  if (!status.ok()) return call.answer_error(status);
  query::Reach reach;
  reach.patience = call.exchange.patience;
  if (*moment) {
    auto found = context.parts.query.list_series_at(call.principal(), namespace_parameter(call),
                                                    *selection, std::move(*moment), &reach);
    return answer_list<query::SeriesInfo>(call, "series", std::move(found), std::move(reach));
  }
  std::optional<std::string> purpose;
  if (call.has("purpose")) purpose = call.parameter("purpose");
  auto found = context.parts.query.list_series(
      call.principal(), namespace_parameter(call), *selection,
      *exports ? auth::Operation::Export : auth::Operation::Read, purpose, &reach);
  answer_list<query::SeriesInfo>(call, "series", std::move(found), std::move(reach));
}

void get_devices(HttpContext& context, Call& call) {
  const auto selection = selection_parameters(call);
  const auto labels = label_parameters(call);
  const auto page = page_parameters(call);
  Status status = selection.status();
  if (status.ok()) status = labels.status();
  if (status.ok()) status = page.status();
  if (!status.ok()) return call.answer_error(status);
  const catalog::DeviceFilter filter{call.parameter("owner"), call.parameter("purpose"),
                                     call.parameter("object"), *labels};
  query::Reach reach;
  reach.patience = call.exchange.patience;
  auto found = context.parts.query.list_devices(call.principal(), namespace_parameter(call),
                                                *selection, filter, *page, &reach);
  answer_list<query::DeviceInfo>(call, "devices", std::move(found), std::move(reach));
}

void get_namespaces(HttpContext& context, Call& call) {
  std::string json = "{\"namespaces\":[";
  bool first = true;
  for (const std::string& name : context.parts.catalog.namespaces()) {
    if (!auth::allows_namespace(call.principal(), name)) continue;
    if (!std::exchange(first, false)) json += ',';
    wire::append_json_string(name, json);
  }
  call.answer_json(200, json + "]}\n");
}

void post_namespace(HttpContext& context, Call& call) {
  const std::string name = call.parameter("name");
  const std::vector<std::string> before = context.parts.catalog.namespaces();
  Status status;
  if (!wire::is_writable_namespace(name))
    status = not_allowed("names that begin with _ are the store's own");
  if (status.ok()) status = auth::authorize_creation(call.principal(), name);
  if (!status.ok()) {
    return call.answer_error(status);
  }
  const auto id = context.parts.catalog.ensure_namespace(name);
  if (!id.ok()) return call.answer_error(id.status());
  std::string json = "{\"name\":";
  wire::append_json_string(name, json);
  const bool is_new = std::find(before.begin(), before.end(), name) == before.end();
  call.answer_json(is_new ? 201 : 200, json + "}\n");
}

void delete_namespace(HttpContext& context, Call& call) {
  const std::string name = call.parameter("name");
  Status status = auth::authorize_administration(call.principal());
  const auto space = context.parts.query.engine().find_namespace(name);
  const bool is_forwarded = space.ok() && context.parts.forwarding != nullptr;
  wire::Json targets = wire::Json::array();
  if (status.ok() && is_forwarded) {
    // What is signed of its hours names its devices.
    status = context.parts.forwarding->summaries().forget_namespace(space->id);
    targets = context.parts.forwarding->erasures().takers(
        context.parts.catalog.select(name, wire::Selector()), true);
    context.parts.forwarding->unsent().count_dropped(name);
  }
  if (status.ok()) status = context.parts.catalog.drop_namespace(name);
  if (status.ok()) status = context.parts.devices.forget_namespace(name);
  if (!status.ok()) return call.answer_error(status);
  std::string json = "{\"name\":";
  wire::append_json_string(name, json);
  json += ",\"dropped\":true";
  if (!targets.empty()) json += ",\"still_at\":" + targets.dump();
  call.answer_json(200, json + "}\n");
}

Result<bool> flag_parameter(const Call& call, const char* name) {
  if (!call.has(name)) return false;
  const std::string text = call.parameter(name);
  if (text.empty() || text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return invalid_argument(std::string(name) + " is none of true, false, 1, 0");
}

Result<std::optional<std::uint64_t>> limit_parameter(const Call& call, const std::string& name) {
  if (!call.has(name)) return std::optional<std::uint64_t>();
  const std::string text = call.parameter(name);
  std::uint64_t limit = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (text.empty() || error != std::errc{} || stop != text.data() + text.size()) {
    return invalid_argument(name + " is no whole number");
  }
  return std::optional<std::uint64_t>(limit);
}

}  // namespace edgecase::http
