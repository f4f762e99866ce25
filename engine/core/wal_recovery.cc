#include "core/wal.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/entry.h"
#include "file/file_names.h"
#include "log/log.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

struct FoundLog {
  WalSlot slot;
  LogIdentity identity;
  std::uint64_t successor;
};

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr int kHeadReads = 3;

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

// The segment before one that is missing: the one that names it, else the newest there is.
std::uint64_t number_before(const std::map<std::uint64_t, FoundLog>& logs, std::uint64_t missing) {
  std::uint64_t newest = 0;
  for (const auto& [number, log] : logs) {
    if (number >= missing) break;
    newest = number;
    if (log.successor == missing) return number;
  }
  return newest;
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
    EC_TRY(note_missing(0, 0));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::uint64_t length = chain[i].bytes;
      EC_TRY(replay_segment(chain[i], length));
      EC_TRY(note_missing(chain[i].number, i + 1));
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
  // Writes from this one on are in no table.
  SequenceNumber first_needed() const { return std::max(last_, flushed_) + 1; }

  // The sequence of the first record of the chain from segment `next` on; 0: there is none, or it
  // cannot be read.
  Result<SequenceNumber> first_behind(std::size_t next) {
    if (next >= contents_.chain.size()) return SequenceNumber{0};
    EC_ASSIGN_OR_RETURN(
        const std::unique_ptr<LogReader> reader,
        open_slot(file_system_, metadata_directory_, contents_.chain[next].slot, keys_));
    const auto record = reader->next();
    return record.ok() && *record ? (*record)->sequence : SequenceNumber{0};
  }

  // What lay in a segment that is not there, unless tables have all of it.
  Status note_missing(std::uint64_t before, std::size_t next) {
    const auto missing = contents_.missing.find(before);
    if (missing == contents_.missing.end()) return ok();
    EC_ASSIGN_OR_RETURN(const SequenceNumber behind, first_behind(next));
    if (behind != 0 && behind <= first_needed()) return ok();
    WalDamage damage;
    damage.path = wal_directory(metadata_directory_);
    damage.problem = "WAL segment " + std::to_string(missing->second) + " is missing";
    for (const Status& each : contents_.unreadable) damage.problem += "; " + each.message();
    damage.first = first_needed();
    damage.last = behind == 0 ? 0 : behind - 1;
    note(std::move(damage));
    return ok();
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
      EC_ASSIGN_OR_RETURN(const SequenceNumber behind, first_behind(index_behind(segment)));
      note_damage(segment, reader->end_bytes(),
                  "the records end here; the next segment says that they went on to byte " +
                      std::to_string(kLogHeadBytes + length),
                  behind);
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

  // It may be read a second time.
  void note(WalDamage damage) {
    const bool is_known =
        std::any_of(contents_.damage.begin(), contents_.damage.end(), [&](const WalDamage& each) {
          return each.path == damage.path && each.offset == damage.offset &&
                 each.problem == damage.problem;
        });
    if (!is_known) contents_.damage.push_back(std::move(damage));
  }

  // `behind` is the sequence of the next record; 0: it is not known.
  void note_damage(const WalSegment& segment, std::uint64_t at, const std::string& what,
                   SequenceNumber behind) {
    note({path_of(segment), kLogHeadBytes + at,
          "WAL segment " + std::to_string(segment.number) + ": " + what, first_needed(),
          behind == 0 ? 0 : behind - 1});
  }

  // Batches count whole, on both sides of what is lost. False: none follows in this segment.
  Result<bool> step_over(const WalSegment& segment, LogReader& reader, const Status& damage) {
    const std::uint64_t at = reader.end_bytes();
    EC_ASSIGN_OR_RETURN(const bool goes_on, reader.step_over_damage());
    SequenceNumber sequence = 0;
    if (goes_on) {
      EC_ASSIGN_OR_RETURN(sequence, sequence_at(segment, reader.end_bytes()));
      reader.set_next_sequence(sequence);
    } else {
      EC_ASSIGN_OR_RETURN(sequence, first_behind(index_behind(segment)));
    }
    note_damage(segment, at, damage.message(), sequence);
    return goes_on;
  }

  std::size_t index_behind(const WalSegment& segment) const {
    return static_cast<std::size_t>(&segment - contents_.chain.data()) + 1;
  }

  // The sequence of the record at `position`, the first behind damage. A short one tells how far
  // its sequence is from that of the record before, which is lost: then it follows from the next
  // record that tells its own, if need be the first of the next segment. Where there is none any
  // number does that keeps the order, of those that no table holds.
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
    // Where a segment is missing the one before it is a guess: what it holds may be here again.
    if (record.sequence <= last_ && !contents_.missing.empty()) return ok();
    if (record.sequence <= last_)
      return damaged("sequence " + std::to_string(record.sequence) + " does not follow " +
                     std::to_string(last_));
    // A gap before is what a power cut took of writes without Sync after a flush had saved them, or
    // what lay in segments that are not needed any more; or what is damaged.
    if (record.sequence > first_needed() && contents_.damage.empty())
      note_damage(segment, at, "records before this one are missing", record.sequence);
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

std::string WalDamage::words() const {
  std::string words = offset == 0 ? "" : "at byte " + std::to_string(offset) + ": ";
  words += problem;
  if (first == 0 || (last != 0 && last < first)) return words;
  words += "; the writes from " + std::to_string(first);
  words += last == 0 ? " on" : " to " + std::to_string(last);
  return words + " are lost";
}

namespace {

// Every slot there is: the segments that may be needed by their number, the others among
// `contents`.
Result<std::map<std::uint64_t, FoundLog>> find_logs(FileSystem& file_system,
                                                    const std::string& metadata_directory,
                                                    const StoreId& store_id,
                                                    std::uint64_t oldest_needed, KeyRing* keys,
                                                    WalContents& contents) {
  std::map<std::uint64_t, FoundLog> logs;
  EC_ASSIGN_OR_RETURN(const auto entries,
                      file_system.list_directory(wal_directory(metadata_directory)));
  for (const DirectoryEntry& entry : entries) {
    const auto parsed = parse_file_name(entry.name);
    if (!parsed || parsed->type != FileType::WalSlot) continue;
    const std::string path = wal_slot_path(metadata_directory, parsed->number);
    WalSlot slot{parsed->number, 0};
    EC_ASSIGN_OR_RETURN(slot.capacity_bytes, file_system.file_size(path));
    auto reader = open_slot(file_system, metadata_directory, slot, keys);
    // It may be for once.
    for (int tries = 1; tries < kHeadReads && reader.status().code() == StatusCode::IoError;
         ++tries)
      reader = open_slot(file_system, metadata_directory, slot, keys);
    if (reader.status().code() == StatusCode::NotFound) {
      contents.free.push_back(slot);
      continue;
    }
    if (reader.status().code() == StatusCode::IoError) {
      contents.unreadable.push_back(reader.status());
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
  return logs;
}

}  // namespace

Result<WalContents> find_wal(FileSystem& file_system, const std::string& metadata_directory,
                             const StoreId& store_id, std::uint64_t oldest_needed, KeyRing* keys) {
  WalContents contents;
  EC_ASSIGN_OR_RETURN(auto logs, find_logs(file_system, metadata_directory, store_id, oldest_needed,
                                           keys, contents));
  contents.highest_number = std::max(contents.highest_number, oldest_needed);

  // From the newest back to the oldest: what no link leads to was given up before it was used.
  std::uint64_t number = logs.empty() ? oldest_needed : logs.rbegin()->first;
  for (const auto& [at, log] : logs)
    if (log.successor > number && !is_replaced(logs, at, log)) number = log.successor;
  // One broken head is damage, all of them are a drive that fails.
  if (logs.empty() && !contents.unreadable.empty()) return contents.unreadable.front();
  bool durable = false;
  std::uint64_t length = kNoLimit;  // as the segment behind says
  std::uint64_t missing = 0;        // one between the two
  while (number != 0 && number >= oldest_needed) {
    const auto found = logs.find(number);
    if (found == logs.end()) {
      if (missing == 0) missing = number;
      contents.highest_number = std::max(contents.highest_number, number);
      length = kNoLimit;
      number = number_before(logs, number);
      continue;
    }
    WalSegment segment;
    segment.number = number;
    segment.slot = found->second.slot;
    segment.bytes = length;
    segment.durable = durable;
    const LogIdentity& identity = found->second.identity;
    durable = durable || !identity.open_predecessor;
    length = identity.predecessor_bytes;
    if (missing != 0) contents.missing[number] = std::exchange(missing, 0);
    contents.chain.insert(contents.chain.begin(), segment);
    const std::uint64_t before = identity.predecessor;
    if (before >= number)
      return corruption_in(wal_slot_path(metadata_directory, segment.slot.index),
                           ": names a predecessor newer than itself");
    logs.erase(found);
    number = before;
  }
  const bool lacks_begin = oldest_needed != 0 && (contents.chain.empty() ||
                                                  contents.chain.front().number != oldest_needed);
  if (missing == 0 && lacks_begin) missing = oldest_needed;
  if (missing != 0) contents.missing[0] = missing;
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

SequenceNumber newest_of(std::span<const RangeDelete> deletes) {
  SequenceNumber newest = 0;
  for (const RangeDelete& each : deletes) newest = std::max(newest, each.sequence);
  return newest;
}

void note_known(const std::string& metadata_directory, SequenceNumber flushed,
                std::span<const RangeDelete> erasures, WalContents& contents) {
  const SequenceNumber known = newest_of(erasures);
  const SequenceNumber last = std::max(contents.last_sequence, flushed);
  if (known <= last || !contents.damage.empty()) return;
  contents.damage.push_back(
      {wal_directory(metadata_directory), 0,
       "the end is missing: the manifest knows of write " + std::to_string(known), last + 1, 0});
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
