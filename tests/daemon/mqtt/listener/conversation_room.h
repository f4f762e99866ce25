// Conversations over one table of sessions, without sockets.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mqtt/listener/packets.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "edgecase/machine.h"
#include "mqtt/listener/conversation.h"
#include "mqtt/topic_names.h"

namespace edgecase::test {

using mqtt::Conversation;
using mqtt::ReasonCode;

inline constexpr std::uint64_t kConversationBudgetBytes = 2u << 20;

// commit() does what committer and poller do.
struct ConversationRoom : MqttFixture {
  explicit ConversationRoom(std::uint64_t budget_bytes = kConversationBudgetBytes)
      : budget(budget_bytes) {
    auto compiled = mqtt::compile_rules({mqtt_rule("s/{device}/{sensor}")});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
    limits.message_limit_bytes = 1'000;
    parts.emplace(mqtt::ConversationParts{rules, limits, *pipeline, sessions, *records, budget,
                                          mqtt::packet_max_bytes(limits, budget_bytes),
                                          &authenticator});
  }

  Conversation& open(Conversation::Standing standing = Conversation::Standing::Welcome) {
    all.push_back(std::make_unique<Conversation>(*parts, all.size() + 1, standing));
    return *all.back();
  }
  Conversation& open(const std::string& connect) {
    Conversation& conversation = open();
    send(conversation, connect);
    CHECK(conversation.is_connected());
    conversation.output().clear();
    return conversation;
  }
  bool send(Conversation& conversation, const std::string& bytes) {
    return conversation.receive(bytes, group, ++now_ns);
  }
  void commit() {
    mqtt::add_due_wills(*parts, group);
    mqtt::add_ended_sessions(sessions, *records, group);
    const auth::Principal principal{auth::PrincipalKind::Mqtt, "test"};
    const auto batch = auth::authorize_write(principal, group.batch());
    REQUIRE(batch.ok());
    REQUIRE(pipeline->ingest(*batch, nullptr, {}, group.stored_records()).ok());
    REQUIRE(rejected->keep({}, group.rejected_records()).ok());
    for (const mqtt::GroupMessage& message : group.messages()) {
      mqtt::note_stored(sessions, message);
      if (message.connection == 0) continue;
      Conversation* const its = all.at(message.connection - 1).get();
      if (its != nullptr) its->acknowledge(message);
    }
    group.clear();
  }
  // As after a kill: what is durable, and nothing else.
  mqtt::SessionRecords::Loaded restart() {
    all.clear();
    group.clear();
    sessions = {};
    return records->load(sessions, 10, now_ns).value();
  }
  // Every record of `_mqtt`.
  std::vector<std::pair<Bytes, Bytes>> kept() {
    std::vector<std::pair<Bytes, Bytes>> found;
    const auto each = engine.scan(engine.find_namespace(mqtt::kMqttNamespace)->id, {}, {});
    REQUIRE(each.ok());
    for (; (*each)->valid(); (*each)->next()) {
      found.emplace_back((*each)->key(), (*each)->value());
    }
    return found;
  }
  std::string answer(Conversation& conversation) {
    return std::exchange(conversation.output(), {});
  }
  std::size_t stored(std::string_view device = "d", std::string_view sensor = "x") {
    return readings("default", device, sensor).size();
  }

  // A token that writes `write`: its id and its text.
  auth::TokenStore::Created create(const char* write, const char* read = nullptr) {
    auth::Scopes scopes;
    scopes.namespace_name = "default";
    if (write != nullptr) scopes.write = {wire::parse_selector(write).value()};
    if (read != nullptr) scopes.read = {wire::parse_selector(read).value()};
    return tokens->create(scopes, std::nullopt).value();
  }

  std::unique_ptr<auth::TokenStore> tokens =
      auth::TokenStore::open(engine, system_clock(), system_random()).value();
  auth::Authenticator authenticator{*tokens, system_clock(), auth::InsecureAccess::Refused};
  config::LimitSettings limits;
  std::vector<mqtt::TopicRule> rules;
  mqtt::SessionTable sessions;
  std::unique_ptr<mqtt::SessionRecords> records =
      mqtt::SessionRecords::open(engine, system_random()).value();
  net::ByteBudget budget;
  std::optional<mqtt::ConversationParts> parts;
  mqtt::MessageGroup group;
  std::vector<std::unique_ptr<Conversation>> all;
  std::int64_t now_ns = 1;
};

inline std::string hex(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

}  // namespace edgecase::test
