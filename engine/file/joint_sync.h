// Syncs many files together: the kernel is handed all of them at once (asynchronous I/O, which
// syncs since Linux 4.18) and asks the drive no more often than for one or two of them, where each
// sync by itself would ask it, wait, and be woken. Where the system does not do that they are
// synced one after the other. Thread-safe.
#pragma once

#include <linux/aio_abi.h>

#include <span>
#include <string>

#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "file/descriptor.h"

namespace edgecase::engine {

struct FileToSync {
  const Descriptor* file = nullptr;
  const std::string* path = nullptr;  // for messages
  Status* status = nullptr;           // Ok: what was written before is durable
};

class JointSync {
 public:
  JointSync() = default;
  ~JointSync();
  JointSync(const JointSync&) = delete;
  JointSync& operator=(const JointSync&) = delete;

  void sync(std::span<const FileToSync> files);

  static constexpr std::size_t kAtOnce = 64;

 private:
  // Answers how many of these, the first ones, the kernel took; all of them are done.
  std::size_t sync_some(std::span<const FileToSync> files) EC_REQUIRES(mutex_);

  Mutex mutex_;  // held across I/O
  // Made when it is first needed and kept: to give it back takes the kernel longer than a sync.
  aio_context_t context_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::engine
