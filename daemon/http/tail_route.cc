// New readings as they are stored: /api/v1/tail. A client asks again and again, each time with the
// cursor that the last answer gave it; no worker waits for readings.
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/http_routes.h"
#include "http/reading_pieces.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/tiers.h"

namespace edgecase::http {
namespace {

using Position = ingest::ReadingFeed::Position;

// What one answer holds at most, and one reading more; the rest comes with the next one.
constexpr std::size_t kTailPageBytes = 256u << 10;

std::size_t text_bytes(const wire::Reading& reading) {
  return reading.namespace_name.size() + reading.device.size() + reading.sensor.size() +
         reading.value.text.size();
}

// Readings of one page, which stay where they are until they are sent, or something was revoked:
// then those that are still there are copied.
class PageCursor final : public query::ReadingCursor {
 public:
  PageCursor(const HttpContext& context, query::LeftOut left_out)
      : engine_(context.parts.engine),
        catalog_(context.parts.catalog),
        left_out_(std::move(left_out)),
        revocations_(engine_.revocations()),
        given_(engine_) {}

  // Readings of this page are added while it is read.
  void add(const wire::Reading& reading) { readings_.push_back(&reading); }
  void keep(std::vector<std::shared_ptr<const void>> kept) { kept_ = std::move(kept); }

  Result<bool> next(wire::Reading& reading) override {
    large_.reset();
    for (;;) {
      if (next_ == readings_.size()) return false;
      reading = *readings_[next_++];
      const auto entry = catalog_.find(reading.namespace_name, reading.device, reading.sensor);
      if (!entry.ok() || is_gone(entry->id, reading)) continue;
      given_.add(entry->id, *reading.time_ns, *reading.time_ns);
      current_ = *reading.time_ns;
      series_ = entry->id;
      break;
    }
    if (reading.value.text.size() >= query::kLargeTextBytes) {
      large_.emplace(reading.value);
      reading.value = large_->kind();
    }
    return true;
  }
  query::LargeText* large_text() override { return large_ ? &*large_ : nullptr; }
  query::GivenReadings take_given() override {
    query::GivenReadings fresh(engine_);
    if (large_ && !given_.is_revoked()) fresh.add(series_, current_, current_);
    return std::exchange(given_, std::move(fresh));
  }
  bool is_given_revoked() override { return given_.is_revoked(); }
  const query::LeftOut* left_out() const override { return &left_out_; }
  // What is being sent in pieces stays where it is; where it was revoked the answer ends.
  void let_go() override {
    if (engine_.revocations() == revocations_ || large_) return;
    auto left = std::make_shared<wire::ReadingBatch>();
    for (; next_ < readings_.size(); ++next_) {
      wire::Reading reading = *readings_[next_];
      const auto entry = catalog_.find(reading.namespace_name, reading.device, reading.sensor);
      if (!entry.ok() || is_gone(entry->id, reading)) continue;
      for (std::string_view* text : {&reading.namespace_name, &reading.device, &reading.sensor,
                                     &reading.value.text, &reading.value.content_type})
        *text = left->keep(*text);
      if (reading.identity != nullptr) {
        reading.identity = left->texts.keep_object(wire::SeriesIdentity{
            reading.identity->measurement_bytes, left->keep(reading.identity->device_keys),
            left->keep(reading.identity->body)});
      }
      if (reading.window != nullptr) reading.window = left->texts.keep_object(*reading.window);
      left->readings.push_back(reading);
    }
    readings_.clear();
    next_ = 0;
    for (const wire::Reading& each : left->readings) readings_.push_back(&each);
    kept_ = {left};
    given_ = query::GivenReadings(engine_);
    revocations_ = engine_.revocations();
  }

 private:
  bool is_gone(const catalog::SeriesId& id, const wire::Reading& reading) const {
    const Bytes key = wire::make_reading_key({id.device, id.sensor, *reading.time_ns});
    return engine_.is_revoked(id.namespace_id, key, key, revocations_);
  }

