// A store in memory that lines are written to and SELECT is asked of. For tests; one thread.
#pragma once

#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "influxql/executor.h"
#include "influxql/points.h"
#include "influxql/statement.h"
#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/line_protocol.h"
#include "wire/reading_format.h"

namespace edgecase::test {

struct SelectRoom {
  ModelEngine engine;
  ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  ingest::IngestPipeline pipeline{engine, *catalog, clock};
  query::QueryService service{engine, *catalog};
  auth::Principal principal{auth::PrincipalKind::Internal, "test", nullptr};
  influxql::Asking asking{principal, "default", {}, {}, nullptr, 1'000'000'000'000, {}};

  // False: a line is wrong, or was refused.
  bool write(std::string_view lines) {
    wire::LineProtocolOptions options;
    options.namespace_name = asking.database;
    wire::LineProtocolDecoder decoder(lines, options);
    wire::ReadingBatch batch;
    while (decoder.next(batch)) {
      const auto authorized = auth::authorize_write(principal, batch);
      if (!authorized.ok() || !pipeline.ingest(*authorized).ok()) return false;
      batch.clear();
    }
    return decoder.bad_lines() == 0;
  }

  Result<std::unique_ptr<influxql::RowSource>> run(std::string_view text) {
    EC_ASSIGN_OR_RETURN(std::vector<influxql::Statement> statements,
                        influxql::parse_statements(text, 1));
    return influxql::run_select(std::move(statements.front().select), asking, service);
  }

  // "m{host=a} time v | 0s 1 | 5s -; n …": series, rows and cells; `-` is null. Or the error's
  // words.
  std::string ask(std::string_view text) {
    auto rows = run(text);
    if (!rows.ok()) return std::string(rows.status().message());
    std::string answer;
    const Status status = append_rows(**rows, answer);
    return status.ok() ? answer : std::string(status.message());
  }

  // Many rows at once where they are to be had so, unless it is `by_row`.
  static Status append_rows(influxql::RowSource& rows, std::string& answer, bool by_row = false) {
    influxql::SeriesHead head;
    std::vector<influxql::Cell> row;
    influxql::NumberRows many;
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool has_series, rows.next_series(head));
      if (!has_series) return edgecase::ok();
      if (!answer.empty()) answer += "; ";
      answer += head.name;
      for (const auto& [key, value] : head.tags) answer += "{" + key + "=" + value + "}";
      for (const std::string& column : head.columns) answer += " " + column;
      for (;;) {
        EC_ASSIGN_OR_RETURN(const bool has_many, by_row ? Result(false) : rows.next_rows(many));
        if (has_many) {
          append_many(many, answer);
          continue;
        }
        EC_ASSIGN_OR_RETURN(const bool has_row, rows.next_row(row));
        if (!has_row) break;
        answer += " |";
        for (const influxql::Cell& cell : row) answer += " " + text_of(cell);
      }
    }
  }

  static void append_many(const influxql::NumberRows& many, std::string& answer) {
    influxql::Cell cell;
    for (std::size_t i = 0; i < many.size(); ++i) {
      cell.kind = influxql::Cell::Kind::Time;
      cell.integer = many.times_ns[i];
      answer += " | " + text_of(cell);
      for (const influxql::NumberRows::Column& column : many.columns) {
        column.get(i, cell);
        answer += " " + text_of(cell);
      }
    }
  }

  static std::string text_of(const influxql::Cell& cell) {
    using Kind = influxql::Cell::Kind;
    std::string text;
    switch (cell.kind) {
      case Kind::Null: return "-";
      case Kind::Time: {
        constexpr std::int64_t kSecond = 1'000'000'000;
        const bool is_whole = cell.integer % kSecond == 0;
        return std::to_string(is_whole ? cell.integer / kSecond : cell.integer) +
               (is_whole ? "s" : "");
      }
      case Kind::Integer: return std::to_string(cell.integer);
      case Kind::Float: wire::append_double(cell.number, text); return text;
      case Kind::Bool: return cell.integer != 0 ? "true" : "false";
      case Kind::Text: return cell.text;
    }
    return text;
  }
};

// Whether both are the same words; numbers may differ by rounding, which is another one on other
// processors.
inline bool is_same_answer(const std::string& ours, std::string_view expected) {
  std::istringstream left(ours), right{std::string(expected)};
  std::string a, b;
  for (;;) {
    const bool has_a = static_cast<bool>(left >> a), has_b = static_cast<bool>(right >> b);
    if (!has_a || !has_b) return has_a == has_b;
    if (a == b) continue;
    char *end_a = nullptr, *end_b = nullptr;
    const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
    if (*end_a != 0 || *end_b != 0 || !(std::abs(x - y) <= 1e-9 * std::abs(y))) return false;
  }
}

}  // namespace edgecase::test
