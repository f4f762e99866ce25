#include "support/write_once.h"

#include <algorithm>

namespace edgecase::test {
namespace {

constexpr std::string_view kLogMagic = "ECLOG\r\n";
constexpr std::uint64_t kLogHeadBytes = 4096;
constexpr std::uint64_t kHeadCopies[] = {0, 512};
constexpr std::uint64_t kHeadCopyBytes = 96;
constexpr std::uint64_t kHeadsBytes = kHeadCopies[1] + kHeadCopyBytes;
constexpr std::size_t kNumberOffset = 32, kNumberBytes = 8;
constexpr std::size_t kSaltOffset = 64, kSaltBytes = 24;

}  // namespace

bool WriteOnce::is_log(std::uint64_t offset, ByteView bytes) const {
  return !uses_.empty() || path_.find("/wal/") != std::string::npos ||
         (offset == 0 && bytes.substr(0, kLogMagic.size()) == kLogMagic);
}

void WriteOnce::note_heads(std::uint64_t offset, ByteView bytes) {
  if (offset == 0 && bytes.size() >= kHeadsBytes && bytes.find_first_not_of('\0') >= kHeadsBytes) {
    headless_ = true;
    written_.clear();
    return;
  }
  // The second copy of a log begins where a write does.
  const bool is_second =
      offset % kLogHeadBytes == 0 && bytes.substr(0, kLogMagic.size()) == kLogMagic;
  const std::uint64_t begin = is_second ? offset : 0;
  for (const std::uint64_t place : kHeadCopies) {
    const std::uint64_t copy = begin + place;
    if (offset > copy || offset + bytes.size() < copy + kHeadCopyBytes) continue;
    const ByteView head = bytes.substr(copy - offset, kHeadCopyBytes);
    if (head.substr(0, kLogMagic.size()) != kLogMagic) continue;
    const Bytes use = std::to_string(begin) + ":" +
                      Bytes(head.substr(kNumberOffset, kNumberBytes)) +
                      Bytes(head.substr(kSaltOffset, kSaltBytes));
    if (!uses_.insert(use).second || headless_) continue;
    written_.resize(std::min<std::uint64_t>(written_.size(), begin));
  }
  if (offset == 0) headless_ = false;
}

void WriteOnce::note(std::uint64_t offset, ByteView bytes) {
  if (is_log(offset, bytes)) {
    note_heads(offset, bytes);
    if (offset < kLogHeadBytes) {
      bytes.remove_prefix(std::min<std::uint64_t>(bytes.size(), kLogHeadBytes - offset));
      offset = kLogHeadBytes;
    }
  }
  while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  if (bytes.empty()) return;
  if (written_.size() < offset + bytes.size()) written_.resize(offset + bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char& first = written_[offset + i];
    if (first == '\0') {
      first = bytes[i];
    } else if (bytes[i] != '\0' && bytes[i] != first && broken_->empty()) {
      *broken_ = path_ + " was given other bytes at " + std::to_string(offset + i) +
                 " under the same salt";
    }
  }
}

}  // namespace edgecase::test
