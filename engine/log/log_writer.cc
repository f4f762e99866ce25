#include "log/log_writer.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "log/log_format.h"

namespace edgecase::engine {
namespace {

// Records up to this size are put together first and written at once; the parts of larger ones are
// written where they lie, sooner than copied.
constexpr std::uint64_t kScratchMaxBytes = 64u << 10;

constexpr std::uint64_t kSealedPieceBytes = 64u << 10;  // at a time, of a large record
static_assert(kSealedPieceBytes % 16 == 0);

Bytes encode_head(const LogIdentity& identity, const FileCipher* cipher) {
  Bytes copy(kLogMagic, sizeof kLogMagic);
  append_fixed32(copy, cipher == nullptr ? kLogVersion : kSealedLogVersion);
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

std::uint64_t log_file_bytes_for(std::uint64_t payload_bytes, bool sealed) {
  return kLogHeadBytes + log_record_bytes(payload_bytes + (sealed ? kSealBytes : 0));
}

Result<std::unique_ptr<LogWriter>> LogWriter::create(std::unique_ptr<LogFile> file,
                                                     const LogIdentity& identity, KeyRing* keys) {
  if (file->capacity_bytes() < log_file_bytes_for(0, keys != nullptr)) {
    return invalid_argument(file->path() + " is too small for a log");
  }
  std::unique_ptr<FileCipher> cipher = new_cipher(keys, role_of(identity));
  EC_TRY(file->write(0, encode_head(identity, cipher.get())));
  return std::unique_ptr<LogWriter>(new LogWriter(std::move(file), identity, std::move(cipher)));
}

LogWriter::LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity,
                     std::unique_ptr<FileCipher> cipher)
    : file_(std::move(file)),
      identity_(identity),
      cipher_(std::move(cipher)),
      salt_(log_salt(identity)) {
  if (cipher_ != nullptr) gcm_ = cipher_->database_cipher();
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
  const std::uint64_t record_bytes = log_record_bytes(header.payload_bytes);
  Status status = cipher_ == nullptr ? write_record(header, position, parts)
                                     : write_sealed(header, position, parts);
  if (!status.ok()) return give_up(std::move(status));
  appended_.store(position + record_bytes, std::memory_order_release);
  file_->begin_write_out(kLogHeadBytes + position + record_bytes);
  return ok();
}

// `scratch_` holds the record but for its header and the zeros at its end.
Status LogWriter::write_end(LogRecordHeader& header, std::uint64_t position) {
  scratch_.resize(log_record_bytes(header.payload_bytes), '\0');
  encode_log_record_header(scratch_.data(), header, log_record_salt(salt_, position));
  return file_->write(kLogHeadBytes + position, scratch_);
}

Status LogWriter::write_record(LogRecordHeader& header, std::uint64_t position,
                               std::span<const ByteView> parts) {
  for (const ByteView part : parts)
    header.payload_checksum = crc32c_extend(header.payload_checksum, part);
  if (log_record_bytes(header.payload_bytes) <= kScratchMaxBytes) {
    scratch_.assign(kLogRecordHeaderBytes, '\0');
    for (const ByteView part : parts) scratch_.append(part);
    return write_end(header, position);
  }
  // The header last: a kill in between leaves nothing that looks begun.
  const std::uint64_t offset = kLogHeadBytes + position;
  EC_TRY(write_parts(offset + kLogRecordHeaderBytes, parts));
  char encoded[kLogRecordHeaderBytes];
  encode_log_record_header(encoded, header, log_record_salt(salt_, position));
  return file_->write(offset, ByteView(encoded, sizeof encoded));
}

// A piece at a time, as many as fit into the scratch; the header last, as above.
Status LogWriter::write_sealed(LogRecordHeader& header, std::uint64_t position,
                               std::span<const ByteView> parts) {
  gcm_->begin_sealing(FileCipher::nonce_of(position), FileCipher::associated_of(kDatabaseKey));
  const std::uint64_t offset = kLogHeadBytes + position;
  std::uint64_t written = kLogRecordHeaderBytes;
  scratch_.assign(kLogRecordHeaderBytes, '\0');
  std::size_t piece = scratch_.size();  // where what is not sealed yet begins
  const bool at_once = log_record_bytes(header.payload_bytes) <= kScratchMaxBytes;
  const auto seal = [&] {
    gcm_->seal_piece(scratch_.data() + piece, scratch_.size() - piece);
    header.payload_checksum =
        crc32c_extend(header.payload_checksum, ByteView(scratch_).substr(piece));
  };
  if (!at_once) {
    scratch_.clear();
    piece = 0;
  }
  for (ByteView part : parts) {
    while (!part.empty()) {
      const std::size_t room = at_once ? part.size() : kSealedPieceBytes - scratch_.size();
      const std::size_t taken = std::min(room, part.size());
      scratch_.append(part.substr(0, taken));
      part.remove_prefix(taken);
      if (at_once || scratch_.size() < kSealedPieceBytes) continue;
      seal();
      EC_TRY(file_->write(offset + written, scratch_));
      written += scratch_.size();
      scratch_.clear();
    }
  }
  seal();
  const auto tag = gcm_->finish_sealing();
  const ByteView tag_view(tag.data(), tag.size());
  header.payload_checksum = crc32c_extend(header.payload_checksum, tag_view);
  scratch_.append(tag_view);
  if (at_once) return write_end(header, position);
  EC_TRY(write_parts(offset + written, {{ByteView(scratch_)}}));
  char encoded[kLogRecordHeaderBytes];
  encode_log_record_header(encoded, header, log_record_salt(salt_, position));
  return file_->write(offset, ByteView(encoded, sizeof encoded));
}

// And zeros to the end of the record.
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

}  // namespace edgecase::engine
