#include "application.h"

#include <doctest/doctest.h>

#include "commands/commands.h"

namespace edgecase::cli {
namespace {

TEST_CASE("wrong usage is exit code 2") {
  constexpr AddCommand kCommands[] = {add_version_command};
  CHECK(run_application(kCommands, {"version"}) == 0);
  CHECK(run_application(kCommands, {"--help"}) == 0);
  CHECK(run_application(kCommands, {}) == 2);
  CHECK(run_application(kCommands, {"verson"}) == 2);
  CHECK(run_application(kCommands, {"version", "--nope"}) == 2);
  CHECK(run_application(kCommands, {"version", "surplus"}) == 2);
}

}  // namespace
}  // namespace edgecase::cli
