// The application's answers are in mended_line_test.cc.
#include "mended_line.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "application.h"
#include "manual/command_tree.h"

namespace edgecase::cli {
namespace {

Command whole_tree() {
  CLI::App app("", "edgecase");
  Action ignored;
  for (const AddCommand add : kAllCommands) add(app, ignored);
  return read_command_tree(app);
}

TEST_CASE("options: none of any command takes another option for its value") {
  const Command root = whole_tree();
  std::size_t seen = 0;
  for (const Command* command : all_commands(root)) {
    TypedWords path;
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
      end = command->path.find(' ', at);
      if (at > 0) path.push_back(command->path.substr(at, end - at));
    }
    for (const CommandOption& option : command->options) {
      if (option.positional || option.value.empty()) continue;
      ++seen;
      const std::string& name = option.names.back();
      const auto problem = [&](TypedWords more) {
        more.insert(more.begin(), path.begin(), path.end());
        CAPTURE(shell_line(more));
        return forgotten_value(root, more).problem;
      };
      CAPTURE(command->path + " " + name);
      for (const char* word : {"-o", "--json", "-xyz", "--", "--xyzzy=1"}) {
        const std::string says = problem({name, word, "p.png"});
        CHECK(says.starts_with(name + " needs a value, and ") == !option.optional);
      }
      CHECK(problem({name, "-"}).empty());
      CHECK(problem({name, "-5"}).empty());
      CHECK(problem({name, "-.5"}).empty());
      CHECK(problem({name}).empty());
      if (name.starts_with("--")) CHECK(problem({name + "=-o"}).empty());
      CHECK(problem({"--", name, "-o"}).empty());
    }
  }
  CHECK(seen > 100);
}

}  // namespace
}  // namespace edgecase::cli
