#include "core/wal.h"

#include <algorithm>
#include <utility>

#include "base/entry.h"
#include "file/file_names.h"
#include "log/log.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

// Between the numbers of one process and the next. A segment that was given up and removed may be
// back after a power cut, if its removal was not durable; its number must not have been used again.
constexpr std::uint64_t kNumberGap = std::uint64_t{1} << 32;

}  // namespace

Wal::Wal(FileSystem& file_system, Random& random, Settings settings)
    : file_system_(file_system),
      random_(random),
      settings_(std::move(settings)),
      slots_(file_system, settings_.metadata_directory, settings_.segment_bytes,
             settings_.limit_bytes) {}

Status Wal::adopt(std::vector<WalSegment> chain, std::vector<WalSlot> free,
                  std::uint64_t highest_number) {
  const RoleScope leads(leading);  // nobody writes yet
  next_number_ = highest_number + kNumberGap;
  {
    MutexLock lock(recovered_mutex_);
    recovered_is_synced_ = chain.empty();
  }
  std::vector<WalSlot> used;
  {
    MutexLock lock(mutex_);
    for (const WalSegment& segment : chain) {
      used.push_back(segment.slot);
      closed_.push_back(segment);
    }
  }
  return slots_.adopt(used, std::move(free));
}

bool Wal::fits(std::uint64_t payload_bytes) const {
  return writer_ != nullptr && !failed_ && writer_->fits(payload_bytes);
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
  if (bytes_written_.load(std::memory_order_relaxed) < write_out_until_) writer_->begin_write_out();
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
  Status synced = sync_closed();
  if (synced.ok()) synced = writer_->sync();
  if (!synced.ok()) {
    note_failure();
    return synced;
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  durable_sequence_ = through;
  write_out_until_ = bytes_written_.load() + settings_.segment_bytes;
  return ok();
}

void Wal::rest() {
  if (writer_ == nullptr || failed_) return;
  if (!writer_->write_rest().ok()) note_failure();
}

// What of them tables do not hold yet. That they are durable the current segment's head says, which
// the sync of that one brings to the drive.
Status Wal::sync_closed() {
  if (!writer_->identity().open_predecessor) return ok();
  std::vector<WalSegment> unsynced;
  {
    MutexLock lock(mutex_);
    for (const WalSegment& segment : closed_)
      if (!segment.durable) unsynced.push_back(segment);
  }
  for (const WalSegment& segment : unsynced)
    segment.file->begin_write_out(segment.file->capacity_bytes());
  for (const WalSegment& segment : unsynced) {
    EC_TRY(segment.file->sync());
    note_durable(segment.number);
    durable_sequence_ = std::max(durable_sequence_, segment.last_sequence);
  }
  return writer_->close_predecessor();
}

void Wal::note_durable(std::uint64_t number) {
  MutexLock lock(mutex_);
  for (WalSegment& segment : closed_) {
    if (segment.number != number) continue;
    segment.durable = true;
    segment.file = nullptr;
  }
}

bool Wal::all_is_durable() const {
  return writer_ == nullptr || (!writer_->identity().open_predecessor &&
                                writer_->durable_bytes() == writer_->appended_bytes());
}

std::uint64_t Wal::unsynced_bytes() const {
  std::uint64_t bytes =
      writer_ == nullptr ? 0 : writer_->appended_bytes() - writer_->durable_bytes();
  MutexLock lock(mutex_);
  for (const WalSegment& segment : closed_)
    if (!segment.durable) bytes += segment.bytes - segment.durable_bytes;
  return bytes;
}

// Without its head.
Result<std::unique_ptr<LogWriter>> Wal::prepare_segment(const WalSlot& slot,
                                                        const WalSegment& before) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogFile> file,
                      file_system_.open_log_file(slots_.path(slot.index)));
  LogIdentity identity;
  identity.store_id = settings_.store_id;
  identity.type = LogType::Wal;
  identity.number = next_number_++;
  identity.predecessor = before.number;
  identity.predecessor_bytes = before.bytes;
  identity.open_predecessor = !before.durable;
  identity.salt = random_.next();
  return LogWriter::prepare(std::move(file), identity, settings_.keys);
}

void Wal::become_current(const WalSlot& slot, std::unique_ptr<LogWriter> writer,
                         SequenceNumber first, SequenceNumber last_sequence) {
  current_ = WalSegment{.number = writer->identity().number, .slot = slot};
  current_.slot.oldest = std::min(slot.oldest, first);
  current_expires_ns_.store(slot.expires_ns);
  current_last_ = last_sequence;
  current_bytes_.store(writer->appended_bytes(), std::memory_order_relaxed);
  writer_ = std::move(writer);
}

