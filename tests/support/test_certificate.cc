#include "support/test_certificate.h"

#include <doctest/doctest.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/rsa.h>
#include <mbedtls/x509_crt.h>
#include <sys/stat.h>

#include <fstream>

#include "tls/tls_setup.h"

namespace edgecase::test {
namespace {

// The names a client may have asked for: DNS "localhost", addresses 127.0.0.1 and ::1.
constexpr unsigned char kNames[] = {0x30, 35, 0x82, 9, 'l', 'o', 'c',  'a', 'l', 'h', 'o', 's', 't',
                                    0x87, 4,  127,  0, 0,   1,   0x87, 16,  0,   0,   0,   0,   0,
                                    0,    0,  0,    0, 0,   0,   0,    0,   0,   0,   1};

void write_file(const std::string& path, const unsigned char* text) {
  std::ofstream(path) << reinterpret_cast<const char*>(text);
  chmod(path.c_str(), 0600);
}

}  // namespace

TestCertificate make_test_certificate(const std::string& directory, const std::string& name,
                                      KeyKind kind, const char* ends, const char* begins) {
  const TestCertificate files{directory + "/" + name + ".crt", directory + "/" + name + ".key"};
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context random;
  mbedtls_pk_context key;
  mbedtls_x509write_cert certificate;
  mbedtls_entropy_init(&entropy);
  mbedtls_ctr_drbg_init(&random);
  mbedtls_pk_init(&key);
  mbedtls_x509write_crt_init(&certificate);

  REQUIRE(mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, nullptr, 0) == 0);
  const bool rsa = kind == KeyKind::Rsa;
  const mbedtls_pk_info_t* const type =
      mbedtls_pk_info_from_type(rsa ? MBEDTLS_PK_RSA : MBEDTLS_PK_ECKEY);
  REQUIRE(mbedtls_pk_setup(&key, type) == 0);
  if (rsa) {
    REQUIRE(mbedtls_rsa_gen_key(mbedtls_pk_rsa(key), mbedtls_ctr_drbg_random, &random, 2048,
                                65'537) == 0);
  } else {
    REQUIRE(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key),
                                mbedtls_ctr_drbg_random, &random) == 0);
  }
  mbedtls_x509write_crt_set_version(&certificate, MBEDTLS_X509_CRT_VERSION_3);
  mbedtls_x509write_crt_set_md_alg(&certificate, MBEDTLS_MD_SHA256);
  mbedtls_x509write_crt_set_subject_key(&certificate, &key);
  mbedtls_x509write_crt_set_issuer_key(&certificate, &key);
  const std::string subject = "CN=" + name;
  REQUIRE(mbedtls_x509write_crt_set_subject_name(&certificate, subject.c_str()) == 0);
  REQUIRE(mbedtls_x509write_crt_set_issuer_name(&certificate, subject.c_str()) == 0);
  REQUIRE(tls::set_first_serial(certificate) == 0);
  REQUIRE(mbedtls_x509write_crt_set_validity(&certificate, begins, ends) == 0);
  REQUIRE(mbedtls_x509write_crt_set_basic_constraints(&certificate, 1, -1) == 0);
  REQUIRE(mbedtls_x509write_crt_set_extension(&certificate, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                              MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0,
                                              kNames, sizeof kNames) == 0);
  unsigned char text[8192] = {};
  REQUIRE(mbedtls_x509write_crt_pem(&certificate, text, sizeof text, mbedtls_ctr_drbg_random,
                                    &random) == 0);
  write_file(files.certificate, text);
  REQUIRE(mbedtls_pk_write_key_pem(&key, text, sizeof text) == 0);
  write_file(files.key, text);

  mbedtls_x509write_crt_free(&certificate);
  mbedtls_pk_free(&key);
  mbedtls_ctr_drbg_free(&random);
  mbedtls_entropy_free(&entropy);
  return files;
}

}  // namespace edgecase::test
