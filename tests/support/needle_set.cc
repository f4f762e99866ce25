#include "support/needle_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "edgecase/status.h"

namespace edgecase::test {
namespace {

// Wherever a needle lies, one of its first kStrideBytes parts begins at a multiple of that.
constexpr std::size_t kStrideBytes = 8;
constexpr std::size_t kPartBytes = sizeof(std::uint32_t);
static_assert(NeedleSet::kNeedleMinBytes == kStrideBytes + kPartBytes - 1);
constexpr std::size_t kMarkBits = 16;
constexpr std::size_t kWordBits = 64;

std::uint32_t part_at(const char* bytes) {
  std::uint32_t part = 0;
  std::memcpy(&part, bytes, kPartBytes);
  return part;
}

// The mark of a part; the product spreads parts that are alike.
std::size_t mark_of(std::uint32_t part) {
  return part * 2'654'435'761u >> (32 - kMarkBits);
}

}  // namespace

void NeedleSet::add(Bytes needle) {
  EC_CHECK(needle.size() >= kNeedleMinBytes);
  marks_.resize((std::size_t{1} << kMarkBits) / kWordBits);
  for (std::size_t offset = 0; offset < kStrideBytes; ++offset) {
    const std::uint32_t part = part_at(needle.data() + offset);
    parts_.emplace(part, Part{needles_.size(), offset});
    marks_[mark_of(part) / kWordBits] |= std::uint64_t{1} << mark_of(part) % kWordBits;
  }
  needles_.push_back(std::move(needle));
}

bool NeedleSet::in(ByteView bytes, std::size_t first) const {
  if (first >= needles_.size()) return false;
  for (std::size_t at = 0; at + kPartBytes <= bytes.size(); at += kStrideBytes) {
    const std::uint32_t part = part_at(bytes.data() + at);
    const std::size_t mark = mark_of(part);
    const bool marked = (marks_[mark / kWordBits] >> mark % kWordBits & 1) != 0;
    if (marked && is_around(bytes, at, part, first)) return true;
  }
  return false;
}

bool NeedleSet::is_around(ByteView bytes, std::size_t at, std::uint32_t part,
                          std::size_t first) const {
  const auto [begin, end] = parts_.equal_range(part);
  return std::any_of(begin, end, [&](const auto& each) {
    const auto& [needle, offset] = each.second;
    return needle >= first && at >= offset &&
           bytes.substr(at - offset).starts_with(needles_[needle]);
  });
}

}  // namespace edgecase::test
