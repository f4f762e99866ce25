#include "file/joint_sync.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace edgecase::engine {

JointSync::~JointSync() {
  if (context_ != 0) (void)::syscall(SYS_io_destroy, context_);
}

void JointSync::sync(std::span<const FileToSync> files) {
  while (!files.empty()) {
    std::size_t done = 0;
    if (files.size() > 1) {
      MutexLock lock(mutex_);
      done = sync_some(files.first(std::min(files.size(), kAtOnce)));
    }
    if (done == 0) {
      const FileToSync& file = files.front();
      *file.status = sync_data(*file.file, *file.path);
      done = 1;
    }
    files = files.subspan(done);
  }
}

std::size_t JointSync::sync_some(std::span<const FileToSync> files) {
  if (context_ == 0 && ::syscall(SYS_io_setup, kAtOnce, &context_) != 0) {
    context_ = 0;
    return 0;
  }
  std::array<iocb, kAtOnce> requests{};
  std::array<iocb*, kAtOnce> pointers{};
  for (std::size_t i = 0; i < files.size(); ++i) {
    requests[i].aio_data = i;
    requests[i].aio_lio_opcode = IOCB_CMD_FDSYNC;
    requests[i].aio_fildes = static_cast<std::uint32_t>(files[i].file->number());
    pointers[i] = &requests[i];
    // What the kernel takes and does not answer for is not on the drive.
    *files[i].status = errno_status(EIO, "sync", *files[i].path);
  }
  const long taken =
      ::syscall(SYS_io_submit, context_, static_cast<long>(files.size()), pointers.data());
  if (taken <= 0) return 0;
  std::array<io_event, kAtOnce> events{};
  long left = taken;
  while (left > 0) {
    const long got = ::syscall(SYS_io_getevents, context_, left, left, events.data(), nullptr);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (const io_event& event : std::span(events).first(static_cast<std::size_t>(got))) {
      const FileToSync& file = files[event.data];
      const int error = event.res == 0 ? 0 : static_cast<int>(-event.res);
      *file.status = error == 0 ? ok() : errno_status(error, "sync", *file.path);
    }
    left -= got;
  }
  if (left > 0) {
    // Answers that come later are of nothing that is asked for then.
    (void)::syscall(SYS_io_destroy, context_);
    context_ = 0;
  }
  return static_cast<std::size_t>(taken);
}

}  // namespace edgecase::engine
