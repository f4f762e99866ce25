// Messages that were not stored, or only in part, kept for people to look at: in the namespace
// `_rejected`, series mqtt/message, one JSON text a message, at the time it arrived:
//
//   {"topic":"…","reason":"…","payload":"…"}           "payload_base64" when it is not UTF-8;
//                                                      "payload_bytes":n when it was cut
//
// At most limits.rejected_messages are kept; the oldest goes when a new one comes. Thread-safe: a
// lock orders those who keep and is held while they wait for the drive.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "ingest/ingest_pipeline.h"

namespace edgecase::mqtt {

inline constexpr std::string_view kRejectedDevice = "mqtt";
inline constexpr std::string_view kRejectedSensor = "message";
inline constexpr std::size_t kRejectedPayloadMaxBytes = 4'096;  // of each payload, the rest is cut

struct RejectedMessage {
  std::string_view topic;
  std::string_view reason;
  std::string_view payload;
};

class RejectedMessages {
 public:
  // Finds what is already kept. `limit` 0 keeps nothing. Errors: the engine's.
  static Result<std::unique_ptr<RejectedMessages>> open(Engine& engine, catalog::Catalog& catalog,
                                                        ingest::IngestPipeline& pipeline,
                                                        std::uint64_t limit);

  // Durable on return, with one sync: all, or the last of them where they are more than the limit,
  // and `records`. Errors: the pipeline's; then none is kept, and no record written.
  Status keep(std::span<const RejectedMessage> messages,
              std::span<const ingest::RecordChange> records = {}) EC_EXCLUDES(mutex_);

 private:
  RejectedMessages(catalog::Catalog& catalog, ingest::IngestPipeline& pipeline, std::uint64_t limit)
      : catalog_(catalog), pipeline_(pipeline), limit_(limit) {}
  Status load(Engine& engine) EC_EXCLUDES(mutex_);
  Status make_room(std::size_t count) EC_REQUIRES(mutex_);

  catalog::Catalog& catalog_;
  ingest::IngestPipeline& pipeline_;
  const std::uint64_t limit_;
  Mutex mutex_;
  std::deque<std::int64_t> times_ns_ EC_GUARDED_BY(mutex_);  // of what is kept, in order of arrival
};

// The JSON text above.
std::string rejected_message_json(std::string_view topic, std::string_view reason,
                                  std::string_view payload);

}  // namespace edgecase::mqtt
