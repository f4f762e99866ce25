#include "log/log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/coding.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kReadAheadBytes = 256u << 10;
// What the system reads of a file at once: a sector that is broken takes its page along.
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kSearchedBytes = 64u << 10;  // at a time, for records behind the end
// Within a copy of the head: the salt of a sealed log, and the checksum of either kind.
constexpr std::size_t kSaltAt = 64;
constexpr std::size_t kSealedChecksumAt = kSaltAt + kSaltBytes;
static_assert(kShortRecordMaxBytes < kSearchedBytes && kSearchedBytes <= kReadAheadBytes);
// A short record proves damage alone if it lies no farther behind: in so few places none is found
// by chance, since it has to say what can be, too. Farther away it takes two.
constexpr std::uint64_t kNearBytes = 64u << 10;

enum class HeadCopy : unsigned char { Broken, Newer, Valid };

// A log's head, and of a sealed one the salt.
struct LogHead {
  LogIdentity identity;
  std::uint32_t version = 0;
  std::optional<KeySalt> salt;
};

HeadCopy decode_head_copy(ByteView copy, LogHead& head) {
  if (copy.size() < kLogHeadCopyBytes) return HeadCopy::Broken;
  const char* data = copy.data();
  if (std::memcmp(data, kLogMagic, sizeof kLogMagic) != 0) return HeadCopy::Broken;
  const std::uint32_t version = decode_fixed32(data + 8);
  const auto is_whole = [&](std::size_t checksum_at) {
    return copy.size() >= checksum_at + 8 &&
           decode_fixed32(data + checksum_at) == crc32c(copy.substr(0, checksum_at));
  };
  const bool sealed = is_sealed_version(version);
  if (version > kLogVersionMax)
    return is_whole(kSaltAt) || is_whole(kSealedChecksumAt) ? HeadCopy::Newer : HeadCopy::Broken;
  if (!is_whole(sealed ? kSealedChecksumAt : kSaltAt)) return HeadCopy::Broken;
  LogIdentity& identity = head.identity;
  const std::uint32_t type = decode_fixed32(data + 12);
  if (version == 0 || (type != static_cast<std::uint32_t>(LogType::Wal) &&
                       type != static_cast<std::uint32_t>(LogType::Manifest))) {
    return HeadCopy::Broken;
  }
  head.version = version;
  identity.type = static_cast<LogType>(type);
  std::memcpy(identity.store_id.data(), data + 16, identity.store_id.size());
  identity.number = decode_fixed64(data + 32);
  identity.predecessor = decode_fixed64(data + 40);
  identity.predecessor_bytes = decode_fixed64(data + 48);
  identity.open_predecessor = has_open_predecessor(version);
  identity.salt = decode_fixed64(data + 56);
  head.salt.reset();
  if (sealed) std::memcpy(head.salt.emplace().data(), data + kSaltAt, kSaltBytes);
  return HeadCopy::Valid;
}

// A head is written again when its predecessor is durable.
bool is_newer(const LogIdentity& a, const LogIdentity& b) {
  return a.number != b.number ? a.number > b.number : b.open_predecessor && !a.open_predecessor;
}

// The zeros behind the last record are most of a young log, and no header is all zeros: told
// without their checksum.
bool is_unwritten(ByteView bytes) {
  if (bytes.size() < kLogRecordHeaderBytes) return false;
  const char* data = bytes.data();
  return (decode_fixed64(data) | decode_fixed64(data + 8) | decode_fixed64(data + 16) |
          decode_fixed64(data + 24)) == 0;
}

// How far behind an unwritten header the first place lies where one might be.
std::uint64_t unwritten_bytes(ByteView bytes) {
  const std::uint64_t reached = first_nonzero(bytes) - kLogRecordHeaderBytes;
  return (reached / kLogAlignmentBytes + 1) * kLogAlignmentBytes;
}

}  // namespace

class LogReader::Inside {
 public:
  Inside(std::unique_ptr<RandomAccessFile> file, const LogHead& head,
         std::unique_ptr<FileCipher> cipher, std::uint64_t rested)
      : file_(std::move(file)),
        size_(file_->size_bytes()),
        version_(head.version),
        salt_(log_salt(head.identity)),
        cipher_(std::move(cipher)),
        rested_(rested),
        proven_(rested) {}

