// edgecase-bench-peers: `edgecase bench` with the experiments of the papers, and linked with the
// stores it is measured against. `edgecase bench` starts it from its own directory when one of them
// is asked for, so that `edgecase` itself carries none of it. It is not installed.
#include "application.h"
#include "bench/experiments/experiments.h"
#include "bench/peers/peer_stores.h"

int main(int argument_count, char** arguments) {
  using namespace edgecase::cli;
  static constexpr bench::PeerProgram kPeers{bench::make_peer_store, bench::run_of};
  constexpr AddCommand kCommands[] = {
      [](CLI::App& app, Action& action) { add_bench_command_with(kPeers, app, action); }};
  return run_application(kCommands, argument_count, arguments);
}