Status Wal::start_segment(std::uint64_t payload_bytes, SequenceNumber acknowledged,
                          SequenceNumber flushed) {
  const std::uint64_t capacity = std::max(
      settings_.segment_bytes, log_file_bytes_for(payload_bytes, settings_.keys != nullptr));
  if (writer_ == nullptr) EC_TRY(sync_recovered());
  // What might have to be copied must find room in one slot. If this fails that is now.
  if (!failed_ && unsynced_bytes() + capacity > slots_.large_max_bytes())
    static_cast<void>(sync().ok());
  if (failed_) {
    EC_TRY(replace_failed(acknowledged, flushed));
    if (fits(payload_bytes)) return ok();
  }
  return begin_in_slot(capacity, [&](const WalSlot& slot) EC_REQUIRES(leading) {
    return continue_chain(slot, acknowledged);
  });
}

Status Wal::begin_in_slot(std::uint64_t capacity_bytes,
                          const std::function<Status(const WalSlot&)>& begin) {
  EC_ASSIGN_OR_RETURN(const WalSlot slot,
                      slots_.take(std::max(settings_.segment_bytes, capacity_bytes)));
  const Status begun = begin(slot);
  if (begun.ok()) return ok();
  WalSlot written = slot;  // in part, perhaps
  written.oldest = std::min(slot.oldest, durable_sequence_ + 1);
  written.expires_ns = WalSlot::kNotKnown;
  static_cast<void>(slots_.remove(written).ok());
  return begun;
}

// What an earlier process left may be in the page cache only.
Status Wal::sync_recovered() {
  MutexLock recovered_lock(recovered_mutex_);
  if (recovered_is_synced_) return ok();
  std::vector<WalSegment> unsynced;
  {
    MutexLock lock(mutex_);
    for (const WalSegment& segment : closed_)
      if (!segment.durable) unsynced.push_back(segment);
  }
  for (const WalSegment& segment : unsynced) {
    EC_TRY(write_log_again(file_system_, slots_.path(segment.slot.index), segment.bytes));
    note_durable(segment.number);
  }
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

void Wal::close_current() {
  if (current_.number == 0) return;
  WalSegment segment = current_segment();
  segment.durable = all_is_durable();
  if (!segment.durable) {
    segment.durable_bytes = writer_->durable_bytes();
    segment.file = writer_->release();
    segment.file->rest();
  }
  closed_.push_back(std::move(segment));
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
  before.durable = all_is_durable();
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer, prepare_segment(slot, before));
  EC_TRY(writer->write_head());
  // A power cut may have taken the end of the log, of what tables hold: then that is earlier.
  if (before.durable) durable_sequence_ = acknowledged;
  {
    MutexLock lock(mutex_);
    close_current();
    become_current(slot, std::move(writer), acknowledged + 1, before.last_sequence);
  }
  if (before.number != 0) link(before);
  return ok();
}

// To the current one, whose head is durable. Without it the loss of that one's file would not be
// noticed while it is the last, and nothing else.
void Wal::link(const WalSegment& before) {
  const auto file = file_system_.open_log_file(slots_.path(before.slot.index));
  if (!file.ok()) return;
  static_cast<void>(
      write_link(**file, settings_.store_id, before.number, writer_->identity().number).ok());
}

// From the first that is not durable to the current one, which takes no more.
Result<std::vector<WalSegment>> Wal::take_failed() {
  MutexLock lock(mutex_);
  std::vector<WalSegment> failed;
  for (const WalSegment& segment : closed_)
    if (!segment.durable || !failed.empty()) failed.push_back(segment);
  failed.push_back(current_segment());
  if (failed.size() == 1) failed.front().durable_bytes = writer_->durable_bytes();
  if (failed.front().number < named_oldest_)
    return busy("the write-ahead log failed and cannot be replaced until a flush succeeds");
  replaced_from_ = failed.front().number;
  return failed;
}

Status Wal::replace_failed(SequenceNumber acknowledged, SequenceNumber flushed) {
  EC_ASSIGN_OR_RETURN(const std::vector<WalSegment> failed, take_failed());
  const SequenceNumber after = std::max(durable_sequence_, flushed);
  std::uint64_t bytes = log_file_bytes_for(0, settings_.keys != nullptr);
  for (const WalSegment& segment : failed)
    if (acknowledged > after) bytes += segment.bytes - segment.durable_bytes;
  const bool is_small = bytes <= std::max(settings_.segment_bytes, slots_.large_max_bytes());
  Status replaced =
      busy("the write-ahead log failed, and no slot takes copies of what no table holds");
  if (is_small)
    replaced = begin_in_slot(bytes, [&](const WalSlot& slot) EC_REQUIRES(leading) {
      return copy_failed(slot, failed, after, acknowledged);
    });
  MutexLock lock(mutex_);
  replaced_from_ = 0;
  return replaced;
}

