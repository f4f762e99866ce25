// The start-up self-test of the gate of acknowledgements: a broker of this process sends one
// message through it to paho, as a real one would, and looks whether an acknowledgement leaves
// before the message is durable, and whether it does afterwards. It finds a paho that acknowledges
// in a way that the gate does not know.
#pragma once

#include "edgecase/clock.h"
#include "edgecase/result.h"
#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {

// Ok, or Unsupported with what went wrong: then no broker may be connected to. Takes some
// milliseconds, at most a few seconds.
Status test_ack_gate(Clock& clock, ProtocolVersion version);

}  // namespace edgecase::mqtt
