// Real sensor data for tests, where the machine has it: the directory named by EDGECASE_TEST_DATA,
// or `shared/data` beside the checkout. Tests that use it say "skipped" without it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace edgecase::test {

// The contents of `name` within the directory, uncompressed when it ends in `.gz`; nothing, and a
// line on stderr, when it is not there.
std::optional<std::string> read_test_data(std::string_view name);

}  // namespace edgecase::test
