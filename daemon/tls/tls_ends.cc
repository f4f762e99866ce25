#include "tls/tls_ends.h"

#include <sys/stat.h>

#include <utility>

#include <mbedtls/ssl_ticket.h>

#include "tls/tls_setup.h"

namespace edgecase::tls {
namespace {

constexpr std::uint32_t kTicketSeconds = 3600;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// Differs when one of the files does.
std::string version_of(const TlsFiles& files) {
  std::string version;
  for (const std::string& path :
       {files.certificate, files.key, files.client_authorities, files.client_revocations}) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0) continue;
    version += std::to_string(found.st_ino) + " " + std::to_string(found.st_size) + " " +
               std::to_string(found.st_mtim.tv_sec) + " " + std::to_string(found.st_mtim.tv_nsec) +
               "\n";
  }
  return version;
}

std::int64_t seconds_since_1970(const mbedtls_x509_time& time) {
  // Days by the civil calendar, March first, so that leap days end a year.
  const std::int64_t year = time.mon <= 2 ? time.year - 1 : time.year;
  const std::int64_t month = (time.mon + 9) % 12;
  const std::int64_t days = 365 * year + year / 4 - year / 100 + year / 400 +
                            (month * 306 + 5) / 10 + time.day - 1 - 719'468;
  return ((days * 24 + time.hour) * 60 + time.min) * 60 + time.sec;
}

}  // namespace

// A certificate with its key, and what the library derives of them.
class TlsServer::Identity {
 public:
  Identity() {
    mbedtls_x509_crt_init(&chain_);
    mbedtls_x509_crt_init(&client_authorities_);
    mbedtls_x509_crl_init(&client_revocations_);
    mbedtls_pk_init(&key_);
    mbedtls_ssl_config_init(&configuration_);
    mbedtls_ssl_ticket_init(&tickets_);
  }
  ~Identity() {
    mbedtls_ssl_config_free(&configuration_);
    mbedtls_ssl_ticket_free(&tickets_);
    mbedtls_pk_free(&key_);
    mbedtls_x509_crl_free(&client_revocations_);
    mbedtls_x509_crt_free(&client_authorities_);
    mbedtls_x509_crt_free(&chain_);
  }
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  static Result<std::shared_ptr<const Identity>> load(const TlsFiles& files) {
    auto identity = std::make_shared<Identity>();
    EC_TRY(identity->read(files));
    EC_TRY(identity->configure(files));
    return std::shared_ptr<const Identity>(std::move(identity));
  }

  const mbedtls_ssl_config& configuration() const { return configuration_; }
  bool asks_clients() const { return client_authorities_.version != 0; }
  std::int64_t expires_ns() const { return seconds_since_1970(chain_.valid_to) * kNsPerSecond; }

 private:
  Status read(const TlsFiles& files) {
    EC_TRY(read_certificates(files.certificate, chain_));
    EC_TRY(read_key(files.key, files.certificate, chain_, key_));
    if (!files.client_authorities.empty())
      EC_TRY(read_certificates(files.client_authorities, client_authorities_));
    if (files.client_revocations.empty()) return ok();
    return read_revocations(files.client_revocations, client_revocations_);
  }

  Status configure(const TlsFiles& files) {
    int error =
        mbedtls_ssl_config_defaults(&configuration_, MBEDTLS_SSL_IS_SERVER,
                                    MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    restrict_to_safe(configuration_);
    if (error == 0) error = mbedtls_ssl_conf_own_cert(&configuration_, &chain_, &key_);
    if (error == 0 && asks_clients()) {
      mbedtls_ssl_conf_authmode(&configuration_, MBEDTLS_SSL_VERIFY_OPTIONAL);
      mbedtls_ssl_conf_ca_chain(&configuration_, &client_authorities_,
                                files.client_revocations.empty() ? nullptr : &client_revocations_);
      return ok();
    }
    if (error == 0) {
      error = mbedtls_ssl_ticket_setup(&tickets_, random_bytes, nullptr, MBEDTLS_CIPHER_AES_256_GCM,
                                       kTicketSeconds);
    }
    if (error != 0) return io_error("cannot set up TLS: " + error_text(error));
    mbedtls_ssl_conf_session_tickets_cb(&configuration_, mbedtls_ssl_ticket_write,
                                        mbedtls_ssl_ticket_parse, &tickets_);
    return ok();
  }

  mbedtls_x509_crt chain_;
  mbedtls_x509_crt client_authorities_;
  mbedtls_x509_crl client_revocations_;
  mbedtls_pk_context key_;
  mbedtls_ssl_ticket_context tickets_;
  mbedtls_ssl_config configuration_;
};

TlsServer::TlsServer(TlsFiles files, Complain complain, std::shared_ptr<const Identity> identity,
                     std::string version)
    : complain_(std::move(complain)),
      files_(std::move(files)),
      identity_(std::move(identity)),
      version_(std::move(version)) {}

Result<std::shared_ptr<TlsServer>> TlsServer::load(TlsFiles files, Complain complain) {
  // Before the files are read, so that one which changes meanwhile is read again.
  std::string version = version_of(files);
  EC_ASSIGN_OR_RETURN(std::shared_ptr<const Identity> identity, Identity::load(files));
  return std::shared_ptr<TlsServer>(new TlsServer(std::move(files), std::move(complain),
                                                  std::move(identity), std::move(version)));
}

std::unique_ptr<net::Channel> TlsServer::accept(net::Socket socket, std::int64_t now_ns,
                                                std::optional<std::int64_t> judged_at_ns) {
  std::shared_ptr<const Identity> identity;
  {
    const MutexLock lock(mutex_);
    if (now_ns - looked_ns_ >= kReloadNs) {
      looked_ns_ = now_ns;
      reload();
    }
    identity = identity_;
  }
  auto channel = TlsChannel::open(std::move(socket), identity->configuration(), identity);
  if (channel && identity->asks_clients()) channel->expect_client(judged_at_ns);
  return channel;
}

// The old identity stays until the new one is whole: of a pair that is being renewed one file comes
// before the other.
void TlsServer::reload() {
  const std::string version = version_of(files_);
  if (version == version_) return;
  Result<std::shared_ptr<const Identity>> fresh = Identity::load(files_);
  if (!fresh.ok()) {
    if (complain_) complain_(fresh.status().message());
    return;
  }
  identity_ = *std::move(fresh);
  version_ = version;
}

Status TlsServer::change(TlsFiles files) {
  std::string version = version_of(files);
  EC_ASSIGN_OR_RETURN(std::shared_ptr<const Identity> fresh, Identity::load(files));
  const MutexLock lock(mutex_);
  files_ = std::move(files);
  identity_ = std::move(fresh);
  version_ = std::move(version);
  return ok();
}

std::int64_t TlsServer::expires_ns() const {
  const MutexLock lock(mutex_);
  return identity_->expires_ns();
}

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
