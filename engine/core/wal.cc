#include "core/wal.h"

#include <algorithm>
#include <utility>

#include "base/counter.h"
#include "base/write_batch_reader.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "log/log_reader.h"

namespace edgecase::engine {
namespace {

// Between the numbers of one process and the next. A segment that was given up and removed may be
// back after a power cut, if its removal was not durable; its number must not have been used again.
constexpr std::uint64_t kNumberGap = std::uint64_t{1} << 32;

}  // namespace

Wal::Wal(FileSystem& file_system, Random& random, Settings settings)
    : file_system_(file_system), random_(random), settings_(std::move(settings)) {}

std::string Wal::slot_path(std::uint64_t index) const {
  return wal_slot_path(settings_.metadata_directory, index);
}

void Wal::count_slot(const WalSlot& slot) {
  if (slot.index >= used_indexes_.size()) used_indexes_.resize(slot.index + 1);
  used_indexes_[slot.index] = true;
  total_bytes_ += slot.capacity_bytes;
}

Status Wal::adopt(std::vector<WalSegment> chain, std::vector<WalSlot> free,
                  std::uint64_t highest_number) {
  next_number_ = highest_number + kNumberGap;
  {
    MutexLock lock(recovered_mutex_);
    recovered_is_synced_ = chain.empty();
  }
  {
    MutexLock lock(mutex_);
    for (const WalSegment& segment : chain) {
      count_slot(segment.slot);
      closed_.push_back(segment);
    }
    for (const WalSlot& slot : free) count_slot(slot);
  }
  EC_TRY(name_again(free));
  std::vector<WalSlot> outdated;
  {
    MutexLock lock(mutex_);
    std::uint64_t kept_bytes = total_bytes_;
    for (const WalSlot& slot : free) kept_bytes -= slot.capacity_bytes;
    for (const WalSlot& slot : free) {
      const bool useful = slot.capacity_bytes == settings_.segment_bytes &&
                          kept_bytes + slot.capacity_bytes <= settings_.limit_bytes;
      if (useful) kept_bytes += slot.capacity_bytes;
      (useful ? free_ : outdated).push_back(slot);
    }
  }
  for (const WalSlot& slot : outdated) static_cast<void>(delete_slot(slot).ok());
  return ok();
}

bool Wal::fits(std::uint64_t payload_bytes) const {
  return writer_ != nullptr && writer_->fits(payload_bytes);
}

Status Wal::append(SequenceNumber first, SequenceNumber last, std::span<const ByteView> parts) {
  const std::uint64_t before = writer_->appended_bytes();
  if (Status appended = writer_->append(first, parts); !appended.ok()) {
    note_failure();
    return appended;
  }
  const std::uint64_t after = writer_->appended_bytes();
  add_alone(bytes_written_, after - before);
  current_last_ = last;
  current_bytes_.store(after, std::memory_order_relaxed);
  return ok();
}

// What was to be appended may lie in the file, and nobody says when it expires.
void Wal::note_failure() {
  failed_ = true;
  note_expiry(WalSlot::kNotKnown);
}

Status Wal::sync() {
  if (writer_ == nullptr) return sync_recovered();
  const SequenceNumber through = current_last_;
  if (Status synced = writer_->sync(); !synced.ok()) {
    note_failure();
    return synced;
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  durable_sequence_ = through;
  return ok();
}

Result<std::unique_ptr<LogWriter>> Wal::open_segment(const WalSlot& slot, std::uint64_t predecessor,
                                                     std::uint64_t predecessor_bytes) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> file,
                      file_system_.open_log_file(slot_path(slot.index)));
  LogIdentity identity;
  identity.store_id = settings_.store_id;
  identity.type = LogType::Wal;
  identity.number = next_number_++;
  identity.predecessor = predecessor;
  identity.predecessor_bytes = predecessor_bytes;
  identity.salt = random_.next();
  return LogWriter::create(std::move(file), identity, settings_.keys);
}

void Wal::become_current(const WalSlot& slot, std::unique_ptr<LogWriter> writer,
                         SequenceNumber first, SequenceNumber last_sequence) {
  MutexLock lock(mutex_);
  if (current_.number != 0) closed_.push_back(current_segment());
  current_ = WalSegment{writer->identity().number, slot, 0, 0, false};
  current_.slot.oldest = std::min(slot.oldest, first);
  current_expires_ns_.store(slot.expires_ns);
  current_last_ = last_sequence;
  current_bytes_.store(writer->appended_bytes(), std::memory_order_relaxed);
  writer_ = std::move(writer);
}

Status Wal::start_segment(std::uint64_t payload_bytes, SequenceNumber acknowledged) {
  // What a failed segment must be copied of is less than the whole of it.
  const std::uint64_t copied = failed_ ? writer_->appended_bytes() - writer_->durable_bytes() : 0;
  const std::uint64_t capacity =
      std::max(settings_.segment_bytes,
               log_file_bytes_for(payload_bytes, settings_.keys != nullptr) + copied);
  EC_ASSIGN_OR_RETURN(const WalSlot slot, take_slot(capacity));
  Status started;
  if (!failed_) started = sync();
  if (started.ok())
    started = failed_ ? replace_failed(slot, acknowledged) : continue_chain(slot, acknowledged);
  if (!started.ok()) {
    WalSlot written = slot;  // in part, perhaps
    written.oldest = std::min(slot.oldest, durable_sequence_ + 1);
    written.expires_ns = WalSlot::kNotKnown;
    static_cast<void>(delete_slot(written).ok());
  }
  return started;
}

