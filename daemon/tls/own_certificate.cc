#include "tls/own_certificate.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <sys/stat.h>

#include <fstream>

#include "tls/tls_setup.h"

namespace edgecase::tls {
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
