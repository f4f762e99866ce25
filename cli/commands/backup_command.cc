#include "backup/backup.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/commands.h"
#include "commands/subcommand.h"
#include "help_text.h"

namespace edgecase::cli {
namespace {

CLI::App* add(CLI::App& app, Action& action, const char* name, const char* purpose,
              const char* directory, const char* example,
              const std::shared_ptr<BackupRequest>& request, int (*run)(const BackupRequest&)) {
  CLI::App* const command = add_subcommand(app, action, name, purpose, example, request, run);
  command->add_option("directory", request->directory, directory)->type_name("DIR")->required();
  return command;
}

}  // namespace

void add_backup_command(CLI::App& app, Action& action) {
  const auto request = std::make_shared<BackupRequest>();
  add(app, action, "backup",
      "Save every reading of one moment, and what is said of devices and retention",
      "Made where there is none; one that was broken off goes on",
      "edgecase backup /mnt/usb/monday", request, run_backup)
      ->add_option("--location", request->location,
                   "Where that is; must be one of storage.locations, where that is set")
      ->type_name("PLACE");
}

void add_restore_command(CLI::App& app, Action& action) {
  add(app, action, "restore",
      "Store what a backup holds; what is there, and what was erased, stays as it is",
      "What backup wrote", "edgecase restore /mnt/usb/monday", std::make_shared<BackupRequest>(),
      run_restore);
}

}  // namespace edgecase::cli
