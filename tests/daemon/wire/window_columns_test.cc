#include "wire/window_columns.h"

#include <doctest/doctest.h>

namespace edgecase::wire {
namespace {

TEST_CASE("a window's column has a name that reads back") {
  for (const WindowColumn column : kWindowColumns) {
    const std::string name = column_name("inside_max", column);
    CAPTURE(name);
    const std::optional<ColumnName> parts = parse_column_name(name);
    REQUIRE(parts);
    CHECK(parts->field == "inside_max");
    CHECK(parts->column == column);
  }
  CHECK(column_name("temp", WindowColumn::Count) == "temp_count");
}

TEST_CASE("a name without a field or a suffix is no column's") {
  for (const char* name : {"", "temp", "_count", "temp_", "temp_Count", "count"}) {
    CAPTURE(name);
    CHECK(!parse_column_name(name));
  }
}

}  // namespace
}  // namespace edgecase::wire
