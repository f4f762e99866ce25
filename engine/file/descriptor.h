// An open file descriptor that closes itself, and the system calls on one that have to be repeated:
// interrupted by a signal, or done in part.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <span>
#include <utility>

#include "edgecase/bytes.h"
#include "edgecase/result.h"

namespace edgecase::engine {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    // Not repeated when interrupted: on Linux the number is free again whatever close() says.
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }

 private:
  int number_ = -1;
};

// "cannot write /d/1.val: No space left on device", with the code that `error` (an errno) stands
// for: OutOfSpace for a full drive or quota, IoError for a drive that fails or takes no writes,
// NotFound, AlreadyExists, NotAllowed, Busy for a limit of the system, InvalidArgument.
Status errno_status(int error, std::string_view action, const std::string& path);

// open(2) with O_CLOEXEC. New files are for the owner and its group to read.
Result<Descriptor> open_descriptor(const std::string& path, int flags);
Status write_whole(const Descriptor& file, std::uint64_t offset, ByteView bytes,
                   const std::string& path);
// Fewer than `size` only at the end of the file.
Result<std::size_t> read_whole(const Descriptor& file, std::uint64_t offset, std::size_t size,
                               char* buffer, const std::string& path);
// The same into two places, the second behind the first.
Result<std::size_t> read_two_whole(const Descriptor& file, std::uint64_t offset,
                                   std::span<char> first, std::span<char> second,
                                   const std::string& path);
Status sync_data(const Descriptor& file, const std::string& path);   // fdatasync
Status sync_whole(const Descriptor& file, const std::string& path);  // fsync
// The kernel begins to write out what is dirty in the range, without anyone waiting for it. A
// failure shows in the next sync.
void begin_write_out(const Descriptor& file, std::uint64_t offset, std::uint64_t size);
Result<std::uint64_t> size_of(const Descriptor& file, const std::string& path);

}  // namespace edgecase::engine
