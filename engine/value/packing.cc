#include "value/packing.h"

#include <lz4.h>

#include <algorithm>

namespace edgecase::engine {
namespace {

// No byte of an LZ4 block stands for more.
constexpr std::uint64_t kRatioMax = 255;

}  // namespace

ByteView Packer::pack(ByteView bytes) {
  if (bytes.size() < kPackedMinBytes || bytes.size() > kUnpackedMaxBytes) return {};
  if (state_.empty()) state_.resize((static_cast<std::size_t>(LZ4_sizeofState()) + 7) / 8);
  // No room for more than what pays.
  const std::size_t room = bytes.size() - bytes.size() / kPackingPaysShare;
  if (packed_.size() < room) packed_.resize(room);
  const int size =
      LZ4_compress_fast_extState(state_.data(), bytes.data(), packed_.data(),
                                 static_cast<int>(bytes.size()), static_cast<int>(room), 1);
  return {packed_.data(), static_cast<std::size_t>(size)};
}

bool Packer::wants_sample() {
  if (passed_over_ == pass_over_) return true;
  ++passed_over_;
  return false;
}

bool Packer::pays(ByteView sample) {
  const bool does = !pack(sample).empty();
  pass_over_ = does ? 0 : std::min(2 * pass_over_ + 1, kPassedOverMax);
  passed_over_ = 0;
  return does;
}

bool unpack(ByteView packed, std::uint64_t unpacked_bytes, Bytes& room, std::size_t at) {
  if (unpacked_bytes == 0 || unpacked_bytes > kUnpackedMaxBytes ||
      unpacked_bytes / kRatioMax > packed.size() || packed.size() > kUnpackedMaxBytes)
    return false;
  const auto size = static_cast<std::size_t>(unpacked_bytes);
  if (room.size() < at + size) room.resize(at + size);
  return LZ4_decompress_safe(packed.data(), room.data() + at, static_cast<int>(packed.size()),
                             static_cast<int>(size)) == static_cast<int>(size);
}

}  // namespace edgecase::engine
