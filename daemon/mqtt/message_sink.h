// Takes messages of the broker and stores them in groups, many with one sync
// (message_committer.h). Which of them may be acknowledged is what appended() and durable() tell: a
// message is durable once its readings are, or once it was kept as rejected; one with nothing to
// store counts with its group. While the drive refuses, nothing becomes durable, and what waits is
// tried again until it is stored.
//
// Everything is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/message_committer.h"
#include "mqtt/message_ledger.h"
#include "mqtt/rejected_messages.h"
#include "mqtt/repeat_filter.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

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
  DeviceNames* names = nullptr;  // null: names are as topics say
};

class MessageSink final : public MessageLedger {
 public:
  explicit MessageSink(SinkParts parts);
  ~MessageSink() override;

  // Refuses them once the sink was stopped.
  void take(std::span<const IncomingMessage> messages) override EC_EXCLUDES(take_mutex_);
  void new_session() override EC_EXCLUDES(take_mutex_);
  // Every filter that the session may have: where some overlap, copies are recognised.
  void set_filters(const std::vector<std::string>& filters) EC_EXCLUDES(take_mutex_);
  bool has_overlaps() EC_EXCLUDES(take_mutex_);
  void new_connection() EC_EXCLUDES(take_mutex_);
  // Stores what waits if the drive takes it at once; from now on nothing is taken. Idempotent.
  void stop() EC_EXCLUDES(take_mutex_);

  std::uint64_t appended() const override { return appended_.load(std::memory_order_acquire); }
  std::uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  bool full() const override { return full_.load(std::memory_order_relaxed); }

  SinkCounters counters() const;

 private:
  void add(const IncomingMessage& message, MessageGroup& group) EC_REQUIRES(take_mutex_);
  void on_committer();

  const SinkParts parts_;
  std::vector<std::string> actors_;  // by number of a rule; 0: none

  Mutex take_mutex_;  // held while messages are added
  RepeatFilter repeats_ EC_GUARDED_BY(take_mutex_);
  CopyFilter copies_ EC_GUARDED_BY(take_mutex_);
  bool stopped_ EC_GUARDED_BY(take_mutex_) = false;
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> durable_{0};
  std::atomic<bool> full_{false};
  std::atomic<std::uint64_t> lost_at_qos0_{0};
  MessageCommitter committer_;  // last: its thread uses the others
};

}  // namespace edgecase::mqtt
