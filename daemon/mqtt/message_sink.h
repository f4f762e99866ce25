// Takes messages from the broker's client and stores them in groups, many with one sync
// (message_committer.h). Which of them may be acknowledged is what appended() and durable() tell: a
// message is durable once its readings are, or once it was kept as rejected; one with nothing to
// store counts with its group. While the drive refuses, nothing becomes durable, and what waits is
// tried again until it is stored.
//
// deliver() is called by one thread at a time and waits for no drive; the rest is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/ack_ledger.h"
#include "mqtt/message_committer.h"
#include "mqtt/rejected_messages.h"
#include "mqtt/repeat_filter.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

// Views for the length of a call.
struct IncomingMessage {
  std::string_view topic;
  std::string_view payload;
  int qos = 1;
  std::uint16_t packet_id = 0;  // 0 with QoS 0
  bool redelivered = false;     // DUP
  bool retained = false;
};

// Borrowed for the sink's life; `logger` may be null. `source` says in the audit log where messages
// come from: broker and client, with the rule's number behind it. `wake` is called from a thread of
// the sink's own when durable() or full() may have changed.
struct SinkParts {
  const std::vector<TopicRule>& rules;
  const config::LimitSettings& limits;
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  observe::Logger* logger = nullptr;
  std::string source = "mqtt";
  std::function<void()> wake = [] {};
};

class MessageSink final : public AckLedger {
 public:
  explicit MessageSink(SinkParts parts);
  ~MessageSink() override;

  // False: it was refused, since the sink was stopped.
  bool deliver(const IncomingMessage& message);
  // The broker kept nothing of the last session.
  void new_session();
  // Stores what waits if the drive takes it at once; from now on nothing is taken. Idempotent.
  void stop();

  std::uint64_t appended() const override { return appended_.load(std::memory_order_acquire); }
  std::uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  bool full() const override { return full_.load(std::memory_order_relaxed); }

  SinkCounters counters() const;

 private:
  void add(const IncomingMessage& message, MessageGroup& group);
  void on_committer();

  const SinkParts parts_;
  std::vector<std::string> actors_;  // by number of a rule; 0: none
  RepeatFilter repeats_;             // under deliver_mutex_

  std::mutex deliver_mutex_;  // held while a message is added; no other lock is waited for in it
  bool stopped_ = false;      // under deliver_mutex_
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> durable_{0};
  std::atomic<bool> full_{false};
  std::atomic<std::uint64_t> lost_at_qos0_{0};
  MessageCommitter committer_;  // last: its thread uses the others
};

}  // namespace edgecase::mqtt
