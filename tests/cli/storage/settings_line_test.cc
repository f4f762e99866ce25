#include "storage/drive.h"

#include <doctest/doctest.h>

#include <string>

namespace edgecase::cli::storage {
namespace {

std::string changed(std::string_view text, std::size_t line) {
  return with_setting(text, "storage", "values", line, "/mnt/ssd");
}

TEST_CASE("a setting that is there is replaced, and only its line") {
  CHECK(changed("[storage]\nvalues = \"/a\"\nx = 1\n", 2) ==
        "[storage]\nvalues = \"/mnt/ssd\"\nx = 1\n");
  CHECK(changed("[storage]\n  values=\"/a\"   # the SSD\n", 2) ==
        "[storage]\nvalues = \"/mnt/ssd\"  # the SSD\n");
  CHECK(changed("[storage]\nvalues = \"/a#b\"", 2) == "[storage]\nvalues = \"/mnt/ssd\"\n");
}

TEST_CASE("a setting that is new goes below its table's head, a new table to the end") {
  CHECK(changed("x = 1\n[ storage ]\ny = 2\n", 0) ==
        "x = 1\n[ storage ]\nvalues = \"/mnt/ssd\"\ny = 2\n");
  CHECK(changed("[storage]", 0) == "[storage]\nvalues = \"/mnt/ssd\"\n");
  CHECK(changed("[storage2]\nx = 1", 0) == "[storage2]\nx = 1\n[storage]\nvalues = \"/mnt/ssd\"\n");
  CHECK(changed("", 0) == "[storage]\nvalues = \"/mnt/ssd\"\n");
}

TEST_CASE("what TOML would take for something else is escaped") {
  CHECK(with_setting("", "storage", "values", 0, "/a\"\\b") ==
        "[storage]\nvalues = \"/a\\\"\\\\b\"\n");
}

}  // namespace
}  // namespace edgecase::cli::storage
