// The listeners of HTTP and MQTT at the start: their certificates, who may reach them, and what the
// log says of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "auth/token_store.h"
#include "config/configuration.h"
#include "edgecase/result.h"
#include "net/channel.h"
#include "observe/logger.h"
#include "tls/tls_server.h"

namespace edgecase::app {

// The files of http.tls-* and mqtt.tls-* can be used. Errors begin with the setting's place.
Status check_certificates(const config::Configuration& configuration);

// What the listener of `section` ("http", "mqtt") makes channels by: plain where `files` are "".
// A certificate that ends soon, and later one that cannot be renewed, is logged. `logger` must
// outlive the channels.
struct ListenerTls {
  net::ChannelMaker channels;
  std::shared_ptr<tls::TlsServer> server;  // whose files may change; null: plain
};
// While `clock` is not trusted, clients' certificates need only hold after the build of the
// program.
Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 const Clock& clock, observe::Logger& logger);
tls::TlsFiles tls_files(const config::HttpSettings& settings);
tls::TlsFiles tls_files(const config::MqttSettings& settings);

// Nobody reaches the daemon from another machine who could not show a token: the error names the
// setting that would let them. Listeners that others reach without TLS or a token are logged.
Status check_reach(const config::Configuration& configuration, const auth::TokenStore& tokens,
                   observe::Logger& logger);

// Logs where HTTP listens, with the port that the system chose where the setting says 0.
void log_listeners(const config::HttpSettings& settings, std::uint16_t tcp_port,
                   observe::Logger& logger);

}  // namespace edgecase::app
