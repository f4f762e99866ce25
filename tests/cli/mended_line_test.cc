// tidy: allow-file fixed-port: addresses are typed, and no daemon is asked
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
      {{"query", "kitchen", "--format", "jsonl"}, "query kitchen --format ndjson"},
      {{"query", "kitchen", "--format", "excel"}, "query kitchen --format csv"},
      {{"query", "kitchen", "--format=influx"}, "query kitchen --format=line"},
      {{"export", "kitchen", "--format", "feather"}, "export kitchen --format arrow"},
      {{"write", "kitchen/temp", "5", "--type", "integer"}, "write kitchen/temp 5 --type int"},
      {{"query", "kitchen", "--every", "1h", "--mean"}, "query kitchen --every 1h --agg=mean"},
      {{"query", "kitchen", "--agg", "mean,max"}, "query kitchen --agg mean"},
      {{"query", "kitchen", "--agg", "percentile95"}, "query kitchen --agg p95"},
      {{"query", "kitchen", "--agg", "p90"}, nullptr},  // p50 would be another question
      {{"query", "kitchen", "--wide"}, "query kitchen --layout=wide"},
      {{"query", "kitchen", "--fill", "prev"}, "query kitchen --fill previous --layout wide"},
      {{"query", "kitchen", "--layout", "wide", "--format", "line"},
       "query kitchen --layout wide --format csv"},
      {{"query", "kitchen", "-o", "a.csv"}, "export kitchen -o a.csv"},
      {{"plot", "kitchen", "--output=a.svg"}, "plot kitchen --svg=a.svg"},
      {{"tail", "-f", "kitchen"}, "tail kitchen"},
      // Zones and addresses.
      {{"query", "kitchen", "--tz", "UTC+1"}, "query kitchen --tz +01:00"},
      {{"query", "kitchen", "--tz", "local"}, "query kitchen --local"},
      {{"last", "--port", "99"}, "last --host localhost:99"},
      {{"last", "--host", "pi", "--port=99"}, "last --host pi:99"},
      {{"last", "--host", "tcp://pi:99"}, "last --host http://pi:99"},
      {{"last", "--host", "http://pi:99/query"}, "last --host http://pi:99"},
      {{"last", "--host", ":99"}, "last --host localhost:99"},
      {{"last", "--host", "99"}, "last --host localhost:99"},
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
      // Moments as programs, mail and calendars write them.
      {{"query", "kitchen", "--from", "1763647200"}, "query kitchen --from @1763647200"},
      {{"query", "kitchen", "--to=1763647200123"}, "query kitchen --to=@1763647200.123"},
      {{"write", "kitchen/temp", "1", "--time", "1763647200123456"},
       "write kitchen/temp 1 --time @1763647200.123456"},
      {{"query", "kitchen", "--from", "@1763647200000"}, "query kitchen --from @1763647200.000"},
      {{"query", "kitchen", "--from", "2026"}, "query kitchen --from 2026-01-01"},
      {{"query", "kitchen", "--from", "2026-11"}, "query kitchen --from 2026-11-01"},
      {{"query", "kitchen", "--from", "20261120"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "20261120T140000Z"},
       "query kitchen --from 2026-11-20T14:00:00Z"},
      {{"query", "kitchen", "--from", "2026-11-20T14"},
       "query kitchen --from 2026-11-20T14:00 --local"},
      {{"query", "kitchen", "--from", "2026-11-20 14:00 UTC"},
       "query kitchen --from 2026-11-20T14:00Z"},
      {{"query", "kitchen", "--from", " 2026-11-20 "}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "20 Nov 2026"}, "query kitchen --from 2026-11-20"},
      {{"query", "kitchen", "--from", "Nov. 5, 2026, 2pm"},
       "query kitchen --from 2026-11-05T14:00 --local"},
      {{"query", "kitchen", "--from", "Fri, 20 Nov 2026 14:00:00 +0100"},
       "query kitchen --from 2026-11-20T14:00:00+0100"},
      {{"query", "kitchen", "--from", "Tue Dec  1 03:18:00 UTC 2026"},
       "query kitchen --from 2026-12-01T03:18:00Z"},
      {{"query", "kitchen", "--from", "yesterday 14:30"},
       "query kitchen --from yesterday+14h30m --local"},
      {{"query", "kitchen", "--from", "12 am"}, "query kitchen --from today+0h --local"},
      {{"query", "kitchen", "--from", "now - 1h"}, "query kitchen --from now-1h"},
      {{"query", "kitchen", "--from", "last week", "--to", "tomorrow"},
       "query kitchen --from -7d --to today+1d"},
      {{"query", "kitchen", "--from", "2026-11-20 14:00 CET"}, nullptr},
      {{"query", "kitchen", "--from", "13 pm"}, nullptr},
      // A large M may be a month.
      {{"query", "kitchen", "--since", "3M"}, nullptr},
      {{"query", "kitchen", "--from", "2026-11-20", "--to", "2026-11-19"},
       "query kitchen --from 2026-11-19 --to 2026-11-20"},
      {{"query", "kitchen", "--from", "2026-11-20..2026-11-21"},
       "query kitchen --from 2026-11-20 --to 2026-11-21"},
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
      {{"query", "/temp"}, "query '*/temp'"},
      {{"query", "kitchen/temp,boiler/temp"}, "query kitchen/temp boiler/temp"},
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
           Case{{"last", "-n"}, "--namespace needs a value (see"},
           Case{{"plot", "kitchen", "--svg"}, "--svg needs a value, FILE (see"},
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
  CHECK(mended_names(root, {"query", "a,b/x"}, nothing) == TypedWords{"query", "a", "b/x"});
  CHECK(mended_names(root, {"query", "{a,b}/x"}, nothing) == TypedWords{"query", "a/x", "b/x"});
  CHECK(mended_names(root, {"query", "a/i{k=v,l=w}"}, nothing).empty());
  CHECK(mended_names(root, {"query", "+/x", "a/#"}, nothing) == TypedWords{"query", "*/x", "a/*"});
  CHECK(mended_names(root, {"query", "a/.*"}, nothing) == TypedWords{"query", "a/*"});
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

TEST_CASE("a daemon that does not answer has its port behind its name") {
  const Command root{"edgecase",
                     "",
                     "",
                     {},
                     {},
                     {{"edgecase last",
                       "",
                       "",
                       {},
                       {{{"--host"}, "TEXT", {}, "", "", false, false, false, false}},
                       {}}}};
  CHECK(mended_address(root, {"last", "--host", "pi"}) == TypedWords{"last", "--host", "pi:8650"});
  CHECK(mended_address(root, {"last", "--host=http://pi"}) ==
        TypedWords{"last", "--host=http://pi:8650"});
  for (const char* host : {"pi:80", "http://pi:80", "unix:/run/s", "/run/s"}) {
    CHECK(mended_address(root, {"last", "--host", host}).empty());
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
