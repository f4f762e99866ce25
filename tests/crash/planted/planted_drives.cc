#include "crash/planted/planted_drives.h"

#include <cerrno>
#include <utility>

#include "log/log_format.h"

namespace edgecase::test {
namespace {

enum class Bug : unsigned char {
  SyncSkipped,           // of files whose path contains `where`
  SyncLate,              // only every other one happens
  DirectorySyncSkipped,  // of the directory `where`
  FailedSyncForgotten,
  FailedWriteForgotten,
  TornRecordAccepted,
  ReadErrorTakenForEnd,
  OverwriteSkipped,  // zeros are not written over what files hold
  RemovedEarly,      // what is renamed over goes before the new name is there
  WrittenTwice,      // first other bytes, at once written over
};

struct Rule {
  Bug bug;
  std::string where;

  bool concerns(const std::string& path) const { return path.find(where) != std::string::npos; }
};

class PlantedWritableFile final : public WritableFile {
 public:
  PlantedWritableFile(std::unique_ptr<WritableFile> file, Bug bug)
      : file_(std::move(file)), bug_(bug) {}
  Status append(ByteView bytes) override {
    const Status status = file_->append(bytes);
    return bug_ == Bug::FailedWriteForgotten ? ok() : status;
  }
  Status sync() override {
    if (bug_ == Bug::SyncSkipped) return ok();
    const Status status = file_->sync();
    const bool forgotten = bug_ == Bug::FailedSyncForgotten || bug_ == Bug::FailedWriteForgotten;
    return forgotten ? ok() : status;
  }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }

 private:
  std::unique_ptr<WritableFile> file_;
  Bug bug_;
};

class PlantedLogFile final : public LogFile {
 public:
  PlantedLogFile(std::unique_ptr<LogFile> file, Bug bug) : file_(std::move(file)), bug_(bug) {}
  std::uint64_t capacity_bytes() const override { return file_->capacity_bytes(); }
  Status write(std::uint64_t offset, ByteView bytes) override {
    if (bug_ == Bug::OverwriteSkipped && bytes.find_first_not_of('\0') == ByteView::npos)
      return ok();
    if (bug_ == Bug::WrittenTwice && offset >= engine::kLogHeadBytes) {
      Bytes draft(bytes);
      for (char& byte : draft) byte = static_cast<char>(~byte);
      EC_TRY(file_->write(offset, draft));
    }
    const Status status = file_->write(offset, bytes);
    return bug_ == Bug::FailedWriteForgotten ? ok() : status;
  }
  Status sync() override {
    if (bug_ == Bug::SyncSkipped) return ok();
    if (bug_ == Bug::SyncLate && ++syncs_ % 2 == 0) return ok();
    const Status status = file_->sync();
    const bool forgotten = bug_ == Bug::FailedSyncForgotten || bug_ == Bug::FailedWriteForgotten;
    return forgotten ? ok() : status;
  }
  const std::string& path() const override { return file_->path(); }

 private:
  std::unique_ptr<LogFile> file_;
  Bug bug_;
  std::uint64_t syncs_ = 0;
};

class PlantedReader final : public RandomAccessFile {
 public:
  PlantedReader(std::unique_ptr<RandomAccessFile> file, Bug bug)
      : file_(std::move(file)), bug_(bug) {}

  Result<std::size_t> read(std::uint64_t offset, std::size_t size, char* buffer) const override {
    auto got = file_->read(offset, size, buffer);
    if (bug_ == Bug::ReadErrorTakenForEnd && !got.ok()) return std::size_t{0};
    if (bug_ == Bug::TornRecordAccepted && got.ok()) forgive(offset, buffer, *got);
    return got;
  }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const std::string& path() const override { return file_->path(); }

