// A file that appears whole or not at all: written without a name in its directory (O_TMPFILE),
// synced, named. Where the file system knows no such files it is written under a temporary name,
// and renamed. Nothing is left behind by a failure or by Ctrl-C; without a name nor by a kill.
//
// Use: create(), write() pieces, commit(). Destruction without commit() removes what was written.
// One exists at a time while Ctrl-C is handled (stop_on_interrupt()).
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::cli {

class TargetFile {
 public:
  // `path` is replaced at commit(). `shown` is what messages call it, where that is another name.
  static Result<TargetFile> create(const std::string& path, const std::string& shown = {});
  // What somebody names as output. A link stays, and what it leads to is replaced, with the same
  // owner and mode; a device or a pipe is written to as it is: no rename turns /dev/null into a
  // file. So is what stdout or stderr leads to, from where they are (-o /dev/stdout >> FILE).
  static Result<TargetFile> open_output(const std::string& path);
  ~TargetFile();
  TargetFile(TargetFile&& other) noexcept;
  TargetFile& operator=(TargetFile&&) = delete;

  Status write(std::string_view bytes);
  // From commit() on it has the owner and the mode of what it replaces, if there is something; the
  // owner where the process may give files away.
  Status keep_permissions();
  // Durable, directory included, once it returns Ok.
  Status commit();

 private:
  TargetFile(std::string path, std::string shown, std::string temporary_path, int file_descriptor);
  // Gives it its name, or its temporary one where there is a file to replace.
  Status link_unnamed();

  std::string path_;
  std::string shown_;
  std::string temporary_path_;  // empty: written in place, without a name, or committed
  bool is_unnamed_ = false;
  int file_descriptor_;
};

// What an errno says, with the limit of the process that caused it, if one did.
std::string error_words(int error);
// What the errno of a call on a file means, with its path.
Status file_failure(const std::string& path, int error);

// The file being written goes, if it has a name already. Callable from a signal handler.
void remove_unfinished();

// From now on SIGINT, SIGTERM and SIGHUP, unless that was ignored at the start (nohup), remove the
// file being written, say `message` on stderr and end the process with `exit_code`. May be called
// again to change either.
void stop_on_interrupt(std::string_view message, int exit_code);

// A file that is read whole.

// Errors name the file: NotFound, NotAllowed, IoError.
Result<std::string> read_small_file(const std::string& path);

}  // namespace edgecase::cli
