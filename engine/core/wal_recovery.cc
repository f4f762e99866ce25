#include "core/wal_recovery.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/write_batch_reader.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "log/log_reader.h"

namespace edgecase::engine {
namespace {

struct FoundLog {
  WalSlot slot;
  LogIdentity identity;
  std::uint64_t successor;
};

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

Result<std::unique_ptr<LogReader>> open_slot(FileSystem& file_system,
                                             const std::string& metadata_directory,
                                             const WalSlot& slot, KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(auto file,
                      file_system.open_file(wal_slot_path(metadata_directory, slot.index)));
  return LogReader::open(std::move(file), keys);
}

// Whether what follows this log is another one than it was.
bool is_replaced(const std::map<std::uint64_t, FoundLog>& logs, std::uint64_t number,
                 const FoundLog& log) {
  return std::any_of(logs.upper_bound(log.successor), logs.end(), [&](const auto& later) {
    return later.second.identity.predecessor == number;
  });
}

// Replays segments one after another and keeps count.
class Replay {
 public:
  Replay(FileSystem& file_system, const std::string& metadata_directory, SequenceNumber flushed,
         WalContents& contents, const ApplyBatch& apply, KeyRing* keys)
      : file_system_(file_system),
        metadata_directory_(metadata_directory),
        flushed_(flushed),
        contents_(contents),
        apply_(apply),
        keys_(keys) {}

  Status run() {
    std::vector<WalSegment>& chain = contents_.chain;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::uint64_t length = chain[i].bytes;
      EC_TRY(replay_segment(chain[i], length));
      if (length == kNoLimit || chain[i].bytes == length) continue;
      for (std::size_t at = i + 1; at < chain.size(); ++at)
        contents_.dropped.push_back(chain[at].slot);
      contents_.free.insert(contents_.free.end(), contents_.dropped.begin(),
                            contents_.dropped.end());
      contents_.torn_tail = true;
      chain.resize(i + 1);
    }
    contents_.last_sequence = last_;
    return ok();
  }

 private:
  // A gap is what a power cut took of writes without Sync after a flush had saved them, or what
  // lay in segments that are not needed any more; or what is damaged.
  bool follows(SequenceNumber sequence) const {
    return sequence == last_ + 1 ||
           (sequence > last_ && (sequence <= flushed_ + 1 || !contents_.damage.empty()));
  }

  std::string path_of(const WalSegment& segment) const {
    return wal_slot_path(metadata_directory_, segment.slot.index);
  }

  Status replay_segment(WalSegment& segment, std::uint64_t length) {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                        open_slot(file_system_, metadata_directory_, segment.slot, keys_));
    bool is_lost_to_end = false;
    while (reader->end_bytes() < length) {
      const std::uint64_t at = reader->end_bytes();
      const auto record = reader->next();
      if (!record.ok() && reader->is_damaged()) {
        EC_ASSIGN_OR_RETURN(const bool goes_on, step_over(segment, *reader, record.status()));
        is_lost_to_end = !goes_on;
        if (goes_on) continue;
        break;
      }
      if (!record.ok()) return record.status();
      if (!*record) break;
      EC_TRY(replay_record(segment, at, **record));
    }
    const bool may_be_torn = !segment.durable && reader->end_bytes() < length;
    if (length != kNoLimit && reader->end_bytes() < length && !may_be_torn && !is_lost_to_end) {
      note_damage(segment, reader->end_bytes(),
                  "the records end here; the next segment says that they went on to byte " +
                      std::to_string(kLogHeadBytes + length));
      is_lost_to_end = true;
    }
    if (length != kNoLimit && reader->end_bytes() > length)
      return corruption_in(path_of(segment),
                           ": WAL segment " + std::to_string(segment.number) + " ends at byte " +
                               std::to_string(reader->end_bytes()) +
                               " of its records; the next one says " + std::to_string(length));
    if (length == kNoLimit) contents_.torn_tail = reader->torn_tail() && !is_lost_to_end;
    segment.bytes = is_lost_to_end && length != kNoLimit ? length : reader->end_bytes();
    segment.last_sequence = last_;
    contents_.bytes += segment.bytes;
    return ok();
  }

