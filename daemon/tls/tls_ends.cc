#include "tls/tls_ends.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>

#include <mbedtls/net_sockets.h>
#include <mbedtls/oid.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>

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

namespace {

int descriptor_of(void* channel) {
  return static_cast<const TlsChannel*>(channel)->descriptor();
}

int send_bytes(void* channel, const unsigned char* bytes, std::size_t size) {
  while (true) {
    const ssize_t n = ::send(descriptor_of(channel), bytes, size, MSG_NOSIGNAL);
    if (n >= 0) return static_cast<int>(n);
    if (errno == EAGAIN) return MBEDTLS_ERR_SSL_WANT_WRITE;
    if (errno != EINTR) return MBEDTLS_ERR_NET_SEND_FAILED;
  }
}

// What is taken of a certificate.
constexpr std::size_t kPeerNamesMax = 16;
constexpr std::size_t kPeerNameMaxBytes = 256;

// An alert's record, in clear: type, version, length, level, which one.
constexpr std::size_t kAlertBytes = 7;
constexpr char kAlertRecord = 21;
constexpr char kProtocolVersionAlert = 70;

bool has_ended(const mbedtls_x509_crt& certificate, std::int64_t at_ns) {
  const std::time_t seconds = at_ns / 1'000'000'000;
  std::tm at{};
  gmtime_r(&seconds, &at);
  const mbedtls_x509_time& end = certificate.valid_to;
  return std::tuple(end.year, end.mon, end.day, end.hour, end.min, end.sec) <
         std::tuple(at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec);
}

}  // namespace

int TlsChannel::receive_bytes(void* channel, unsigned char* bytes, std::size_t size) {
  auto& self = *static_cast<TlsChannel*>(channel);
  while (true) {
    const ssize_t n = ::recv(self.descriptor(), bytes, size, 0);
    if (n >= 0) {
      const auto got = static_cast<std::size_t>(n);
      if (self.first_bytes_.size() < kAlertBytes) {
        self.first_bytes_.append(reinterpret_cast<const char*>(bytes),
                                 std::min(got, kAlertBytes - self.first_bytes_.size()));
      }
      return static_cast<int>(n);  // 0: the library tells the end by it
    }
    if (errno == EAGAIN) return MBEDTLS_ERR_SSL_WANT_READ;
    if (errno != EINTR) return MBEDTLS_ERR_NET_RECV_FAILED;
  }
}

// The library keeps to itself which alert it was.
bool TlsChannel::was_refused_version() const {
  return first_bytes_.size() == kAlertBytes && first_bytes_.front() == kAlertRecord &&
         first_bytes_.back() == kProtocolVersionAlert;
}

TlsChannel::TlsChannel(net::Socket socket, std::shared_ptr<const void> owner)
    : Channel(std::move(socket)), owner_(std::move(owner)) {
  mbedtls_ssl_init(&context_);
}

TlsChannel::~TlsChannel() {
  mbedtls_ssl_free(&context_);
}

std::unique_ptr<TlsChannel> TlsChannel::open(net::Socket socket,
                                             const mbedtls_ssl_config& configuration,
                                             std::shared_ptr<const void> owner) {
  std::unique_ptr<TlsChannel> channel(new TlsChannel(std::move(socket), std::move(owner)));
  if (mbedtls_ssl_setup(&channel->context_, &configuration) != 0) return nullptr;
  mbedtls_ssl_set_bio(&channel->context_, channel.get(), send_bytes, receive_bytes, nullptr);
  return channel;
}

bool TlsChannel::expect(const std::string& host, std::optional<std::int64_t> judged_at_ns) {
  judged_at_ns_ = judged_at_ns;
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    address_.assign(reinterpret_cast<const char*>(&four), sizeof four);
  } else if (inet_pton(AF_INET6, host.c_str(), &six) == 1) {
    address_.assign(reinterpret_cast<const char*>(&six), sizeof six);
  }
  // An address is compared by judge(); newer libraries must be told that no name is meant.
  if (mbedtls_ssl_set_hostname(&context_, address_.empty() ? host.c_str() : nullptr) != 0) {
    return false;
  }
  mbedtls_ssl_set_verify(
      &context_,
      [](void* channel, mbedtls_x509_crt* certificate, int depth, std::uint32_t* flags) {
        return static_cast<const TlsChannel*>(channel)->judge(*certificate, depth, *flags);
      },
      this);
  return true;
}

void TlsChannel::expect_client(std::optional<std::int64_t> judged_at_ns) {
  judged_at_ns_ = judged_at_ns;
  asks_client_ = true;
  mbedtls_ssl_set_verify(
      &context_,
      [](void* channel, mbedtls_x509_crt* certificate, int, std::uint32_t* flags) {
        return static_cast<TlsChannel*>(channel)->judge_client(*certificate, *flags);
      },
      this);
}

// A client need not show a certificate, so the library passes over one that is not good, too. An
// error from here it does not pass over.
int TlsChannel::judge_client(const mbedtls_x509_crt& certificate, std::uint32_t& flags) {
  judge_times(certificate, flags);
  client_flags_ |= flags;
  return flags == 0 ? 0 : MBEDTLS_ERR_X509_CERT_VERIFY_FAILED;
}

// The library knows no clock that is not to be trusted.
void TlsChannel::judge_times(const mbedtls_x509_crt& certificate, std::uint32_t& flags) const {
  if (!judged_at_ns_) return;
  flags &= ~static_cast<std::uint32_t>(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE |
                                       MBEDTLS_X509_BADCRL_EXPIRED | MBEDTLS_X509_BADCRL_FUTURE);
  if (has_ended(certificate, *judged_at_ns_)) flags |= MBEDTLS_X509_BADCERT_EXPIRED;
}

