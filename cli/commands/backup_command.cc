#include "backup/backup.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/commands.h"
#include "commands/subcommand.h"
#include "help_text.h"

namespace edgecase::cli {
namespace {

void add(CLI::App& app, Action& action, const char* name, const char* purpose,
         const char* directory, const char* example, int (*run)(const BackupRequest&)) {
  const auto request = std::make_shared<BackupRequest>();
  add_subcommand(app, action, name, purpose, example, request, run)
      ->add_option("directory", request->directory, directory)
      ->type_name("DIR")
      ->required();
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