  Result<std::optional<LogRecord>> next() {
    if (ended_) return std::optional<LogRecord>();
    const std::uint64_t offset = kLogHeadBytes + position_;
    EC_ASSIGN_OR_RETURN(const ByteView bytes, view(offset, kShortRecordMaxBytes));
    ShortRecordHeader found;
    if (is_short_record(bytes, position_, found)) {
      proven_ = std::max(proven_, found.durable);
      const std::uint64_t sequence =
          std::exchange(next_sequence_, std::nullopt).value_or(last_sequence_ + found.step);
      return taken(sequence, kShortRecordHeaderBytes,
                   bytes.substr(kShortRecordHeaderBytes, found.payload_bytes), found.step);
    }
    LogRecordHeader header;
    const bool begun =
        decode_log_record_header(bytes.substr(0, kLogRecordHeaderBytes), position_, salt_, header);
    if (begun) {
      proven_ = std::max(proven_, header.durable);
      EC_ASSIGN_OR_RETURN(const ByteView payload,
                          view(offset + kLogRecordHeaderBytes, header.payload_bytes));
      const std::uint32_t record_salt = log_record_salt(salt_, position_);
      if (payload.size() == header.payload_bytes &&
          crc32c_extend(record_salt, payload) == header.payload_checksum) {
        next_sequence_.reset();
        return taken(header.sequence, kLogRecordHeaderBytes, payload, 0);
      }
    }
    EC_TRY(end_here(begun, begun ? kLogRecordHeaderBytes + header.payload_bytes : 0));
    return std::optional<LogRecord>();
  }

  bool is_damaged() const { return is_damaged_; }

  // A short record far behind counts with another one, as in end_here().
  Result<bool> step_over_damage() {
    for (std::uint64_t position = position_ + kLogAlignmentBytes;;) {
      EC_ASSIGN_OR_RETURN(const ByteView piece, view(kLogHeadBytes + position, kSearchedBytes));
      if (piece.size() <= kShortRecordHeaderBytes) return false;
      if (is_unwritten(piece)) {
        position += std::min<std::uint64_t>(unwritten_bytes(piece), log_aligned(piece.size()));
        continue;
      }
      std::uint64_t behind = 0;
      EC_ASSIGN_OR_RETURN(const RecordKind kind, kind_at(position, behind));
      bool counts = kind == RecordKind::Long;
      if (kind == RecordKind::Short) {
        std::uint64_t behind_next = 0;
        EC_ASSIGN_OR_RETURN(const RecordKind next, kind_at(behind, behind_next));
        counts = position - position_ <= kNearBytes || next != RecordKind::None;
      }
      if (counts) {
        move_to(position);
        return true;
      }
      position += kLogAlignmentBytes;
    }
  }
  void move_to(std::uint64_t position) {
    position_ = position;
    is_damaged_ = false;
    ended_ = false;
  }
  void set_next_sequence(std::uint64_t sequence) { next_sequence_ = sequence; }

  std::uint64_t end_bytes() const { return position_; }
  std::uint64_t proven_bytes() const { return proven_; }
  bool torn_tail() const { return torn_tail_; }
  std::uint32_t version() const { return version_; }

 private:
  bool is_short_record(ByteView bytes, std::uint64_t position, ShortRecordHeader& header) const {
    return has_short_records(version_) && decode_short_record(bytes, position, salt_, header);
  }

  enum class RecordKind : unsigned char { None, Short, Long };

  // The kind of a whole record; `behind` is where the next one begins.
  Result<RecordKind> kind_at(std::uint64_t position, std::uint64_t& behind) {
    EC_ASSIGN_OR_RETURN(const ByteView bytes, view(kLogHeadBytes + position, kShortRecordMaxBytes));
    ShortRecordHeader found;
    if (is_short_record(bytes, position, found)) {
      behind = position + log_aligned(kShortRecordHeaderBytes + found.payload_bytes);
      return RecordKind::Short;
    }
    LogRecordHeader header;
    if (!decode_log_record_header(bytes.substr(0, kLogRecordHeaderBytes), position, salt_, header))
      return RecordKind::None;
    EC_ASSIGN_OR_RETURN(
        const ByteView payload,
        view(kLogHeadBytes + position + kLogRecordHeaderBytes, header.payload_bytes));
    behind = position + log_record_bytes(header.payload_bytes);
    const bool is_whole =
        payload.size() == header.payload_bytes &&
        crc32c_extend(log_record_salt(salt_, position), payload) == header.payload_checksum;
    return is_whole ? RecordKind::Long : RecordKind::None;
  }

