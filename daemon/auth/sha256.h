// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104), by Nettle, with the processor's
// instructions where it has them. Functions are pure; any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace edgecase::auth {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view bytes);

// The hash of bytes that come one after another. Thread-compatible.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;

  void add(std::string_view bytes);
  // The hash of all that came; then it is as new.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest hmac_sha256(std::string_view key, std::string_view bytes);

// Takes as long wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

inline std::string_view view_of(const Digest& digest) {
  return {static_cast<const char*>(static_cast<const void*>(digest.data())), digest.size()};
}
// Lower case.
std::string hex_text(std::string_view bytes);
// False when `text` is not the hex of 32 bytes.
bool parse_digest(std::string_view text, Digest& digest);

}  // namespace edgecase::auth
