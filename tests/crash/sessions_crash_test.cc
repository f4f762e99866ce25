// MQTT's QoS 2 on drives that lose their power: a message without a time of its own is stored once,
// however its exchange was cut. Sessions and their records work on the real engine over the
// simulated drives; one thread, so that a seed decides everything.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/mqtt/listener/packets.h"
#include "edgecase/engine.h"
#include "mqtt/listener/conversation.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"
#include "wire/reading.h"

namespace edgecase::test {
namespace {

using mqtt::Conversation;
using mqtt::Purpose;

// What the listener might do wrong: the harness must find it.
enum class PlantedSession : unsigned char {
  Nothing,
  Unrecorded,      // nothing is written
  RecordedLater,   // PUBREC leaves when the readings are durable, and the record is not
  ReleasedEarly,   // PUBCOMP leaves before the record is gone
  StartedEarly,    // CONNACK of a clean start leaves before the records are gone
  NeverForgotten,  // a clean start leaves them
};

constexpr int kSessionSteps = 80;
constexpr std::uint64_t kSessionOperations = 300;
constexpr int kSessionCrashes = 5;
constexpr unsigned kPacketIds = 3;  // few: they are used anew soon
constexpr CutPolicy kSessionCuts[] = {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                      CutPolicy::Any, CutPolicy::Torn};

// The messages under one packet id; all of them look the same.
struct Exchange {
  enum class State : unsigned char { Free, Published, Released };
  State state = State::Free;
  std::size_t published = 0;  // different messages
  std::size_t answered = 0;   // with PUBREC
};

struct Publisher {
  std::string name;
  int version = 4;
  std::unique_ptr<Conversation> conversation;
  std::uint64_t connection = 0;
  bool accepted = false;      // CONNACK has come
  bool is_kept = true;        // its session: with 3.1.1 a clean one is not
  bool starts_clean = false;  // until that is answered
  std::map<unsigned, Exchange> exchanges;
};

class SessionLife {
 public:
  SessionLife(std::uint64_t seed, PlantedSession planted)
      : random_(seed), executor_(seed), planted_(planted) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 16u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 8 * options_.wal_segment_bytes;
    config::MqttRuleSettings rule;
    rule.topic = "s/{device}/{sensor}";
    rules_ = mqtt::compile_rules({rule}).value();
    publishers_[0].name = "three";
    publishers_[1].name = "five";
    publishers_[1].version = 5;
  }
  ~SessionLife() { close(); }

  // What was broken; empty: nothing.
  std::string run() {
    std::string broken = open();
    for (int crash = 0; broken.empty() && crash < kSessionCrashes; ++crash) {
      disk_.stop_at(1 + random_.below(kSessionOperations));
      for (int step = 0; step < kSessionSteps && !disk_.stopped() && !failed_; ++step) {
        take_step();
      }
      end_process();
      disk_.stop_at(MemoryFileSystem::kNever);
      broken = open();
    }
    if (broken.empty()) finish();
    return broken.empty() ? compare() : broken;
  }
  std::size_t answered() const { return answered_; }
  std::size_t repeated() const { return repeated_; }

 private:
  std::string open() {
    clock_.advance(1'000'000'000);
    auto engine = Engine::open(options_, {disk_, clock_, random_, executor_, listener_});
    if (!engine.ok()) return "the store does not open: " + engine.status().to_string();
    engine_ = std::move(engine).value();
    auto catalog = catalog::Catalog::open(*engine_, {});
    if (!catalog.ok()) return "the catalog does not open: " + catalog.status().to_string();
    catalog_ = std::move(catalog).value();
    pipeline_ = std::make_unique<ingest::IngestPipeline>(*engine_, *catalog_, clock_);
    auto records = mqtt::SessionRecords::open(*engine_, random_);
    if (!records.ok()) return records.status().to_string();
    records_ = std::move(records).value();
    sessions_.emplace();
    const auto loaded = records_->load(*sessions_, 10, clock_.boot_ns());
    if (!loaded.ok()) return loaded.status().to_string();
    if (loaded->unreadable > 0) return "records cannot be read";
    parts_.emplace(mqtt::ConversationParts{rules_, limits_, *pipeline_, *sessions_, *records_,
                                           budget_, mqtt::packet_max_bytes(limits_, 1u << 20),
                                           nullptr});
    failed_ = false;
    return "";
  }

  void close() {
    for (Publisher& publisher : publishers_) {
      publisher.conversation.reset();
      publisher.accepted = false;
    }
    group_.clear();
    parts_.reset();
    records_.reset();
    pipeline_.reset();
    catalog_.reset();
    engine_.reset();
    executor_.drop_all();
  }

  // The drives do nothing any more: what the destructors would write does not arrive.
  void end_process() {
    if (!disk_.stopped()) disk_.stop_at(1);
    const std::uint64_t seed = random_.next();
    close();
    if (random_.below(4) != 0) {
      disk_.power_cut(seed, kSessionCuts[random_.below(std::size(kSessionCuts))]);
    } else {
      disk_.kill_process(seed);
    }
  }

  void take_step() {
    clock_.advance(300'000'000);
    Publisher& publisher = publishers_[random_.below(std::size(publishers_))];
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: return publish(publisher);
      case 3: return connect(publisher, random_.below(3) == 0);
      case 4: return static_cast<void>(executor_.run_one());
      default: return commit();
    }
  }

