#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "crypto/aes_gcm.h"
#include "edgecase/status.h"
#include "log/log.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

// Records up to this size are put together first and written at once; the parts of larger ones are
// written where they lie, sooner than copied.
constexpr std::uint64_t kScratchMaxBytes = 64u << 10;

// How much of a log that is written again is copied at a time.
constexpr std::uint64_t kCopyBytes = 1u << 20;

// A header, a piece, and the tag behind a last one.
constexpr std::size_t kSealedRoomBytes = kLogRecordHeaderBytes + PieceSealer::kRoomBytes;

Bytes encode_head(const LogIdentity& identity, const FileCipher* cipher) {
  Bytes copy(kLogMagic, sizeof kLogMagic);
  append_fixed32(copy, log_version(identity, cipher != nullptr));
  append_fixed32(copy, static_cast<std::uint32_t>(identity.type));
  copy.append(reinterpret_cast<const char*>(identity.store_id.data()), identity.store_id.size());
  append_fixed64(copy, identity.number);
  append_fixed64(copy, identity.predecessor);
  append_fixed64(copy, identity.predecessor_bytes);
  append_fixed64(copy, identity.salt);
  if (cipher != nullptr) copy.append(bytes_of(cipher->salt()));
  append_fixed32(copy, crc32c(copy));
  append_fixed32(copy, 0);
  EC_CHECK(copy.size() == (cipher == nullptr ? kLogHeadCopyBytes : kSealedLogHeadCopyBytes));
  Bytes head(kLogHeadBytes, '\0');
  for (const std::uint64_t offset : kLogHeadCopyOffsets) head.replace(offset, copy.size(), copy);
  return head;
}

}  // namespace

Status write_link(LogFile& file, const StoreId& store_id, std::uint64_t number,
                  std::uint64_t successor) {
  return file.write(kLogLinkOffset, successor == 0 ? Bytes(kLogLinkBytes, '\0')
                                                   : encode_log_link(store_id, number, successor));
}

std::uint64_t log_file_bytes_for(std::uint64_t payload_bytes, bool sealed) {
  return kLogHeadBytes + log_record_bytes(payload_bytes + (sealed ? kSealBytes : 0));
}

Result<std::unique_ptr<LogWriter>> LogWriter::make(std::unique_ptr<LogFile> file,
                                                   const LogIdentity& identity, KeyRing* keys) {
  if (file->capacity_bytes() < log_file_bytes_for(0, keys != nullptr)) {
    return invalid_argument(file->path() + " is too small for a log");
  }
  return std::unique_ptr<LogWriter>(
      new LogWriter(std::move(file), identity, new_cipher(keys, role_of(identity))));
}

Result<std::unique_ptr<LogWriter>> LogWriter::create(std::unique_ptr<LogFile> file,
                                                     const LogIdentity& identity, KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer, make(std::move(file), identity, keys));
  EC_TRY(writer->file_->write(0, encode_head(identity, writer->cipher_.get())));
  return writer;
}

Result<std::unique_ptr<LogWriter>> LogWriter::prepare(std::unique_ptr<LogFile> file,
                                                      const LogIdentity& identity, KeyRing* keys) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LogWriter> writer, make(std::move(file), identity, keys));
  EC_TRY(writer->file_->write(0, Bytes(kLogHeadBytes, '\0')));
  return writer;
}

Status LogWriter::write_head() {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const Status written = file_->write_durably(0, encode_head(identity_, cipher_.get()));
  return written.ok() ? ok() : give_up(written);
}

Status LogWriter::write_rest() {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const std::uint64_t durable = durable_.load(std::memory_order_acquire);
  if (durable == rested_) return ok();
  const Status written = file_->write_durably(
      kLogRestOffset, encode_log_rest(identity_.store_id, identity_.number, durable));
  if (!written.ok()) return give_up(written);
  rested_ = durable;
  return ok();
}

Status LogWriter::close_predecessor() {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  rested_ = 0;
  identity_.open_predecessor = false;
  const Status written = file_->write(0, encode_head(identity_, cipher_.get()));
  return written.ok() ? ok() : give_up(written);
}