  // The record at position_, which is whole. What is sealed is opened in place: nobody looks at
  // these bytes again.
  Result<std::optional<LogRecord>> taken(std::uint64_t sequence, std::uint64_t header_bytes,
                                         ByteView payload, std::uint64_t step) {
    const std::uint64_t position = position_;
    const std::uint64_t stored_bytes = header_bytes + payload.size();
    position_ += log_aligned(stored_bytes);
    last_sequence_ = sequence;
    if (cipher_ == nullptr)
      return std::optional<LogRecord>(LogRecord{sequence, payload, stored_bytes, step});
    char* const out = buffer_.data() + (payload.data() - buffer_.data());
    const Opened opened = payload.size() < kSealBytes
                              ? Opened::Changed
                              : cipher_->open(kDatabaseKey, position, payload, out);
    if (opened != Opened::Yes)
      return explain(opened, file_->path(), kLogHeadBytes + position, "record");
    payload.remove_suffix(kSealBytes);
    return std::optional<LogRecord>(LogRecord{sequence, payload, stored_bytes, step});
  }

  // The bytes at `offset`: fewer than `size` at the end of the file. `size` is bounded by
  // kLogPayloadMaxBytes, and memory is taken for what the file has, not for what a length says.
  Result<ByteView> view(std::uint64_t offset, std::uint64_t size) {
    size = std::min(size, offset < size_ ? size_ - offset : 0);
    if (offset < buffer_offset_ || offset + size > buffer_offset_ + buffer_.size()) {
      const std::uint64_t wanted =
          std::min(std::max(size, kReadAheadBytes), offset < size_ ? size_ - offset : 0);
      buffer_.resize(wanted);
      buffer_offset_ = offset;
      auto got = file_->read(offset, wanted, buffer_.data());
      if (got.status().code() == StatusCode::IoError) got = read_pages(offset, wanted);
      buffer_.resize(got.ok() ? *got : 0);
      if (!got.ok()) return got.status();
      size = std::min<std::uint64_t>(size, buffer_.size());
    }
    return ByteView(buffer_).substr(offset - buffer_offset_, size);
  }

  // Page by page; those that cannot be read are zeros here, and known. Where nearly none can, it is
  // the drive that fails.
  Result<std::size_t> read_pages(std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t kBrokenPagesMax = 32;
    std::uint64_t broken = 0;
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t at = offset + done;
      const std::uint64_t size = std::min(kPageBytes - at % kPageBytes, bytes - done);
      const auto got = file_->read(at, size, buffer_.data() + done);
      if (!got.ok() && got.status().code() != StatusCode::IoError) return got.status();
      if (!got.ok() || *got < size) {
        if (++broken > kBrokenPagesMax) return got.ok() ? io_error(file_->path()) : got.status();
        std::memset(buffer_.data() + done, 0, size);
        unreadable_.insert(at / kPageBytes);
      }
      done += size;
    }
    return bytes;
  }
  bool is_readable(std::uint64_t offset, std::uint64_t bytes) const {
    const auto page = unreadable_.lower_bound(offset / kPageBytes);
    return page == unreadable_.end() || *page * kPageBytes >= offset + bytes;
  }

  // No valid record at position_: looks for later ones. One of them that was written when the bytes
  // at position_ were durable proves that they have been damaged since, and so does a page of the
  // record that cannot be read.
  Status end_here(bool begun, std::uint64_t record_bytes) {
    torn_tail_ = begun;
    std::uint64_t proof = 0;  // the place of the first such
    std::uint64_t doubtful = 0;
    for (std::uint64_t position = position_ + kLogAlignmentBytes;;) {
      EC_ASSIGN_OR_RETURN(const ByteView piece, view(kLogHeadBytes + position, kSearchedBytes));
      if (piece.size() <= kShortRecordHeaderBytes) break;
      // Whole short records, but at the end of the file.
      const std::size_t needed =
          piece.size() == kSearchedBytes ? kShortRecordMaxBytes : kShortRecordHeaderBytes + 1;
      std::uint64_t step = 0;
      for (std::size_t at = 0; at + needed <= piece.size(); at += step, position += step) {
        step = kLogAlignmentBytes;
        const ByteView bytes = piece.substr(at);
        if (is_unwritten(bytes)) {
          step = unwritten_bytes(bytes);
          continue;
        }
        LogRecordHeader header;
        ShortRecordHeader found;
        const bool is_short = is_short_record(bytes, position, found);
        if (is_short) {
          header.durable = found.durable;
        } else if (!decode_log_record_header(bytes.substr(0, kLogRecordHeaderBytes), position,
                                             salt_, header)) {
          continue;
        }
        torn_tail_ = true;
        proven_ = std::max(proven_, header.durable);
        if (header.durable <= position_ || proof != 0) continue;
        if (is_short && position - position_ > kNearBytes && doubtful++ == 0) continue;
        proof = position;
      }
    }
    const std::uint64_t offset = kLogHeadBytes + position_;
    const bool is_read = is_readable(offset, std::max(record_bytes, kShortRecordMaxBytes));
    is_damaged_ = proof != 0 || position_ < rested_ || !is_read;
    if (!is_read)
      return corruption_in(file_->path(),
                           " at byte " + std::to_string(offset) + ": record cannot be read");
    if (proof == 0 && is_damaged_)
      return corruption(file_->path() + " at byte " + std::to_string(kLogHeadBytes + position_) +
                        ": record is damaged; the head says that the log was durable up to byte " +
                        std::to_string(kLogHeadBytes + rested_));
    if (proof != 0)
      return corruption_in(file_->path(), " at byte " + std::to_string(kLogHeadBytes + position_) +
                                              ": record is damaged; one at byte " +
                                              std::to_string(kLogHeadBytes + proof) +
                                              " was written after it was durable");
    ended_ = true;
    return ok();
  }

  std::unique_ptr<RandomAccessFile> file_;
  const std::uint64_t size_;
  const std::uint32_t version_;
  const std::uint32_t salt_;
  const std::unique_ptr<FileCipher> cipher_;  // null: not sealed
  const std::uint64_t rested_;                // durable, as the head says
  bool is_damaged_ = false;
  std::set<std::uint64_t> unreadable_;          // pages of the file that gave errors
  std::optional<std::uint64_t> next_sequence_;  // of the next record, if it is a short one
  std::uint64_t position_ = 0;                  // of the next record
  std::uint64_t last_sequence_ = 0;             // of the record before it
  std::uint64_t proven_ = 0;
  bool ended_ = false;
  bool torn_tail_ = false;
  Bytes buffer_;
  std::uint64_t buffer_offset_ = 0;
};

