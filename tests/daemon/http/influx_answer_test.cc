#include "http/influx_query.h"

#include <doctest/doctest.h>

namespace edgecase::http::test {
namespace {

using influxql::Cell;

struct Asked final : Patience {
  Status answer;
  Status go_on() override { return answer; }
};

// As many series as there are counts of rows; the last may fail behind its rows.
class Rows final : public influxql::RowSource {
 public:
  explicit Rows(std::vector<int> counts, Status end = ok())
      : counts_(std::move(counts)), end_(std::move(end)) {}
  Result<bool> next_series(influxql::SeriesHead& head) override {
    if (next_ == counts_.size()) return false;
    head = {"m" + std::to_string(next_), {}, {"v"}};
    left_ = counts_[next_++];
    return true;
  }
  Result<bool> next_row(std::vector<Cell>& row) override {
    if (left_ == 0 && next_ == counts_.size()) EC_TRY(end_);
    if (left_ == 0) return false;
    row.assign(1, Cell{});
    row[0].kind = Cell::Kind::Integer;
    row[0].integer = left_--;
    return true;
  }
  bool is_given_revoked() override { return is_revoked; }
  bool is_revoked = false;

 private:
  const std::vector<int> counts_;
  const Status end_;
  std::size_t next_ = 0;
  int left_ = 0;
};

PlannedStatement planned(std::unique_ptr<influxql::RowSource> rows, Status status = ok()) {
  PlannedStatement made;
  made.status = std::move(status);
  made.rows = std::move(rows);
  return made;
}

std::string all_of(InfluxAnswer& answer, std::size_t* pieces = nullptr) {
  std::string text;
  for (;;) {
    std::string piece;
    const auto more = answer.fill(piece);
    REQUIRE(more.ok());
    if (pieces != nullptr) ++*pieces;
    text += piece;
    if (!*more) return text;
    answer.let_go();
  }
}

}  // namespace

TEST_CASE(
    "influx answer: one that fails says so behind its rows, those behind it are not executed") {
  std::vector<PlannedStatement> statements;
  statements.push_back(planned(nullptr));
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{1}, busy("too much"))));
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{1})));
  InfluxAnswer answer(std::move(statements), nullptr, std::make_shared<Asked>(), {});
  CHECK(all_of(answer) ==
        R"({"results":[{"statement_id":0},{"statement_id":1,"series":[{"name":"m0","columns":)"
        R"(["v"],"values":[[1]]}],"error":"too much"},{"statement_id":2,"error":"not executed"}]})"
        "\n");
}

TEST_CASE("influx answer: chunks are cut by rows and by series, and say what follows them") {
  std::vector<PlannedStatement> statements;
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{2, 3})));
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{})));
  InfluxShape shape;
  shape.chunk_rows = 2;
  InfluxAnswer answer(std::move(statements), nullptr, std::make_shared<Asked>(), shape);
  CHECK(
      all_of(answer) ==
      R"({"results":[{"statement_id":0,"series":[{"name":"m0","columns":["v"],"values":[[2],[1]])"
      R"(}],"partial":true}]})"
      "\n"
      R"({"results":[{"statement_id":0,"series":[{"name":"m1","columns":["v"],"values":[[3],[2]],)"
      R"("partial":true}],"partial":true}]})"
      "\n"
      R"({"results":[{"statement_id":0,"series":[{"name":"m1","columns":["v"],"values":[[1]]}]}]})"
      "\n"
      R"({"results":[{"statement_id":1}]})"
      "\n");
}

TEST_CASE("influx answer: what was killed meanwhile ends, and is still a whole document") {
  std::vector<PlannedStatement> statements;
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{1'000'000})));
  statements.push_back(planned(std::make_unique<Rows>(std::vector<int>{1})));
  const auto asked = std::make_shared<Asked>();
  InfluxAnswer answer(std::move(statements), nullptr, asked, {});
  std::string piece;
  REQUIRE(*answer.fill(piece));
  asked->answer = cancelled("query killed");
  const std::string rest = all_of(answer);
  CHECK(rest == R"(]}],"error":"query killed"},{"statement_id":1,"error":"not executed"}]})"
                "\n");
}

TEST_CASE("influx answer: rows of what was erased meanwhile are not sent") {
  auto rows = std::make_unique<Rows>(std::vector<int>{1'000'000});
  Rows& borrowed = *rows;
  std::vector<PlannedStatement> statements;
  statements.push_back(planned(std::move(rows)));
  InfluxAnswer answer(std::move(statements), nullptr, std::make_shared<Asked>(), {});
  std::string piece;
  REQUIRE(*answer.fill(piece));
  borrowed.is_revoked = true;
  CHECK(answer.fill(piece).status().code() == StatusCode::NotFound);
}

}  // namespace edgecase::http::test
