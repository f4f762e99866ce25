// The answer to a request of InfluxQL statements that were planned: the rows of one after another,
// written as the reader takes them. One that fails has its error in its result, and those behind it
// are not executed. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/http_routes.h"
#include "http/influx_text.h"
#include "influxql/points.h"

namespace edgecase::http {

// A statement that was planned, or done.
struct PlannedStatement {
  Status status;                              // why it was not
  std::unique_ptr<influxql::RowSource> rows;  // null: it has none
};

class InfluxAnswer final : public PieceSource {
 public:
  // `asked` is what the statements were planned with; they go before it does. `query` is asked
  // while they are answered.
  InfluxAnswer(std::vector<PlannedStatement> statements, std::shared_ptr<const void> asked,
               std::shared_ptr<Patience> query, const InfluxShape& shape)
      : asked_(std::move(asked)),
        query_(std::move(query)),
        statements_(std::move(statements)),
        chunk_rows_(shape.chunk_rows),
        text_(make_influx_text(shape)) {}

  Result<bool> fill(std::string& piece) override;
  void let_go() override;
  query::GivenReadings take_given() override;

 private:
  bool step(std::string& piece);
  void begin_statement(std::string& piece);
  void next_row(std::string& piece);
  Result<bool> next_rows(std::string& piece);
  void end_full_chunk(std::string& piece);
  void begin_series(std::string& piece);
  void end_statement(const Status& status, std::string& piece);

  influxql::RowSource& rows() const { return *statements_[statement_].rows; }

  const std::shared_ptr<const void> asked_;
  const std::shared_ptr<Patience> query_;
  std::vector<PlannedStatement> statements_;
  const std::size_t chunk_rows_;
  const std::unique_ptr<InfluxText> text_;
  std::size_t statement_ = 0;  // at hand, or the next one
  bool is_in_rows_ = false;    // of a series of it
  bool has_failed_ = false;
  query::GivenReadings given_;  // of a statement that ended in this piece
  influxql::SeriesHead head_;   // of the series at hand
  std::vector<influxql::Cell> row_;
  influxql::NumberRows many_;
  std::size_t next_of_many_ = 0;
  query::GivenReadings of_many_;  // what is left of it was made of those, and others since
  std::size_t rows_in_chunk_ = 0;
};

}  // namespace edgecase::http
