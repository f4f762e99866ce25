#include "bench/counting_subscriber.h"

#include <MQTTAsync.h>

#include <string>

#include "bench/child_process.h"
#include "bench/interrupt.h"

namespace edgecase::cli::bench {
namespace {

constexpr int kConnectTimeoutMs = 10'000;
constexpr const char* kFilter = "sensors/#";

}  // namespace

struct CountingSubscriber::Callbacks {
  static int arrived(void* context, char* topic, int, MQTTAsync_message* message) {
    static_cast<CountingSubscriber*>(context)->messages_.fetch_add(1, std::memory_order_relaxed);
    MQTTAsync_freeMessage(&message);
    MQTTAsync_free(topic);
    return 1;
  }
  static void subscribed(void* context, MQTTAsync_successData*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = 1;
  }
  static void failed(void* context, MQTTAsync_failureData*) {
    static_cast<CountingSubscriber*>(context)->subscribed_ = -1;
  }
  static void connected(void* context, MQTTAsync_successData*) {
    auto* self = static_cast<CountingSubscriber*>(context);
    MQTTAsync_responseOptions options = MQTTAsync_responseOptions_initializer;
    options.onSuccess = subscribed;
    options.onFailure = failed;
    options.context = context;
    if (MQTTAsync_subscribe(self->client_, kFilter, self->qos_, &options) != MQTTASYNC_SUCCESS) {
      self->subscribed_ = -1;
    }
  }
};

Result<std::unique_ptr<CountingSubscriber>> CountingSubscriber::connect(std::uint16_t port,
                                                                        int qos) {
  std::unique_ptr<CountingSubscriber> self(new CountingSubscriber());
  self->qos_ = qos;
  const std::string address = "tcp://127.0.0.1:" + std::to_string(port);
  if (MQTTAsync_create(&self->client_, address.c_str(), "edgecase-bench-counter",
                       MQTTCLIENT_PERSISTENCE_NONE, nullptr) != MQTTASYNC_SUCCESS ||
      MQTTAsync_setCallbacks(self->client_, self.get(), nullptr, Callbacks::arrived, nullptr) !=
          MQTTASYNC_SUCCESS) {
    return io_error("cannot create an MQTT client");
  }
  MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
  options.cleansession = 1;
  options.onSuccess = Callbacks::connected;
  options.onFailure = Callbacks::failed;
  options.context = self.get();
  if (MQTTAsync_connect(self->client_, &options) != MQTTASYNC_SUCCESS) self->subscribed_ = -1;
  for (int waited_ms = 0; self->subscribed_ == 0 && waited_ms < kConnectTimeoutMs; ++waited_ms) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  if (self->subscribed_ != 1) return unavailable("cannot subscribe at the broker");
  return self;
}

CountingSubscriber::~CountingSubscriber() {
  if (client_ != nullptr) MQTTAsync_destroy(&client_);
}

}  // namespace edgecase::cli::bench
