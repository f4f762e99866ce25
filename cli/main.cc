// The executable: the list of its commands, in the order that `edgecase --help` shows.
#include "application.h"
#include "commands/commands.h"
#include "process_start.h"

namespace {

// Before any static object is made: one of them may open a file.
[[gnu::constructor(101)]] void before_everything() {
  edgecase::cli::open_standard_descriptors();
}

}  // namespace

int main(int argument_count, char** arguments) {
  using namespace edgecase::cli;
  if (!prepare_for_limits()) return 1;
  constexpr AddCommand kCommands[] = {
      // clang-format off: a line each
      add_serve_command,     add_status_command,  add_write_command,      add_query_command,
      add_last_command,      add_tail_command,    add_get_command,        add_plot_command,
      add_series_command,    add_devices_command, add_export_command,     add_import_command,
      add_backup_command,    add_restore_command, add_namespace_command,  add_device_command,
      add_retention_command, add_erase_command,   add_where_command,      add_token_command,
      add_audit_command,     add_report_command,  add_mqtt_command,       add_config_command,
      add_forward_command,   add_influx_command,  add_check_command,      add_inspect_command,
      add_bench_command,     add_version_command, add_completion_command, add_manual_command,
      // clang-format on
  };
  return run_application(kCommands, argument_count, arguments);
}