  // Both get an answer to everything.
  void finish() {
    for (Publisher& publisher : publishers_) connect(publisher, false);
    for (int round = 0; round < 4; ++round) {
      clock_.advance(1);
      commit();
    }
  }

  void connect(Publisher& publisher, bool clean) {
    clean = clean || publisher.starts_clean;
    publisher.starts_clean = clean;
    if (clean || !publisher.is_kept) {
      for (auto& [id, exchange] : publisher.exchanges) exchange.state = Exchange::State::Free;
    }
    publisher.is_kept = !clean || publisher.version == 5;
    publisher.conversation.reset();
    publisher.connection = ++connections_;
    publisher.accepted = false;
    publisher.conversation = std::make_unique<Conversation>(*parts_, publisher.connection,
                                                            Conversation::Standing::Welcome);
    MqttConnect how{.version = publisher.version, .clean = clean};
    if (publisher.version == 5) how.properties = std::string("\x11\0\0\x0e\x10", 5);
    send(publisher, mqtt_connect(publisher.name, how));
  }

  void publish(Publisher& publisher) {
    if (!publisher.accepted) return;
    const unsigned id = 1 + static_cast<unsigned>(random_.below(kPacketIds));
    Exchange& exchange = publisher.exchanges[id];
    if (exchange.state != Exchange::State::Free) return;
    exchange.state = Exchange::State::Published;
    ++exchange.published;
    send_publish(publisher, id, false);
  }

  void send_publish(Publisher& publisher, unsigned id, bool duplicate) {
    send(publisher,
         mqtt_publish(
             "s/" + publisher.name + "/x", std::to_string(id),
             {.qos = 2, .packet_id = id, .duplicate = duplicate, .version = publisher.version}));
  }

  void send(Publisher& publisher, const std::string& bytes) {
    publisher.conversation->receive(bytes, group_, clock_.boot_ns());
    take_answers(publisher);
  }

  void take_answers(Publisher& publisher) {
    std::string answers;
    answers.swap(publisher.conversation->output());
    while (answers.size() > 1) {
      const std::string packet = answers.substr(0, 2u + static_cast<unsigned char>(answers[1]));
      answers.erase(0, packet.size());
      if (packet[0] == '\x20') {
        on_accepted(publisher);
        continue;
      }
      const unsigned id = static_cast<unsigned char>(packet[3]);
      Exchange& exchange = publisher.exchanges[id];
      if (packet[0] == '\x70') {
        if (exchange.state == Exchange::State::Released) exchange.state = Exchange::State::Free;
      } else if (exchange.state == Exchange::State::Published) {
        exchange.state = Exchange::State::Released;
        ++exchange.answered;
        ++answered_;
        send(publisher, mqtt_pubrel(id));
      }
    }
  }

  void on_accepted(Publisher& publisher) {
    publisher.accepted = true;
    publisher.starts_clean = false;
    for (const auto& [id, exchange] : publisher.exchanges) {
      if (exchange.state == Exchange::State::Published) {
        ++repeated_;
        send_publish(publisher, id, true);
      } else if (exchange.state == Exchange::State::Released) {
        send(publisher, mqtt_pubrel(id));
      }
    }
  }

  // What committer and poller do with a group.
  void commit() {
    mqtt::add_ended_sessions(*sessions_, *records_, group_);
    mqtt::MessageGroup group;
    std::swap(group, group_);
    if (planted_ == PlantedSession::ReleasedEarly) answer(group, Purpose::Release);
    if (planted_ == PlantedSession::StartedEarly) answer(group, Purpose::Connect);
    std::vector<ingest::RecordChange> records = group.stored_records();
    if (planted_ == PlantedSession::Unrecorded) records.clear();
    if (planted_ == PlantedSession::NeverForgotten) leave_ended(records);
    if (planted_ == PlantedSession::RecordedLater) {
      if (!ingest(group.batch(), {})) return;
      answer(group, Purpose::Publish);
      if (!ingest({}, records)) return;
    } else if (!ingest(group.batch(), records)) {
      return;
    }
    for (mqtt::GroupMessage& message : group.messages()) answer(message);
  }

