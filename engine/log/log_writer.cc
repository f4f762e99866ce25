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

Bytes encode_head(const LogIdentity& identity) {
  Bytes copy(kLogMagic, sizeof kLogMagic);
  append_fixed32(copy, kLogVersion);
  append_fixed32(copy, static_cast<std::uint32_t>(identity.type));
  copy.append(reinterpret_cast<const char*>(identity.store_id.data()), identity.store_id.size());
  append_fixed64(copy, identity.number);
  append_fixed64(copy, identity.predecessor);
  append_fixed64(copy, identity.predecessor_bytes);
  append_fixed64(copy, identity.salt);
  append_fixed32(copy, crc32c(copy));
  append_fixed32(copy, 0);
  EC_CHECK(copy.size() == kLogHeadCopyBytes);
  Bytes head(kLogHeadBytes, '\0');
  for (const std::uint64_t offset : kLogHeadCopyOffsets) head.replace(offset, copy.size(), copy);
  return head;
}

}  // namespace

std::uint64_t log_file_bytes_for(std::uint64_t payload_bytes) {
  return kLogHeadBytes + log_record_bytes(payload_bytes);
}

Result<std::unique_ptr<LogWriter>> LogWriter::create(std::unique_ptr<LogFile> file,
                                                     const LogIdentity& identity) {
  if (file->capacity_bytes() < log_file_bytes_for(0)) {
    return invalid_argument(file->path() + " is too small for a log");
  }
  EC_TRY(file->write(0, encode_head(identity)));
  return std::unique_ptr<LogWriter>(new LogWriter(std::move(file), identity));
}

LogWriter::LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity)
    : file_(std::move(file)), identity_(identity), salt_(log_salt(identity)) {}

bool LogWriter::fits(std::uint64_t payload_bytes) const {
  if (payload_bytes > kLogPayloadMaxBytes) return false;
  const std::uint64_t used = kLogHeadBytes + appended_.load(std::memory_order_relaxed);
  return log_record_bytes(payload_bytes) <= file_->capacity_bytes() - used;
}

Status LogWriter::append(std::uint64_t sequence, std::span<const ByteView> parts) {
  if (failed_.load(std::memory_order_acquire)) return give_up(ok());
  const std::uint64_t position = appended_.load(std::memory_order_relaxed);
  const std::uint32_t record_salt = log_record_salt(salt_, position);
  std::uint64_t payload_bytes = 0;
  LogRecordHeader header;
  header.payload_checksum = record_salt;
  for (const ByteView part : parts) {
    payload_bytes += part.size();
    header.payload_checksum = crc32c_extend(header.payload_checksum, part);
  }
  EC_CHECK(fits(payload_bytes));
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.sequence = sequence;
  header.durable = durable_.load(std::memory_order_acquire);

  char encoded[kLogRecordHeaderBytes];
  encode_log_record_header(encoded, header, record_salt);
  const ByteView header_view(encoded, sizeof encoded);
  const std::uint64_t offset = kLogHeadBytes + position;
  const std::uint64_t record_bytes = log_record_bytes(payload_bytes);
  Status status;
  if (record_bytes <= kScratchMaxBytes) {
    scratch_.assign(header_view);
    for (const ByteView part : parts) scratch_.append(part);
    scratch_.resize(record_bytes, '\0');
    status = file_->write(offset, scratch_);
  } else {
    // The header last: a kill in between leaves nothing that looks begun.
    status = write_parts(offset + kLogRecordHeaderBytes, parts);
    if (status.ok()) status = file_->write(offset, header_view);
  }
  if (!status.ok()) return give_up(std::move(status));
  appended_.store(position + record_bytes, std::memory_order_release);
  file_->begin_write_out(offset + record_bytes);
  return ok();
}

Status LogWriter::write_parts(std::uint64_t offset, std::span<const ByteView> parts) {
  const std::uint64_t start = offset;
  for (const ByteView part : parts) {
    EC_TRY(file_->write(offset, part));
    offset += part.size();
  }
  constexpr std::array<char, kLogAlignmentBytes> kZeros{};
  const std::uint64_t end = start + log_record_bytes(offset - start) - kLogRecordHeaderBytes;
  return file_->write(offset, ByteView(kZeros.data(), end - offset));
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
