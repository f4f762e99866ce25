#include "bench/mosquitto.h"

#include <MQTTAsync.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "bench/loads.h"
#include "bench/processes.h"

namespace edgecase::cli::bench {
namespace {

constexpr double kMosquittoStartSeconds = 20;

// Debian puts it where a user's PATH does not lead.
std::string find_mosquitto() {
  constexpr const char* kUsual = "/usr/sbin/mosquitto";
  return access(kUsual, X_OK) == 0 ? kUsual : "mosquitto";
}

constexpr int kConnectTimeoutMs = 10'000;
constexpr const char* kFilter = "sensors/#";

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

struct CountingSubscriber::Callbacks {
  static int arrived(void* context, char* topic, int, MQTTAsync_message* message) {
    static_cast<CountingSubscriber*>(context)->messages_.fetch_add(1, std::memory_order_relaxed);
    MQTTAsync_freeMessage(&message);
    MQTTAsync_free(topic);
    return 1;
  }
  template <typename Success>
  static void subscribed(void* context, Success*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = 1;
  }
  template <typename Failure>
  static void failed(void* context, Failure*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = -1;
  }
  template <typename Success>
  static void connected(void* context, Success*) {
    auto* self = static_cast<CountingSubscriber*>(context);
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    if (self->window_ == Window::Wide) {
      options.onSuccess5 = subscribed<MQTTAsync_successData5>;
      options.onFailure5 = failed<MQTTAsync_failureData5>;
    } else {
      options.onSuccess = subscribed<MQTTAsync_successData>;
      options.onFailure = failed<MQTTAsync_failureData>;
    }
    options.context = context;
    if (MQTTAsync_subscribe(self->client_, kFilter, self->qos_, &options) != MQTTASYNC_SUCCESS) {
      self->subscribed_ = -1;
    }
  }
};

Result<std::unique_ptr<CountingSubscriber>> CountingSubscriber::connect(std::uint16_t port, int qos,
                                                                        Window window) {
  std::unique_ptr<CountingSubscriber> self(new CountingSubscriber());
  self->qos_ = qos;
  self->window_ = window;
  const std::string address = "tcp://127.0.0.1:" + std::to_string(port);
  MQTTAsync_createOptions creation = MQTTAsync_createOptions_initializer;
  creation.MQTTVersion = window == Window::Wide ? MQTTVERSION_5 : MQTTVERSION_3_1_1;
  if (MQTTAsync_createWithOptions(&self->client_, address.c_str(), "edgecase-bench-counter",
                                  MQTTCLIENT_PERSISTENCE_NONE, nullptr,
                                  &creation) != MQTTASYNC_SUCCESS ||
      MQTTAsync_setCallbacks(self->client_, self.get(), nullptr, Callbacks::arrived, nullptr) !=
          MQTTASYNC_SUCCESS) {
    return io_error("cannot create an MQTT client");
  }
  self->begin_to_connect();
  for (int waited_ms = 0; self->subscribed_ == 0 && waited_ms < kConnectTimeoutMs; ++waited_ms) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  if (self->subscribed_ != 1) return unavailable("cannot subscribe at the broker");
  return self;
}

void CountingSubscriber::begin_to_connect() {
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  const MQTTAsync_connectOptions of_five = MQTTAsync_connectOptions_initializer5;
  MQTTProperties properties = MQTTProperties_initializer;
  if (window_ == Window::Wide) {
    options = of_five;
    MQTTProperty maximum;
    maximum.identifier = MQTTPROPERTY_CODE_RECEIVE_MAXIMUM;
    maximum.value.integer2 = kWideWindow;
    MQTTProperties_add(&properties, &maximum);
    options.connectProperties = &properties;
    options.onSuccess5 = Callbacks::connected<MQTTAsync_successData5>;
    options.onFailure5 = Callbacks::failed<MQTTAsync_failureData5>;
  } else {
    options.cleansession = 1;
    options.onSuccess = Callbacks::connected<MQTTAsync_successData>;
    options.onFailure = Callbacks::failed<MQTTAsync_failureData>;
  }
  options.context = this;
  if (MQTTAsync_connect(client_, &options) != MQTTASYNC_SUCCESS) subscribed_ = -1;
  MQTTProperties_free(&properties);
}

CountingSubscriber::~CountingSubscriber() {
  if (client_ != nullptr) MQTTAsync_destroy(&client_);
}

}  // namespace edgecase::cli::bench
