#include "flow/mqtt_store.h"

#include <sys/stat.h>

namespace edgecase::test {

Result<std::unique_ptr<MqttStore>> MqttStore::open(const std::string& directory) {
  auto store = std::make_unique<MqttStore>();
  Options options;
  options.metadata_directory = directory + "/metadata";
  options.values_directory = directory + "/values";
  ::mkdir(options.metadata_directory.c_str(), 0700);
  ::mkdir(options.values_directory.c_str(), 0700);
  store->executor_ = make_thread_executor();
  const Environment environment{posix_file_system(), system_clock(), system_random(),
                                *store->executor_, store->listener_};
  EC_ASSIGN_OR_RETURN(store->engine_, Engine::open(options, environment));
  EC_ASSIGN_OR_RETURN(store->catalog_, catalog::Catalog::open(*store->engine_, {}));
  store->pipeline_ =
      std::make_unique<ingest::IngestPipeline>(*store->engine_, *store->catalog_, system_clock());
  EC_ASSIGN_OR_RETURN(
      store->rejected_,
      mqtt::RejectedMessages::open(*store->engine_, *store->catalog_, *store->pipeline_, 10'000));
  return store;
}

Status MqttStore::subscribe(const config::MqttSettings& settings) {
  EC_ASSIGN_OR_RETURN(source_, mqtt::MqttSource::create(settings, {},
                                                        {*engine_, *pipeline_, *rejected_,
                                                         system_clock(), system_random()}));
  source_->start();
  return ok();
}

}  // namespace edgecase::test