Result<std::unique_ptr<LogReader>> LogReader::open(std::unique_ptr<RandomAccessFile> file,
                                                   KeyRing* keys) {
  Bytes bytes(kLogHeadBytes, '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t got, file->read(0, bytes.size(), bytes.data()));
  bytes.resize(got);
  std::optional<LogHead> best;
  bool newer = false;
  for (const std::uint64_t offset : kLogHeadCopyOffsets) {
    if (offset >= bytes.size()) continue;
    LogHead head;
    const HeadCopy copy =
        decode_head_copy(ByteView(bytes).substr(offset, kSealedLogHeadCopyBytes), head);
    newer = newer || copy == HeadCopy::Newer;
    if (copy == HeadCopy::Valid && (!best || is_newer(head.identity, best->identity))) best = head;
  }
  if (newer) return unsupported(file->path() + " is a log of a newer format");
  if (!best) return not_found(file->path() + " holds no log: its head was never written whole");
  EC_ASSIGN_OR_RETURN(auto cipher,
                      cipher_for(keys, best->salt, role_of(best->identity), file->path()));
  const LogIdentity identity = best->identity;
  const std::size_t rest_at = std::min<std::size_t>(kLogRestOffset, bytes.size());
  const std::uint64_t rested =
      decode_log_rest(ByteView(bytes).substr(rest_at), identity.store_id, identity.number);
  auto inside = std::make_unique<Inside>(std::move(file), *best, std::move(cipher), rested);
  const std::size_t link_at = std::min<std::size_t>(kLogLinkOffset, bytes.size());
  const std::uint64_t successor =
      decode_log_link(ByteView(bytes).substr(link_at), identity.store_id, identity.number);
  return std::unique_ptr<LogReader>(new LogReader(std::move(inside), identity, successor));
}

LogReader::LogReader(std::unique_ptr<Inside> inside, const LogIdentity& identity,
                     std::uint64_t successor)
    : inside_(std::move(inside)), identity_(identity), successor_(successor) {}
LogReader::~LogReader() = default;

Result<std::optional<LogRecord>> LogReader::next() {
  return inside_->next();
}
bool LogReader::is_damaged() const {
  return inside_->is_damaged();
}
Result<bool> LogReader::step_over_damage() {
  return inside_->step_over_damage();
}
void LogReader::set_next_sequence(std::uint64_t sequence) {
  inside_->set_next_sequence(sequence);
}
void LogReader::move_to(std::uint64_t position) {
  inside_->move_to(position);
}
std::uint64_t LogReader::end_bytes() const {
  return inside_->end_bytes();
}
std::uint64_t LogReader::proven_bytes() const {
  return inside_->proven_bytes();
}
std::uint32_t LogReader::version() const {
  return inside_->version();
}
bool LogReader::is_sealed() const {
  return is_sealed_version(version());
}
bool LogReader::torn_tail() const {
  return inside_->torn_tail();
}

}  // namespace edgecase::engine
