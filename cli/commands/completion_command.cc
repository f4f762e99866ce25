#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "commands/commands.h"
#include "help_text.h"
#include "manual/completion.h"
#include "manual/manual_pages.h"
#include "output.h"
#include "reading_output.h"

namespace edgecase::cli {
namespace {

// The text is made while the declarations are there to be read; they are gone when it is printed.
void print_later(std::string text, Action& action) {
  action = [text = std::move(text)] {
    write_out(stdout, text);
    return finish_stdout();
  };
}

void add_script(CLI::App& command, const CLI::App& app, const char* shell, const char* place,
                std::string (*script)(const Command&), Action& action) {
  CLI::App* one = command.add_subcommand(shell, std::string("Print the script for ") + shell);
  one->footer(help_footer({std::string("edgecase completion ") + shell + " > " + place}));
  one->callback([&app, script, &action] { print_later(script(read_command_tree(app)), action); });
}

}  // namespace

void add_completion_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("completion", "Print what teaches a shell to complete");
  command->require_subcommand(1);
  command->footer(help_footer(
      {"edgecase completion bash > ~/.local/share/bash-completion/completions/edgecase"}));
  add_script(*command, app, "bash", "/etc/bash_completion.d/edgecase", bash_completion, action);
  add_script(*command, app, "zsh", "/usr/local/share/zsh/site-functions/_edgecase", zsh_completion,
             action);
  add_script(*command, app, "fish", "~/.config/fish/completions/edgecase.fish", fish_completion,
             action);
}

// For the package: what `man edgecase` shows.
void add_manual_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("manual", "Print a manual page in roff")->group("");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase manual edgecase.1 | man -l -"}));
  command->add_subcommand("edgecase.1", "The commands")->callback([&app, &action] {
    print_later(edgecase_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecased.8", "The daemon")->callback([&app, &action] {
    print_later(edgecased_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecase.toml.5", "The configuration")->callback([&action] {
    print_later(configuration_page(), action);
  });
}

}  // namespace edgecase::cli
