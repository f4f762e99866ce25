// MQTT packets as clients send them, byte by byte, for tests that must be able to send wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edgecase::test {

inline std::string mqtt_number(unsigned value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

inline std::string mqtt_text(std::string_view text) {
  return mqtt_number(static_cast<unsigned>(text.size())) + std::string(text);
}

inline std::string mqtt_packet(unsigned first, std::string_view body) {
  std::string packet(1, static_cast<char>(first));
  std::size_t rest = body.size();
  do {
    packet += static_cast<char>(rest % 128 | (rest > 127 ? 128 : 0));
    rest /= 128;
  } while (rest > 0);
  return packet + std::string(body);
}

// A CONNECT of version 5 with `properties` (their length is added), of 4 without any.
struct MqttConnect {
  int version = 4;
  bool clean = true;
  unsigned keep_alive = 0;
  std::string properties = {};
  std::string username = {};  // both or neither
  std::string password = {};
  std::string will_topic = {};  // empty: no will
  std::string will_payload = {};
  std::string will_properties = {};
};
inline std::string mqtt_connect(std::string_view client_id, const MqttConnect& how = {}) {
  std::string body = mqtt_text("MQTT") + static_cast<char>(how.version);
  body += static_cast<char>((how.clean ? 0x02 : 0) | (how.username.empty() ? 0 : 0xC0) |
                            (how.will_topic.empty() ? 0 : 0x2C));
  body += mqtt_number(how.keep_alive);
  if (how.version == 5) body += static_cast<char>(how.properties.size()) + how.properties;
  body += mqtt_text(client_id);
  if (!how.will_topic.empty()) {
    if (how.version == 5) {
      body += static_cast<char>(how.will_properties.size()) + how.will_properties;
    }
    body += mqtt_text(how.will_topic) + mqtt_text(how.will_payload);
  }
  if (!how.username.empty()) body += mqtt_text(how.username) + mqtt_text(how.password);
  return mqtt_packet(0x10, body);
}

struct MqttPublish {
  unsigned qos = 1;
  unsigned packet_id = 1;
  bool duplicate = false;
  int version = 4;
  std::string properties = {};
};
inline std::string mqtt_publish(std::string_view topic, std::string_view payload,
                                const MqttPublish& how = {}) {
  std::string body = mqtt_text(topic);
  if (how.qos > 0) body += mqtt_number(how.packet_id);
  if (how.version == 5) body += static_cast<char>(how.properties.size()) + how.properties;
  return mqtt_packet(0x30 | how.qos << 1 | (how.duplicate ? 8u : 0u), body + std::string(payload));
}

inline std::string mqtt_pubrel(unsigned packet_id) {
  return mqtt_packet(0x62, mqtt_number(packet_id));
}

inline std::string mqtt_puback(unsigned packet_id) {
  return mqtt_packet(0x40, mqtt_number(packet_id));
}
inline std::string mqtt_pubrec(unsigned packet_id) {
  return mqtt_packet(0x50, mqtt_number(packet_id));
}
inline std::string mqtt_pubcomp(unsigned packet_id) {
  return mqtt_packet(0x70, mqtt_number(packet_id));
}

inline const std::string kMqttPing = mqtt_packet(0xC0, "");
inline const std::string kMqttPong = mqtt_packet(0xD0, "");
inline const std::string kMqttDisconnect = mqtt_packet(0xE0, "");
inline const std::string kMqttAccepted = std::string("\x20\x02\x00\x00", 4);
inline const std::string kMqttAcceptedPresent = std::string("\x20\x02\x01\x00", 4);

}  // namespace edgecase::test