 private:
  // As a reader that looks at the headers of records only: their payloads are always right.
  void forgive(std::uint64_t offset, char* buffer, std::size_t size) const {
    using namespace engine;
    if (offset == 0 && size >= kLogHeadBytes) {
      LogIdentity identity;
      std::copy_n(buffer + 16, identity.store_id.size(),
                  reinterpret_cast<char*>(identity.store_id.data()));
      identity.number = decode_fixed64(buffer + 32);
      identity.salt = decode_fixed64(buffer + 56);
      salt_ = log_salt(identity);
    }
    std::uint64_t at = offset < kLogHeadBytes ? kLogHeadBytes - offset : 0;
    while (at + kLogRecordHeaderBytes <= size) {
      const std::uint64_t position = offset + at - kLogHeadBytes;
      char* record = buffer + at;
      const std::uint32_t word = decode_fixed32(record + 4);
      const std::uint64_t short_bytes = kShortRecordHeaderBytes + (word & kShortPayloadMaxBytes);
      if ((word & kShortFlag) != 0 && record[8] != 0 && log_aligned(short_bytes) <= size - at) {
        encode_fixed32(record, crc32c_extend(log_record_salt(salt_, position),
                                             ByteView(record + 4, short_bytes - 4)));
        at += log_aligned(short_bytes);
        continue;
      }
      LogRecordHeader header;
      if (!decode_log_record_header(ByteView(record, kLogRecordHeaderBytes), position, salt_,
                                    header) ||
          log_record_bytes(header.payload_bytes) > size - at)
        return;
      const std::uint32_t record_salt = log_record_salt(salt_, position);
      header.payload_checksum = crc32c_extend(
          record_salt, ByteView(record + kLogRecordHeaderBytes, header.payload_bytes));
      encode_log_record_header(record, header, record_salt);
      at += log_record_bytes(header.payload_bytes);
    }
  }

  std::unique_ptr<RandomAccessFile> file_;
  Bug bug_;
  mutable std::uint32_t salt_ = 0;
};

class PlantedDrives final : public FileSystem {
 public:
  PlantedDrives(MemoryFileSystem& drives, Rule rule) : drives_(drives), rule_(std::move(rule)) {}

  Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) override {
    auto file = drives_.create_file(path);
    if (!file.ok() || !rule_.concerns(path)) return file;
    return std::unique_ptr<WritableFile>(
        std::make_unique<PlantedWritableFile>(std::move(file).value(), rule_.bug));
  }
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) override {
    auto file = drives_.open_file(path);
    if (!file.ok() || !rule_.concerns(path)) return file;
    return std::unique_ptr<RandomAccessFile>(
        std::make_unique<PlantedReader>(std::move(file).value(), rule_.bug));
  }
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                   std::uint64_t capacity_bytes) override {
    return plant(path, drives_.create_log_file(path, capacity_bytes));
  }
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) override {
    return plant(path, drives_.open_log_file(path));
  }
  Status create_directory(const std::string& path) override {
    return drives_.create_directory(path);
  }
  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override {
    return drives_.list_directory(path);
  }
  Status sync_directory(const std::string& path) override {
    if (rule_.bug == Bug::DirectorySyncSkipped && path == rule_.where) return ok();
    return drives_.sync_directory(path);
  }
  Status rename_file(const std::string& from, const std::string& to) override {
    if (rule_.bug == Bug::RemovedEarly && rule_.concerns(to) && drives_.exists(to)) {
      EC_TRY(drives_.remove_file(to));
      EC_TRY(drives_.sync_directory(to.substr(0, to.rfind('/'))));
    }
    return drives_.rename_file(from, to);
  }
  Status remove_file(const std::string& path) override { return drives_.remove_file(path); }
  Result<std::uint64_t> file_size(const std::string& path) override {
    return drives_.file_size(path);
  }
  Result<edgecase::Space> space(const std::string& path) override { return drives_.space(path); }
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) override {
    return drives_.lock_file(path);
  }

 private:
  Result<std::unique_ptr<LogFile>> plant(const std::string& path,
                                         Result<std::unique_ptr<LogFile>> file) const {
    if (!file.ok() || !rule_.concerns(path)) return file;
    return std::unique_ptr<LogFile>(
        std::make_unique<PlantedLogFile>(std::move(file).value(), rule_.bug));
  }

  MemoryFileSystem& drives_;
  const Rule rule_;
};

PlantedBug planted(std::string name, std::string what, std::uint64_t seeds, Rule rule,
                   Plan (*make)(std::uint64_t seed) = make_plan) {
  return {
      std::move(name), std::move(what), seeds,
      [rule](MemoryFileSystem& drives) { return std::make_unique<PlantedDrives>(drives, rule); },
      make};
}

