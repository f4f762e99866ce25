// Finds the broker's addresses, and who is at the other end of a connection on loopback.
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

// Whether it is this machine's own.
bool is_loopback(const ResolvedAddress& address);

// Asks the system's resolver, so it may wait for the network. Unavailable: no such host.
Result<std::vector<ResolvedAddress>> resolve_broker(const BrokerAddress& address);

// Whether somebody listens there: a connection is made, and closed. Waits `timeout_ms` at most.
bool is_reachable(const ResolvedAddress& address, int timeout_ms);

// Whether the other end of an accepted connection is in this process too.
bool is_end_of_own_connection(int file_descriptor);

}  // namespace edgecase::mqtt