  void note_damage(const WalSegment& segment, std::uint64_t at, const std::string& what) {
    // It may be read a second time.
    WalDamage damage{path_of(segment), kLogHeadBytes + at, what};
    const bool is_known =
        std::any_of(contents_.damage.begin(), contents_.damage.end(), [&](const WalDamage& each) {
          return each.path == damage.path && each.offset == damage.offset;
        });
    if (!is_known) contents_.damage.push_back(std::move(damage));
  }

  // Batches count whole, on both sides of what is lost. False: none follows in this segment.
  Result<bool> step_over(const WalSegment& segment, LogReader& reader, const Status& damage) {
    note_damage(segment, reader.end_bytes(), damage.message());
    EC_ASSIGN_OR_RETURN(const bool goes_on, reader.step_over_damage());
    if (!goes_on) return false;
    EC_ASSIGN_OR_RETURN(const SequenceNumber sequence, sequence_at(segment, reader.end_bytes()));
    reader.set_next_sequence(sequence);
    return true;
  }

  // Of the record at `position`, the first behind damage. A short one tells how far its sequence is
  // from that of the record before, which is lost: then it follows from the next record that tells
  // its own, if need be the first of the next segment. Where there is none any number does that
  // keeps the order, of those that no table holds.
  Result<SequenceNumber> sequence_at(const WalSegment& segment, std::uint64_t position) {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                        open_slot(file_system_, metadata_directory_, segment.slot, keys_));
    reader->move_to(position);
    SequenceNumber least = std::max(last_, flushed_) + 1;
    std::uint64_t behind = 0;  // entries from `position` on
    std::uint64_t entries = 0;
    for (bool is_first = true;; is_first = false) {
      auto record = reader->next();
      // Another damage: all that is known is the order.
      if (!record.ok() && reader->is_damaged()) return least;
      if (!record.ok()) return record.status();
      if (!*record) break;
      if ((*record)->step == 0)
        return (*record)->sequence - std::min((*record)->sequence, behind + entries);
      if (is_first) {
        least = std::max(last_ + 1 + (*record)->step, least);
      } else {
        behind += (*record)->step;
      }
      WriteBatchReader batch((*record)->payload);
      for (entries = 0; batch.next();) ++entries;
      EC_TRY(batch.status());
    }
    const auto next =
        std::find_if(contents_.chain.begin(), contents_.chain.end(),
                     [&](const WalSegment& each) { return each.number > segment.number; });
    if (next == contents_.chain.end()) return least;
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> following,
                        open_slot(file_system_, metadata_directory_, next->slot, keys_));
    const auto first = following->next();
    if (!first.ok() || !*first || (*first)->sequence <= behind + entries) return least;
    return (*first)->sequence - behind - entries;
  }

  Status replay_record(const WalSegment& segment, std::uint64_t at, const LogRecord& record) {
    const auto damaged = [&](const std::string& what) {
      return corruption_in(path_of(segment), ": WAL segment " + std::to_string(segment.number) +
                                                 ", record at byte " + std::to_string(at) + ": " +
                                                 what);
    };
    if (!follows(record.sequence))
      return damaged("sequence " + std::to_string(record.sequence) + " does not follow " +
                     std::to_string(last_));
    const Result<std::uint64_t> entries = apply_(record.sequence, record.payload);
    if (entries.status().code() == StatusCode::Corruption)
      return damaged(entries.status().message());
    if (!entries.ok()) return entries.status();
    if (*entries == 0) return damaged("empty batch");
    last_ = record.sequence + *entries - 1;
    ++contents_.records;
    return ok();
  }

  FileSystem& file_system_;
  const std::string& metadata_directory_;
  const SequenceNumber flushed_;
  WalContents& contents_;
  const ApplyBatch& apply_;
  KeyRing* const keys_;
  SequenceNumber last_ = 0;
};

}  // namespace

