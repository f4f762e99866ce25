#include "app/listener_tls.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "edgecase/clock.h"
#include "wire/reading_format.h"

namespace edgecase::app {
namespace {

// Before a certificate ends somebody has to hear of it.
constexpr std::int64_t kCertificateWarningNs = std::int64_t{14} * 24 * 3600 * 1'000'000'000;

}  // namespace

Status check_certificates(const config::Configuration& configuration) {
  const config::Settings& settings = configuration.settings;
  const std::pair<std::string_view, tls::TlsFiles> listeners[] = {
      {"http.tls-cert", {settings.http.tls_cert, settings.http.tls_key}},
      {"mqtt.tls-cert", {settings.mqtt.tls_cert, settings.mqtt.tls_key}}};
  for (const auto& [key, files] : listeners) {
    if (files.certificate.empty()) continue;
    const auto server = tls::TlsServer::load(files, nullptr);
    if (!server.ok()) return configuration.error(key, server.status().message());
  }
  return ok();
}

Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 observe::Logger& logger) {
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
  return ListenerTls{{[server](net::Socket socket) {
                        return server->accept(std::move(socket), system_clock().boot_ns());
                      },
                      tls::kTlsChannelBytes},
                     server};
}

}  // namespace edgecase::app
