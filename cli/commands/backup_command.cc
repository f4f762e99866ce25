#include "backup/backup.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/commands.h"
#include "help_text.h"

namespace edgecase::cli {
namespace {

void add(CLI::App& app, Action& action, const char* name, const char* purpose,
         const char* directory, const char* example, int (*run)(const BackupRequest&)) {
  auto request = std::make_shared<BackupRequest>();
  CLI::App* command = app.add_subcommand(name, purpose);
  command->add_option("directory", request->directory, directory)->type_name("DIR")->required();
  add_connection_options(*command, request->connection);
  command->footer(help_footer({example}));
  command->callback([request, run, &action] { action = [request, run] { return run(*request); }; });
}

}  // namespace

void add_backup_command(CLI::App& app, Action& action) {
  add(app, action, "backup",
      "Save every reading of one moment, and what is said of devices and retention",
      "Made where there is none; one that was broken off goes on",
      "edgecase backup /mnt/usb/monday", run_backup);
}

void add_restore_command(CLI::App& app, Action& action) {
  add(app, action, "restore",
      "Store what a backup holds; what is there, and what was erased, stays as it is",
      "What backup wrote", "edgecase restore /mnt/usb/monday", run_restore);
}

}  // namespace edgecase::cli
