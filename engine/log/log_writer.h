// Appends checksummed records to one LogFile; the WAL and the manifest are such logs. Layout:
// log_format.h. append() by one thread at a time; sync() may run beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/entry.h"
#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

enum class LogType : unsigned char { Wal = 1, Manifest = 2 };

// The head of a log. `number` also salts every record's checksum, so that what an earlier use of
// the same file left behind is never taken for a record of this one.
struct LogIdentity {
  StoreId store_id{};
  LogType type = LogType::Wal;
  std::uint64_t number = 0;
  // The log before this one and how many bytes of records it ended with; 0, 0 for the first.
  std::uint64_t predecessor = 0;
  std::uint64_t predecessor_bytes = 0;
  // Not all of it, or of those before it, is known to be durable. WAL only.
  bool open_predecessor = false;
  // A random number: keeps apart two logs that got the same number because a crash between them
  // took back that the first was begun.
  std::uint64_t salt = 0;
};

struct LogRecordHeader;

class LogWriter {
 public:
  // Writes the head (not yet synced). Records of an earlier use are overwritten as this log grows.
  // With `keys` it is sealed.
  static Result<std::unique_ptr<LogWriter>> create(std::unique_ptr<LogFile> file,
                                                   const LogIdentity& identity,
                                                   KeyRing* keys = nullptr);
  // The same without a head, not even that of an earlier log in the file: until write_head() there
  // is none for readers.
  static Result<std::unique_ptr<LogWriter>> prepare(std::unique_ptr<LogFile> file,
                                                    const LogIdentity& identity,
                                                    KeyRing* keys = nullptr);
  // Durable on return.
  Status write_head();
  // All before this log is durable now. Written at once, durable with the next sync().
  // Says durably in the head how far the log is durable, as the appending thread. Once for each
  // such length.
  Status write_rest();
  Status close_predecessor();

  // Counted as of a record that is not short.
  bool fits(std::uint64_t payload_bytes) const;
  // Concatenates `parts` into one record. Survives kill -9 on return, a power cut after sync().
  // `fits()` must hold.
  Status append(std::uint64_t sequence, std::span<const ByteView> parts);
  // Everything appended before the call is durable after it. After an error the log is given up:
  // every later call returns the same error.
  Status sync();
  // The drive may begin with what was appended.
  void begin_write_out();

  // Bytes of records, headers and padding included, the log's head not.
  std::uint64_t appended_bytes() const { return appended_.load(std::memory_order_acquire); }
  std::uint64_t durable_bytes() const { return durable_.load(std::memory_order_acquire); }
  const LogIdentity& identity() const { return identity_; }
  // Gives the file back; the writer is finished.
  std::unique_ptr<LogFile> release() { return std::move(file_); }

 private:
  LogWriter(std::unique_ptr<LogFile> file, const LogIdentity& identity,
            std::unique_ptr<FileCipher> cipher);
  static Result<std::unique_ptr<LogWriter>> make(std::unique_ptr<LogFile> file,
                                                 const LogIdentity& identity, KeyRing* keys);

  std::uint64_t stored_bytes(std::uint64_t payload_bytes) const {
    return cipher_ == nullptr ? payload_bytes : payload_bytes + kSealBytes;
  }
  std::uint64_t short_step(const LogRecordHeader& header) const;
  Status write_short(const LogRecordHeader& header, std::uint64_t step, std::uint64_t position,
                     std::span<const ByteView> parts);
  Status write_record(LogRecordHeader& header, std::uint64_t position,
                      std::span<const ByteView> parts);
  Status write_sealed(LogRecordHeader& header, std::uint64_t position,
                      std::span<const ByteView> parts);
  Status write_parts(std::uint64_t offset, std::span<const ByteView> parts);
  // Keeps the first failure and answers with it, now and ever after.
  Status give_up(Status failure) EC_EXCLUDES(mutex_);

  std::unique_ptr<LogFile> file_;
  LogIdentity identity_;
  std::unique_ptr<FileCipher> cipher_;  // null: not sealed
  std::optional<AesGcm> gcm_;           // the appending thread's
  std::uint32_t salt_;
  std::uint64_t rested_ = 0;         // that the head says; the appending thread's
  std::uint64_t last_sequence_ = 0;  // of the record before; the appending thread's
  Bytes scratch_;                    // a record on its way; the appending thread's
  Bytes sealed_;                     // of a sealed log, instead
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> durable_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  Status failure_ EC_GUARDED_BY(mutex_);
};

// Tells the log in this file which one follows it, so that it is missed when it is lost. To be
// called when the head of that one is durable; 0: none does. Not synced. Errors: IoError.
Status write_link(LogFile& file, const StoreId& store_id, std::uint64_t number,
                  std::uint64_t successor);

// How large a LogFile must be for one record of `payload_bytes`.
std::uint64_t log_file_bytes_for(std::uint64_t payload_bytes, bool sealed);

// Makes durable a log with so many bytes of records that another process wrote, and that is only
// read here. If a sync of it failed there its pages count as clean, and another sync would write
// nothing: the same bytes in the same place make them dirty again. `from` and `to`: where in the
// file it lies, and is to lie. Errors: IoError.
Status write_log_again(FileSystem& file_system, const std::string& path, std::uint64_t record_bytes,
                       std::uint64_t from = 0, std::uint64_t to = 0);

}  // namespace edgecase::engine
