// Readings of a cursor as the pieces of an answer: one after another (ReadingPieces), in rows with
// a column for each series (WidePieces), as a Parquet or Arrow file (ColumnarPieces). Inside
// daemon/http only. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/table.h"
#include "http/http_routes.h"
#include "query/query_service.h"
#include "query/wide_rows.h"
#include "wire/encoding.h"
#include "wire/reading_format.h"

namespace edgecase::http {

// What a format has around its readings.
enum class Frame : unsigned char { Whole, None };

// Whether `tiers` is asked for: windows as they are kept come, too.
bool asks_for_tiers(const Call& call);
// A formatter; for readings of all namespaces line protocol tells which is whose.
wire::ReadingFormatter formatter_for(const Call& call, wire::ReadingFormat format);

class ReadingPieces final : public PieceSource {
 public:
  ReadingPieces(std::unique_ptr<query::ReadingCursor> cursor, wire::ReadingFormatter formatter,
                Frame frame = Frame::Whole)
      : cursor_(std::move(cursor)), formatter_(std::move(formatter)), frame_(frame) {}

  Result<bool> fill(std::string& piece) override;
  void let_go() override;
  query::GivenReadings take_given() override { return cursor_->take_given(); }
  const query::LeftOut* left_out() const override { return cursor_->left_out(); }
  bool names_left_out() const override { return names_lacks_; }
  // Rows say by themselves what they lack.
  void names_lacks() { names_lacks_ = true; }

 private:
  Status fill_text(std::string& piece);

  const std::unique_ptr<query::ReadingCursor> cursor_;
  wire::ReadingFormatter formatter_;
  const Frame frame_;
  wire::Reading reading_;
  query::LargeText* text_ = nullptr;  // of reading_, as far as it is not formatted
  std::string_view text_rest_;        // of the piece at hand
  std::string kept_rest_;             // that after let_go()
  bool begun_ = false;
  bool names_lacks_ = false;
};

// Rows with a column for each series. A column is called DEVICE/SENSOR, or NAMESPACE/DEVICE/SENSOR
// where all are asked for.
//
//   csv      header `time,kitchen/temp,...`. Cells tell their type, so that `import` takes the file
//            back: a float has a point or an exponent (5.0), an int has none, true and false are
//            bools, a text stands in quotes, bytes are base64:DATA, or base64;TYPE:DATA with the
//            type percent-encoded. Without a reading the cell is empty.
//   ndjson   an object a row, {"time":"...","kitchen/temp":21.5,"kitchen/state":null}; bytes are
//            base64.
//   json     the same objects in one array.

class WidePieces final : public PieceSource {
 public:
  // `format` is not line protocol, which has no rows of several series.
  WidePieces(std::unique_ptr<query::WideRows> rows, wire::ReadingFormat format, bool of_all);

  Result<bool> fill(std::string& piece) override;
  void let_go() override { rows_->let_go(); }
  query::GivenReadings take_given() override { return rows_->take_given(); }
  const query::LeftOut* left_out() const override { return rows_->left_out(); }

 private:
  bool is_csv() const { return format_ == wire::ReadingFormat::Csv; }
  void begin(std::string& piece);
  void begin_row(std::string& piece);
  void begin_cell(std::string& piece);
  void end_row(std::string& piece);
  Status fill_text(std::string& piece);
  void append_text(std::string_view piece, std::string& out);
  void append_csv_cell(const wire::Value& value, std::string& out);
  void append_json_cell(const wire::Value& value, std::string& out);
  void append_number(double number, std::string& out);

  const std::unique_ptr<query::WideRows> rows_;
  const wire::ReadingFormat format_;
  std::vector<std::string> names_;  // of columns, as they stand in the format
  bool has_begun_ = false;
  bool has_rows_ = false;
  bool is_in_row_ = false;
  std::size_t column_ = 0;            // that comes next
  query::LargeText* text_ = nullptr;  // of the cell at hand
  wire::Value kind_;                  // of that text
  wire::Base64Encoder base64_;
  wire::DoublePrinter doubles_;
  wire::TimePrinter times_;
};

// Readings of a cursor as a Parquet or Arrow file, the pieces of an answer: a group of rows at a
// time. Inside daemon/http only. One thread.

enum class ColumnarFormat : unsigned char { Parquet, Arrow };
// None: it is no such format.
std::optional<ColumnarFormat> parse_columnar_format(std::string_view name);
const char* content_type_of(ColumnarFormat format);

// What the file says of the series that it may hold:
//
//   edgecase            {"version":"0.2.0","time_zone":"UTC"}
//   edgecase.series     [{"namespace","device","sensor","measurement","tags","field","unit"?},
//   ...];
//                       of those behind kSeriesTextMaxBytes {"more":n}
//
// The unit is what the device's label `unit.SENSOR` or `unit` says, else, for what Home Assistant
// sent, the measurement.
inline constexpr std::size_t kSeriesTextMaxBytes = 1u << 20;
columnar::Metadata metadata_of(const HttpContext& context,
                               const std::vector<catalog::SeriesRow>& series);

class ColumnarPieces final : public PieceSource {
 public:
  // Arrow tells all names first: LimitReached where they are too many.
  static Result<std::shared_ptr<ColumnarPieces>> create(
      const HttpContext& context, ColumnarFormat format,
      const std::vector<catalog::SeriesRow>& series, std::unique_ptr<query::ReadingCursor> cursor,
      columnar::WindowColumns windows);

  Result<bool> fill(std::string& piece) override;
  void let_go() override { cursor_->let_go(); }
  query::GivenReadings take_given() override;
  const query::LeftOut* left_out() const override;

 private:
  ColumnarPieces(std::unique_ptr<query::ReadingCursor> cursor, columnar::WindowColumns windows)
      : cursor_(std::move(cursor)), table_(windows) {}
  Status add(wire::Reading& reading);
  Status write_group(std::string& piece);
  Status check_given();

  const std::unique_ptr<query::ReadingCursor> cursor_;
  columnar::ReadingTable table_;
  std::unique_ptr<columnar::TableWriter> writer_;
  columnar::Metadata metadata_;
  bool begun_ = false;
  std::string text_;  // of the cell at hand, where it comes in pieces
  // What the rows in the table were made of, until they are written.
  query::GivenReadings given_;
  bool is_written_ = false;          // in the last piece
  query::LeftOut too_large_;         // cells
  mutable query::LeftOut left_out_;  // these, and what the cursor leaves out
};

}  // namespace edgecase::http
