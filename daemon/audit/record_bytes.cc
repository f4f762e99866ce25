#include "audit/record_bytes.h"

#include <algorithm>

namespace edgecase::audit {

void append_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

auth::Digest digest_of(ByteView bytes) {
  auth::Digest digest{};
  std::transform(bytes.begin(), bytes.begin() + kHashBytes, digest.begin(),
                 [](char byte) { return static_cast<unsigned char>(byte); });
  return digest;
}

unsigned char Reader::byte() {
  const ByteView taken = take(1);
  return taken.empty() ? 0 : static_cast<unsigned char>(taken[0]);
}

std::uint64_t Reader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const unsigned char bits = byte();
    value |= static_cast<std::uint64_t>(bits & 0x7f) << shift;
    if (bits < 0x80) return value;
  }
  failed_ = true;
  return 0;
}

ByteView Reader::take(std::uint64_t size) {
  failed_ = failed_ || size > rest_.size();
  if (failed_) return {};
  const ByteView taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

}  // namespace edgecase::audit
