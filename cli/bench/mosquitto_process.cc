#include "bench/mosquitto_process.h"

#include <unistd.h>

#include <fstream>

#include "bench/mqtt_load.h"

namespace edgecase::cli::bench {
namespace {

constexpr double kMosquittoStartSeconds = 20;

// Debian puts it where a user's PATH does not lead.
std::string find_mosquitto() {
  constexpr const char* kUsual = "/usr/sbin/mosquitto";
  return access(kUsual, X_OK) == 0 ? kUsual : "mosquitto";
}

}  // namespace

Result<std::unique_ptr<MosquittoProcess>> MosquittoProcess::start(const std::string& parent) {
  std::unique_ptr<MosquittoProcess> broker(new MosquittoProcess());
  EC_ASSIGN_OR_RETURN(broker->directory_, PrivateDirectory::create(parent));
  EC_ASSIGN_OR_RETURN(broker->port_, free_port());
  const std::string config_path = broker->directory_->path() + "/mosquitto.conf";
  std::ofstream file(config_path);
  file << "listener " << broker->port_ << " 127.0.0.1\nallow_anonymous true\n"
       << "persistence false\nmax_queued_messages 0\nlog_dest stdout\nlog_type error\n";
  // Started by root it would change to a user who cannot read the private directory.
  if (geteuid() == 0) file << "user root\n";
  file.close();
  if (!file) return io_error("cannot write " + config_path);
  EC_ASSIGN_OR_RETURN(broker->child_, ChildProcess::start({find_mosquitto(), "-c", config_path},
                                                          broker->directory_->path() + "/log"));
  EC_TRY(wait_until_ready(*broker->child_, kMosquittoStartSeconds, [&broker] {
    return MqttPublisher::connect(broker->endpoint(), "edgecase-bench-probe").ok();
  }));
  return broker;
}

}  // namespace edgecase::cli::bench
