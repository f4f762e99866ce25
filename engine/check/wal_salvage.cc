#include "check/wal_salvage.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/write_batch_reader.h"
#include "check/log_look.h"
#include "edgecase/options.h"
#include "file/file_names.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

struct Segment {
  std::string path;
  LogIdentity identity;
  // What lies behind was given up for what the next segment holds.
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

// Old to new, without those that another took the place of: what a segment names as the one before
// it is followed by it, and by nothing else.
std::vector<Segment> chain_of(std::vector<Segment> found) {
  std::sort(found.begin(), found.end(), [](const Segment& a, const Segment& b) {
    return a.identity.number > b.identity.number;
  });
  std::vector<Segment> chain;
  for (Segment& segment : found) {
    if (!chain.empty()) {
      const LogIdentity& next = chain.back().identity;
      if (segment.identity.number > next.predecessor) continue;
      if (segment.identity.number == next.predecessor)
        segment.end = kLogHeadBytes + next.predecessor_bytes;
    }
    chain.push_back(std::move(segment));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::vector<Segment> find_segments(FileSystem& file_system, const StoreFiles& files,
                                   Findings* findings) {
  std::vector<Segment> segments;
  for (const std::uint64_t slot : files.wal_slots) {
    const std::string path = wal_slot_path(files.metadata_directory, slot);
    auto file = file_system.open_file(path);
    if (!file.ok()) {
      if (findings != nullptr) findings->loss(file.status().message());
      continue;
    }
    const auto log = LogReader::open(std::move(file).value(), files.keys());
    if (!log.ok()) continue;  // a slot that was never used
    const LogIdentity& identity = (*log)->identity();
    if (identity.store_id == files.store_id && identity.type == LogType::Wal)
      segments.push_back({.path = path, .identity = identity});
  }
  return chain_of(std::move(segments));
}

// The last sequence of a batch; damage is for salvage_wal() to tell.
SequenceNumber last_of(const LogRecord& record) {
  SequenceNumber next = record.sequence;
  WriteBatchReader batch(record.payload);
  while (batch.next() != nullptr) ++next;
  return next - 1;
}

}  // namespace

Result<SequenceNumber> find_wal_begin(FileSystem& file_system, const StoreFiles& files,
                                      SequenceNumber in_tables) {
  std::optional<SequenceNumber> begin;
  SequenceNumber last = 0;
  for (const Segment& segment : find_segments(file_system, files, nullptr)) {
    const auto look = [&](const LogRecord& record, std::uint64_t offset) -> Status {
      if (offset >= segment.end || (begin && record.sequence <= last)) return ok();
      const bool gap = record.sequence != last + 1;
      if (!begin || (gap && record.sequence <= in_tables + 1)) begin = record.sequence - 1;
      last = last_of(record);
      return ok();
    };
    const LogLook log = look_at_log(file_system, segment.path, files.keys(), look);
    if (!log.status.ok() && log.status.code() != StatusCode::Corruption) return log.status;
  }
  return begin.value_or(in_tables);
}

Status check_batch(ByteView batch) {
  WriteBatchReader reader(batch);
  while (const auto* const entry = reader.next()) {
    if (entry->namespace_id == 0 || entry->namespace_id > kNamespaceIdMax)
      return corruption("batch: a namespace that cannot be");
  }
  return reader.status();
}

Result<SequenceNumber> salvage_wal(
    FileSystem& file_system, const StoreFiles& files, SequenceNumber flushed, Findings& findings,
    const std::function<Result<SequenceNumber>(const LogRecord& record)>& apply) {
  SequenceNumber last = flushed;
  for (const Segment& segment : find_segments(file_system, files, &findings)) {
    Status stopped;
    const auto replay = [&](const LogRecord& record, std::uint64_t offset) -> Status {
      if (offset >= segment.end || record.sequence <= last) return ok();
      const std::string place = segment.path + " at byte " + std::to_string(offset) + ": ";
      if (record.sequence != last + 1)
        findings.loss(place + "the writes from " + std::to_string(last + 1) + " to " +
                      std::to_string(record.sequence - 1) + " are lost");
      const Result<SequenceNumber> applied = apply(record);
      if (applied.ok()) {
        last = *applied;
        return ok();
      }
      if (applied.status().code() == StatusCode::Corruption)
        return applied.status().as(StatusCode::Corruption).with_context(place);
      stopped = applied.status();
      return stopped;
    };
    const LogLook log = look_at_log(file_system, segment.path, files.keys(), replay);
    EC_TRY(stopped);
    if (log.status.ok()) continue;
    if (log.status.code() != StatusCode::Corruption) return log.status;
    findings.loss(log.status.message() + ": the writes after " + std::to_string(last) +
                  " in this segment are lost");
  }
  return last;
}

}  // namespace edgecase::engine
