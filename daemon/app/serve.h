// The one door from the command line into the daemon.
#pragma once

#include <functional>

#include "config/configuration.h"

namespace edgecase::app {

// Runs the daemon until SIGTERM or SIGINT, then stops it in order. Returns the exit code
// (CONTRACT section 1): 0 stopped as asked; 2 the configuration does not fit this machine (a
// directory that is missing or cannot be written); 7 the store is damaged; 1 everything else,
// another daemon on the store and a port in use included. Says why on stderr. Credentials are those
// of this process (config/credentials.h).
//
// On SIGHUP, unless that was ignored from the start, it takes what may change from what `read`
// answers (Daemon::reload()); where that is wrong the log says so, and nothing changes.
using ReadAgain = std::function<Result<config::Configuration>()>;
int serve(config::Configuration configuration, const ReadAgain& read);

// Says on stderr, and to the service manager, why there is nothing to serve with; 2. A process that
// ends at once may be gone before the journal knows whose line it was: what `systemctl status`
// shows as the status stays.
int refuse_to_serve(const Status& configuration);

// What the parts would refuse at start, worded as by load_configuration(): an [[mqtt.rule]] that
// does not compile, a certificate that cannot be used.
Status check_parts(const config::Configuration& configuration);

}  // namespace edgecase::app
