// The machine under this process: the limits it is given, and what its processor can. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace edgecase {

// Limits of this process, in words: its own (setrlimit, `ulimit`) and those of its control group.
// An error that one of them caused names it, so that whoever reads it knows what to raise.

// " (the limit RLIMIT_FSIZE, ulimit -f, is 1024 bytes)" for an errno that one causes (EFBIG,
// EMFILE), where it is set; else empty.
std::string limit_of_error(int error);
// Why no thread could be started: "the limit RLIMIT_NPROC (ulimit -u) is 12".
std::string limit_of_threads();
// The same of memory. Takes none; answers how many bytes of `text` it wrote.
std::size_t limit_of_memory(char* text, std::size_t size);

// Whether the processor has instructions for AES: without them sealing and opening is done in
// software, several times slower.
bool has_aes_instructions();

}  // namespace edgecase
