#include "tls/tls_setup.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#include "edgecase/machine.h"
#include "tls/tls_ends.h"

namespace edgecase::tls {
namespace {

constexpr std::size_t kFileMaxBytes = 1u << 20;

// Ephemeral keys and authenticated encryption; what the library has besides is not offered.
constexpr int kAesFirst[] = {MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                             MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                             MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                             MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                             0};
constexpr int kChaChaFirst[] = {MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                                MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                                MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                                MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                                MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                                MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                                0};
static_assert(std::size(kAesFirst) == std::size(kChaChaFirst));

// The library's own AES-GCM takes one block after the other, and is slower than its ChaCha20 even
// with the processor's instructions.
#ifdef MBEDTLS_GCM_ALT
constexpr bool kTakesSeveralBlocks = true;
#else
constexpr bool kTakesSeveralBlocks = false;
#endif

// As the library wants it: PEM with a zero behind it, which counts.
Result<std::vector<unsigned char>> read_file(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    return invalid_argument(path + ": " + std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode) || static_cast<std::size_t>(found.st_size) > kFileMaxBytes) {
    return invalid_argument(path + ": is not a file of at most 1 MiB");
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) return not_allowed(path + ": cannot be read");
  constexpr std::string_view kPem = "-----BEGIN ";
  if (std::search(bytes.begin(), bytes.end(), kPem.begin(), kPem.end()) != bytes.end()) {
    bytes.push_back(0);
  }
  return bytes;
}

Status check_key_mode(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || (found.st_mode & S_IRWXO) == 0) return ok();
  return not_allowed(path + ": everybody may read or change this key; chmod 0640 it");
}

// From version 3 on the library wants random numbers for what it does with a key.
int parse_key(mbedtls_pk_context& key, const std::vector<unsigned char>& bytes) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_parse_key(&key, bytes.data(), bytes.size(), nullptr, 0, random_bytes, nullptr);
#else
  return mbedtls_pk_parse_key(&key, bytes.data(), bytes.size(), nullptr, 0);
#endif
}

int check_pair(const mbedtls_pk_context& open, const mbedtls_pk_context& secret) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_check_pair(&open, &secret, random_bytes, nullptr);
#else
  return mbedtls_pk_check_pair(&open, &secret);
#endif
}

}  // namespace

