// Names on stderr what answers of the daemon leave out, and decides by it the exit code of a
// command that is done. DaemonClient tells it of each answer; a command is one thread.
#pragma once

#include <string>

namespace edgecase::cli {

// `text`: an array as X-EdgeCase-Left-Out has it (daemon/query/left_out.h); each is named once.
void name_left_out(const std::string& text);

// Whether anything was, since take_exit_code_of_answers().
bool has_left_out();
// What follows waits for what is not there yet: that it is not there decides no exit code.
void expect_what_is_not_there();
// 0, or the code of a command that is done but for that: 7 where it is damaged, else 6. Once.
int take_exit_code_of_answers();

}  // namespace edgecase::cli
