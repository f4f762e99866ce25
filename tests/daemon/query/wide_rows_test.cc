#include "query/wide_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <deque>

namespace edgecase::query {
namespace {

// Readings that are there already; a text is lost once the next one is asked for, as it may be.
class GivenCursor final : public ReadingCursor {
 public:
  struct Reading {
    std::int64_t time_ns = 0;
    wire::Value value;
  };
  explicit GivenCursor(std::deque<Reading> readings) : readings_(std::move(readings)) {}
  Result<bool> next(wire::Reading& reading) override {
    text_.assign(text_.size(), '?');
    if (readings_.empty()) return false;
    reading.time_ns = readings_.front().time_ns;
    reading.value = readings_.front().value;
    text_ = reading.value.text;
    reading.value.text = text_;
    readings_.pop_front();
    return true;
  }
  // Floats that follow, some at a time.
  wire::Numbers take_numbers(std::size_t most) override {
    times_.clear();
    bits_.clear();
    while (times_.size() < std::min<std::size_t>(most, 3) && !readings_.empty() &&
           readings_.front().value.type == wire::ValueType::Float64) {
      times_.push_back(readings_.front().time_ns);
      bits_.push_back(std::bit_cast<std::uint64_t>(readings_.front().value.float64));
      readings_.pop_front();
    }
    return {times_, bits_, true};
  }
  void let_go() override { text_.assign(text_.size(), '?'); }

