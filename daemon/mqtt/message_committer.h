// MessageCommitter is the thread that stores groups of messages, one after another, each with one
// sync.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/message_group.h"
#include "mqtt/rejected_messages.h"
#include "observe/logger.h"

namespace edgecase::mqtt {

// What happens when a message is stored whose device is over limits.device-rate: whoever brought it
// is told, or nothing is handed back until the device owes nothing, for all of them came one way.
enum class WhileOwed : std::uint8_t { Tell, Hold };

// References are borrowed for the committer's life; `logger` may be null.
struct CommitterParts {
  ingest::IngestPipeline& pipeline;
  RejectedMessages& rejected;
  Clock& clock;
  observe::Logger* logger = nullptr;
  const char* thread_name = "mqtt-commit";
  auth::Principal source;  // who brings what no author is named of
  WhileOwed while_owed = WhileOwed::Tell;
};

// Whether the same batch can succeed later: a drive, not the batch or a limit of the catalog.
bool may_succeed_later(const Status& status);

// Stores groups of messages, one after another, in a thread of its own, and hands them back to be
// acknowledged. While one is stored the next one fills.
//
// While the drive refuses (full, failing, missing, WAL limit) the group is tried again, at the
// latest a second apart, until it is stored: nothing is acknowledged meanwhile, and once the next
// group is full nothing more should be read. A message that can never be stored, or that a limit of
// the catalog refuses, is found without writing anything, and kept as rejected: the rest is still
// stored with one sync, however many such messages a client mixes in. A message with several
// readings has those stored that can be, and is kept as rejected for the others.
//
// take() and offer() are for the one thread that brings messages; the rest is thread-safe.
class MessageCommitter {
 public:
  // `wake` is called, from the committer's thread, when a group is done, and when the one that was
  // full has been taken.
  MessageCommitter(CommitterParts parts, std::function<void()> wake);
  ~MessageCommitter();
  MessageCommitter(const MessageCommitter&) = delete;
  MessageCommitter& operator=(const MessageCommitter&) = delete;

  // The group that fills, out of the committer's reach until it is offered again.
  std::unique_ptr<MessageGroup> take() EC_EXCLUDES(mutex_);
  void offer(std::unique_ptr<MessageGroup> group) EC_EXCLUDES(mutex_);
  // Groups that are stored, in the order they were. Hand them back to be used again.
  std::vector<std::unique_ptr<MessageGroup>> take_done() EC_EXCLUDES(mutex_);
  void reuse(std::unique_ptr<MessageGroup> group) EC_EXCLUDES(mutex_);

  // Tries what is there once more and ends; what the drive refuses is not acknowledged. Idempotent.
  void stop() EC_EXCLUDES(mutex_);

  SinkCounters counters() const EC_EXCLUDES(mutex_);

 private:
  void run() EC_EXCLUDES(mutex_);
  bool commit(MessageGroup& group) EC_EXCLUDES(mutex_);
  bool store(MessageGroup& group);
  void sift(MessageGroup& group);
  static void reject(MessageGroup& group, GroupMessage& message, const Status& status);
  bool keep_rejected(MessageGroup& group) EC_EXCLUDES(mutex_);
  Status hand_over(const wire::ReadingBatch& batch, std::span<const ingest::Author> authors,
                   std::span<const ingest::RecordChange> records);
  template <typename Attempt>
  Status persist(Attempt attempt);
  void note_owed(MessageGroup& group) EC_EXCLUDES(mutex_);
  bool wait(const std::string& why, std::int64_t since_ns, std::int64_t pause_ns)
      EC_EXCLUDES(mutex_);
  bool wait_before_retry(const Status& status, std::int64_t since_ns, std::int64_t pause_ns);

  const CommitterParts parts_;
  const std::function<void()> wake_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  bool full_ EC_GUARDED_BY(mutex_) =
      false;  // whoever brings messages waits for the group at hand to be taken
  std::unique_ptr<MessageGroup> ready_ EC_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<MessageGroup>> done_ EC_GUARDED_BY(mutex_);
  std::unique_ptr<MessageGroup> spare_ EC_GUARDED_BY(mutex_);
  SinkCounters counters_ EC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edgecase::mqtt
