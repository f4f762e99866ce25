#include "sign/signature.h"

#include <array>
#include <utility>

#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pk.h>

#include "wire/encoding.h"

namespace edgecase::sign {
namespace {

constexpr std::string_view kPemBegin = "-----BEGIN PUBLIC KEY-----\n";
constexpr std::string_view kPemEnd = "-----END PUBLIC KEY-----\n";
constexpr std::size_t kPemColumns = 64;
constexpr std::size_t kPointBytes = 65;  // 4, and two coordinates
constexpr std::size_t kNumberMaxBytes = 33;
// What DER says of a point before it: a public key on prime256v1, as a bit string.
constexpr std::array<unsigned char, 26> kKeyHead = {
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
    0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00};

const unsigned char* bytes_of(std::string_view text) {
  return static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
}

int draw(void* random, unsigned char* out, std::size_t size) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < size; ++i, bits >>= 8) {
    if (i % 8 == 0) bits = static_cast<Random*>(random)->next();
    out[i] = static_cast<unsigned char>(bits);
  }
  return 0;
}

// The numbers of one calculation.
struct Curve {
  Curve() {
    mbedtls_ecp_group_init(&group);
    mbedtls_ecp_point_init(&point);
    for (mbedtls_mpi* each : {&secret, &r, &s}) mbedtls_mpi_init(each);
    is_good = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_SECP256R1) == 0;
  }
  ~Curve() {
    for (mbedtls_mpi* each : {&secret, &r, &s}) mbedtls_mpi_free(each);
    mbedtls_ecp_point_free(&point);
    mbedtls_ecp_group_free(&group);
  }
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;

  bool take(ByteView bytes) {
    return is_good && bytes.size() == kSecretBytes &&
           mbedtls_mpi_read_binary(&secret, bytes_of(bytes), bytes.size()) == 0 &&
           mbedtls_ecp_check_privkey(&group, &secret) == 0;
  }

  mbedtls_ecp_group group;
  mbedtls_ecp_point point;
  mbedtls_mpi secret, r, s;
  bool is_good = false;
};

Status no_secret() {
  return corruption("that is no secret of a signature");
}

// As DER: of 33 bytes at most, and not negative.
bool append_number(const mbedtls_mpi& number, Bytes& der) {
  std::array<unsigned char, kNumberMaxBytes> bytes{};
  const std::size_t size = mbedtls_mpi_bitlen(&number) / 8 + 1;
  if (size > bytes.size() || mbedtls_mpi_write_binary(&number, bytes.data(), size) != 0)
    return false;
  der += '\x02';
  der += static_cast<char>(size);
  der.append(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  return true;
}

}  // namespace

Result<Bytes> make_secret(Random& random) {
  Curve curve;
  Bytes secret(kSecretBytes, '\0');
  auto* const out = static_cast<unsigned char*>(static_cast<void*>(secret.data()));
  if (!curve.is_good || mbedtls_ecp_gen_privkey(&curve.group, &curve.secret, draw, &random) != 0 ||
      mbedtls_mpi_write_binary(&curve.secret, out, secret.size()) != 0)
    return io_error("cannot make a key for signatures");
  return secret;
}

Result<std::string> public_key_of(ByteView secret, Random& random) {
  Curve curve;
  std::array<unsigned char, kPointBytes> point{};
  std::size_t size = 0;
  if (!curve.take(secret) ||
      mbedtls_ecp_mul(&curve.group, &curve.point, &curve.secret, &curve.group.G, draw, &random) !=
          0 ||
      mbedtls_ecp_point_write_binary(&curve.group, &curve.point, MBEDTLS_ECP_PF_UNCOMPRESSED, &size,
                                     point.data(), point.size()) != 0)
    return no_secret();
  Bytes der(kKeyHead.begin(), kKeyHead.end());
  der.append(point.begin(), point.end());
  std::string base64;
  wire::append_base64(der, base64);
  std::string pem(kPemBegin);
  for (std::size_t at = 0; at < base64.size(); at += kPemColumns)
    pem += base64.substr(at, kPemColumns) + "\n";
  return pem += kPemEnd;
}

