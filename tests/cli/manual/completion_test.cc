// The scripts in the shells they are for.
#include "manual/command_tree.h"

#include <algorithm>
#include <set>

#include "manual_fixture.h"

namespace edgecase::cli {
namespace {

using Words = std::set<std::string>;

Words words_of(const std::string& lines) {
  Words words;
  std::string word;
  for (const char c : lines + "\n") {
    if (c != '\n') {
      word += c;
    } else if (!word.empty()) {
      // fish and zsh say what a word is for: "word<tab>text", "word:text".
      words.insert(word.substr(0, word.find_first_of("\t:")));
      word.clear();
    }
  }
  return words;
}

struct Completed {
  std::vector<std::string> line;  // the last word is under the cursor
  Words expected;
};

// What begins with the word under the cursor is asked for, as a user would type it.
const std::vector<Completed> kCases = {
    {{"edgecase", "qu"}, {"query"}},
    {{"edgecase", "config", ""}, {"show", "check", "example", "storage"}},
    {{"edgecase", "query", "--format", ""},
     {"table", "csv", "ndjson", "json", "line", "parquet", "arrow"}},
    {{"edgecase", "query", "--format", "n"}, {"ndjson"}},
    {{"edgecase", "query", "kitchen/*", "--de"}, {"--desc"}},
    // A value that reads like a command is none.
    {{"edgecase", "query", "--since", "config", "--de"}, {"--desc"}},
    {{"edgecase", "serve", "--storage.expiry", ""}, {"bounded", "exact"}},
    {{"edgecased", "--storage.on-full", "r"}, {"reject"}},
    {{"edgecase", "query", "--limit", ""}, {}},
    {{"edgecase", "man"}, {}},  // hidden
};

std::string quoted(const std::string& word) {
  return "'" + word + "'";
}

// A tree with choices that are more than words to a shell.
Command odd_choices() {
  Command root = test::some_commands();
  const auto at = std::find_if(root.commands.begin(), root.commands.end(),
                               [](const Command& each) { return each.name() == "export"; });
  REQUIRE(at != root.commands.end());
  CommandOption option;
  option.names = {"--odd"};
  option.value = "CHARACTER";
  option.choices = {";", "|", "&", "$x", "*", "it's", "(", "tab"};
  at->options.push_back(option);
  return root;
}

TEST_CASE("bash completes commands, options, choices and files") {
  test::TempDirectory directory;
  test::write_file(directory / "script", bash_completion(test::some_commands()));
  test::write_file(directory / "plant.toml", "");
  const std::string start =
      "cd " + directory.path() + " && exec bash --norc -c \"source ./script; ";
  const auto complete = [&start](const std::vector<std::string>& line) {
    std::string command = start + "COMP_WORDS=(";
    for (const std::string& word : line) command += quoted(word) + " ";
    command += "); COMP_CWORD=" + std::to_string(line.size() - 1) +
               "; _edgecase; printf '%s\\n' \\\"\\${COMPREPLY[@]}\\\"\"";
    const test::ShellOutput output = test::run_shell(command);
    CHECK(output.exit_code == 0);
    return words_of(output.text);
  };
  for (const Completed& each : kCases) {
    CAPTURE(each.line);
    CHECK(complete(each.line) == each.expected);
  }
  CHECK(complete({"edgecase", "config", "check", "pl"}) == Words{"plant.toml"});
  CHECK(complete({"edgecase", "serve", "--config", "pl"}) == Words{"plant.toml"});
  CHECK(complete({"edgecase", "query", "pl"}).empty());  // no daemon, no names
  // What the daemon has, as `edgecase completion names` tells it.
  test::write_file(directory / "edgecase",
                   "#!/bin/sh\n[ \"$2 $3 $4\" = 'names -- ki' ] && "
                   "printf 'kitchen/\\nkiln/\\n'\n");
  const test::ShellOutput made = test::run_shell(
      "chmod +x " + (directory / "edgecase") + " && cd " + directory.path() +
      " && PATH=.:$PATH bash --norc -c \"source ./script; COMP_WORDS=(edgecase query ki); "
      "COMP_CWORD=2; _edgecase; printf '%s\\n' \\\"\\${COMPREPLY[@]}\\\"\"");
  CHECK(words_of(made.text) == Words{"kitchen/", "kiln/"});
}

TEST_CASE("choices that are more than words to a shell are completed as they are") {
  test::TempDirectory directory;
  test::write_file(directory / "bash", bash_completion(odd_choices()));
  const auto bash = test::run_shell(
      "cd " + directory.path() +
      " && bash --norc -c 'source ./bash; for word in \"\" t; do COMP_WORDS=(edgecase export --odd "
      "\"$word\"); COMP_CWORD=3; _edgecase; printf \"%s\\n\" \"${COMPREPLY[@]}\" .; done'");
  CHECK(bash.text == "\\;\n\\|\n\\&\n\\$x\n\\*\nit\\'s\n\\(\ntab\n.\ntab\n.\n");
  if (test::has_program("zsh")) {
    test::write_file(directory / "zsh", zsh_completion(odd_choices()));
    CHECK(test::run_shell("zsh -n " + (directory / "zsh")).text.empty());
  }
  if (test::has_program("fish")) {
    test::write_file(directory / "fish", fish_completion(odd_choices()));
    const auto fish =
        test::run_shell("HOME=" + directory.path() + " fish --no-config -c \"source " +
                        (directory / "fish") + "; complete -C 'edgecase export --odd '\"");
    CHECK(words_of(fish.text) == Words{";", "|", "&", "$x", "*", "it's", "(", "tab"});
  }
}

TEST_CASE("fish completes commands, options and choices") {
  if (!test::has_program("fish")) {
    MESSAGE("skipped: fish is not installed");
    return;
  }
  test::TempDirectory directory;
  test::write_file(directory / "script", fish_completion(test::some_commands()));
  for (const Completed& each : kCases) {
    std::string line;
    for (const std::string& word : each.line) line += (line.empty() ? "" : " ") + word;
    if (line.find('*') != std::string::npos) continue;
    CAPTURE(line);
    const test::ShellOutput output =
        test::run_shell("HOME=" + directory.path() + " fish --no-config -c \"source " +
                        (directory / "script") + "; complete -C '" + line + "'\"");
    CHECK(output.exit_code == 0);
    CHECK(words_of(output.text) == each.expected);
  }
}

TEST_CASE("zsh completes commands, options and choices") {
  if (!test::has_program("zsh")) {
    MESSAGE("skipped: zsh is not installed");
    return;
  }
  test::TempDirectory directory;
  // Outside its line editor zsh has no completion builtins: these say what they are given.
  test::write_file(directory / "script",
                   "compdef() { : }\n"
                   "compadd() { shift; print -l -- $@ }\n"
                   "_describe() { [[ $1 == -o ]] && shift; print -l -- ${(P)2} }\n"
                   "_message() { : }\n"
                   "_files() { print files }\n" +
                       zsh_completion(test::some_commands()));
  const auto complete = [&directory](const std::vector<std::string>& line) {
    std::string command = "zsh -f -c \"source " + (directory / "script") + "; words=(";
    for (const std::string& word : line) command += quoted(word) + " ";
    command += "); CURRENT=" + std::to_string(line.size()) + "; _edgecase\"";
    const test::ShellOutput output = test::run_shell(command);
    CHECK(output.exit_code == 0);
    return words_of(output.text);
  };
  for (const Completed& each : kCases) {
    CAPTURE(each.line);
    // zsh itself picks what begins as typed.
    Words fitting;
    for (const std::string& word : complete(each.line))
      if (word.starts_with(each.line.back())) fitting.insert(word);
    CHECK(fitting == each.expected);
  }
  CHECK(complete({"edgecase", "config", "check", "pl"}) == Words{"files"});
}

}  // namespace
}  // namespace edgecase::cli
