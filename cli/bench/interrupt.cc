#include "bench/interrupt.h"

#include <csignal>

namespace edgecase::cli::bench {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;  // a handler can reach nothing else

extern "C" void note_interrupt(int) {
  g_interrupted = 1;
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // One that was ignored from the start (nohup) stays so.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a peer that closes is an error code
}

bool interrupted() {
  return g_interrupted != 0;
}

Status check_interrupt() {
  return interrupted() ? cancelled("stopped") : ok();
}

}  // namespace edgecase::cli::bench
