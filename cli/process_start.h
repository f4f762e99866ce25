// What a process sees to before it does anything else, as daemon and as command alike.
#pragma once

namespace edgecase::cli {

// Descriptors 0, 1 and 2 lead to /dev/null where whoever started the process closed them. A file of
// the store would get one of these numbers otherwise, and messages would be written into it.
// Reading from such an input and writing to such an output fail as they did before.
void open_standard_descriptors();

}  // namespace edgecase::cli