Result<Bytes> sign(ByteView secret, const auth::Digest& digest, Random& random) {
  Curve curve;
  if (!curve.take(secret)) return no_secret();
  Bytes numbers;
  if (mbedtls_ecdsa_sign_det_ext(&curve.group, &curve.r, &curve.s, &curve.secret, digest.data(),
                                 digest.size(), MBEDTLS_MD_SHA256, draw, &random) != 0 ||
      !append_number(curve.r, numbers) || !append_number(curve.s, numbers))
    return io_error("cannot sign");
  Bytes der(1, '\x30');
  der += static_cast<char>(numbers.size());
  return der += numbers;
}

Status verify(const std::string& public_key, std::string_view text, ByteView signature) {
  mbedtls_pk_context key;
  mbedtls_pk_init(&key);
  // The library wants the zero byte, too.
  const bool is_key =
      mbedtls_pk_parse_public_key(&key, bytes_of(public_key), public_key.size() + 1) == 0 &&
      mbedtls_pk_can_do(&key, MBEDTLS_PK_ECDSA) == 1;
  const auth::Digest digest = auth::sha256(text);
  const bool is_right =
      is_key && mbedtls_pk_verify(&key, MBEDTLS_MD_SHA256, digest.data(), digest.size(),
                                  bytes_of(signature), signature.size()) == 0;
  mbedtls_pk_free(&key);
  if (!is_key) return invalid_argument("that is no public key for " + std::string(kAlgorithm));
  return is_right ? ok() : corruption("the signature is not one of this text by this key");
}

std::string fingerprint(std::string_view public_key) {
  if (!public_key.starts_with(kPemBegin) || !public_key.ends_with(kPemEnd) ||
      public_key.size() < kPemBegin.size() + kPemEnd.size())
    return {};
  std::string base64;
  for (const char c :
       public_key.substr(kPemBegin.size(), public_key.size() - kPemBegin.size() - kPemEnd.size()))
    if (c != '\n') base64 += c;
  const Result<std::string> der = wire::decode_base64(base64);
  return der.ok() ? auth::hex_text(auth::view_of(auth::sha256(*der))) : std::string();
}

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string signed_text(Json document) {
  document.erase(kSignatureMember);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> signature_of(const Json& document, ByteView secret, Random& random) {
  return signature_of(auth::sha256(signed_text(document)), secret, random);
}

Result<Json> signature_of(const auth::Digest& digest, ByteView secret, Random& random) {
  EC_ASSIGN_OR_RETURN(const std::string public_key, public_key_of(secret, random));
  EC_ASSIGN_OR_RETURN(const Bytes value, sign(secret, digest, random));
  std::string base64;
  wire::append_base64(value, base64);
  return Json{{"algorithm", kAlgorithm},
              {"public_key", public_key},
              {"fingerprint", fingerprint(public_key)},
              {"value", std::move(base64)}};
}

Result<Signer> check_signature(const Json& document) {
  const auto signature = document.is_object() ? document.find(kSignatureMember) : document.end();
  if (!document.is_object() || signature == document.end() || !signature->is_object())
    return invalid_argument("it is not signed");
  if (const std::string algorithm = text_of(*signature, "algorithm"); algorithm != kAlgorithm)
    return invalid_argument("it is signed by \"" + algorithm + "\", which is not known here");
  Signer signer;
  signer.public_key = text_of(*signature, "public_key");
  signer.fingerprint = fingerprint(signer.public_key);
  const Result<std::string> value = wire::decode_base64(text_of(*signature, "value"));
  if (!value.ok()) return corruption("the signature is no base64");
  EC_TRY(verify(signer.public_key, signed_text(document), *value));
  return signer;
}

namespace {

constexpr char kKey[] = "K";

Result<NamespaceId> open_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kSigningNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  return engine.create_namespace(kSigningNamespace, {.placement = Placement::Metadata});
}

}  // namespace

Result<SigningKey::Secret> SigningKey::secret() {
  const MutexLock lock(mutex_);
  EC_ASSIGN_OR_RETURN(const NamespaceId records, open_namespace(engine_));
  auto known = engine_.get(records, kKey, {});
  if (known.ok()) {
    if (known->size() != kSecretBytes)
      return corruption("the key that reports are signed with has a wrong size");
    return Secret{std::move(known).value(), false};
  }
  if (known.status().code() != StatusCode::NotFound) return known.status();
  EC_ASSIGN_OR_RETURN(Bytes made, make_secret(random_));
  WriteBatch batch;
  batch.put(records, kKey, made);
  EC_TRY(engine_.write(batch, Durability::Sync));
  return Secret{std::move(made), true};
}

}  // namespace edgecase::sign
