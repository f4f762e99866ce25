// The bytes of a file, of which only the beginning takes memory: the zeros behind it, of a log that
// is made in full length or of what was written over, are only counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::test {

class SparseBytes {
 public:
  SparseBytes() = default;
  explicit SparseBytes(ByteView bytes);

  std::uint64_t size() const { return size_; }
  // Behind these, up to size(), there are zeros.
  ByteView written() const { return written_; }
  Bytes whole() const;
  bool is_zero() const;

  // As a file of the system: what lies between the end and `offset` is zero.
  void write(std::uint64_t offset, ByteView bytes);
  void write(std::uint64_t offset, const SparseBytes& bytes);
  // Shorter, or longer by zeros.
  void resize(std::uint64_t size);
  // How many of `size` bytes there were. `buffer` has room for `size`.
  std::size_t read(std::uint64_t offset, std::size_t size, char* buffer) const;
  // What there is of `size` bytes from `offset` on.
  SparseBytes part(std::uint64_t offset, std::uint64_t size) const;

 private:
  void write_zeros(std::uint64_t offset, std::uint64_t size);

  Bytes written_;  // at most size_
  std::uint64_t size_ = 0;
};

}  // namespace edgecase::test
