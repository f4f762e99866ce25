// Numbers and texts of the audit log as bytes. Inside daemon/audit only. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "auth/sha256.h"
#include "edgecase/bytes.h"
#include "wire/big_endian.h"

namespace edgecase::audit {

inline constexpr std::size_t kHashBytes = 32;

void append_varint(Bytes& out, std::uint64_t value);
// The digest in the first kHashBytes, which must be there.
auth::Digest digest_of(ByteView bytes);

// Takes bytes apart; once it has failed, everything is empty. The bytes must outlive it.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  unsigned char byte();
  std::uint64_t number() { return wire::read_big_endian(take(8)); }
  std::uint64_t varint();
  std::string text() { return std::string(take(varint())); }
  ByteView take(std::uint64_t size);
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
  bool failed_ = false;
};

}  // namespace edgecase::audit