// Any life may fail a sync of the log or end again while it reads one, but it takes a thousand.
Plan batches(std::uint64_t seed, std::uint64_t count) {
  Plan plan;
  plan.seed = seed;
  plan.steps.push_back({StepKind::Create, {1}});
  for (std::uint64_t i = 0; i < count; ++i)
    plan.steps.push_back({StepKind::Write, {100 * seed + i, 1}});
  return plan;
}

Plan failed_sync_of_the_log(std::uint64_t seed) {
  constexpr std::uint64_t kBatches = 4;
  Plan plan = batches(seed, kBatches);
  plan.steps.insert(
      plan.steps.begin() + 2,
      {StepKind::Fail, {static_cast<std::uint64_t>(Operation::LogSync), 1 + seed % 4, EIO, 0, 1}});
  plan.steps.push_back({StepKind::Cut, {seed, static_cast<std::uint64_t>(CutPolicy::None)}});
  return plan;
}

// A read of a recovery fails once. It is read again, so that nothing is missing.
Plan read_fails_in_recovery(std::uint64_t seed) {
  constexpr std::uint64_t kReadsOfRecovery = 24;
  Plan plan = batches(seed, 4);
  plan.steps.push_back(
      {StepKind::Fail,
       {static_cast<std::uint64_t>(Operation::Read), 1 + seed % kReadsOfRecovery, EIO, 0, 1}});
  plan.steps.push_back({StepKind::Reopen, {}});
  return plan;
}

}  // namespace

const std::vector<PlantedBug>& planted_bugs() {
  static const std::vector<PlantedBug> bugs{
      planted("log-unsynced", "acknowledges before the log is synced", 20,
              {Bug::SyncSkipped, "/wal/"}),
      planted("log-synced-late", "acknowledges every other batch before the log is synced", 20,
              {Bug::SyncLate, "/wal/"}),
      planted("log-slot-unnamed", "does not sync the directory of a new log slot", 100,
              {Bug::DirectorySyncSkipped, "/m/store/wal"}),
      planted("values-unsynced", "names a value table that is not synced", 20,
              {Bug::SyncSkipped, ".val"}),
      planted("values-unnamed", "names a value table whose directory is not synced", 20,
              {Bug::DirectorySyncSkipped, "/v/store"}),
      planted("tables-unsynced", "names a metadata table that is not synced", 20,
              {Bug::SyncSkipped, ".meta"}),
      planted("tables-unnamed", "names a metadata table whose directory is not synced", 20,
              {Bug::DirectorySyncSkipped, "/m/store/tables"}),
      planted("manifest-unsynced", "reuses the log while the manifest is not synced", 20,
              {Bug::SyncSkipped, "MANIFEST"}),
      planted("current-unsynced", "renames CURRENT before its bytes are durable", 20,
              {Bug::SyncSkipped, "CURRENT"}),
      planted("current-unnamed", "does not sync the directory after CURRENT was renamed", 20,
              {Bug::DirectorySyncSkipped, "/m/store"}),
      planted("current-removed", "removes CURRENT before it renames the new one", 600,
              {Bug::RemovedEarly, "CURRENT"}),
      planted("sync-retried", "takes a sync that failed for one that did not", 100,
              {Bug::FailedSyncForgotten, "/wal/"}, failed_sync_of_the_log),
      planted("write-forgotten", "takes a table of which a write failed for whole", 100,
              {Bug::FailedWriteForgotten, ".val"}),
      planted("torn-accepted", "replays a record of the log whose payload is torn", 100,
              {Bug::TornRecordAccepted, "/wal/"}),
      planted("read-error-is-end", "takes an I/O error in the log for its end", 100,
              {Bug::ReadErrorTakenForEnd, "/wal/"}, read_fails_in_recovery),
      planted("log-not-overwritten", "erases without writing over slots of the log", 100,
              {Bug::OverwriteSkipped, "/wal/"}),
      planted("record-written-twice", "seals two records at one place of a log, under one salt", 20,
              {Bug::WrittenTwice, "/wal/"}),
      planted("values-not-overwritten", "erases by unlinking value files alone", 100,
              {Bug::OverwriteSkipped, ".val"}),
  };
  return bugs;
}

}  // namespace edgecase::test
