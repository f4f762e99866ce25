// Reading and overwriting files of the machine's file system past the page cache (O_DIRECT): what
// is cached is neither asked nor replaced, and zeros wait for no writeback. Where a file system
// does not know that, and for what is less than a block, they go through the cache. Stateless, but
// for the open file.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "edgecase/file_system.h"
#include "file/descriptor.h"
#include "file/joint_sync.h"

namespace edgecase::engine {

class PosixDirectFile final : public RandomAccessFile {
 public:
  static Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path);

  // At any offset and size; takes as much memory as it reads, for the length of the call.
  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override;
  std::uint64_t size_bytes() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  PosixDirectFile(Descriptor file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t size_;
};

// As FileSystem::overwrite(). Takes 256 KiB of memory for the length of the call.
void overwrite_posix(std::span<Overwriting> stretches, JointSync& syncs);

}  // namespace edgecase::engine
