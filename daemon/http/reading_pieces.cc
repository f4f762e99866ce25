#include "http/reading_pieces.h"

#include <algorithm>
#include <array>
#include <utility>

#include "columnar/table.h"
#include "edgecase/machine.h"
#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/json_text.h"
#include "wire/reading.h"

namespace edgecase::http {
namespace {

// Looking at the clock for every reading would cost as much as formatting one.
constexpr int kReadingsPerClockLook = 8;
// How much of a large text goes at once: escaped it may be six times as long.
constexpr std::size_t kTextSliceBytes = 8u << 10;

}  // namespace

bool asks_for_tiers(const Call& call) {
  const auto asked = flag_parameter(call, "tiers");
  return asked.ok() && *asked;
}

wire::ReadingFormatter formatter_for(const Call& call, wire::ReadingFormat format) {
  const bool of_all = namespace_parameter(call).empty();
  return wire::ReadingFormatter(
      format, of_all ? wire::LineNamespaces::Told : wire::LineNamespaces::NotTold,
      asks_for_tiers(call) ? wire::WindowColumns::Told : wire::WindowColumns::NotTold);
}

Result<bool> ReadingPieces::fill(std::string& piece) {
  // The rest of a large text may lie here.
  if (cursor_->is_given_revoked()) return not_found("a reading was erased while it was sent");
  if (!begun_ && frame_ == Frame::Whole) formatter_.begin(piece);
  begun_ = true;
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (int i = 1; piece.size() < kPieceBytes; ++i) {
    if (text_ != nullptr) {
      EC_TRY(fill_text(piece));
      continue;
    }
    EC_ASSIGN_OR_RETURN(const bool more, cursor_->next(reading_));
    if (!more) {
      if (frame_ == Frame::Whole) formatter_.end(piece);
      return false;
    }
    text_ = cursor_->large_text();
    if (text_ == nullptr) {
      const std::size_t before = piece.size();
      formatter_.reading(reading_, piece);
      const std::size_t room = kPieceBytes - std::min(piece.size(), kPieceBytes);
      const wire::Numbers behind = cursor_->take_numbers(room / (piece.size() - before + 1));
      formatter_.numbers(reading_, behind, piece);
      if (!behind.empty()) i = kReadingsPerClockLook;
    } else if (!formatter_.begin_text(reading_, piece)) {
      text_ = nullptr;
    }
    const bool look = i % kReadingsPerClockLook == 0;
    if (look && system_clock().boot_ns() - begin_ns > kPieceNs) break;
  }
  return true;
}

// A slice more, or what stands behind the last one.
Status ReadingPieces::fill_text(std::string& piece) {
  if (text_rest_.empty()) {
    EC_ASSIGN_OR_RETURN(text_rest_, text_->next_piece());
  }
  if (text_rest_.empty()) {
    formatter_.end_text(reading_, piece);
    text_ = nullptr;
    return ok();
  }
  const std::string_view slice = text_rest_.substr(0, kTextSliceBytes);
  formatter_.text(reading_, slice, piece);
  text_rest_.remove_prefix(slice.size());
  return ok();
}

void ReadingPieces::let_go() {
  if (!text_rest_.empty()) {
    // It may lie in what goes.
    std::string rest(text_rest_);
    kept_rest_ = std::move(rest);
    text_rest_ = kept_rest_;
  }
  cursor_->let_go();
}

namespace {

constexpr std::size_t kCellsPerClockLook = 64;

void append_whole(std::int64_t number, std::string& out) {
  std::array<char, 24> text;
  out.append(text.data(), wire::write_int(number, text.data()));
}

void append_quoted(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
}

void append_bytes_mark(const wire::Value& value, std::string& out) {
  out += "base64";
  if (!value.content_type.empty() && value.content_type != wire::kDefaultContentType)
    out.append(";").append(wire::percent_encode(value.content_type));
  out.push_back(':');
}

// Inside quotes; a character may be cut at either end.
void append_json_inside(std::string_view text, std::string& out) {
  std::string quoted;
  wire::append_json_string(text, quoted);
  out.append(quoted, 1, quoted.size() - 2);
}

}  // namespace

WidePieces::WidePieces(std::unique_ptr<query::WideRows> rows, wire::ReadingFormat format,
                       bool of_all)
    : rows_(std::move(rows)), format_(format) {
  for (const query::WideRows::Column& column : rows_->columns()) {
    std::string name = column.device + "/" + column.sensor;
    if (of_all) name = column.namespace_name + "/" + name;
    std::string shown;
    if (is_csv()) {
      wire::append_csv_field(name, shown);
    } else {
      wire::append_json_string(name, shown);
    }
    names_.push_back(std::move(shown));
  }
}

void WidePieces::begin(std::string& piece) {
  if (format_ == wire::ReadingFormat::Json) piece += '[';
  if (!is_csv()) return;
  piece += "time";
  for (const std::string& name : names_) piece.append(",").append(name);
  piece += '\n';
}

Result<bool> WidePieces::fill(std::string& piece) {
  if (rows_->is_given_revoked()) return not_found("a reading was erased while it was sent");
  if (!std::exchange(has_begun_, true)) begin(piece);
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (std::size_t cells = 1; piece.size() < kPieceBytes; ++cells) {
    if (text_ != nullptr) {
      EC_TRY(fill_text(piece));
    } else if (!is_in_row_) {
      EC_ASSIGN_OR_RETURN(const bool more, rows_->next());
      if (!more) {
        if (format_ == wire::ReadingFormat::Json) piece += "]\n";
        return false;
      }
      begin_row(piece);
    } else if (column_ < names_.size()) {
      begin_cell(piece);
    } else {
      end_row(piece);
    }
    const bool looks = cells % kCellsPerClockLook == 0;
    if (looks && system_clock().boot_ns() - begin_ns > kPieceNs) break;
  }
  return true;
}

void WidePieces::begin_row(std::string& piece) {
  is_in_row_ = true;
  column_ = 0;
  if (!is_csv()) {
    const bool is_behind = std::exchange(has_rows_, true);
    piece += is_behind && format_ == wire::ReadingFormat::Json ? ",{\"time\":\"" : "{\"time\":\"";
  }
  const std::size_t at = piece.size();
  piece.resize(at + wire::TimePrinter::kBytes);
  times_.write(rows_->time_ns(), piece.data() + at);
  if (!is_csv()) piece += '"';
}

void WidePieces::begin_cell(std::string& piece) {
  const std::string& name = names_[column_];
  piece += ',';
  if (!is_csv()) piece.append(name).append(":");
  wire::Value value;
  const bool is_there = rows_->cell(column_++, value, text_);
  if (text_ != nullptr) {
    kind_ = value;
    const bool is_bare = is_csv() && value.type == wire::ValueType::Bytes;
    if (is_bare) {
      append_bytes_mark(value, piece);
    } else {
      piece += '"';
    }
  } else if (!is_there) {
    if (!is_csv()) piece += "null";
  } else if (is_csv()) {
    append_csv_cell(value, piece);
  } else {
    append_json_cell(value, piece);
  }
}

void WidePieces::append_number(double number, std::string& out) {
  std::array<char, wire::DoublePrinter::kBytesMax> text;
  out.append(text.data(), doubles_.write(number, text.data()));
}

void WidePieces::append_csv_cell(const wire::Value& value, std::string& out) {
  switch (value.type) {
    case wire::ValueType::Float64: {
      const std::size_t begin = out.size();
      append_number(value.float64, out);
      // A float that is whole has a point, which an int has not.
      if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
      return;
    }
    case wire::ValueType::Int64: return append_whole(value.int64, out);
    case wire::ValueType::Bool: out.append(value.boolean ? "true" : "false"); return;
    case wire::ValueType::Text:
      out.push_back('"');
      append_quoted(value.text, out);
      out.push_back('"');
      return;
    case wire::ValueType::Bytes: break;
  }
  append_bytes_mark(value, out);
  wire::append_base64(value.text, out);
}

void WidePieces::append_json_cell(const wire::Value& value, std::string& out) {
  switch (value.type) {
    case wire::ValueType::Float64: return append_number(value.float64, out);
    case wire::ValueType::Int64: return append_whole(value.int64, out);
    case wire::ValueType::Bool: out.append(value.boolean ? "true" : "false"); return;
    case wire::ValueType::Text: return wire::append_json_string(value.text, out);
    case wire::ValueType::Bytes: break;
  }
  out.push_back('"');
  wire::append_base64(value.text, out);
  out.push_back('"');
}

void WidePieces::end_row(std::string& piece) {
  is_in_row_ = false;
  if (!is_csv()) piece += '}';
  if (format_ != wire::ReadingFormat::Json) piece += '\n';
}

Status WidePieces::fill_text(std::string& piece) {
  EC_ASSIGN_OR_RETURN(const std::string_view more, text_->next_piece());
  const bool is_bytes = kind_.type == wire::ValueType::Bytes;
  if (!more.empty()) {
    if (is_bytes) {
      base64_.append(more, piece);
    } else {
      append_text(more, piece);
    }
    return ok();
  }
  if (is_bytes) base64_.finish(piece);
  if (!is_csv() || !is_bytes) piece += '"';
  text_ = nullptr;
  return ok();
}

void WidePieces::append_text(std::string_view more, std::string& out) {
  if (is_csv()) {
    append_quoted(more, out);
  } else {
    append_json_inside(more, out);
  }
}

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
