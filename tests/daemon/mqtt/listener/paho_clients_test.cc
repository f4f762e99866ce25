// The library that the daemon itself uses as a client, against the listener.
#include <MQTTAsync.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/mqtt/listener/listener_fixture.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

class PahoPublisher {
 public:
  PahoPublisher(std::uint16_t port, const char* client_id, int version) {
    MQTTAsync_createOptions create = MQTTAsync_createOptions_initializer;
    create.MQTTVersion = version;
    const std::string url = "tcp://" + loopback_authority(port);
    REQUIRE(MQTTAsync_createWithOptions(&client_, url.c_str(), client_id,
                                        MQTTCLIENT_PERSISTENCE_NONE, nullptr,
                                        &create) == MQTTASYNC_SUCCESS);
    MQTTAsync_connectOptions options = MQTTAsync_connectOptions_initializer;
    if (version == MQTTVERSION_5) options = MQTTAsync_connectOptions_initializer5;
    options.MQTTVersion = version;
    REQUIRE(MQTTAsync_connect(client_, &options) == MQTTASYNC_SUCCESS);
    REQUIRE(eventually([this] { return MQTTAsync_isConnected(client_) != 0; }));
  }
  ~PahoPublisher() {
    MQTTAsync_disconnectOptions options = MQTTAsync_disconnectOptions_initializer;
    MQTTAsync_disconnect(client_, &options);
    CHECK(eventually([this] { return MQTTAsync_isConnected(client_) == 0; }));
    MQTTAsync_destroy(&client_);
  }
  PahoPublisher(const PahoPublisher&) = delete;
  PahoPublisher& operator=(const PahoPublisher&) = delete;

  // Waits for the end of the exchange.
  bool publish(const std::string& topic, const std::string& payload, int qos) {
    MQTTAsync_responseOptions response = MQTTAsync_responseOptions_initializer;
    const int sent = MQTTAsync_send(client_, topic.c_str(), static_cast<int>(payload.size()),
                                    payload.data(), qos, 0, &response);
    if (sent != MQTTASYNC_SUCCESS) return false;
    return qos == 0 ||
           MQTTAsync_waitForCompletion(client_, response.token, 60'000) == MQTTASYNC_SUCCESS;
  }

 private:
  MQTTAsync client_ = nullptr;
};

}  // namespace

TEST_CASE("mqtt listener: paho publishes at every version and QoS, and waits for what is durable") {
  ListenerFixture room;
  for (const int version : {MQTTVERSION_3_1_1, MQTTVERSION_5}) {
    PahoPublisher publisher(room.listener->port(), "paho", version);
    for (const int qos : {1, 2, 0}) {
      const std::string device = "v" + std::to_string(version) + "q" + std::to_string(qos);
      for (int i = 1; i <= 20; ++i) {
        REQUIRE(publisher.publish("s/" + device + "/x", std::to_string(i), qos));
        if (qos > 0) REQUIRE(room.stored(device) == static_cast<std::size_t>(i));
      }
      CHECK(eventually([&] { return room.stored(device) == 20; }));
    }
  }
  CHECK(room.listener->status().failed == 0);
}
