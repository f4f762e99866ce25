#include "manual/command_tree.h"

#include "config/settings.h"
#include "manual_fixture.h"

namespace edgecase::cli {
namespace {

// As roff has it.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

TEST_CASE("the manual explains every command and option that help explains, and no hidden one") {
  const Command root = test::some_commands();
  const std::string page = edgecase_page(root);
  for (const Command* command : all_commands(root)) {
    if (!command->commands.empty()) continue;
    CAPTURE(command->path);
    CHECK(page.find(".SS \\fB" + roff(command->path) + "\\fR") != std::string::npos);
    for (const CommandOption& option : command->options) {
      if (option.group == "Settings") continue;
      CAPTURE(option.names.back());
      CHECK(page.find(roff(option.names.back()) + "\\fR") != std::string::npos);
    }
    REQUIRE(!command->examples.empty());
    CHECK(page.find(roff(command->examples.front()).substr(0, 14)) != std::string::npos);
  }
  CHECK(page.find("edgecase manual") == std::string::npos);
  CHECK(page.find("A setting comes from its flag") != std::string::npos);  // notes of serve
}

TEST_CASE("the manual of the configuration has every setting and every key of a rule") {
  const std::string page = configuration_page();
  for (const config::Setting& setting : config::settings_table()) {
    CHECK(page.find(".TP\n\\fB" + roff(setting.key) + "\\fR\n") != std::string::npos);
  }
  for (const config::RuleKey& key : config::rule_keys()) {
    CHECK(page.find(".TP\n\\fB" + roff(key.name) + "\\fR\n") != std::string::npos);
  }
}

TEST_CASE("the manual is roff without a warning") {
  if (!test::has_program("groff")) {
    MESSAGE("skipped: groff is not installed");
    return;
  }
  const Command root = test::some_commands();
  test::TempDirectory directory;
  const auto warnings = [&directory](const std::string& page) {
    test::write_file(directory / "page", page);
    return test::run_shell("groff -man -Tutf8 -ww -z " + (directory / "page")).text;
  };
  CHECK(warnings(edgecase_page(root)) == "");
  CHECK(warnings(edgecased_page(root)) == "");
  CHECK(warnings(configuration_page()) == "");
  CHECK(warnings(".nonsense\n") != "");
}

}  // namespace
}  // namespace edgecase::cli
