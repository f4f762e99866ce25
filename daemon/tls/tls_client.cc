#include "tls/tls_client.h"

#include <utility>

#include "tls/tls_channel.h"
#include "tls/tls_setup.h"

namespace edgecase::tls {
namespace {

// A small system may come without any that it trusts.
Status read_authorities(const std::string& file, mbedtls_x509_crt& chain) {
  const Status read = read_certificates(file.empty() ? kSystemAuthorities : file, chain);
  if (read.ok() || !file.empty()) return read;
  return read.with_context(
      "", "; name a file of certificates to trust, or install the package ca-certificates");
}

}  // namespace

struct TlsClient::Parts {
  Parts() {
    mbedtls_x509_crt_init(&authorities);
    mbedtls_x509_crt_init(&own);
    mbedtls_pk_init(&key);
    mbedtls_ssl_config_init(&configuration);
  }
  ~Parts() {
    mbedtls_ssl_config_free(&configuration);
    mbedtls_pk_free(&key);
    mbedtls_x509_crt_free(&own);
    mbedtls_x509_crt_free(&authorities);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  mbedtls_x509_crt authorities;
  mbedtls_x509_crt own;
  mbedtls_pk_context key;
  mbedtls_ssl_config configuration;
};

TlsClient::TlsClient(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsClient::~TlsClient() = default;

Result<std::shared_ptr<const TlsClient>> TlsClient::load(const std::string& authorities,
                                                         const TlsFiles& own) {
  auto parts = std::make_unique<Parts>();
  EC_TRY(read_authorities(authorities, parts->authorities));
  int error = mbedtls_ssl_config_defaults(&parts->configuration, MBEDTLS_SSL_IS_CLIENT,
                                          MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
  restrict_to_safe(parts->configuration);
  mbedtls_ssl_conf_authmode(&parts->configuration, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_ca_chain(&parts->configuration, &parts->authorities, nullptr);
  if (!own.certificate.empty()) {
    EC_TRY(read_certificates(own.certificate, parts->own));
    EC_TRY(read_key(own.key, own.certificate, parts->own, parts->key));
    if (error == 0) {
      error = mbedtls_ssl_conf_own_cert(&parts->configuration, &parts->own, &parts->key);
    }
  }
  if (error != 0) return io_error("cannot set up TLS: " + error_text(error));
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(parts)));
}

std::unique_ptr<net::Channel> TlsClient::open(const std::shared_ptr<const TlsClient>& client,
                                              net::Socket socket, const std::string& host,
                                              std::optional<std::int64_t> judged_at_ns) {
  auto channel = TlsChannel::open(std::move(socket), client->parts_->configuration, client);
  if (!channel || !channel->expect(host, judged_at_ns)) return nullptr;
  return channel;
}

}  // namespace edgecase::tls