Status Wal::copy_failed(const WalSlot& slot, const std::vector<WalSegment>& failed,
                        SequenceNumber after, SequenceNumber acknowledged) {
  WalSegment first = failed.front();
  first.bytes = first.durable_bytes;
  first.durable = true;
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer, prepare_segment(slot, first));
  std::int64_t expires_ns = std::numeric_limits<std::int64_t>::max();
  SequenceNumber copied = after;
  for (const WalSegment& segment : failed) {
    if (copied >= acknowledged) break;
    EC_TRY(copy_records(*writer, slots_.path(segment.slot.index), copied, acknowledged));
    expires_ns = std::min(expires_ns, segment.slot.expires_ns);
  }
  if (copied < acknowledged)
    return io_error("the write-ahead log failed: acknowledged records cannot be read back");
  EC_TRY(writer->sync());
  EC_TRY(writer->write_head());
  add_alone(bytes_written_, writer->appended_bytes());
  const bool is_empty = writer->appended_bytes() == 0;
  {
    MutexLock lock(mutex_);
    // Nothing is needed of those behind the first.
    for (std::size_t i = 1; i + 1 < failed.size(); ++i) closed_.pop_back();
    if (failed.size() == 1) closed_.push_back(first);
    closed_.back() = first;
    closed_.back().given_up = true;
    closed_.back().file = nullptr;
    closed_.back().last_sequence = durable_sequence_;
    become_current(slot, std::move(writer), after + 1, acknowledged);
  }
  for (std::size_t i = 1; i < failed.size(); ++i)
    static_cast<void>(slots_.remove(failed[i].slot).ok());
  if (!is_empty) note_expiry(expires_ns);
  durable_sequence_ = acknowledged;
  failed_ = false;
  return ok();
}

Status Wal::copy_records(LogWriter& to, const std::string& path, SequenceNumber& copied,
                         SequenceNumber through) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, file_system_.open_file(path));
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                      LogReader::open(std::move(file), settings_.keys));
  while (copied < through) {
    EC_ASSIGN_OR_RETURN(const std::optional<LogRecord> record, reader->next());
    if (!record) break;
    if (record->sequence <= copied) continue;
    if (record->sequence != copied + 1 || !to.fits(record->payload.size())) break;
    EC_TRY(to.append(record->sequence, {&record->payload, 1}));
    WriteBatchReader entries(record->payload);
    while (entries.next()) ++copied;
    EC_TRY(entries.status());
  }
  return ok();
}

std::uint64_t Wal::oldest_needed(SequenceNumber flushed) {
  MutexLock lock(mutex_);
  // Without a current one (after recovery) the last of the chain stays: the next names it.
  std::uint64_t oldest = current_.number;
  if (oldest == 0 && !closed_.empty()) oldest = closed_.back().number;
  for (const WalSegment& segment : closed_) {
    if (segment.last_sequence <= flushed) continue;
    oldest = segment.number;
    break;
  }
  if (replaced_from_ != 0) oldest = std::min(oldest, replaced_from_);
  named_oldest_ = std::max(named_oldest_, oldest);
  return oldest;
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
      static_cast<void>(slots_.remove(segment.slot).ok());
    } else {
      slots_.give_back(segment.slot);
    }
  }
}

bool Wal::current_holds(SequenceNumber through) const {
  MutexLock lock(mutex_);
  return current_.number != 0 ? current_.slot.oldest <= through
                              : !closed_.empty() && closed_.back().slot.oldest <= through;
}

bool Wal::holds(SequenceNumber through) const {
  const auto has_old = [&](const WalSlot& slot) { return slot.oldest <= through; };
  {
    MutexLock lock(mutex_);
    if ((current_.number != 0 && has_old(current_.slot)) ||
        std::any_of(closed_.begin(), closed_.end(),
                    [&](const WalSegment& segment) { return has_old(segment.slot); }))
      return true;
  }
  return slots_.any_free(has_old) || slots_.any_resists([](const WalSlot&) { return true; });
}

void Wal::note_expiry(std::int64_t expires_ns) {
  if (expires_ns < current_expires_ns_.load()) current_expires_ns_.store(expires_ns);
}

void Wal::forget_expiries() {
  slots_.forget_expiries();
  MutexLock lock(mutex_);
  for (WalSegment& segment : closed_) segment.slot.expires_ns = WalSlot::kNotKnown;
  if (current_.number != 0) current_expires_ns_.store(WalSlot::kNotKnown);
}

bool Wal::needs_expired(std::int64_t now_ns) const {
  MutexLock lock(mutex_);
  return (current_.number != 0 && current_expires_ns_.load() < now_ns) ||
         std::any_of(closed_.begin(), closed_.end(),
                     [&](const WalSegment& segment) { return segment.slot.expires_ns < now_ns; });
}

bool Wal::holds_expired(std::int64_t now_ns) const {
  const auto has_expired = [&](const WalSlot& slot) { return slot.expires_ns < now_ns; };
  return needs_expired(now_ns) || slots_.any_free(has_expired) || slots_.any_resists(has_expired);
}

std::vector<Wal::File> Wal::files() const {
  MutexLock lock(mutex_);
  std::vector<File> files;
  for (const WalSegment& segment : closed_)
    files.push_back({slots_.path(segment.slot.index), segment.bytes, segment.last_sequence});
  if (current_.number != 0)
    files.push_back({slots_.path(current_.slot.index),
                     current_bytes_.load(std::memory_order_relaxed), UINT64_MAX});
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
