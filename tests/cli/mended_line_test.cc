// The typing mistakes that people make most: each answers with the right line, ready to be copied.
// Those that need a daemon are in tests/flow/first_hour_flow_test.py.
#include "mended_line.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "application.h"

namespace edgecase::cli {
namespace {

// What a command line says on stderr, where no daemon is.
struct Answer {
  int exit_code = 0;
  std::string text;
};

Answer answer_to(const TypedWords& words) {
  const std::unique_ptr<const char, int (*)(const char*)> variable("EDGECASE_HTTP_SOCKET",
                                                                   unsetenv);
  REQUIRE(setenv(variable.get(), "/nowhere/edgecase.sock", 1) == 0);
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  Answer answer;
  answer.exit_code = run_application(kAllCommands, words);
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  answer.text.resize(16'384);
  answer.text.resize(std::fread(answer.text.data(), 1, answer.text.size(), file));
  std::fclose(file);
  return answer;
}

struct Mistake {
  TypedWords typed;
  const char* line;  // that is offered, behind "edgecase "
};

TEST_CASE("mistakes: a line that is refused is answered with the right one, in two lines") {
  const std::vector<Mistake> mistakes = {
      // Commands: mistyped, called as elsewhere, left out, in another case.
      {{"quer", "kitchen"}, "query kitchen"},
      {{"QUERY", "kitchen"}, "query kitchen"},
      {{"latest"}, "last"},
      {{"insert", "kitchen/temp", "21.5"}, "write kitchen/temp 21.5"},
      {{"kitchen/temp", "--since", "1h"}, "query kitchen/temp --since 1h"},
      {{"pi.lan:99", "status"}, "status --host pi.lan:99"},
      {{"config", "chek"}, "config check"},
      {{"token", "add", "--read", "kitchen"}, "token create --read kitchen"},
      {{"retention", "kitchen", "30d"}, "retention set kitchen 30d"},
      // Options: mistyped, called as elsewhere, with one dash, of another command.
      {{"query", "kitchen", "--fom", "today"}, "query kitchen --from today"},
      {{"query", "kitchen", "--sicne=1h"}, "query kitchen --since=1h"},
      {{"query", "kitchen", "-format", "csv"}, "query kitchen --format csv"},
      {{"query", "kitchen", "-f", "csv"}, "query kitchen --format csv"},
      {{"query", "kitchen", "--start", "today"}, "query kitchen --from today"},
      {{"query", "kitchen", "--csv"}, "query kitchen --format=csv"},
      {{"last", "kitchen", "--since", "1h"}, "query kitchen --since 1h"},
      {{"erase", "kitchen", "--force", "--dryrun"}, "erase kitchen --yes --dry-run"},
      {{"query", "kitchen", "\u2014since", "1h"}, "query kitchen --since 1h"},
      {{"query", "\u2018kitchen\u2019", "\u2013limit", "5"}, "query kitchen --limit 5"},
      {{"tail", "kitchen", "--token", "secret", "--frm", "1h"}, nullptr},
      // Values of options.
      {{"query", "kitchen", "--format", "jsn"}, "query kitchen --format json"},
      {{"query", "kitchen", "--format", "CSV"}, "query kitchen --format csv"},
      {{"query", "kitchen", "--every", "1h", "--agg", "maen"},
       "query kitchen --every 1h --agg mean"},
      {{"query", "kitchen", "--every", "1h"}, "query kitchen --every 1h --agg mean"},
      {{"query", "kitchen", "--limit", "10,000"}, "query kitchen --limit 10000"},
      {{"query", "kitchen", "--limit", "10k"}, "query kitchen --limit 10000"},
      // Durations and times as people say them.
      {{"query", "kitchen", "--since", "5min"}, "query kitchen --since 5m"},
      {{"query", "kitchen", "--since", "5", "min"}, "query kitchen --since 5m"},
      {{"query", "kitchen", "--since", "2 hours"}, "query kitchen --since 2h"},
      {{"query", "kitchen", "--since", "-1h"}, "query kitchen --since 1h"},
      {{"query", "kitchen", "--since", "90"}, "query kitchen --since 90s"},
      {{"query", "kitchen", "--since", "2026-11-20"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "20.11.2026"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "11/20/2026"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "2026/11/20"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "05/11/2026"}, nullptr},  // of May, or of November?
      {{"query", "kitchen", "--from", "14:30"}, "query kitchen --from today+14h30m --local"},
      {{"query", "kitchen", "--from", "20.11.2026 14:00", "--tz", "Europe/Berlin"},
       "query kitchen --from 2026-11-20T14:00 --tz Europe/Berlin"},
      {{"query", "kitchen", "--from", "Yesterday"}, "query kitchen --from yesterday"},
      {{"query", "kitchen", "--since", "1h", "ago"}, "query kitchen --since 1h"},
      {{"query", "kitchen", "--from", "2026-11-20", "14:00"},
       "query kitchen --from 2026-11-20T14:00 --local"},
      // A large M may be a month.
      {{"query", "kitchen", "--since", "3M"}, nullptr},
      // The wrong order, and what belongs together.
      {{"write", "21.5", "kitchen/temp"}, "write kitchen/temp 21.5"},
      {{"write", "kitchen", "temp", "21.5"}, "write kitchen/temp 21.5"},
      {{"write", "kitchen/temp=21.5"}, "write kitchen/temp 21.5"},
      {{"write", "kitchen.temp", "21.5"}, "write kitchen/temp 21.5"},
      {{"write", "kitchen/temp", "21,5"}, "write kitchen/temp 21.5"},
      {{"write", "sensors/kitchen/temp", "21.5"}, "write kitchen/temp 21.5"},
      {{"get", "kitchen", "temp"}, "get kitchen/temp"},
      {{"retention", "set", "30d", "kitchen"}, "retention set kitchen 30d"},
      {{"retention", "set", "kitchen", "30"}, "retention set kitchen 30d"},
      {{"retention", "set", "kitchen", "30", "days"}, "retention set kitchen 30d"},
      // A selector where a series is meant, and selectors that are none.
      {{"write", "kitchen/*", "21.5"}, "series 'kitchen/*'"},
      {{"get", "kitchen"}, "series kitchen"},
      {{"query", "/kitchen/temp/"}, "query kitchen/temp"},
      {{"query"}, "query '*/*'"},
      {{"tail", "-n", "plant"}, "tail '*/*' -n plant"},
      {{"query", "SELECT * FROM cpu"}, nullptr},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(shell_line(mistake.typed));
    const Answer answer = answer_to(mistake.typed);
    CHECK(answer.exit_code == 2);
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') <= 2);
    CHECK(answer.text.starts_with("edgecase"));
    if (mistake.line == nullptr) continue;
    const std::string wanted = "\n  try: edgecase " + std::string(mistake.line) + "\n";
    CHECK_MESSAGE(answer.text.ends_with(wanted), answer.text);
  }
}

TEST_CASE("mistakes: what cannot be guessed says what is wrong, in one line") {
  struct Case {
    TypedWords typed;
    const char* says;
  };
  for (const Case& c : {
           Case{{}, "say what to do"},
           Case{{"xyzzy"}, "unknown command 'xyzzy'"},
           Case{{"query", "kitchen", "--from", "05/11/2026"}, "is not RFC 3339"},
           Case{{"query", "kitchen", "--since", "3M"}, "may be minutes (m) or months (30d)"},
           Case{{"query", "kitchen", "--xyzzy"}, "unknown option --xyzzy"},
           Case{{"status", "extra"}, "'extra' is one word too many"},
           Case{{"completion"}, "say which: bash, zsh, fish"},
           Case{{"query", "kitchen", "--limit", "1.5"}, "--limit: '1.5' is no whole number"},
           Case{{"query", "kitchen", "--limit", "99999999999999999999"}, "is too large"},
       }) {
    CAPTURE(shell_line(c.typed));
    const Answer answer = answer_to(c.typed);
    CHECK(answer.exit_code == 2);
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') == 1);
    CHECK_MESSAGE(answer.text.find(c.says) != std::string::npos, answer.text);
  }
  CHECK(answer_to({"help", "qurey"}).text.ends_with("\n  try: edgecase help query\n"));
  CHECK(answer_to({"query", "SELECT mean(v) FROM cpu"}).text.find("curl -G http://localhost:") !=
        std::string::npos);
  CHECK(answer_to({"query", "kitchen", "--frm", "1h", "--token", "secret"}).text.find("secret") ==
        std::string::npos);
}

TEST_CASE("mistakes: an option without its value is refused before anything is done") {
  struct Case {
    TypedWords typed;
    const char* says;
  };
  for (const Case& c : {
           Case{{"plot", "a", "b", "--png", "-o", "p.png"},
                "edgecase plot: --png needs a value, and -o looks like an option; if it is the "
                "value, write --png=-o\n  try: edgecase plot a b --png p.png\n"},
           Case{{"plot", "a", "--svg", "-x"}, "write --svg=-x\n  try: edgecase plot a --svg=-x\n"},
           // What was meant for a value is not known.
           Case{{"export", "a", "-o", "--format", "csv"}, "write --output=--format\n"},
           Case{{"query", "a", "--from", "--sicne", "1h"}, "write --from=--sicne\n"},
           Case{{"-n", "-A", "last"}, "edgecase last: -n needs a value, and -A looks"},
       }) {
    CAPTURE(shell_line(c.typed));
    const Answer answer = answer_to(c.typed);
    CHECK(answer.exit_code == 2);
    CHECK(std::count(answer.text.begin(), answer.text.end(), '\n') <= 2);
    CHECK_MESSAGE(answer.text.find(c.says) != std::string::npos, answer.text);
  }
  CHECK(answer_to({"plot", "a", "--svg=-x"}).exit_code == 5);  // taken; no daemon answers
  CHECK(answer_to({"status", "--watch", "--xyzzy"}).text.find("unknown option --xyzzy") !=
        std::string::npos);
}

TEST_CASE("options stand before or behind the command, and anywhere in it") {
  for (const TypedWords& words : std::vector<TypedWords>{
           {"-n", "plant", "query", "kitchen"},
           {"query", "-n", "plant", "kitchen"},
           {"query", "kitchen", "-n", "plant"},
           {"--namespace=plant", "--limit", "5", "query", "kitchen"},
           {"-n", "query", "query", "kitchen"},
           {"--desc", "-n", "plant", "query", "--since", "1h", "kitchen"},
           {"-n", "plant", "retention", "--json", "set", "kitchen", "30d"},
           {"--json", "token", "list"},
           {"write", "--type", "int", "-n", "plant", "kitchen/temp", "-5"},
       }) {
    CAPTURE(shell_line(words));
    const Answer answer = answer_to(words);
    CHECK_MESSAGE(answer.exit_code == 5, answer.text);  // taken; no daemon answers
  }
  CHECK(answer_to({"--help", "query"}).exit_code == 0);
  CHECK(answer_to({"help"}).exit_code == 0);
  CHECK(answer_to({"help", "query"}).exit_code == 0);
  CHECK(answer_to({"help", "token", "create"}).exit_code == 0);
  CHECK(answer_to({"help", "qurey"}).exit_code == 2);
  CHECK(answer_to({"--json", "version"}).exit_code == 0);
}

TEST_CASE("names of files that a shell made of a pattern are told by being there") {
  const Command root{"edgecase",
                     "",
                     "",
                     {},
                     {},
                     {{"edgecase query",
                       "",
                       "",
                       {},
                       {{{"selector"}, "TEXT", {}, "", "", true, true, true, false}},
                       {}}}};
  const auto everything = [](const std::string&) { return true; };
  const auto nothing = [](const std::string&) { return false; };
  CHECK(mended_names(root, {"query", "a/x", "b/y"}, everything) == TypedWords{"query", "*/*"});
  CHECK(mended_names(root, {"query", "a/x", "a/y"}, everything) == TypedWords{"query", "a/*"});
  CHECK(mended_names(root, {"query", "notes.txt"}, everything) == TypedWords{"query", "*/*"});
  CHECK(mended_names(root, {"query", "a/x"}, nothing).empty());
  suggest_name("kitchn", "kitchen/*");
  CHECK(mended_names(root, {"query", "kitchn", "b"}, nothing) ==
        TypedWords{"query", "kitchen/*", "b"});
  forget_suggestions();
  // A device may be called as what is refused behind a value.
  for (const TypedWords& words : std::vector<TypedWords>{{"query", "14:00", "--from", "today"},
                                                         {"query", "ago", "--since", "1h"},
                                                         {"query", "--from", "now", "14:00"}}) {
    CHECK(answer_to(words).exit_code == 5);
  }
}

TEST_CASE("a line is quoted as a shell reads it") {
  CHECK(shell_line({"query", "*/*", "it's", "a b", "", "x=1"}) ==
        "edgecase query '*/*' 'it'\\''s' 'a b' '' x=1");
  CHECK(shell_line({"status", "--token", "secret", "--token=secret"}) ==
        "edgecase status --token TOKEN --token=TOKEN");
}

}  // namespace
}  // namespace edgecase::cli