LogWriter::LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity,
                     std::unique_ptr<FileCipher> cipher)
    : file_(std::move(file)),
      identity_(identity),
      cipher_(std::move(cipher)),
      salt_(log_salt(identity)) {
  if (cipher_ == nullptr) return;
  gcm_.emplace(cipher_->database_key());
  sealed_.resize(kSealedRoomBytes);
}

bool LogWriter::fits(std::uint64_t payload_bytes) const {
  if (stored_bytes(payload_bytes) > kLogPayloadMaxBytes) return false;
  const std::uint64_t used = kLogHeadBytes + appended_.load(std::memory_order_relaxed);
  return log_record_bytes(stored_bytes(payload_bytes)) <= file_->capacity_bytes() - used;
}

Status LogWriter::append(std::uint64_t sequence, std::span<const ByteView> parts) {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const std::uint64_t position = appended_.load(std::memory_order_relaxed);
  std::uint64_t payload_bytes = 0;
  for (const ByteView part : parts) payload_bytes += part.size();
  EC_CHECK(fits(payload_bytes));
  LogRecordHeader header;
  header.payload_bytes = static_cast<std::uint32_t>(stored_bytes(payload_bytes));
  header.sequence = sequence;
  header.durable = durable_.load(std::memory_order_acquire);
  header.payload_checksum = log_record_salt(salt_, position);
  const std::uint64_t step = short_step(header);
  const std::uint64_t record_bytes =
      step != 0 ? log_aligned(kShortRecordHeaderBytes + header.payload_bytes)
                : log_record_bytes(header.payload_bytes);
  Status status = step != 0            ? write_short(header, step, position, parts)
                  : cipher_ == nullptr ? write_record(header, position, parts)
                                       : write_sealed(header, position, parts);
  if (!status.ok()) return give_up(std::move(status));
  last_sequence_ = sequence;
  appended_.store(position + record_bytes, std::memory_order_release);
  return ok();
}

void LogWriter::begin_write_out() {
  file_->begin_write_out(kLogHeadBytes + appended_.load(std::memory_order_relaxed));
}

// 0: it is not to be a short record.
std::uint64_t LogWriter::short_step(const LogRecordHeader& header) const {
  if (identity_.type != LogType::Wal || appended_.load(std::memory_order_relaxed) == 0 ||
      header.payload_bytes > kShortPayloadMaxBytes || header.durable > kShortDurableMaxBytes ||
      header.sequence <= last_sequence_ || header.sequence - last_sequence_ > kShortStepMax)
    return 0;
  return header.sequence - last_sequence_;
}

Status LogWriter::write_short(const LogRecordHeader& header, std::uint64_t step,
                              std::uint64_t position, std::span<const ByteView> parts) {
  scratch_.assign(kShortRecordHeaderBytes, '\0');
  if (cipher_ == nullptr) {
    for (const ByteView part : parts) scratch_.append(part);
  } else {
    gcm_->begin_sealing(FileCipher::nonce_of(position), FileCipher::associated_of(kDatabaseKey));
    PieceSealer pieces(*gcm_, sealed_.data());
    for (ByteView part : parts) EC_CHECK(!pieces.take(part));
    scratch_.append(pieces.finish());
  }
  encode_short_record_header(scratch_, header.durable, step, log_record_salt(salt_, position));
  scratch_.resize(log_aligned(scratch_.size()), '\0');
  return file_->write(kLogHeadBytes + position, scratch_);
}

Status LogWriter::write_record(LogRecordHeader& header, std::uint64_t position,
                               std::span<const ByteView> parts) {
  for (const ByteView part : parts)
    header.payload_checksum = crc32c_extend(header.payload_checksum, part);
  if (log_record_bytes(header.payload_bytes) <= kScratchMaxBytes) {
    scratch_.assign(kLogRecordHeaderBytes, '\0');
    for (const ByteView part : parts) scratch_.append(part);
    scratch_.resize(log_record_bytes(header.payload_bytes), '\0');
    encode_log_record_header(scratch_.data(), header, log_record_salt(salt_, position));
    return file_->write(kLogHeadBytes + position, scratch_);
  }
  // The header last: a kill in between leaves nothing that looks begun.
  const std::uint64_t offset = kLogHeadBytes + position;
  EC_TRY(write_parts(offset + kLogRecordHeaderBytes, parts));
  char encoded[kLogRecordHeaderBytes];
  encode_log_record_header(encoded, header, log_record_salt(salt_, position));
  return file_->write(offset, ByteView(encoded, sizeof encoded));
}

