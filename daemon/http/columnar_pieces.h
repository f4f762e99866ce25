// Readings of a cursor as a Parquet or Arrow file, the pieces of an answer: a group of rows at a
// time. Inside daemon/http only. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/table.h"
#include "http/http_routes.h"
#include "query/query_service.h"

namespace edgecase::http {

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
