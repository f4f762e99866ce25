#include "directory_beneath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "output.h"
#include "target_file.h"

namespace edgecase::cli {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// As <linux/openat2.h> has it, which older systems do not.
struct OpenHow {
  std::uint64_t flags = 0;
  std::uint64_t mode = 0;
  std::uint64_t resolve = 0;
};
constexpr std::uint64_t kResolveNoSymlinks = 0x04;
constexpr std::uint64_t kResolveBeneath = 0x08;
#ifdef SYS_openat2
constexpr long kOpenat2 = SYS_openat2;
#else
constexpr long kOpenat2 = 437;  // on every architecture
#endif

int open_each_name(int parent, const std::string& name) {
  return openat(parent, name.c_str(), kDirectory | O_NOFOLLOW);
}

// EPERM: a sandbox that does not know the call.
int open_by_kernel(int parent, const std::string& name) {
  OpenHow how;
  how.flags = kDirectory;
  how.resolve = kResolveBeneath | kResolveNoSymlinks;
  const long descriptor = syscall(kOpenat2, parent, name.c_str(), &how, sizeof how);
  if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(descriptor);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    print_error(
        "edgecase: this kernel has no openat2() (Linux 5.6): links are looked for name by "
        "name\n");
  }
  return open_each_name(parent, name);
}

bool is_link(int parent, const std::string& name) {
  struct stat found {};
  return fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
}

// Creates it, durably, where there is none.
Status make_below(int parent, const std::string& name, const std::string& shown) {
  if (mkdirat(parent, name.c_str(), 0777) != 0) {
    return errno == EEXIST ? ok() : file_failure(shown, errno);
  }
  // Some file systems cannot sync a directory.
  return fsync(parent) == 0 || errno == EINVAL ? ok() : file_failure(shown, errno);
}

}  // namespace

Result<DirectoryBeneath> DirectoryBeneath::open(const std::string& root,
                                                std::initializer_list<std::string> names,
                                                LinkCheck check) {
  DirectoryBeneath held(::open(root.c_str(), kDirectory));
  if (held.descriptor_ < 0) return file_failure(root, errno);
  std::string shown = root;
  for (const std::string& name : names) {
    shown += "/" + name;
    EC_TRY(make_below(held.descriptor_, name, shown));
    DirectoryBeneath next(check == LinkCheck::Kernel ? open_by_kernel(held.descriptor_, name)
                                                     : open_each_name(held.descriptor_, name));
    if (next.descriptor_ < 0) {
      const int error = errno;
      if (is_link(held.descriptor_, name)) {
        return not_allowed(shown + ": is a link, and nothing is written through links; remove it");
      }
      return file_failure(shown, error);
    }
    std::swap(held.descriptor_, next.descriptor_);
  }
  return held;
}

DirectoryBeneath::~DirectoryBeneath() {
  if (descriptor_ >= 0) close(descriptor_);
}

DirectoryBeneath::DirectoryBeneath(DirectoryBeneath&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string DirectoryBeneath::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

bool DirectoryBeneath::holds_file(const std::string& name) const {
  struct stat found {};
  return fstatat(descriptor_, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(found.st_mode);
}

}  // namespace edgecase::cli
