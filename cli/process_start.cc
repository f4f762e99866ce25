#include "process_start.h"

#include <fcntl.h>
#include <unistd.h>

namespace edgecase::cli {

void open_standard_descriptors() {
  for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; ++wanted) {
    if (fcntl(wanted, F_GETFD) >= 0) continue;
    // The lowest number that is free is the one that is missing. The other way round, so that what
    // a command prints into nothing is an error (EBADF) and no success.
    const int mode = wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) >= 0) continue;
    // A root without /dev: a descriptor that can be neither read nor written holds the place.
    if (open("/", O_PATH) < 0) _exit(1);  // there is nobody to tell
  }
}

}  // namespace edgecase::cli
