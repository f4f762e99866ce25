// Any bytes from an MQTT client, in one piece and cut up: the conversation ends or goes on, answers
// are whole packets, what it keeps is within its budget, and how the bytes were cut changes
// nothing. The first byte chooses the version and the cuts.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/fuzz_targets.h"
#include "mqtt/listener/conversation.h"
#include "mqtt/packet_codec.h"
#include "support/model_engine.h"

namespace edgecase::test {
namespace {

constexpr std::uint64_t kBudgetBytes = 256u << 10;
constexpr std::size_t kInputMaxBytes = 64u << 10;  // so that the budget is never what differs

// Everything that outlives one input; conversations write nothing here, they only take times.
struct House {
  ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<mqtt::SessionRecords> records;
  std::vector<mqtt::TopicRule> rules;
  config::LimitSettings limits;

  House() {
    auto opened = catalog::Catalog::open(engine, {});
    demand(opened.ok());
    catalog = std::move(opened).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, system_clock());
    auto keeper = mqtt::SessionRecords::open(engine, system_random());
    demand(keeper.ok());
    records = std::move(keeper).value();
    config::MqttRuleSettings plain, preset;
    plain.topic = "s/{device}/{sensor}";
    plain.time = "/t";
    preset.preset = "zigbee2mqtt";
    auto compiled = mqtt::compile_rules({plain, preset});
    demand(compiled.ok());
    rules = std::move(compiled).value();
    limits.message_limit_bytes = 4'096;
  }
};

void check_answers(std::string_view answers) {
  while (!answers.empty()) {
    // The type and its length; flags of what servers send are all zero.
    mqtt::FixedHeader header;
    std::string first(answers.substr(0, mqtt::kFixedHeaderMaxBytes));
    demand((first[0] & 0x0f) == 0);
    first[0] = '\x30';
    demand(mqtt::read_fixed_header(first, header) == mqtt::HeaderProgress::Complete);
    demand(answers.size() >= header.header_bytes + header.remaining_bytes);
    answers.remove_prefix(header.header_bytes + header.remaining_bytes);
  }
}

// What a client gets, and what is to be stored.
std::string outcome(House& house, std::string_view bytes, std::size_t step, int version) {
  mqtt::SessionTable sessions;
  net::ByteBudget budget(kBudgetBytes);
  const mqtt::ConversationParts parts{house.rules,
                                      house.limits,
                                      *house.pipeline,
                                      sessions,
                                      *house.records,
                                      budget,
                                      mqtt::packet_max_bytes(house.limits, kBudgetBytes)};
  mqtt::MessageGroup group;
  std::string told;
  {
    mqtt::Conversation conversation(parts, 1, mqtt::Conversation::Standing::Welcome);
    if (version != 0) {
      std::string connect("\x10\x0f\0\4MQTT\0\2\0\0\0\3abc", 17);
      connect[8] = static_cast<char>(version);
      if (version == 5) {
        connect[1] = 16;
        connect.insert(12, 1, '\0');
      }
      demand(conversation.receive(connect, group, 1));
    }
    bool open = true;
    for (std::size_t at = 0; at < bytes.size() && open; at += step) {
      open = conversation.receive(bytes.substr(at, step), group, 2);
      demand(budget.used_bytes() <= kBudgetBytes);
    }
    for (const mqtt::GroupMessage& message : group.messages()) {
      mqtt::note_stored(sessions, message);
      conversation.acknowledge(message);
      told += std::string(message.topic) + "=" + std::to_string(message.readings) + ";";
    }
    check_answers(conversation.output());
    told += conversation.output();
  }
  demand(budget.used_bytes() == 0);
  return told;
}

}  // namespace

void take_mqtt_packets(std::string_view data) {
  static House house;
  if (data.empty() || data.size() > kInputMaxBytes) return;
  const std::string_view bytes = data.substr(1);
  constexpr int kVersions[] = {0, 4, 5};
  const unsigned choice = static_cast<unsigned char>(data[0]);
  const int version = kVersions[choice % 3];
  const std::size_t step = 1 + choice / 3;
  const std::string whole = outcome(house, bytes, data.size(), version);
  // An id that the server chose has the time in it.
  const std::string cut = outcome(house, bytes, step, version);
  demand(version == 0 || whole == cut);
}

}  // namespace edgecase::test