// From where the parts lie into `sealed_`: all of a small record, of a large one a piece at a time
// and the header last, as above.
Status LogWriter::write_sealed(LogRecordHeader& header, std::uint64_t position,
                               std::span<const ByteView> parts) {
  const std::uint64_t record_bytes = log_record_bytes(header.payload_bytes);
  const bool at_once = record_bytes <= kScratchMaxBytes;
  const std::uint64_t record_offset = kLogHeadBytes + position;
  std::uint64_t offset = record_offset + kLogRecordHeaderBytes;
  char* const room = sealed_.data() + (at_once ? kLogRecordHeaderBytes : 0);
  gcm_->begin_sealing(FileCipher::nonce_of(position), FileCipher::associated_of(kDatabaseKey));
  PieceSealer pieces(*gcm_, room);
  for (ByteView part : parts) {
    while (pieces.take(part)) {
      const ByteView piece = pieces.empty_room();
      header.payload_checksum = crc32c_extend(header.payload_checksum, piece);
      EC_TRY(file_->write(offset, piece));
      offset += piece.size();
    }
  }
  const ByteView last = pieces.finish();
  header.payload_checksum = crc32c_extend(header.payload_checksum, last);
  char encoded[kLogRecordHeaderBytes];
  encode_log_record_header(encoded, header, log_record_salt(salt_, position));
  if (!at_once) {
    EC_TRY(write_parts(offset, {{last}}));
    return file_->write(record_offset, ByteView(encoded, sizeof encoded));
  }
  std::memcpy(sealed_.data(), encoded, sizeof encoded);
  const std::size_t end = kLogRecordHeaderBytes + last.size();
  std::memset(sealed_.data() + end, 0, record_bytes - end);
  return file_->write(record_offset, ByteView(sealed_).substr(0, record_bytes));
}

// Writes the parts, and zeros to the end of the record.
Status LogWriter::write_parts(std::uint64_t offset, std::span<const ByteView> parts) {
  for (const ByteView part : parts) {
    EC_TRY(file_->write(offset, part));
    offset += part.size();
  }
  constexpr std::array<char, kLogAlignmentBytes> kZeros{};
  static_assert((kLogHeadBytes + kLogRecordHeaderBytes) % kLogAlignmentBytes == 0);
  return file_->write(offset, ByteView(kZeros.data(), -offset % kLogAlignmentBytes));
}

Status LogWriter::sync() {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const std::uint64_t target = appended_.load(std::memory_order_acquire);
  if (Status status = file_->sync(); !status.ok()) return give_up(std::move(status));
  // Two syncs may end in either order.
  std::uint64_t durable = durable_.load(std::memory_order_relaxed);
  while (durable < target && !durable_.compare_exchange_weak(durable, target)) {
  }
  return ok();
}

Status LogWriter::give_up(Status failure) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  return failure_;
}

Status write_log_again(FileSystem& file_system, const std::string& path, std::uint64_t record_bytes,
                       std::uint64_t from, std::uint64_t to) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> source, file_system.open_file(path));
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogFile> target, file_system.open_log_file(path));
  const std::uint64_t size = kLogHeadBytes + record_bytes;
  Bytes buffer(std::min(size, kCopyBytes), '\0');
  for (std::uint64_t offset = 0; offset < size; offset += buffer.size()) {
    const std::uint64_t wanted = std::min<std::uint64_t>(buffer.size(), size - offset);
    EC_ASSIGN_OR_RETURN(const std::size_t got, source->read(from + offset, wanted, buffer.data()));
    if (got != wanted) return io_error(path + ": shorter than it was");
    EC_TRY(target->write(to + offset, ByteView(buffer).substr(0, got)));
  }
  return target->sync();
}

