// What the gate of acknowledgements asks of who stores the messages. Positions count messages from
// the start of the process, in the order in which they came. Thread-safe.
#pragma once

#include <cstdint>

namespace edgecase::mqtt {

class AckLedger {
 public:
  virtual ~AckLedger() = default;
  // How many messages have been taken, the last one included that was, or was not, kept. One that
  // was refused counts too, and nothing from it on is ever durable.
  virtual std::uint64_t appended() const = 0;
  // How many of them, from the first on, are durable.
  virtual std::uint64_t durable() const = 0;
  // So much waits for the drive that no more should be brought.
  virtual bool full() const = 0;
};

}  // namespace edgecase::mqtt