// The last segment of an earlier process may be in the page cache only.
Status Wal::sync_recovered() {
  MutexLock recovered_lock(recovered_mutex_);
  if (recovered_is_synced_) return ok();
  WalSegment last;
  {
    MutexLock lock(mutex_);
    last = closed_.back();
  }
  EC_TRY(write_log_again(file_system_, slot_path(last.slot.index), last.bytes));
  recovered_is_synced_ = true;
  return ok();
}

WalSegment Wal::current_segment() const {
  WalSegment segment = current_;
  segment.last_sequence = current_last_;
  segment.bytes = current_bytes_.load(std::memory_order_relaxed);
  segment.slot.expires_ns = current_expires_ns_.load();
  segment.slot.dirty_bytes = std::max(segment.slot.dirty_bytes,
                                      log_file_bytes_for(segment.bytes, settings_.keys != nullptr));
  return segment;
}

Status Wal::continue_chain(const WalSlot& slot, SequenceNumber acknowledged) {
  WalSegment before;
  {
    MutexLock lock(mutex_);
    // After recovery there is no current segment, but there may be a chain.
    if (current_.number != 0) {
      before = current_segment();
    } else if (!closed_.empty()) {
      before = closed_.back();
    }
  }
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer,
                      open_segment(slot, before.number, before.bytes));
  EC_TRY(writer->sync());
  become_current(slot, std::move(writer), acknowledged + 1, before.last_sequence);
  // A power cut may have taken the end of the log, of what tables hold: then that is earlier.
  durable_sequence_ = acknowledged;
  if (before.number != 0) link(before);
  return ok();
}

// To the current one, which is durable. Without it the loss of that one's file would not be noticed
// while it is the last, and nothing else.
void Wal::link(const WalSegment& before) {
  const auto file = file_system_.open_log_file(slot_path(before.slot.index));
  if (!file.ok()) return;
  static_cast<void>(
      write_link(**file, settings_.store_id, before.number, writer_->identity().number).ok());
}

Status Wal::replace_failed(const WalSlot& slot, SequenceNumber acknowledged) {
  WalSegment failed;
  {
    MutexLock lock(mutex_);
    failed = current_;
  }
  const std::uint64_t durable_bytes = writer_->durable_bytes();
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer,
                      open_segment(slot, failed.number, durable_bytes));
  EC_TRY(copy_tail(*writer, slot_path(failed.slot.index), durable_sequence_, acknowledged));
  EC_TRY(writer->sync());
  {
    MutexLock lock(mutex_);
    current_.given_up = true;
    current_bytes_.store(durable_bytes, std::memory_order_relaxed);
    current_last_ = durable_sequence_;
  }
  add_alone(bytes_written_, writer->appended_bytes());
  const std::int64_t expires_ns = current_expires_ns_.load();
  become_current(slot, std::move(writer), durable_sequence_ + 1, acknowledged);
  if (acknowledged > durable_sequence_) note_expiry(expires_ns);
  durable_sequence_ = acknowledged;
  failed_ = false;
  return ok();
}

Status Wal::copy_tail(LogWriter& to, const std::string& path, SequenceNumber after,
                      SequenceNumber through) {
  if (through <= after) return ok();
  EC_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, file_system_.open_file(path));
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                      LogReader::open(std::move(file), settings_.keys));
  while (after < through) {
    EC_ASSIGN_OR_RETURN(const std::optional<LogRecord> record, reader->next());
    if (!record) break;
    if (record->sequence <= after) continue;
    if (record->sequence != after + 1 || !to.fits(record->payload.size())) break;
    EC_TRY(to.append(record->sequence, {&record->payload, 1}));
    WriteBatchReader entries(record->payload);
    while (entries.next()) ++after;
    EC_TRY(entries.status());
  }
  return after == through ? ok() : io_error(path + ": acknowledged records cannot be read back");
}

std::uint64_t Wal::oldest_needed(SequenceNumber flushed) const {
  MutexLock lock(mutex_);
  for (const WalSegment& segment : closed_) {
    if (segment.last_sequence > flushed) return segment.number;
  }
  // Without a current one (after recovery) the last of the chain stays: the next names it.
  if (current_.number == 0 && !closed_.empty()) return closed_.back().number;
  return current_.number;
}

void Wal::release_before(std::uint64_t oldest_needed) {
  std::vector<WalSegment> released;
  {
    MutexLock lock(mutex_);
    while (!closed_.empty() && closed_.front().number < oldest_needed) {
      released.push_back(closed_.front());
      closed_.pop_front();
    }
  }
  for (const WalSegment& segment : released) {
    if (segment.given_up || segment.slot.capacity_bytes != settings_.segment_bytes) {
      static_cast<void>(delete_slot(segment.slot).ok());
    } else {
      give_back(segment.slot);
    }
  }
}

void Wal::give_back(const WalSlot& slot) {
  MutexLock lock(mutex_);
  free_.push_back(slot);
}

std::vector<Wal::File> Wal::files() const {
  MutexLock lock(mutex_);
  std::vector<File> files;
  for (const WalSegment& segment : closed_)
    files.push_back({slot_path(segment.slot.index), segment.bytes, segment.last_sequence});
  if (current_.number != 0)
    files.push_back({slot_path(current_.slot.index), current_bytes_.load(std::memory_order_relaxed),
                     UINT64_MAX});
  return files;
}

bool Wal::has_closed() const {
  MutexLock lock(mutex_);
  return !closed_.empty();
}

std::uint64_t Wal::record_bytes() const {
  MutexLock lock(mutex_);
  std::uint64_t bytes = current_bytes_.load(std::memory_order_relaxed);
  for (const WalSegment& segment : closed_) bytes += segment.bytes;
  return bytes;
}

}  // namespace edgecase::engine