  // A session's own record is removed only when it ends, and its messages' behind it.
  static void leave_ended(std::vector<ingest::RecordChange>& records) {
    using Kind = ingest::RecordChange::Kind;
    ByteView ended;
    std::erase_if(records, [&ended](const ingest::RecordChange& record) {
      if (record.kind != Kind::Remove) ended = {};
      if (record.kind == Kind::Remove && record.key.size() == mqtt::kSessionKeyBytes) {
        ended = record.key;
      }
      return !ended.empty() && record.key.starts_with(ended);
    });
  }

  bool ingest(const wire::ReadingBatch& batch, const std::vector<ingest::RecordChange>& records) {
    const auth::Principal principal{auth::PrincipalKind::Mqtt, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    failed_ = !pipeline_->ingest(*authorized, nullptr, {}, records).ok();
    return !failed_;
  }

  void answer(mqtt::MessageGroup& group, Purpose purpose) {
    for (mqtt::GroupMessage& message : group.messages()) {
      if (message.purpose == purpose) answer(message);
    }
  }

  // Once.
  void answer(mqtt::GroupMessage& message) {
    mqtt::note_stored(*sessions_, message);
    for (Publisher& publisher : publishers_) {
      if (!publisher.conversation || publisher.connection != message.connection) continue;
      publisher.conversation->acknowledge(message);
      take_answers(publisher);
    }
    message.purpose = Purpose::Record;
  }

  std::string compare() {
    for (const Publisher& publisher : publishers_) {
      std::map<unsigned, std::size_t> stored;
      if (const auto series = catalog_->find("default", publisher.name, "x"); series.ok()) {
        const auto at = engine_->scan(series->id.namespace_id, {}, {});
        if (!at.ok()) return at.status().to_string();
        for (; (*at)->valid(); (*at)->next()) {
          wire::ReadingKey key;
          wire::Value value;
          if (!wire::decode_reading_key((*at)->key(), key) || key.device != series->id.device ||
              !wire::decode_value((*at)->value(), value)) {
            continue;
          }
          ++stored[static_cast<unsigned>(value.float64)];
        }
      }
      for (const auto& [id, exchange] : publisher.exchanges) {
        const std::string which = publisher.name + ", packet id " + std::to_string(id) + ": " +
                                  std::to_string(exchange.published) + " published, " +
                                  std::to_string(exchange.answered) + " answered, " +
                                  std::to_string(stored[id]) + " stored";
        if (exchange.state != Exchange::State::Free) return which + ", and one is not finished";
        if (stored[id] < exchange.answered || stored[id] > exchange.published) return which;
      }
    }
    return "";
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  ManualClock clock_;
  SeededRandom random_;
  ManualExecutor executor_;
  EventListener listener_;
  Options options_;
  const PlantedSession planted_;
  config::LimitSettings limits_;
  std::vector<mqtt::TopicRule> rules_;
  net::ByteBudget budget_{1u << 20};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<ingest::IngestPipeline> pipeline_;
  std::unique_ptr<mqtt::SessionRecords> records_;
  std::optional<mqtt::SessionTable> sessions_;
  std::optional<mqtt::ConversationParts> parts_;
  mqtt::MessageGroup group_;
  Publisher publishers_[2];
  std::uint64_t connections_ = 0;
  bool failed_ = false;
  std::size_t answered_ = 0;
  std::size_t repeated_ = 0;
};

}  // namespace

TEST_CASE("crash: QoS 2 is stored once, wherever its exchange is cut") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(400);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  std::size_t answered = 0, repeated = 0;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    SessionLife life(seed, PlantedSession::Nothing);
    const std::string broken = life.run();
    CHECK_MESSAGE(broken.empty(), "seed " << seed << ": " << broken);
    answered += life.answered();
    repeated += life.repeated();
  }
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return;
  CHECK(answered > 10 * lives);
  CHECK(repeated > 2 * lives);
}

TEST_CASE("crash: what sessions may do wrong is found") {
  struct Case {
    PlantedSession planted;
    std::uint64_t seeds;  // by then
  };
  for (const Case& c :
       {Case{PlantedSession::Unrecorded, 600}, Case{PlantedSession::RecordedLater, 600},
        Case{PlantedSession::ReleasedEarly, 200}, Case{PlantedSession::StartedEarly, 200},
        Case{PlantedSession::NeverForgotten, 200}}) {
    CAPTURE(static_cast<int>(c.planted));
    std::string found;
    std::uint64_t seed = 0;
    while (seed < c.seeds && found.empty()) found = SessionLife(++seed, c.planted).run();
    CHECK_FALSE(found.empty());
    MESSAGE("seed " << seed << ": " << found);
  }
}

}  // namespace edgecase::test
