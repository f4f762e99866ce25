// The certificates of the listeners.
#pragma once

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
Result<net::ChannelMaker> channel_maker(const std::string& section, const tls::TlsFiles& files,
                                        observe::Logger& logger);

}  // namespace edgecase::app