namespace {

constexpr std::array<const char*, 2> kNames{"first", "second"};

// One half of a file that two writers share. The second one leaves syncs to the first.
class LogHalf final : public LogFile {
 public:
  LogHalf(std::shared_ptr<LogFile> file, bool second)
      : file_(std::move(file)),
        half_bytes_(begin_of_second_copy(file_->capacity_bytes())),
        second_(second) {}

  std::uint64_t capacity_bytes() const override { return half_bytes_; }
  Status write(std::uint64_t offset, ByteView bytes) override {
    EC_CHECK(offset + bytes.size() <= half_bytes_);
    return file_->write(second_ ? half_bytes_ + offset : offset, bytes);
  }
  Status sync() override { return second_ ? ok() : file_->sync(); }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::shared_ptr<LogFile> file_;
  const std::uint64_t half_bytes_;
  const bool second_;
};

// What lies behind `begin` of a file.
class FileRest final : public RandomAccessFile {
 public:
  FileRest(std::unique_ptr<RandomAccessFile> file, std::uint64_t begin)
      : file_(std::move(file)), begin_(begin), path_(file_->path() + " (second copy)") {}

  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override {
    return file_->read(begin_ + offset, size, buffer);
  }
  std::uint64_t size_bytes() const override {
    return file_->size_bytes() - std::min(begin_, file_->size_bytes());
  }
  const std::string& path() const override { return path_; }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  const std::uint64_t begin_;
  const std::string path_;
};

bool ends_the_look(const Status& status) {
  return status.code() == StatusCode::NotAllowed || status.code() == StatusCode::Unsupported;
}

// Reads one copy to its end. `proven` becomes what its records say was durable, if that is more.
Status look_at_copy(std::unique_ptr<RandomAccessFile> file, KeyRing* keys, LogCopy& copy,
                    std::uint64_t& proven) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                      LogReader::open(std::move(file), keys));
  copy.identity = reader->identity();
  for (;;) {
    const auto record = reader->next();
    proven = std::max(proven, reader->proven_bytes());
    if (!record.ok()) return record.status();
    if (!*record) return ok();
    copy.end_bytes = reader->end_bytes();
  }
}

bool is_doubled(const LogCopy& copy) {
  return copy.identity.salt == kDoubledLogSalt && copy.identity.type == LogType::Manifest;
}

void judge(const std::string& path, std::uint64_t proven, LogCopies& look) {
  LogCopy& first = look.copies[0];
  LogCopy& second = look.copies[1];
  if (first.identity.number != 0 && second.identity.number != 0 &&
      (first.identity.number != second.identity.number ||
       first.identity.store_id != second.identity.store_id)) {
    second.status = corruption_in(path, ": the second copy is one of another log");
    second.end_bytes = 0;
  }
  const bool further = second.end_bytes > first.end_bytes;
  const bool alone_whole = second.end_bytes == first.end_bytes && second.status.ok();
  look.best = further || (alone_whole && !first.status.ok()) ? 1 : 0;
  const LogCopy& best = look.copies[look.best];
  const LogCopy& other = look.copies[1 - look.best];
  look.status = best.status;
  if (best.status.ok() && best.end_bytes < proven)
    look.status = corruption_in(
        path, " at byte " + std::to_string(best.begin + kLogHeadBytes + best.end_bytes) +
                  ": record is damaged in both copies");
  const bool is_damaged = !other.status.ok() || other.end_bytes < proven ||
                          (other.end_bytes == 0 && best.end_bytes != 0);
  look.ends_differ = !is_damaged && other.end_bytes < best.end_bytes;
  if (!is_damaged || !look.status.ok()) return;
  const std::string where =
      other.status.ok()
          ? "record at byte " + std::to_string(other.begin + kLogHeadBytes + other.end_bytes) +
                " is damaged"
          : other.status.message();
  look.damage =
      corruption_in(path, std::string(": the ") + kNames[1 - look.best] +
                              " of its two copies is damaged, the other is whole: " + where);
}

}  // namespace

