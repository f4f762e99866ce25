#include "auth/sha256.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include <cstring>

namespace edgecase::auth {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Digest sha256(std::string_view bytes) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, bytes.size(), bytes_of(bytes));
  Digest digest{};
  sha256_digest(&context, digest.size(), digest.data());
  explicit_bzero(&context, sizeof context);  // of a token, it may be
  return digest;
}

struct Sha256::State {
  State() { sha256_init(&context); }
  sha256_ctx context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&& other) noexcept = default;
Sha256& Sha256::operator=(Sha256&& other) noexcept = default;

void Sha256::add(std::string_view bytes) {
  sha256_update(&state_->context, bytes.size(), bytes_of(bytes));
}

Digest Sha256::finish() {
  Digest digest{};
  sha256_digest(&state_->context, digest.size(), digest.data());
  return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.size(), bytes_of(key));
  hmac_sha256_update(&context, bytes.size(), bytes_of(bytes));
  Digest digest{};
  hmac_sha256_digest(&context, digest.size(), digest.data());
  explicit_bzero(&context, sizeof context);  // it holds what the key became
  return digest;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::string hex_text(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool parse_digest(std::string_view text, Digest& digest) {
  if (text.size() != 2 * digest.size()) return false;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    digest[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

}  // namespace edgecase::auth
