// The executable.
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
  return run_application(kAllCommands, argument_count, arguments);
}
