// Some of the real commands as a tree, and a shell command's output.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "application.h"
#include "manual/command_tree.h"
#include "support/temp_directory.h"

namespace edgecase::test {

inline cli::Command some_commands() {
  CLI::App app("EdgeCase: sensor readings, kept durable on two drives", "edgecase");
  cli::Action action;
  cli::add_serve_command(app, action);
  cli::add_query_command(app, action);
  cli::add_export_command(app, action);
  cli::add_series_command(app, action);
  cli::add_devices_command(app, action);
  cli::add_last_command(app, action);
  cli::add_get_command(app, action);
  cli::add_config_command(app, action);
  cli::add_inspect_command(app, action);
  cli::add_completion_command(app, action);
  cli::add_manual_command(app, action);
  return cli::read_command_tree(app);
}

struct ShellOutput {
  std::string text;
  int exit_code = -1;
};

inline ShellOutput run_shell(const std::string& command) {
  ShellOutput output;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe))
    output.text.append(buffer, size);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

inline bool has_program(const std::string& name) {
  return run_shell("command -v " + name).exit_code == 0;
}

}  // namespace edgecase::test
