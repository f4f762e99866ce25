#include "application.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_directory.h"

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
  for (const char* asked : {"", "version"}) {
    std::string program("edgecase"), help("help"), command(asked);
    char* words[] = {program.data(), help.data(), command.data()};
    CHECK(run_application(kCommands, command.empty() ? 2 : 3, words) == 0);
  }
  for (const auto& [name, code] : {std::pair("edgecase", 0), {"/usr/bin/edgecased", 0}}) {
    std::string program(name), flag("--version");
    char* words[] = {program.data(), flag.data()};
    CHECK(run_application(kCommands, 2, words) == code);
  }
}

TEST_CASE("a negative number is refused where one without a sign is wanted") {
  constexpr AddCommand kCommands[] = {add_query_command, add_tail_command, add_bench_command};
  for (const char* number : {"-1", "-18446744073709551615", "1.5", "x"}) {
    CAPTURE(number);
    CHECK(run_application(kCommands, {"query", "a/b", "--limit", number}) == 2);
    CHECK(run_application(kCommands, {"tail", "a/b", "--limit", number}) == 2);
    CHECK(run_application(kCommands, {"bench", "fillseq", "--num", number}) == 2);
  }
  CHECK(run_application(kCommands, {"tail", "a/b", "--limit", "0"}) == 2);
}

TEST_CASE("bench: --json writes to the file that is named, which nothing else may name") {
  constexpr AddCommand kCommands[] = {add_bench_command};
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/row.json";
  const auto bench = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "--smoke", "--dir", directory.path(), "fillseq"});
    return run_application(kCommands, std::move(words));
  };
  CHECK(bench({path}) == 2);
  CHECK(bench({"--json", directory.path() + "/none/row.json"}) == 2);
  CHECK_FALSE(std::ifstream(path).is_open());
  REQUIRE(bench({"--json", path}) == 0);
  const auto row = nlohmann::json::parse(std::ifstream(path));
  CHECK(row.at("workload") == "fillseq");
  CHECK(bench({"--json", directory.path()}) == 1);  // a directory: told, and printed
}

TEST_CASE("a namespace that can be none is refused, not taken for the default one") {
  constexpr AddCommand kCommands[] = {add_query_command, add_erase_command, add_write_command};
  const auto codes = [&](const char* name) {
    const char* nowhere = "/nowhere/edgecase.sock";
    return std::array{
        run_application(kCommands, {"query", "a/b", "-n", name, "--socket", nowhere}),
        run_application(kCommands, {"erase", "a", "--yes", "-n", name, "--socket", nowhere}),
        run_application(kCommands, {"write", "a/b", "1", "--namespace", name, "--socket", nowhere}),
    };
  };
  for (const char* name : {"", "a/b", "a\tb", "\xff"}) {
    CAPTURE(name);
    CHECK(codes(name) == std::array{2, 2, 2});
  }
  CHECK(codes("a b") == std::array{5, 5, 5});  // no daemon answers
}

TEST_CASE("a namespace of the environment is judged as one that is given, where it counts") {
  constexpr AddCommand kCommands[] = {add_query_command, add_version_command};
  const auto code = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"query", "a/b", "--socket", "/nowhere/edgecase.sock"};
    words.insert(words.end(), more.begin(), more.end());
    return run_application(kCommands, words);
  };
  const std::unique_ptr<const char, int (*)(const char*)> variable("EDGECASE_NAMESPACE", unsetenv);
  for (const char* name : {"a/b", "a\tb", "\xff"}) {
    CAPTURE(name);
    REQUIRE(setenv(variable.get(), name, 1) == 0);
    CHECK(code({}) == 2);
    CHECK(code({"-n", "right"}) == 5);  // no daemon answers
    CHECK(code({"-A"}) == 5);
    CHECK(code({"--help"}) == 0);
    CHECK(run_application(kCommands, {"version"}) == 0);
  }
  for (const char* name : {"", "a b"}) {
    CAPTURE(name);
    REQUIRE(setenv(variable.get(), name, 1) == 0);
    CHECK(code({}) == 5);
  }
}

}  // namespace
}  // namespace edgecase::cli
