#include "http/wide_pieces.h"

#include <array>
#include <utility>

#include "edgecase/clock.h"
#include "wire/authority.h"
#include "wire/reading_key.h"

namespace edgecase::http {
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

}  // namespace edgecase::http
