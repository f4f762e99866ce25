// edgecase-bench-peers: `edgecase bench`, linked with the stores it is measured against. `edgecase
// bench` runs it from its own directory when a peer is asked for, so that `edgecase` itself needs
// none of their libraries. It is not installed.
#include "application.h"
#include "bench/peers/peer_stores.h"
#include "commands/commands.h"

int main(int argument_count, char** arguments) {
  using namespace edgecase::cli;
  constexpr AddCommand kCommands[] = {[](CLI::App& app, Action& action) {
    add_bench_command_with(bench::make_peer_store, app, action);
  }};
  return run_application(kCommands, argument_count, arguments);
}