std::uint64_t begin_of_second_copy(std::uint64_t file_bytes) {
  return file_bytes / 2 / kDoubledAlignmentBytes * kDoubledAlignmentBytes;
}

std::uint64_t doubled_log_bytes_for(std::uint64_t payload_bytes, bool sealed) {
  const std::uint64_t once = log_file_bytes_for(payload_bytes, sealed);
  return 2 * ((once + kDoubledAlignmentBytes - 1) / kDoubledAlignmentBytes) *
         kDoubledAlignmentBytes;
}

Result<std::unique_ptr<DoubledLogWriter>> DoubledLogWriter::create(std::unique_ptr<LogFile> file,
                                                                   LogIdentity identity,
                                                                   KeyRing* keys) {
  identity.salt = kDoubledLogSalt;
  const std::shared_ptr<LogFile> shared = std::move(file);
  Copies copies;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EC_ASSIGN_OR_RETURN(
        copies[i], LogWriter::create(std::make_unique<LogHalf>(shared, i == 1), identity, keys));
  }
  return std::unique_ptr<DoubledLogWriter>(new DoubledLogWriter(std::move(copies)));
}

bool DoubledLogWriter::fits(std::uint64_t payload_bytes) const {
  return copies_[0]->fits(payload_bytes);
}

Status DoubledLogWriter::append(std::uint64_t sequence, std::span<const ByteView> parts) {
  for (const auto& copy : copies_) EC_TRY(copy->append(sequence, parts));
  return ok();
}

Status DoubledLogWriter::sync() {
  for (const auto& copy : copies_) EC_TRY(copy->sync());
  return ok();
}

Result<std::unique_ptr<RandomAccessFile>> open_copy(FileSystem& file_system,
                                                    const std::string& path, std::uint64_t begin,
                                                    LogSource source) {
  EC_ASSIGN_OR_RETURN(auto file, source == LogSource::Drive ? file_system.open_uncached(path)
                                                            : file_system.open_file(path));
  if (begin == 0) return file;
  return std::unique_ptr<RandomAccessFile>(std::make_unique<FileRest>(std::move(file), begin));
}

Result<LogCopies> look_at_copies(FileSystem& file_system, const std::string& path, KeyRing* keys,
                                 LogSource source) {
  LogCopies look;
  std::uint64_t proven = 0;
  EC_ASSIGN_OR_RETURN(auto file, open_copy(file_system, path, 0, source));
  look.copies[1].begin = begin_of_second_copy(file->size_bytes());
  LogCopy& first = look.copies[0];
  first.status = look_at_copy(std::move(file), keys, first, proven);
  if (ends_the_look(first.status)) return first.status;
  look.status = first.status;
  look.doubled = is_doubled(first);
  const bool has_head = first.identity.number != 0;
  if (has_head && !look.doubled) return look;
  LogCopy& second = look.copies[1];
  EC_ASSIGN_OR_RETURN(file, open_copy(file_system, path, second.begin, source));
  LogCopy found{.begin = second.begin, .status = {}, .identity = {}, .end_bytes = 0};
  found.status = look_at_copy(std::move(file), keys, found, proven);
  if (ends_the_look(found.status)) return found.status;
  // An older log, which ends where it ends.
  if (!look.doubled && !is_doubled(found)) return look;
  look.doubled = true;
  second = std::move(found);
  judge(path, proven, look);
  return look;
}

Status write_copies_again(FileSystem& file_system, const std::string& path,
                          const LogCopies& copies) {
  const LogCopy& best = copies.best_copy();
  const std::uint64_t bytes = best.end_bytes;
  EC_TRY(write_log_again(file_system, path, bytes, best.begin, best.begin));
  if (!copies.doubled) return ok();
  const LogCopy& other = copies.copies[1 - copies.best];
  const bool is_whole = other.status.ok() && other.end_bytes == bytes;
  return write_log_again(file_system, path, bytes, is_whole ? other.begin : best.begin,
                         other.begin);
}

}  // namespace edgecase::engine