// Common name first, then the alternative ones, but those that are no text or addresses.
std::vector<std::string> TlsChannel::peer_names() const {
  std::vector<std::string> names;
  const mbedtls_x509_crt* const peer =
      asks_client_ ? mbedtls_ssl_get_peer_cert(&context_) : nullptr;
  if (peer == nullptr || mbedtls_ssl_get_verify_result(&context_) != 0) return names;
  const auto add = [&names](const mbedtls_asn1_buf& text) {
    std::string name(reinterpret_cast<const char*>(text.p), text.len);
    const bool is_plain = std::none_of(name.begin(), name.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < 0x20 || byte == 0x7f;
    });
    if (is_plain && !name.empty() && name.size() <= kPeerNameMaxBytes &&
        names.size() < kPeerNamesMax)
      names.push_back(std::move(name));
  };
  for (const mbedtls_x509_name* part = &peer->subject; part != nullptr; part = part->next)
    if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &part->oid) == 0) add(part->val);
  for (const mbedtls_x509_sequence* part = &peer->subject_alt_names; part != nullptr;
       part = part->next) {
    constexpr int kMail = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 1;
    constexpr int kDns = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2;
    constexpr int kUri = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 6;
    const int tag = part->buf.tag;
    if (tag == kMail || tag == kDns || tag == kUri) add(part->buf);
  }
  return names;
}

// The library compares names only.
int TlsChannel::judge(const mbedtls_x509_crt& certificate, int depth, std::uint32_t& flags) const {
  judge_times(certificate, flags);
  if (depth != 0 || address_.empty()) return 0;
  constexpr int kAddressTag = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7;
  for (const mbedtls_x509_sequence* name = &certificate.subject_alt_names; name != nullptr;
       name = name->next) {
    if (name->buf.tag != kAddressTag || name->buf.len != address_.size()) continue;
    if (std::memcmp(name->buf.p, address_.data(), address_.size()) == 0) return 0;
  }
  flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
  return 0;
}

net::Transfer TlsChannel::fail(int error) {
  failed_ = true;
  const bool closed =
      error == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY || error == MBEDTLS_ERR_SSL_CONN_EOF;
  if (closed && is_agreed()) return {net::Outcome::Closed, 0};
  if (error == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || client_flags_ != 0) {
    char text[512] = {};
    mbedtls_x509_crt_verify_info(
        text, sizeof text, "",
        client_flags_ != 0 ? client_flags_ : mbedtls_ssl_get_verify_result(&context_));
    failure_ = text;
    std::replace(failure_.begin(), failure_.end(), '\n', ' ');
    while (failure_.ends_with(' ')) failure_.pop_back();
  } else if (!is_agreed() && was_refused_version()) {
    failure_ =
        "the other side refuses TLS 1.2, and this program speaks no other version: most likely it "
        "takes TLS 1.3 alone; let it take TLS 1.2, too";
  } else {
    failure_ = error_text(error);
  }
  return {net::Outcome::Failed, 0};
}

net::Transfer TlsChannel::receive(char* buffer, std::size_t size) {
  if (failed_) return {net::Outcome::Failed, 0};
  const int n = mbedtls_ssl_read(&context_, reinterpret_cast<unsigned char*>(buffer), size);
  // The keys may have been agreed on by this: what a send() waited to receive is here then.
  if (is_agreed()) send_awaits_receive_ = false;
  if (n > 0) return {net::Outcome::Done, static_cast<std::size_t>(n)};
  if (n == 0) return fail(MBEDTLS_ERR_SSL_CONN_EOF);
  if (n != MBEDTLS_ERR_SSL_WANT_READ && n != MBEDTLS_ERR_SSL_WANT_WRITE) return fail(n);
  receive_awaits_send_ = n == MBEDTLS_ERR_SSL_WANT_WRITE;
  return {net::Outcome::Blocked, 0};
}

net::Transfer TlsChannel::send(std::string_view bytes) {
  if (failed_) return {net::Outcome::Failed, 0};
  // A record that the socket did not take as a whole is made: asked again, the library sends the
  // rest of it and says as many bytes as it is asked for, so it is asked for those of the record.
  if (pending_send_bytes_ > 0) bytes = bytes.substr(0, pending_send_bytes_);
  const int n = mbedtls_ssl_write(&context_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                  bytes.size());
  if (n > 0) {
    pending_send_bytes_ = 0;
    return {net::Outcome::Done, static_cast<std::size_t>(n)};
  }
  if (n != MBEDTLS_ERR_SSL_WANT_READ && n != MBEDTLS_ERR_SSL_WANT_WRITE) {
    fail(n);
    return {net::Outcome::Failed, 0};
  }
  send_awaits_receive_ = n == MBEDTLS_ERR_SSL_WANT_READ;
  // Only once the keys are agreed on is what blocks a record of these bytes.
  if (is_agreed()) {
    const auto record_bytes =
        static_cast<std::size_t>(mbedtls_ssl_get_max_out_record_payload(&context_));
    pending_send_bytes_ = std::min(bytes.size(), record_bytes);
  }
  return {net::Outcome::Blocked, 0};
}

void TlsChannel::finish() {
  // As far as the socket takes it at once; the end of the stream follows in any case.
  if (!failed_ && is_agreed()) mbedtls_ssl_close_notify(&context_);
  Channel::finish();
}

bool TlsChannel::holds_received() const {
  return !failed_ && mbedtls_ssl_get_bytes_avail(&context_) > 0;
}

bool TlsChannel::is_agreed() {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_ssl_is_handshake_over(&context_) != 0;
#else
  return context_.state == MBEDTLS_SSL_HANDSHAKE_OVER;
#endif
}

}  // namespace edgecase::tls
