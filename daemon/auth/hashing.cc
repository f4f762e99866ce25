#include "auth/hashing.h"

#include <nettle/gcm.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include <array>
#include <cstring>
#include <utility>

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

namespace {

constexpr std::size_t kTagBytes = 16;

const std::uint8_t* octets_of(ByteView view) {
  return static_cast<const std::uint8_t*>(static_cast<const void*>(view.data()));
}
std::uint8_t* octets_of(Bytes& bytes) {
  return static_cast<std::uint8_t*>(static_cast<void*>(bytes.data()));
}

class Gcm {
 public:
  Gcm(ByteView key, std::uint64_t number) {
    gcm_aes256_set_key(&context_, octets_of(key));
    std::array<std::uint8_t, GCM_IV_SIZE> nonce{};
    for (std::size_t i = 0; i < sizeof number; ++i)
      nonce[i] = static_cast<std::uint8_t>(number >> (8 * i));
    gcm_aes256_set_iv(&context_, nonce.size(), nonce.data());
  }
  ~Gcm() { explicit_bzero(&context_, sizeof context_); }
  Gcm(const Gcm&) = delete;
  Gcm& operator=(const Gcm&) = delete;

  gcm_aes256_ctx* get() { return &context_; }
  std::array<std::uint8_t, kTagBytes> tag() {
    std::array<std::uint8_t, kTagBytes> tag{};
    gcm_aes256_digest(&context_, tag.size(), tag.data());
    return tag;
  }

 private:
  gcm_aes256_ctx context_{};
};

}  // namespace

Bytes make_seal_key(Random& random) {
  Bytes key;
  while (key.size() < kSealKeyBytes) {
    const std::uint64_t more = random.next();
    key.append(static_cast<const char*>(static_cast<const void*>(&more)), sizeof more);
  }
  return key;
}

Bytes seal(ByteView key, std::uint64_t number, ByteView text) {
  Gcm gcm(key, number);
  Bytes sealed(text.size(), '\0');
  gcm_aes256_encrypt(gcm.get(), text.size(), octets_of(sealed), octets_of(text));
  const auto tag = gcm.tag();
  sealed.append(static_cast<const char*>(static_cast<const void*>(tag.data())), tag.size());
  return sealed;
}

Result<Bytes> open_sealed(ByteView key, std::uint64_t number, ByteView sealed) {
  if (key.size() != kSealKeyBytes || sealed.size() < kTagBytes)
    return corruption("what was sealed is cut");
  const std::size_t size = sealed.size() - kTagBytes;
  Gcm gcm(key, number);
  Bytes text(size, '\0');
  gcm_aes256_decrypt(gcm.get(), size, octets_of(text), octets_of(sealed));
  const auto tag = gcm.tag();
  unsigned difference = 0;
  for (std::size_t i = 0; i < kTagBytes; ++i)
    difference |= static_cast<unsigned>(tag[i] ^ static_cast<unsigned char>(sealed[size + i]));
  if (difference != 0) return corruption("what was sealed is not what was written");
  return text;
}

namespace {

constexpr char kKey[] = "K";

Result<NamespaceId> open_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kPseudonymsNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  return engine.create_namespace(kPseudonymsNamespace, {.placement = Placement::Metadata});
}

Bytes fresh_key(Random& random) {
  Bytes key;
  while (key.size() < kPseudonymKeyBytes) {
    const std::uint64_t word = random.next();
    for (int shift = 0; shift < 64; shift += 8) key.push_back(static_cast<char>(word >> shift));
  }
  return key;
}

}  // namespace

Result<Pseudonyms> Pseudonyms::load(Engine& engine, Random& random) {
  EC_ASSIGN_OR_RETURN(const NamespaceId records, open_namespace(engine));
  auto key = engine.get(records, kKey, {});
  if (key.status().code() == StatusCode::NotFound) {
    Bytes fresh = fresh_key(random);
    WriteBatch batch;
    batch.put(records, kKey, fresh);
    EC_TRY(engine.write(batch, Durability::Sync));
    return Pseudonyms(std::move(fresh));
  }
  // What is lost with it nobody can match any more; a repair may bring it back, so that it is not
  // replaced.
  if (key.status().code() == StatusCode::Corruption) return Pseudonyms(fresh_key(random));
  if (!key.ok()) return key.status();
  if (key->size() != kPseudonymKeyBytes) {
    return corruption("the key of pseudonyms has a wrong size");
  }
  return Pseudonyms(std::move(key).value());
}

// No name holds a zero byte.
Pseudonym Pseudonyms::of(std::string_view kind, std::string_view a, std::string_view b,
                         std::string_view c) const {
  Bytes message;
  message.reserve(kind.size() + a.size() + b.size() + c.size() + 4);
  for (const std::string_view part : {kind, a, b, c}) message.append(part) += '\0';
  return hmac_sha256(key_, message);
}

}  // namespace edgecase::auth
