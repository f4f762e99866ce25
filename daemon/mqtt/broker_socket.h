// The connection to the broker belongs to paho, which hides its socket and acknowledges a message
// whatever the callback returned. To keep an acknowledgement from leaving, the socket itself is
// shut down from within the callback: paho's write then fails, and the broker, which never saw a
// PUBACK, sends the message again after the reconnect.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "edgecase/result.h"
#include "mqtt/broker_address.h"

namespace edgecase::mqtt {

struct ResolvedAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  std::string text;  // "127.0.0.1:1883", "[::1]:1883"
};

// Asks the system's resolver, so it may wait for the network. Unavailable: no such host.
Result<std::vector<ResolvedAddress>> resolve_broker(const BrokerAddress& address);

// Shuts down every TCP connection of this process to `address`; returns how many. Only the client
// of the broker connects there. Bytes already handed to the kernel may still leave; no later ones.
int shut_down_connections_to(const ResolvedAddress& address);

// Of an accepted connection: its other end is in this process too.
bool is_end_of_own_connection(int file_descriptor);

}  // namespace edgecase::mqtt
