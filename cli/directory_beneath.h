// A directory below another one that is never reached through a link, so that nothing is written
// where somebody's link leads: exports and backups go into directories that others may write to.
#pragma once

#include <initializer_list>
#include <string>

#include "edgecase/result.h"

namespace edgecase::cli {

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

}  // namespace edgecase::cli
