#include "http/columnar_pieces.h"

#include <algorithm>
#include <utility>

#include "columnar/arrow.h"
#include "columnar/parquet.h"
#include "edgecase/clock.h"
#include "wire/json_values.h"
#include "wire/version.h"

namespace edgecase::http {
namespace {

// Looking at the clock for every reading would cost as much as taking one in.
constexpr std::uint32_t kRowsPerClockLook = 64;

std::string unit_of(const catalog::SeriesEntry& entry, const wire::Identity& identity,
                    const catalog::DeviceMetadata& said) {
  for (const std::string& label : {"unit." + entry.sensor, std::string("unit")}) {
    const auto found = said.labels.find(label);
    if (found != said.labels.end()) return found->second;
  }
  const auto has_tag = [&](std::string_view key) {
    return std::any_of(identity.tags.begin(), identity.tags.end(),
                       [key](const auto& tag) { return tag.first == key; });
  };
  return has_tag("domain") && has_tag("entity_id") ? identity.measurement : "";
}

wire::Json describe(const HttpContext& context, const catalog::SeriesEntry& entry) {
  wire::Json json = {
      {"namespace", entry.namespace_name}, {"device", entry.device}, {"sensor", entry.sensor}};
  const auto identity = catalog::identity_of(entry);
  if (!identity.ok()) return json;
  json["measurement"] = identity->measurement;
  json["tags"] = wire::Json::object();
  for (const auto& [key, value] : identity->tags) json["tags"][key] = value;
  json["field"] = identity->field;
  const auto said = context.parts.devices.metadata({entry.namespace_name, entry.device});
  const std::string unit = unit_of(entry, *identity, said.ok() ? *said : catalog::DeviceMetadata());
  if (!unit.empty()) json["unit"] = unit;
  return json;
}

}  // namespace

std::optional<ColumnarFormat> parse_columnar_format(std::string_view name) {
  if (name == "parquet") return ColumnarFormat::Parquet;
  if (name == "arrow") return ColumnarFormat::Arrow;
  return std::nullopt;
}

const char* content_type_of(ColumnarFormat format) {
  return format == ColumnarFormat::Parquet ? "application/vnd.apache.parquet"
                                           : "application/vnd.apache.arrow.file";
}

columnar::Metadata metadata_of(const HttpContext& context,
                               const std::vector<catalog::SeriesRow>& series) {
  const wire::Json head = {{"version", wire::version()}, {"time_zone", "UTC"}};
  std::string text = "[";
  std::size_t told = 0;
  for (const catalog::SeriesRow row : series) {
    if (text.size() > kSeriesTextMaxBytes) break;
    ++told;
    const auto entry = context.parts.catalog.series_at(row);
    if (!entry.ok()) continue;
    if (text.size() > 1) text += ',';
    text += wire::compact(describe(context, *entry));
  }
  if (told < series.size())
    text += (told > 0 ? ",{\"more\":" : "{\"more\":") + std::to_string(series.size() - told) + "}";
  return {{"edgecase", wire::compact(head)}, {"edgecase.series", text + "]"}};
}

Result<std::shared_ptr<ColumnarPieces>> ColumnarPieces::create(
    const HttpContext& context, ColumnarFormat format,
    const std::vector<catalog::SeriesRow>& series, std::unique_ptr<query::ReadingCursor> cursor,
    columnar::WindowColumns windows) {
  const std::shared_ptr<ColumnarPieces> made(new ColumnarPieces(std::move(cursor), windows));
  made->metadata_ = metadata_of(context, series);
  if (format == ColumnarFormat::Parquet) {
    made->writer_ = std::make_unique<columnar::ParquetWriter>();
    return made;
  }
  made->writer_ = std::make_unique<columnar::ArrowWriter>();
  for (const catalog::SeriesRow row : series) {
    const auto entry = context.parts.catalog.series_at(row);
    if (!entry.ok()) continue;
    made->table_.know(entry->namespace_name, entry->device, entry->sensor);
    if (made->table_.known_bytes() > columnar::kNamesMaxBytes) {
      return limit_reached("the names of so many series take more than " +
                           std::to_string(columnar::kNamesMaxBytes) +
                           " bytes, which Arrow has to tell first: ask for less, or for parquet");
    }
  }
  return made;
}

// What a group holds is sent at once, and must be there still.
Status ColumnarPieces::check_given() {
  given_.add(cursor_->take_given());
  return given_.is_revoked() ? not_found("a reading was erased while it was sent") : ok();
}

Result<bool> ColumnarPieces::fill(std::string& piece) {
  is_written_ = false;
  EC_TRY(check_given());
  if (!std::exchange(begun_, true)) {
    writer_->begin(table_.columns(), metadata_, piece);
    metadata_.clear();
  }
  const std::int64_t begin_ns = system_clock().boot_ns();
  wire::Reading reading;
  std::uint32_t steps = 0;
  while (!table_.is_full()) {
    EC_ASSIGN_OR_RETURN(const bool more, cursor_->next(reading));
    if (!more) {
      if (table_.rows() > 0) EC_TRY(write_group(piece));
      writer_->end(piece);
      return false;
    }
    EC_TRY(add(reading));
    table_.add(cursor_->take_numbers(table_.room()));
    const bool looks = ++steps % kRowsPerClockLook == 0;
    if (looks && system_clock().boot_ns() - begin_ns > kPieceNs) return true;
  }
  EC_TRY(write_group(piece));
  return true;
}

Status ColumnarPieces::add(wire::Reading& reading) {
  query::LargeText* const large = cursor_->large_text();
  if (large == nullptr) {
    table_.add(reading);
    return ok();
  }
  text_.clear();
  const bool fits = large->size_bytes() <= columnar::kCellMaxBytes;
  while (fits) {
    EC_ASSIGN_OR_RETURN(const std::string_view piece, large->next_piece());
    if (piece.empty()) break;
    text_.append(piece);
  }
  if (!fits) {
    too_large_.add({std::string(reading.namespace_name), std::string(reading.device),
                    std::string(reading.sensor), reading.time_ns, reading.time_ns,
                    limit_reached("larger than " + std::to_string(columnar::kCellMaxBytes) +
                                  " bytes, which is no cell of a table: ask for it alone, or for "
                                  "ndjson")});
  }
  reading.value.text = text_;
  table_.add(reading, fits);
  return ok();
}

Status ColumnarPieces::write_group(std::string& piece) {
  EC_TRY(check_given());
  EC_TRY(writer_->group(table_.columns(), table_.rows(), piece));
  table_.clear_rows();
  is_written_ = true;
  return ok();
}

query::GivenReadings ColumnarPieces::take_given() {
  given_.add(cursor_->take_given());
  return is_written_ ? std::exchange(given_, {}) : query::GivenReadings();
}

const query::LeftOut* ColumnarPieces::left_out() const {
  if (too_large_.empty()) return cursor_->left_out();
  left_out_ = too_large_;
  if (const query::LeftOut* const others = cursor_->left_out()) left_out_.add(*others);
  return &left_out_;
}

}  // namespace edgecase::http