Result<WalContents> find_wal(FileSystem& file_system, const std::string& metadata_directory,
                             const StoreId& store_id, std::uint64_t oldest_needed, KeyRing* keys) {
  WalContents contents;
  std::map<std::uint64_t, FoundLog> logs;  // by number
  EC_ASSIGN_OR_RETURN(const auto entries,
                      file_system.list_directory(wal_directory(metadata_directory)));
  for (const DirectoryEntry& entry : entries) {
    const auto parsed = parse_file_name(entry.name);
    if (!parsed || parsed->type != FileType::WalSlot) continue;
    const std::string path = wal_slot_path(metadata_directory, parsed->number);
    WalSlot slot{parsed->number, 0};
    EC_ASSIGN_OR_RETURN(slot.capacity_bytes, file_system.file_size(path));
    auto reader = open_slot(file_system, metadata_directory, slot, keys);
    if (reader.status().code() == StatusCode::NotFound) {
      contents.free.push_back(slot);
      continue;
    }
    if (!reader.ok()) return reader.status();
    const LogIdentity& identity = (*reader)->identity();
    if (identity.store_id != store_id) return unavailable(path + ": belongs to another store");
    if (identity.type != LogType::Wal) return corruption_in(path, ": is no write-ahead log");
    contents.highest_number = std::max(contents.highest_number, identity.number);
    if (identity.number < oldest_needed) {
      contents.free.push_back(slot);
    } else if (const FoundLog found{slot, identity, (*reader)->successor()};
               !logs.emplace(identity.number, found).second) {
      return corruption_in(path, ": a second WAL segment " + std::to_string(identity.number));
    }
  }
  contents.highest_number = std::max(contents.highest_number, oldest_needed);

  // From the newest back to the oldest: what no link leads to was given up before it was used.
  std::uint64_t number = logs.empty() ? oldest_needed : logs.rbegin()->first;
  for (const auto& [at, log] : logs)
    if (log.successor != 0 && !logs.contains(log.successor) && !is_replaced(logs, at, log))
      number = log.successor;
  bool durable = false;
  while (number != 0 && number >= oldest_needed) {
    const auto found = logs.find(number);
    if (found == logs.end())
      return corruption(wal_directory(metadata_directory) + ": WAL segment " +
                        std::to_string(number) + " is missing");
    WalSegment segment;
    segment.number = number;
    segment.slot = found->second.slot;
    // For now the length of the one before; read_wal() wants each with its own.
    segment.bytes = found->second.identity.predecessor_bytes;
    segment.durable = durable;
    durable = durable || !found->second.identity.open_predecessor;
    contents.chain.insert(contents.chain.begin(), segment);
    const std::uint64_t before = found->second.identity.predecessor;
    if (before >= number)
      return corruption_in(wal_slot_path(metadata_directory, segment.slot.index),
                           ": names a predecessor newer than itself");
    logs.erase(found);
    number = before;
  }
  if (oldest_needed != 0 && contents.chain.front().number != oldest_needed)
    return corruption(wal_directory(metadata_directory) + ": WAL segment " +
                      std::to_string(oldest_needed) + " is missing");
  for (std::size_t i = 0; i < contents.chain.size(); ++i) {
    const bool last = i + 1 == contents.chain.size();
    contents.chain[i].bytes = last ? kNoLimit : contents.chain[i + 1].bytes;
  }
  for (const auto& [stray, log] : logs) contents.free.push_back(log.slot);
  return contents;
}

Status read_wal(FileSystem& file_system, const std::string& metadata_directory,
                SequenceNumber flushed, WalContents& contents, const ApplyBatch& apply,
                KeyRing* keys) {
  contents.records = 0;
  contents.bytes = 0;
  return Replay(file_system, metadata_directory, flushed, contents, apply, keys).run();
}

// Whatever happens in between, what is left is a chain from the oldest segment on.
Status forget_dropped(FileSystem& file_system, const std::string& metadata_directory,
                      const StoreId& store_id, const WalContents& contents) {
  if (contents.dropped.empty()) return ok();
  const WalSegment& last = contents.chain.back();
  EC_ASSIGN_OR_RETURN(
      const std::unique_ptr<LogFile> file,
      file_system.open_log_file(wal_slot_path(metadata_directory, last.slot.index)));
  EC_TRY(write_link(*file, store_id, last.number, 0));
  EC_TRY(file->sync());
  for (auto slot = contents.dropped.rbegin(); slot != contents.dropped.rend(); ++slot) {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> dropped,
                        file_system.open_log_file(wal_slot_path(metadata_directory, slot->index)));
    EC_TRY(dropped->write_durably(0, Bytes(kLogHeadBytes, '\0')));
  }
  return ok();
}

}  // namespace edgecase::engine
