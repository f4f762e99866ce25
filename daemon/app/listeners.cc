#include "app/listeners.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "config/validate.h"
#include "edgecase/build_time.h"
#include "edgecase/clock.h"
#include "wire/authority.h"
#include "wire/reading_format.h"

namespace edgecase::app {
namespace {

// Before a certificate ends somebody has to hear of it.
constexpr std::int64_t kCertificateWarningNs = std::int64_t{14} * 24 * 3600 * 1'000'000'000;

}  // namespace

Status check_certificates(const config::Configuration& configuration) {
  const config::Settings& settings = configuration.settings;
  const std::pair<std::string_view, tls::TlsFiles> listeners[] = {
      {"http.tls-cert", tls_files(settings.http)}, {"mqtt.tls-cert", tls_files(settings.mqtt)}};
  for (const auto& [key, files] : listeners) {
    if (files.certificate.empty()) continue;
    const auto server = tls::TlsServer::load(files, nullptr);
    if (!server.ok()) return configuration.error(key, server.status().message());
  }
  return ok();
}

tls::TlsFiles tls_files(const config::HttpSettings& settings) {
  return {settings.tls_cert, settings.tls_key, settings.tls_client_ca, settings.tls_client_crl};
}

tls::TlsFiles tls_files(const config::MqttSettings& settings) {
  return {settings.tls_cert, settings.tls_key, settings.tls_client_ca, settings.tls_client_crl};
}

Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 const Clock& clock, observe::Logger& logger) {
  if (files.certificate.empty()) return ListenerTls{};
  const auto complain = [section, &logger](const std::string& what) {
    logger.log_keyed(observe::LogLevel::Warning, section, "tls",
                     "the files of " + section +
                         ".tls-cert have changed and cannot be used, the old ones stay: " + what);
  };
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<tls::TlsServer> server,
                      tls::TlsServer::load(files, complain));
  if (server->expires_ns() - system_clock().wall_ns() < kCertificateWarningNs) {
    std::string time;
    wire::append_time(server->expires_ns(), time);
    logger.warning(section, "the certificate in " + files.certificate + " holds until " + time);
  }
  return ListenerTls{{[server, &clock](net::Socket socket) {
                        const bool is_trusted = clock.trust() == ClockTrust::Trusted;
                        return server->accept(
                            std::move(socket), system_clock().boot_ns(),
                            is_trusted ? std::nullopt : std::optional(build_time_ns()));
                      },
                      tls::kTlsChannelBytes},
                     server};
}

void log_listeners(const config::HttpSettings& settings, std::uint16_t tcp_port,
                   observe::Logger& logger) {
  std::string where = settings.socket;
  if (!settings.listen.empty()) {
    if (!where.empty()) where += " and ";
    where += settings.listen.substr(0, settings.listen.rfind(':') + 1) + std::to_string(tcp_port);
    if (!settings.tls_cert.empty()) where += " (TLS)";
  }
  logger.info("http", "listening on " + (where.empty() ? "nothing" : where));
}

Status check_reach(const config::Configuration& configuration, const auth::TokenStore& tokens,
                   observe::Logger& logger) {
  const config::Settings& settings = configuration.settings;
  struct Listener {
    const char* key;
    const std::string& listen;
    bool has_tls;
  };
  for (const auto& [key, listen, has_tls] :
       {Listener{"http.listen", settings.http.listen, !settings.http.tls_cert.empty()},
        Listener{"mqtt.listen", settings.mqtt.listen, !settings.mqtt.tls_cert.empty()}}) {
    if (listen.empty()) continue;
    EC_ASSIGN_OR_RETURN(const config::ListenAddress address, config::parse_listen_address(listen));
    if (wire::is_loopback(address.host)) continue;
    if (!tokens.any() && !settings.http.allow_insecure) {
      return configuration.error(
          key, listen +
                   " is reachable from other machines, and there is no token yet: listen on "
                   "127.0.0.1 first and make one with edgecase token create, or set "
                   "http.allow-insecure = true");
    }
    if (has_tls && tokens.any()) continue;
    logger.warning("start",
                   std::string(key) + ": " + listen + " is reachable from other machines" +
                       (tokens.any() ? " without TLS: tokens and readings can be seen on the way"
                                     : ", and anybody may read and write until there is a token"));
  }
  return ok();
}

}  // namespace edgecase::app
