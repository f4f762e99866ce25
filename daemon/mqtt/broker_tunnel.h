// The way to a broker that speaks TLS: paho connects in clear to a socket of this process on
// loopback, and what passes there goes to the broker through TLS, unchanged and in order. An end of
// either side ends the other, so that who shuts down paho's connection keeps everything from
// leaving that has not passed yet.
//
// One connection at a time, and only from this process: another one that finds the port is closed.
// One thread, "mqtt-tunnel"; the public functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "edgecase/clock.h"
#include "edgecase/result.h"
#include "mqtt/broker_socket.h"
#include "net/channel.h"
#include "net/socket.h"
#include "tls/tls_client.h"

namespace edgecase::mqtt {

class BrokerTunnel {
 public:
  static constexpr std::int64_t kConnectNs = 10'000'000'000;  // TCP; paho's limit is that of TLS
  static constexpr std::size_t kBufferBytes = 64u << 10;      // each way

  // `host` is what the broker's certificate must name.
  static Result<std::unique_ptr<BrokerTunnel>> open(std::shared_ptr<const tls::TlsClient> client,
                                                    std::string host, Clock& clock);
  ~BrokerTunnel();
  BrokerTunnel(const BrokerTunnel&) = delete;
  BrokerTunnel& operator=(const BrokerTunnel&) = delete;

  // Where the next connection leads to.
  void aim(const ResolvedAddress& broker);
  // Where to connect instead.
  const ResolvedAddress& address() const { return address_; }
  // Why the last connection did not come about, or broke; "" when nobody knows. Asked for once.
  std::string take_failure();

 private:
  // What goes one way.
  struct Stream {
    std::string bytes;
    bool ended = false;
  };
  enum class Progress : unsigned char { Blocked, Moved, Over };

  BrokerTunnel(std::shared_ptr<const tls::TlsClient> client, std::string host, Clock& clock);
  Status listen();
  void run();
  void serve(net::Socket accepted);
  std::unique_ptr<net::Channel> connect_broker();
  void forward(net::Channel& inside, net::Channel& broker);
  Progress move(net::Channel& from, net::Channel& to, Stream& stream);
  bool wait(const net::Channel& inside, const Stream& out, const net::Channel& broker,
            const Stream& in);
  bool wait_for(int descriptor, short events, std::int64_t until_ns);
  void fail(std::string why);

  const std::shared_ptr<const tls::TlsClient> client_;
  const std::string host_;
  Clock& clock_;
  net::Socket listener_;
  net::Socket wake_;
  ResolvedAddress address_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  ResolvedAddress broker_;
  std::string failure_;

  std::thread thread_;
};

}  // namespace edgecase::mqtt