 private:
  std::deque<Reading> readings_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint64_t> bits_;
  std::string text_;
};

using Given = std::deque<GivenCursor::Reading>;

GivenCursor::Reading at(std::int64_t time_ns, double number) {
  return {time_ns, wire::Value::of_float64(number)};
}

WideRows rows_of(std::vector<Given> columns, const WideOptions& options = {}) {
  std::vector<WideRows::Column> made;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    made.push_back({"default", "d", "s" + std::to_string(i),
                    std::make_unique<GivenCursor>(std::move(columns[i]))});
  }
  return {std::move(made), options, {}};
}

// "TIME:CELL,CELL ..."; an empty cell is "-".
std::string text_of(WideRows rows) {
  std::string text;
  for (auto more = rows.next(); more.ok() && *more; more = rows.next()) {
    rows.let_go();
    text += (text.empty() ? "" : " ") + std::to_string(rows.time_ns()) + ":";
    for (std::size_t i = 0; i < rows.columns().size(); ++i) {
      wire::Value value;
      LargeText* large = nullptr;
      if (i > 0) text += ',';
      if (!rows.cell(i, value, large)) {
        text += '-';
      } else if (value.type == wire::ValueType::Text) {
        text += value.text;
      } else {
        text += std::to_string(static_cast<int>(value.float64));
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("wide rows: columns are merged by their times, in either order") {
  CHECK(text_of(rows_of({})).empty());
  CHECK(text_of(rows_of({{}, {}})).empty());
  CHECK(text_of(rows_of({{at(1, 10), at(3, 30)}, {at(2, 20), at(3, 33)}})) ==
        "1:10,- 2:-,20 3:30,33");
  WideOptions newest_first;
  newest_first.descending = true;
  CHECK(text_of(rows_of({{at(3, 30), at(1, 10)}, {at(3, 33), at(2, 20)}}, newest_first)) ==
        "3:30,33 2:-,20 1:10,-");
  WideOptions two;
  two.rows_max = 2;
  CHECK(text_of(rows_of({{at(1, 10), at(3, 30)}, {at(2, 20)}}, two)) == "1:10,- 2:-,20");
  constexpr auto kFirst = INT64_MIN, kLast = INT64_MAX;
  CHECK(text_of(rows_of({{at(kFirst, 1)}, {at(kLast, 2)}})) ==
        std::to_string(kFirst) + ":1,- " + std::to_string(kLast) + ":-,2");
}

TEST_CASE("wide rows: numbers that were read ahead come in their order") {
  Given many;
  std::string want;
  for (std::int64_t i = 0; i < 300; ++i) {
    many.push_back(at(i, static_cast<double>(i)));
    want += (i == 0 ? "" : " ") + std::to_string(i) + ":" + std::to_string(i);
  }
  CHECK(text_of(rows_of({many})) == want);
}

TEST_CASE("wide rows: texts outlive what they were read from") {
  const auto text = [](std::int64_t time_ns, std::string_view word) {
    return GivenCursor::Reading{time_ns, wire::Value::of_text(word)};
  };
  WideOptions previous;
  previous.fill.fill = Fill::Previous;
  CHECK(text_of(rows_of({{text(1, "one"), text(4, "a longer one than fits a short string")},
                         {at(1, 1), at(2, 2), at(4, 4), at(5, 5)}},
                        previous)) ==
        "1:one,1 2:one,2 4:a longer one than fits a short string,4 "
        "5:a longer one than fits a short string,5");
}

TEST_CASE("wide rows: each fill, with windows and without") {
  struct Case {
    FillRule fill;
    std::string_view want, want_of_windows;
  };
  for (const Case& c :
       {Case{{Fill::None}, "10:1,- 20:-,2 50:5,-", "10:1,- 20:-,2 50:5,-"},
        Case{{Fill::Null}, "10:1,- 20:-,2 50:5,-", "10:1,- 20:-,2 30:-,- 40:-,- 50:5,-"},
        Case{{Fill::Previous}, "10:1,- 20:1,2 50:5,2", "10:1,- 20:1,2 30:1,2 40:1,2 50:5,2"},
        Case{{Fill::Linear}, "10:1,- 20:2,2 50:5,-", "10:1,- 20:2,2 30:3,- 40:4,- 50:5,-"},
        Case{{Fill::Number, 7}, "10:1,7 20:7,2 50:5,7", "10:1,7 20:7,2 30:7,7 40:7,7 50:5,7"}}) {
    CAPTURE(c.want);
    WideOptions options;
    options.fill = c.fill;
    const std::vector<Given> columns = {{at(10, 1), at(50, 5)}, {at(20, 2)}};
    CHECK(text_of(rows_of(columns, options)) == c.want);
    options.windows.every_ns = 10;
    options.windows.rows_max = 100;
    CHECK(text_of(rows_of(columns, options)) == c.want_of_windows);
  }
}

TEST_CASE("wide rows: filled windows reach from and to, and no further than their limit") {
  WideOptions options;
  options.fill.fill = Fill::Null;
  options.windows = {10, 0, 30, 100};
  CHECK(text_of(rows_of({{at(10, 1)}}, options)) == "0:- 10:1 20:- 30:-");
  CHECK(text_of(rows_of({Given()}, options)).empty());
  options.descending = true;
  CHECK(text_of(rows_of({{at(10, 1)}}, options)) == "30:- 20:- 10:1 0:-");
  options.windows.rows_max = 2;
  WideRows rows = rows_of({{at(10, 1)}}, options);
  CHECK(*rows.next());
  CHECK(*rows.next());
  CHECK(rows.next().status().code() == StatusCode::LimitReached);
  // At the end of time there is no next window.
  WideOptions at_end;
  at_end.fill.fill = Fill::Null;
  at_end.windows = {10, std::nullopt, std::nullopt, 100};
  CHECK(text_of(rows_of({{at(INT64_MAX - 7, 1)}}, at_end)) == std::to_string(INT64_MAX - 7) + ":1");
}

TEST_CASE("wide rows: fills are read by their names") {
  CHECK(parse_fill("previous").value().fill == Fill::Previous);
  CHECK(parse_fill("-1.5").value().number == -1.5);
  for (const char* text : {"", "most", "nan", "1x"})
    CHECK(parse_fill(text).status().code() == StatusCode::InvalidArgument);
}

}  // namespace edgecase::query