  const Engine& engine_;
  const catalog::Catalog& catalog_;
  const query::LeftOut left_out_;
  std::uint64_t revocations_;  // by then what is left was there
  query::GivenReadings given_;
  catalog::SeriesId series_;  // of the reading that was answered last, and its time
  std::int64_t current_ = 0;
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<const wire::Reading*> readings_;
  std::size_t next_ = 0;
  std::optional<query::LargeText> large_;
};

std::string cursor_text(const Position& position) {
  return std::to_string(position.epoch) + "-" + std::to_string(position.next);
}

bool take_number(std::string_view text, std::uint64_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc{} && stop == text.data() + text.size();
}

Result<std::optional<Position>> cursor_parameter(const Call& call) {
  if (!call.has("cursor")) return std::optional<Position>();
  const std::string text = call.parameter("cursor");
  const std::size_t split = std::min(text.find('-'), text.size());
  const std::string_view whole = text;
  Position position;
  if (!take_number(whole.substr(0, split), position.epoch) || split == text.size() ||
      !take_number(whole.substr(split + 1), position.next)) {
    return invalid_argument("cursor is none that an answer of this path gave");
  }
  return std::optional<Position>(position);
}

Result<wire::ReadingFormat> format_parameter(const Call& call) {
  if (!call.has("format")) return wire::ReadingFormat::Ndjson;
  EC_ASSIGN_OR_RETURN(const wire::ReadingFormat format,
                      wire::parse_reading_format(call.parameter("format")));
  if (format == wire::ReadingFormat::Json) {
    return invalid_argument("json is one document and has no end here; use ndjson");
  }
  return format;
}

Status answer_tail(HttpContext& context, Call& call) {
  EC_ASSIGN_OR_RETURN(const wire::Selection selection, selection_parameters(call));
  EC_ASSIGN_OR_RETURN(const auto position, cursor_parameter(call));
  EC_ASSIGN_OR_RETURN(const wire::ReadingFormat format, format_parameter(call));
  const auto tiers = flag_parameter(call, "tiers");
  EC_TRY(tiers.status());
  query::LeftOut left_out;
  EC_ASSIGN_OR_RETURN(const query::ReadingFilter is_meant,
                      context.parts.query.filter(call.principal(), namespace_parameter(call),
                                                 selection, call.parameter("purpose"), &left_out));
  EC_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> limit, limit_parameter(call));
  auto cursor = std::make_unique<PageCursor>(context, std::move(left_out));
  std::size_t bytes = 0;
  std::uint64_t count = 0;
  std::set<std::pair<std::string, std::string>> devices;
  auto read = context.parts.ingest.feed().read(position, [&](const wire::Reading& reading) {
    if (reading.window != nullptr && !*tiers) return true;
    if (!is_meant(reading)) return true;
    if (bytes >= kTailPageBytes || count == limit) return false;
    cursor->add(reading);
    bytes += sizeof(reading) + text_bytes(reading);
    devices.emplace(reading.namespace_name, reading.device);
    ++count;
    return true;
  });
  if (!read.ok()) return read.status();
  ingest::ReadingFeed::Page& page = *read;
  cursor->keep(std::move(page.kept));
  call.response.set_header(wire::routes::kCursorHeader, cursor_text(page.next));
  call.exchange.audit.count = count;
  query::Reach& reach = call.exchange.audit.reach.emplace();
  for (const auto& [namespace_name, device] : devices) reach.add(namespace_name, device);
  call.response.set_header(wire::routes::kReadingsHeader, std::to_string(count));
  if (page.gap || page.missed > 0) {
    call.response.set_header(wire::routes::kMissedHeader,
                             page.gap ? "unknown" : std::to_string(page.missed));
  }
  // What a format has at its beginning comes with the first question.
  const Frame frame = position ? Frame::None : Frame::Whole;
  answer_in_pieces(
      call, std::string(wire::content_type_of(format)).c_str(),
      std::make_shared<ReadingPieces>(std::move(cursor), formatter_for(call, format), frame));
  return ok();
}

}  // namespace

void get_tail(HttpContext& context, Call& call) {
  if (const Status status = answer_tail(context, call); !status.ok()) call.answer_error(status);
}

}  // namespace edgecase::http
