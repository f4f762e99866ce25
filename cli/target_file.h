// A file that appears whole or not at all: written without a name in its directory (O_TMPFILE),
// synced, named. Where the file system knows no such files it is written under a temporary name,
// and renamed. Nothing is left behind by a failure or by Ctrl-C; without a name nor by a kill.
//
// Use: create(), write() pieces, commit(). Destruction without commit() removes what was written.
// One exists at a time while Ctrl-C is handled (stop_on_interrupt()). The directories that exports
// write such files into are below, too (export_directory.cc).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "command_options.h"
#include "edgecase/status.h"
#include "wire/selector.h"

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

// Exports into a directory: one file a series, DIR/NAMESPACE/DEVICE/SENSOR.csv
// (export_directory.cc), or everything of one person (owner_export.cc).
//
// Each file appears when it is whole and durable, so an export that was stopped is continued by
// leaving out the files that are there. What was asked for is kept in DIR/.edgecase-export.json,
// and continuing something else is refused.

// A directory below another one that is never reached through a link, so that nothing is written
// where somebody's link leads: exports and backups go into directories that others may write to.

// How links are kept out: by openat2(), or, on a kernel before Linux 5.6, name by name.
enum class LinkCheck : unsigned char { Kernel, EachName };

// Open for as long as it lives: what happens to its name meanwhile does not matter.
class DirectoryBeneath {
 public:
  // `root`/name/name...: made, durably, where there is none; links in `root` itself are followed.
  // A name is neither `.` nor `..` and holds no `/`. NotAllowed: a name is that of a link.
  // Says on stderr, once, where the kernel cannot do it.
  static Result<DirectoryBeneath> open(const std::string& root,
                                       std::initializer_list<std::string> names,
                                       LinkCheck check = LinkCheck::Kernel);
  ~DirectoryBeneath();
  DirectoryBeneath(DirectoryBeneath&& other) noexcept;
  DirectoryBeneath& operator=(DirectoryBeneath&&) = delete;

  // For calls of this process on what lies in it: "/proc/self/fd/7".
  std::string path() const;
  // Whether a file, no link, lies in it.
  bool holds_file(const std::string& name) const;

 private:
  explicit DirectoryBeneath(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

enum class ExportMode : unsigned char { Fresh, Resume };

struct DirectoryExport {
  const ConnectionArguments& connection;
  const NamespaceArguments& namespaces;
  const RangeArguments& range;
  const wire::SelectionTexts& selection;
  const std::string& purpose;
  std::string directory;
  const std::string& format;
  ExportMode mode;
  bool tiers = false;  // windows of tiers, too
};

// Creates it, durably, where there is none; its parent must be there.
Status make_export_directory(std::string directory);

// The exit code: 6 when some series were written and others not.
int export_to_directory(const DirectoryExport& request);

// A name as part of a path: `%` and a leading `.` become %25 and %2E.
// At most 200 bytes: of a longer one a hash stands for what is cut.
std::string file_name_of(std::string_view name);

// Whether others are not to be tried where one thing among many failed of this.
bool ends_all(const Status& status);

// `edgecase export --owner O -o DIR/`: everything of one person, to be read by people and taken in
// elsewhere: readings.ndjson and readings.csv with the same readings, and manifest.json with
// purposes, objections, retention and recipients, written last.
struct OwnerExport {
  const ConnectionArguments& connection;
  const std::string& owner;
  std::string directory;
};

// The exit code.
int export_owner(const OwnerExport& request);

// `--to-host URL`: the same, and what is said of their devices, straight into the EdgeCase of
// another controller, by way of no file that has a name.
struct OwnerPush {
  ConnectionArguments from, to;
  std::string owner;
  std::string location;  // of the other controller's store
};

// Returns the exit code, as an import of what `export --owner` writes would.
int push_owner(const OwnerPush& request);

}  // namespace edgecase::cli
