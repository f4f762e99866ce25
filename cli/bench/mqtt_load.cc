#include "bench/mqtt_load.h"

#include <chrono>
#include <thread>
#include <vector>

#include "bench/interrupt.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"

namespace edgecase::cli::bench {
namespace {

constexpr char kConnect = 0x10;
constexpr char kConnectAccepted = 0x20;
constexpr char kPublishQos1 = 0x32;
constexpr char kPublishAcknowledged = 0x40;
constexpr std::size_t kAcknowledgementBytes = 4;
constexpr std::uint32_t kSensors = 10;  // of one publisher

void append_text(std::string& out, std::string_view text) {
  out += static_cast<char>(text.size() >> 8);
  out += static_cast<char>(text.size());
  out += text;
}

void append_length(std::string& out, std::size_t length) {
  do {
    const auto byte = static_cast<unsigned char>(length & 0x7f);
    length >>= 7;
    out += static_cast<char>(length > 0 ? byte | 0x80 : byte);
  } while (length > 0);
}

}  // namespace

Result<MqttPublisher> MqttPublisher::connect(const Endpoint& broker, const std::string& client_id,
                                             std::uint32_t window) {
  MqttPublisher publisher;
  publisher.window_ = window;
  EC_TRY(publisher.connection_.open(broker));
  std::string body;
  append_text(body, "MQTT");
  body += '\x04';                // 3.1.1
  body += '\x02';                // clean session
  body += std::string(2, '\0');  // no keep-alive
  append_text(body, client_id);
  std::string packet(1, kConnect);
  append_length(packet, body.size());
  EC_TRY(publisher.connection_.send(packet + body));
  std::string& answer = publisher.incoming_;
  while (answer.size() < kAcknowledgementBytes) {
    EC_ASSIGN_OR_RETURN(const std::size_t got, publisher.connection_.receive(answer));
    if (got == 0) return unavailable("the broker closed the connection");
  }
  if (answer[0] != kConnectAccepted || answer[3] != 0) return not_allowed("the broker refused us");
  answer.erase(0, kAcknowledgementBytes);
  return publisher;
}

Status MqttPublisher::publish(std::string_view topic, std::string_view payload) {
  if (++packet_id_ == 0) packet_id_ = 1;
  outgoing_ += kPublishQos1;
  append_length(outgoing_, 2 + topic.size() + 2 + payload.size());
  append_text(outgoing_, topic);
  outgoing_ += static_cast<char>(packet_id_ >> 8);
  outgoing_ += static_cast<char>(packet_id_);
  outgoing_ += payload;
  ++queued_;
  if (queued_ + unacknowledged_ < window_) return ok();
  EC_TRY(send_queued());
  // Half a window at a time: the broker always has some, and no call carries a single message.
  while (unacknowledged_ > window_ / 2) EC_TRY(receive_acknowledgements());
  return ok();
}

Status MqttPublisher::finish() {
  EC_TRY(send_queued());
  while (unacknowledged_ > 0) EC_TRY(receive_acknowledgements());
  return ok();
}

Status MqttPublisher::send_queued() {
  EC_TRY(connection_.send(outgoing_));
  outgoing_.clear();
  unacknowledged_ += queued_;
  queued_ = 0;
  return ok();
}

Status MqttPublisher::receive_acknowledgements() {
  EC_TRY(check_interrupt());
  EC_ASSIGN_OR_RETURN(const std::size_t got, connection_.receive(incoming_, 4096));
  if (got == 0) return unavailable("the broker closed the connection");
  std::size_t taken = 0;
  for (; incoming_.size() - taken >= kAcknowledgementBytes; taken += kAcknowledgementBytes) {
    if (incoming_[taken] != kPublishAcknowledged || unacknowledged_ == 0) {
      return io_error("the broker sent what is no acknowledgement");
    }
    --unacknowledged_;
  }
  incoming_.erase(0, taken);
  return ok();
}

namespace {

Status publish_part(const Endpoint& broker, std::uint32_t number, std::uint64_t messages,
                    const MqttLoad& load) {
  const std::string name = "node-" + std::to_string(number);
  EC_ASSIGN_OR_RETURN(MqttPublisher publisher,
                      MqttPublisher::connect(broker, "edgecase-bench-" + name, load.window));
  std::vector<std::string> topics;
  for (std::uint32_t i = 0; i < kSensors; ++i) {
    topics.push_back("sensors/" + name + "/s" + std::to_string(i));
  }
  SeededRandom random(load.seed + number);
  for (std::uint64_t i = 0; i < messages; ++i) {
    const std::uint64_t tenths = 150 + random.below(150);
    std::string payload = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    if (load.payload_bytes > 0) payload.resize(load.payload_bytes, 'x');
    EC_TRY(publisher.publish(topics[i % kSensors], payload));
  }
  return publisher.finish();
}

}  // namespace

Result<double> publish_all(const Endpoint& broker, const MqttLoad& load) {
  Mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < load.publishers; ++i) {
    const std::uint64_t part =
        load.messages * (i + 1) / load.publishers - load.messages * i / load.publishers;
    threads.emplace_back([&, i, part] {
      Status status = publish_part(broker, i, part, load);
      const MutexLock lock(mutex);
      if (first.ok()) first = std::move(status);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!first.ok()) return first;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace edgecase::cli::bench
