// Ctrl-C, asked for instead of suffered: a workload looks between two operations, returns, and its
// directories and processes are cleared away as at any other end.
#pragma once

#include "edgecase/status.h"

namespace edgecase::cli::bench {

// From now on SIGINT and SIGTERM only set the flag.
void watch_for_interrupt();
bool interrupted();
// Cancelled once interrupted.
Status check_interrupt();

}  // namespace edgecase::cli::bench
