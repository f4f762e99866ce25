#include "file/read_around.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kRegionsInWord = 64;

std::uint64_t half_of_memory() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  return bytes;
}

std::uint64_t words_of(std::uint64_t bytes) {
  return bytes / (ReadAround::kRegionBytes * kRegionsInWord) + 1;
}

}  // namespace

ReadAround::ReadAround(std::uint64_t file_bytes, std::uint64_t store_bytes)
    : file_bytes_(std::max(file_bytes, store_bytes) <= half_of_memory() ? file_bytes : 0),
      touched_(file_bytes_ == 0
                   ? nullptr
                   : std::make_unique<std::atomic<std::uint64_t>[]>(words_of(file_bytes_))) {}

void ReadAround::touch(const Descriptor& file, std::uint64_t offset, std::uint64_t size) {
  if (size == 0 || offset >= file_bytes_ || size > file_bytes_ - offset) return;
  const std::uint64_t last = (offset + size - 1) / kRegionBytes;
  for (std::uint64_t region = offset / kRegionBytes; region <= last; ++region) {
    std::atomic<std::uint64_t>& word = touched_[region / kRegionsInWord];
    const std::uint64_t bit = std::uint64_t{1} << region % kRegionsInWord;
    if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) continue;
    // Only advice: no check.
    (void)::readahead(file.number(), static_cast<off_t>(region * kRegionBytes), kRegionBytes);
  }
}

}  // namespace edgecase::engine
