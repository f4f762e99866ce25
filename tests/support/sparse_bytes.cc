#include "support/sparse_bytes.h"

#include <algorithm>

#include "base/coding.h"

namespace edgecase::test {

SparseBytes::SparseBytes(ByteView bytes) : size_(bytes.size()) {
  if (engine::all_zero(bytes)) return;
  written_ = bytes.substr(0, bytes.find_last_not_of('\0') + 1);
}

Bytes SparseBytes::whole() const {
  Bytes bytes = written_;
  bytes.resize(size_, '\0');
  return bytes;
}

bool SparseBytes::is_zero() const {
  return engine::all_zero(written_);
}

void SparseBytes::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  if (engine::all_zero(bytes)) return write_zeros(offset, bytes.size());
  const std::uint64_t end = offset + bytes.size();
  if (offset > written_.size()) written_.resize(offset, '\0');
  written_.replace(offset, bytes.size(), bytes);
  size_ = std::max(size_, end);
}

void SparseBytes::write(std::uint64_t offset, const SparseBytes& bytes) {
  const std::uint64_t written = bytes.written_.size();
  write(offset, bytes.written_);
  if (bytes.size_ > written) write_zeros(offset + written, bytes.size_ - written);
}

void SparseBytes::write_zeros(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t end = offset + size;
  if (end >= written_.size()) {
    written_.resize(std::min<std::uint64_t>(offset, written_.size()));
  } else {
    std::fill_n(written_.begin() + static_cast<std::ptrdiff_t>(offset), size, '\0');
  }
  size_ = std::max(size_, end);
}

void SparseBytes::resize(std::uint64_t size) {
  written_.resize(std::min<std::uint64_t>(size, written_.size()));
  size_ = size;
}

std::size_t SparseBytes::read(std::uint64_t offset, std::size_t size, char* buffer) const {
  if (offset >= size_) return 0;
  const std::size_t got = std::min<std::uint64_t>(size, size_ - offset);
  const std::size_t written =
      offset < written_.size() ? std::min<std::size_t>(got, written_.size() - offset) : 0;
  std::copy_n(written_.data() + (written > 0 ? offset : 0), written, buffer);
  std::fill_n(buffer + written, got - written, '\0');
  return got;
}

SparseBytes SparseBytes::part(std::uint64_t offset, std::uint64_t size) const {
  SparseBytes part;
  if (offset >= size_) return part;
  size = std::min(size, size_ - offset);
  if (offset < written_.size()) part.write(0, ByteView(written_).substr(offset, size));
  part.resize(size);
  return part;
}

}  // namespace edgecase::test
