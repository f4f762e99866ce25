#include "log/doubled_log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "log/log_format.h"

namespace edgecase::engine {
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
