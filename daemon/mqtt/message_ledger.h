// The interface that the gate to the broker asks of who stores the messages. Positions count
// messages from the start of the process, in the order in which they came.
//
// take() and new_session() are for the one thread that brings messages; the rest is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "mqtt/broker_answers.h"

namespace edgecase::mqtt {

// Views for the length of a call.
struct IncomingMessage {
  std::string_view topic;  // any bytes; empty: the broker named none
  std::string_view payload;
  int qos = 1;
  std::uint16_t packet_id = 0;  // 0 with QoS 0
  bool redelivered = false;     // DUP
  bool retained = false;
  SubscriptionIds subscriptions = {};  // of MQTT 5, where they were asked for
  std::uint32_t oversized_bytes = 0;   // of the packet over the limit whose beginning `payload` is
};

class MessageLedger {
 public:
  virtual ~MessageLedger() = default;
  // Waits for no drive.
  virtual void take(std::span<const IncomingMessage> messages) = 0;
  // The broker kept nothing of the last session.
  virtual void new_session() = 0;
  // How many messages have been taken, the last one included that was, or was not, kept. One that
  // was refused counts too, and nothing from it on is ever durable.
  virtual std::uint64_t appended() const = 0;
  // How many of them, from the first on, are durable.
  virtual std::uint64_t durable() const = 0;
  // Whether as much waits for the drive that no more should be brought.
  virtual bool full() const = 0;
};

}  // namespace edgecase::mqtt
