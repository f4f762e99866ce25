// The question before a command destroys: on a terminal in words, elsewhere it needs --yes
// (CONTRACT section 3).
#pragma once

#include <string>

namespace edgecase::cli {

// Whether to go on with `what` ("this erases 12 readings of 2 series for good"). `yes` is --yes.
// On a terminal the user types `word`. Everything else says on stderr what would have been done,
// and is answered false: the command then exits with kExitUsage.
bool confirmed(const std::string& what, bool yes, const std::string& word = "yes");

}  // namespace edgecase::cli
