// The certificates of the listeners.
#pragma once

#include <memory>
#include <string>

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
Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 observe::Logger& logger);

}  // namespace edgecase::app
