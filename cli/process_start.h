// The first steps of a process, before it does anything else, as daemon and as command alike.
#pragma once

namespace edgecase::cli {

// Descriptors 0, 1 and 2 lead to /dev/null where whoever started the process closed them. A file of
// the store would get one of these numbers otherwise, and messages would be written into it.
// Reading from such an input and writing to such an output fail as they did before.
void open_standard_descriptors();

// A limit of the process (setrlimit, control group) that is reached ends it with one line that
// names the limit, and exit code 1, or is an error as others are: a file that may not grow is no
// signal any more, and no thread, no memory, no processor time left are said. False: with these
// limits it is of no use to begin, which is said already.
bool prepare_for_limits();

}  // namespace edgecase::cli