// The system's generator, which any thread may ask.
int random_bytes(void*, unsigned char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t n = getrandom(bytes, size, 0);
    if (n < 0 && errno != EINTR) return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    if (n <= 0) continue;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

std::string error_text(int error) {
  char text[160] = {};
  mbedtls_strerror(error, text, sizeof text);
  return text;
}

const int* preferred_ciphers(bool is_aes_fast) {
  return is_aes_fast ? kAesFirst : kChaChaFirst;
}

// 1.2 alone, with a library that knows 1.3 too: every build speaks the same, and the library's 1.3
// keeps its keys in a store that all threads share, which only some systems' builds lock.
void restrict_to_safe(mbedtls_ssl_config& configuration) {
#if MBEDTLS_VERSION_NUMBER >= 0x03020000
  mbedtls_ssl_conf_min_tls_version(&configuration, MBEDTLS_SSL_VERSION_TLS1_2);
  mbedtls_ssl_conf_max_tls_version(&configuration, MBEDTLS_SSL_VERSION_TLS1_2);
#else
  mbedtls_ssl_conf_min_version(&configuration, MBEDTLS_SSL_MAJOR_VERSION_3,
                               MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_max_version(&configuration, MBEDTLS_SSL_MAJOR_VERSION_3,
                               MBEDTLS_SSL_MINOR_VERSION_3);
#endif
  mbedtls_ssl_conf_ciphersuites(&configuration,
                                preferred_ciphers(kTakesSeveralBlocks && has_aes_instructions()));
  mbedtls_ssl_conf_rng(&configuration, random_bytes, nullptr);
}

int set_first_serial(mbedtls_x509write_cert& certificate) {
#if MBEDTLS_VERSION_NUMBER >= 0x03040000
  unsigned char serial[] = {1};
  return mbedtls_x509write_crt_set_serial_raw(&certificate, serial, sizeof serial);
#else
  mbedtls_mpi serial;
  mbedtls_mpi_init(&serial);
  int error = mbedtls_mpi_lset(&serial, 1);
  if (error == 0) error = mbedtls_x509write_crt_set_serial(&certificate, &serial);  // copies it
  mbedtls_mpi_free(&serial);
  return error;
#endif
}

Status read_certificates(const std::string& path, mbedtls_x509_crt& chain) {
  EC_ASSIGN_OR_RETURN(const std::vector<unsigned char> bytes, read_file(path));
  const int error = mbedtls_x509_crt_parse(&chain, bytes.data(), bytes.size());
  // A positive number: so many of a file's certificates are of a kind that the library does not
  // know.
  if (error >= 0 && chain.version != 0) return ok();
  return invalid_argument(path + ": is no certificate" +
                          (error < 0 ? ": " + error_text(error) : std::string()));
}

Status read_revocations(const std::string& path, mbedtls_x509_crl& list) {
  EC_ASSIGN_OR_RETURN(const std::vector<unsigned char> bytes, read_file(path));
  const int error = mbedtls_x509_crl_parse(&list, bytes.data(), bytes.size());
  if (error == 0 && list.version != 0) return ok();
  return invalid_argument(path + ": is no list of revoked certificates" +
                          (error < 0 ? ": " + error_text(error) : std::string()));
}

Status read_key(const std::string& path, const std::string& certificate_path,
                const mbedtls_x509_crt& chain, mbedtls_pk_context& key) {
  EC_TRY(check_key_mode(path));
  EC_ASSIGN_OR_RETURN(std::vector<unsigned char> bytes, read_file(path));
  const int error = parse_key(key, bytes);
  std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  if (error == MBEDTLS_ERR_PK_PASSWORD_REQUIRED) {
    return invalid_argument(path + ": needs a password; keep it without");
  }
  if (error != 0) return invalid_argument(path + ": is no key: " + error_text(error));
  if (check_pair(chain.pk, key) != 0) {
    return invalid_argument(path + ": is not the key of the certificate in " + certificate_path);
  }
  return ok();
}

namespace {

constexpr const char* kSubject = "CN=localhost";
constexpr std::size_t kPemMaxBytes = 4'096;

class Maker {
 public:
  Maker() {
    mbedtls_entropy_init(&entropy_);
    mbedtls_ctr_drbg_init(&random_);
    mbedtls_pk_init(&key_);
    mbedtls_x509write_crt_init(&certificate_);
  }
  ~Maker() {
    mbedtls_x509write_crt_free(&certificate_);
    mbedtls_pk_free(&key_);
    mbedtls_ctr_drbg_free(&random_);
    mbedtls_entropy_free(&entropy_);
  }
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;

  bool make() {
    mbedtls_x509write_crt_set_version(&certificate_, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&certificate_, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&certificate_, &key_);
    mbedtls_x509write_crt_set_issuer_key(&certificate_, &key_);
    return make_key() && set_first_serial(certificate_) == 0 &&
           mbedtls_x509write_crt_set_subject_name(&certificate_, kSubject) == 0 &&
           mbedtls_x509write_crt_set_issuer_name(&certificate_, kSubject) == 0 &&
           mbedtls_x509write_crt_set_validity(&certificate_, "20000101000000", "20991231235959") ==
               0 &&
           mbedtls_x509write_crt_set_basic_constraints(&certificate_, 1, -1) == 0 &&
           mbedtls_x509write_crt_pem(&certificate_, pem_, sizeof pem_, mbedtls_ctr_drbg_random,
                                     &random_) == 0 &&
           mbedtls_pk_write_key_pem(&key_, key_pem_, sizeof key_pem_) == 0;
  }
  const char* pem() const { return reinterpret_cast<const char*>(pem_); }
  const char* key_pem() const { return reinterpret_cast<const char*>(key_pem_); }

 private:
  bool make_key() {
    return mbedtls_ctr_drbg_seed(&random_, mbedtls_entropy_func, &entropy_, nullptr, 0) == 0 &&
           mbedtls_pk_setup(&key_, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) == 0 &&
           mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key_),
                               mbedtls_ctr_drbg_random, &random_) == 0;
  }

  mbedtls_entropy_context entropy_;
  mbedtls_ctr_drbg_context random_;
  mbedtls_pk_context key_;
  mbedtls_x509write_cert certificate_;
  unsigned char pem_[kPemMaxBytes] = {};
  unsigned char key_pem_[kPemMaxBytes] = {};
};

Status write_text(const std::string& path, const char* text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file || ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0)
    return io_error("cannot write " + path);
  return ok();
}

}  // namespace

Status write_own_certificate(const std::string& certificate_path, const std::string& key_path) {
  Maker maker;
  if (!maker.make()) return io_error("cannot make a certificate");
  EC_TRY(write_text(certificate_path, maker.pem()));
  return write_text(key_path, maker.key_pem());
}

}  // namespace edgecase::tls
