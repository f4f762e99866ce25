// The setup that both ends of TLS share: files, ciphers, random bytes, the channel. Inside
// daemon/tls only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crl.h>
#include <mbedtls/x509_crt.h>

#include "edgecase/status.h"
#include "net/channel.h"

namespace edgecase::tls {

// Any thread may call it.
int random_bytes(void* unused, unsigned char* bytes, std::size_t size);
std::string error_text(int error);

// Ciphers by the library's numbers, up to a zero: of those that both ends have the server takes the
// first. Where AES is not fast it is ChaCha20, which computes without tables.
const int* preferred_ciphers(bool is_aes_fast);
// TLS 1.2, ephemeral keys, authenticated encryption.
void restrict_to_safe(mbedtls_ssl_config& configuration);

// Sets the serial number of a certificate that is written: 1.
int set_first_serial(mbedtls_x509write_cert& certificate);

// Into an initialized `chain`. InvalidArgument, NotAllowed name the file.
Status read_certificates(const std::string& path, mbedtls_x509_crt& chain);
// The same of a list of revoked certificates.
Status read_revocations(const std::string& path, mbedtls_x509_crl& list);
// The same of the key that belongs to `chain`; NotAllowed too when everybody may read it.
Status read_key(const std::string& path, const std::string& certificate_path,
                const mbedtls_x509_crt& chain, mbedtls_pk_context& key);

// A channel through an mbedtls connection.
class TlsChannel final : public net::Channel {
 public:
  // `configuration` is kept alive by `owner`. Null: no memory.
  static std::unique_ptr<TlsChannel> open(net::Socket socket,
                                          const mbedtls_ssl_config& configuration,
                                          std::shared_ptr<const void> owner);
  ~TlsChannel() override;

  // Tells a client, before anything is received or sent, whom the certificate must name: a DNS name
  // or an address. `judged_at_ns`: as TlsClient::open() says. False: no memory.
  bool expect(const std::string& host, std::optional<std::int64_t> judged_at_ns);
  // Tells a server, before anything is received or sent, that a client may show a certificate. One
  // that is not good ends the connection.
  void expect_client(std::optional<std::int64_t> judged_at_ns);

  net::Transfer receive(char* buffer, std::size_t size) override;
  net::Transfer send(std::string_view bytes) override;
  void finish() override;
  std::string failure() const override { return failure_; }
  bool holds_received() const override;
  std::vector<std::string> peer_names() const override;
  bool receive_awaits_send() const override { return receive_awaits_send_; }
  bool send_awaits_receive() const override { return send_awaits_receive_; }

 private:
  static int receive_bytes(void* channel, unsigned char* bytes, std::size_t size);
  bool was_refused_version() const;
  TlsChannel(net::Socket socket, std::shared_ptr<const void> owner);
  net::Transfer fail(int error);
  bool is_agreed();
  int judge(const mbedtls_x509_crt& certificate, int depth, std::uint32_t& flags) const;
  int judge_client(const mbedtls_x509_crt& certificate, std::uint32_t& flags);
  void judge_times(const mbedtls_x509_crt& certificate, std::uint32_t& flags) const;

  std::shared_ptr<const void> owner_;
  mbedtls_ssl_context context_;
  bool failed_ = false;
  std::string failure_;
  std::string first_bytes_;  // that the peer sent: a record's head, and an alert's two bytes
  std::string address_;      // that the peer's certificate must name, in network order; "": a name
  std::optional<std::int64_t> judged_at_ns_;
  bool asks_client_ = false;
  std::uint32_t client_flags_ = 0;  // why a client's certificate is not good
  bool receive_awaits_send_ = false;
  bool send_awaits_receive_ = false;
  std::size_t pending_send_bytes_ = 0;  // a record of so many bytes is on its way
};

}  // namespace edgecase::tls
