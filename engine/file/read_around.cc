#include "file/read_around.h"

#include <fcntl.h>
#include <unistd.h>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kRegionsInWord = 64;

std::atomic<std::uint64_t> open_bytes{0};

std::uint64_t half_of_memory() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  return bytes;
}

// 0: it does not fit.
std::uint64_t count_in(std::uint64_t bytes) {
  if (open_bytes.fetch_add(bytes) + bytes <= half_of_memory()) return bytes;
  open_bytes.fetch_sub(bytes);
  return 0;
}

std::uint64_t words_of(std::uint64_t bytes) {
  return bytes / (ReadAround::kRegionBytes * kRegionsInWord) + 1;
}

}  // namespace

ReadAround::ReadAround(std::uint64_t file_bytes)
    : counted_bytes_(count_in(file_bytes)),
      touched_(counted_bytes_ == 0
                   ? nullptr
                   : std::make_unique<std::atomic<std::uint64_t>[]>(words_of(file_bytes))) {}

ReadAround::~ReadAround() {
  open_bytes.fetch_sub(counted_bytes_);
}

void ReadAround::touch(const Descriptor& file, std::uint64_t offset, std::uint64_t size) {
  if (size == 0 || offset >= counted_bytes_ || size > counted_bytes_ - offset) return;
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
