#include "bench/peers/influx_process.h"

#include <fstream>

namespace edgecase::cli::bench {
namespace {

constexpr double kInfluxStartSeconds = 60;

std::string configuration(const std::string& directory, std::uint16_t port,
                          std::uint16_t backup_port) {
  std::string text;
  text += "reporting-disabled = true\n";
  text += "bind-address = \"127.0.0.1:" + std::to_string(backup_port) + "\"\n";
  text += "[meta]\n  dir = \"" + directory + "/meta\"\n";
  text += "[data]\n  dir = \"" + directory + "/data\"\n  wal-dir = \"" + directory + "/wal\"\n";
  text += "  wal-fsync-delay = \"0s\"\n  query-log-enabled = false\n";
  text += "[monitor]\n  store-enabled = false\n";
  text += "[http]\n  bind-address = \"127.0.0.1:" + std::to_string(port) + "\"\n";
  text += "  log-enabled = false\n";
  text += "[logging]\n  level = \"error\"\n";
  return text;
}

}  // namespace

Result<std::unique_ptr<Server>> start_influx(const std::string& parent) {
  EC_ASSIGN_OR_RETURN(auto influx, InfluxProcess::start(parent));
  return std::unique_ptr<Server>(std::move(influx));
}

Result<std::unique_ptr<InfluxProcess>> InfluxProcess::start(const std::string& parent) {
  std::unique_ptr<InfluxProcess> influx(new InfluxProcess());
  EC_ASSIGN_OR_RETURN(influx->directory_, PrivateDirectory::create(parent));
  EC_ASSIGN_OR_RETURN(influx->port_, free_port());
  EC_ASSIGN_OR_RETURN(const std::uint16_t backup_port, free_port());
  const std::string& directory = influx->directory_->path();
  const std::string config_path = directory + "/influxdb.conf";
  std::ofstream file(config_path);
  file << configuration(directory, influx->port_, backup_port);
  file.close();
  if (!file) return io_error("cannot write " + config_path);
  EC_ASSIGN_OR_RETURN(influx->child_,
                      ChildProcess::start({"influxd", "-config", config_path}, directory + "/log"));
  EC_TRY(wait_until_ready(*influx->child_, kInfluxStartSeconds, [&influx] {
    HttpClient client(influx->endpoint());
    return client.get("/ping").ok();
  }));
  return influx;
}

}  // namespace edgecase::cli::bench
