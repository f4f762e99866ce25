// Rows with a column for each series, as the pieces of an answer. Inside daemon/http only. One
// thread. A column is called DEVICE/SENSOR, or NAMESPACE/DEVICE/SENSOR where all are asked for.
//
//   csv      header `time,kitchen/temp,...`. Cells tell their type, so that `import` takes the file
//            back: a float has a point or an exponent (5.0), an int has none, true and false are
//            bools, a text stands in quotes, bytes are base64:DATA, or base64;TYPE:DATA with the
//            type percent-encoded. Without a reading the cell is empty.
//   ndjson   an object a row, {"time":"...","kitchen/temp":21.5,"kitchen/state":null}; bytes are
//            base64.
//   json     the same objects in one array.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/http_routes.h"
#include "query/wide_rows.h"
#include "wire/base64.h"
#include "wire/reading_format.h"

namespace edgecase::http {

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

}  // namespace edgecase::http
