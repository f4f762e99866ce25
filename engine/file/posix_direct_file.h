// A file that is read from its drive, past the page cache (O_DIRECT): what is cached is neither
// asked nor replaced. Where a file system knows no such reads they go through the cache.
#pragma once

#include <memory>
#include <string>

#include "edgecase/file_system.h"
#include "file/descriptor.h"

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

}  // namespace edgecase::engine
