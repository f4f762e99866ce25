// Takes messages from the broker's client to the pipeline, and says whether each may be
// acknowledged: it may once its readings are durable, or once it was kept as rejected, or when
// there is nothing to store. It may not while the drive refuses: then deliver() tries again for
// kHoldNs and at last answers Withhold, so that the broker keeps the message.
//
// QoS 0 messages have no acknowledgement: they are gathered and stored by a thread of the sink's
// own, many with one fsync. At most kGatheredBytesMax wait; then deliver() waits too.
//
// deliver() is called by one thread at a time; interrupt() and counters() by any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/settings.h"
#include "ingest/ingest_pipeline.h"
#include "mqtt/payload_decoder.h"
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

enum class Delivery : std::uint8_t { Acknowledge, Withhold };

struct SinkCounters {
  std::uint64_t messages = 0;         // all that came
  std::uint64_t readings = 0;         // durable
  std::uint64_t rejected = 0;         // kept in `_rejected`
  std::uint64_t rejected_lost = 0;    // could not be kept there: a limit of the catalog
  std::uint64_t ignored = 0;          // nothing to store, on purpose
  std::uint64_t skipped_values = 0;   // JSON nulls and the like
  std::uint64_t redelivered = 0;      // with the DUP flag
  std::uint64_t repeats_dropped = 0;  // redelivered or retained ones recognised as stored before
  std::uint64_t withheld = 0;         // not acknowledged, since the drive refused
  std::uint64_t lost_at_qos0 = 0;     // the drive refused and the time was up
  std::int64_t waiting_since_ns = 0;  // boot clock; 0: no message waits for the drive
  std::string waiting_for;            // why, while it waits
};

class MessageSink {
 public:
  static constexpr std::int64_t kHoldNs = 8'000'000'000;  // well below the keep-alive
  static constexpr std::size_t kGatheredBytesMax = 4u << 20;
  static constexpr std::size_t kGatheredReadingsMax = 20'000;

  // All borrowed for the sink's life; `logger` may be null. `hold_ns` is for tests. `source` says
  // in the audit log where messages come from: broker and client, with the rule's number behind it.
  MessageSink(const std::vector<TopicRule>& rules, const config::LimitSettings& limits,
              ingest::IngestPipeline& pipeline, RejectedMessages& rejected, Clock& clock,
              observe::Logger* logger, std::int64_t hold_ns = kHoldNs,
              const std::string& source = "mqtt");
  // Stores what was gathered, if the drive takes it at once.
  ~MessageSink();

  Delivery deliver(const IncomingMessage& message);
  // The broker kept nothing of the last session.
  void new_session();
  // From now on nothing waits: what cannot be stored at once is withheld.
  void interrupt();

  SinkCounters counters() const;

 private:
  struct Gathered {
    wire::ReadingBatch batch;
    std::vector<ingest::Author> authors;
    std::size_t bytes = 0;
  };

  Delivery store(const IncomingMessage& message, const DecodeResult& decoded,
                 const wire::ReadingBatch& batch);
  Delivery reject(const IncomingMessage& message, const std::string& reason);
  Status ingest(const wire::ReadingBatch& batch, std::span<const ingest::Author> authors);
  ingest::Author author_of(const DecodeResult& decoded, std::size_t first_reading) const;
  template <typename Attempt>
  Status persist(Attempt attempt);
  bool wait_before_retry(const Status& status, std::int64_t since_ns, std::int64_t pause_ns);
  void gather(const IncomingMessage& message);
  void store_gathered();
  void count(std::uint64_t SinkCounters::*counter, std::uint64_t by = 1);

  const std::vector<TopicRule>& rules_;
  const config::LimitSettings limits_;
  ingest::IngestPipeline& pipeline_;
  RejectedMessages& rejected_;  // of the delivering thread
  Clock& clock_;
  observe::Logger* const logger_;
  const std::int64_t hold_ns_;
  const auth::Principal source_;
  std::vector<std::string> actors_;  // by number of a rule; 0: none
  RepeatFilter repeats_;             // of the delivering thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
  SinkCounters counters_;
  std::unique_ptr<Gathered> gathered_;
  std::thread gatherer_;
};

// Whether the same batch can succeed later: a drive, not the batch or a limit of the catalog.
bool may_succeed_later(const Status& status);

}  // namespace edgecase::mqtt
