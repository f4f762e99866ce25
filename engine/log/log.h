// Logs of checksummed records: the WAL and the manifest. LogWriter appends to one LogFile,
// LogReader reads it, DoubledLogWriter keeps two copies in one file. Layout: log_format.h. append()
// by one thread at a time; sync() may run beside it.
#pragma once

#include <array>
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
  // Says durably in the head how far the log is durable, as the appending thread. Once for each
  // such length.
  Status write_rest();
  // All before this log is durable now. Written at once, durable with the next sync().
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

// Reads one log front to back and tells a torn tail from damage. Layout: log_format.h. Used by one
// thread.

struct LogRecord {
  std::uint64_t sequence = 0;
  ByteView payload;                // until the next call
  std::uint64_t stored_bytes = 0;  // in the file, header included, without the zeros at its end
  std::uint64_t step = 0;          // of a short record: from the sequence of the one before
};

class LogReader {
 public:
  // NotFound when the head was never written whole (a fresh or torn file: nothing in it was ever
  // acknowledged); Unsupported for a newer format; NotAllowed for a sealed one without `keys`;
  // Corruption for one that is not sealed, with them.
  static Result<std::unique_ptr<LogReader>> open(std::unique_ptr<RandomAccessFile> file,
                                                 KeyRing* keys = nullptr);

  const LogIdentity& identity() const { return identity_; }
  // Number of the log that followed this one; 0: there was none, or it is not known.
  std::uint64_t successor() const { return successor_; }
  std::uint32_t version() const;
  bool is_sealed() const;

  // nullopt at the end. Corruption when a broken record lies before one that was written after it
  // was durable, or before where the log had come to rest.
  Result<std::optional<LogRecord>> next();
  // After Corruption: whether that was for a record that is not what was written.
  bool is_damaged() const;
  // Then: steps to the next whole record. False: there is none. The sequence of a short one follows
  // from what lies between, which is lost: next() tells the one that is given here.
  Result<bool> step_over_damage();
  void set_next_sequence(std::uint64_t sequence);
  // To a record that step_over_damage() of another reader of this log has come to.
  void move_to(std::uint64_t position);

  // After the end: bytes of valid records, and whether records of this log that were begun after
  // them (unfinished, or complete behind one that is) were recognised. They were never
  // acknowledged.
  std::uint64_t end_bytes() const;
  // What is known to have been durable, by all records of this log that were recognised.
  std::uint64_t proven_bytes() const;
  bool torn_tail() const;

 private:
  class Inside;
  LogReader(std::unique_ptr<Inside> inside, const LogIdentity& identity, std::uint64_t successor);
  std::unique_ptr<Inside> inside_;
  LogIdentity identity_;
  std::uint64_t successor_;

 public:
  ~LogReader();
};

// A log that lies twice in its file, so that damage of one copy loses nothing: the manifest. Either
// half of the file is a whole log (log_format.h) with the same records at the same places; the salt
// in the heads of both is kDoubledLogSalt. A reader that knows of no second copy reads the first,
// and takes the other for what lies behind its end.
//
//   first copy, zeros to the half | second copy, zeros to the end     each kDoubledAlignmentBytes
//
// A record goes to both, then one sync makes both durable. So what was acknowledged is in either
// copy, and a power cut leaves at worst a record that was not in one of them: the copy whose whole
// records reach further counts, of two that reach as far the first. It must reach as far as any
// record of either says was durable; if not, both are damaged.

inline constexpr std::uint64_t kDoubledLogSalt = 0x0045434957544345;  // "ECTWICE"
inline constexpr std::uint64_t kDoubledAlignmentBytes = 4096;

// How large the file must be for two copies of a record of `payload_bytes`.
std::uint64_t doubled_log_bytes_for(std::uint64_t payload_bytes, bool sealed);

// As LogWriter, whose errors it has. Used by one thread.
class DoubledLogWriter {
 public:
  // `identity.salt` is set here.
  static Result<std::unique_ptr<DoubledLogWriter>> create(std::unique_ptr<LogFile> file,
                                                          LogIdentity identity,
                                                          KeyRing* keys = nullptr);

  bool fits(std::uint64_t payload_bytes) const;
  // Both copies hold the record on return, and are durable after sync().
  Status append(std::uint64_t sequence, std::span<const ByteView> parts);
  Status sync();

  // Counts of one copy.
  std::uint64_t appended_bytes() const { return copies_[0]->appended_bytes(); }
  std::uint64_t durable_bytes() const { return copies_[1]->durable_bytes(); }

 private:
  using Copies = std::array<std::unique_ptr<LogWriter>, 2>;
  explicit DoubledLogWriter(Copies copies) : copies_(std::move(copies)) {}

  Copies copies_;  // the sync of the first is that of the file
};

struct LogCopy {
  std::uint64_t begin = 0;  // in the file
  Status status;            // Ok: was read to its end; NotFound: it has no head
  LogIdentity identity;
  std::uint64_t end_bytes = 0;  // of whole records, without the head
};

// What lies in a file that may hold a log once or twice.
struct LogCopies {
  bool doubled = false;  // false: a log of an older version, one copy
  std::array<LogCopy, 2> copies;
  std::size_t best = 0;
  Status status;             // Ok: the best copy holds all that was durable
  Status damage;             // of what the best one makes up for, or Ok; it says where
  bool ends_differ = false;  // one lacks the last record: it was being written, or is damaged

  const LogCopy& best_copy() const { return copies[best]; }
};

enum class LogSource : unsigned char { Cached, Drive };

// Errors: those of opening the file; NotAllowed and Unsupported as LogReader.
Result<LogCopies> look_at_copies(FileSystem& file_system, const std::string& path, KeyRing* keys,
                                 LogSource source = LogSource::Cached);

// In a doubled log of that size.
std::uint64_t begin_of_second_copy(std::uint64_t file_bytes);

// From `begin` of the file to its end; the path of one that does not begin it says so.
Result<std::unique_ptr<RandomAccessFile>> open_copy(FileSystem& file_system,
                                                    const std::string& path, std::uint64_t begin,
                                                    LogSource source = LogSource::Cached);

// As write_log_again(), for both copies, one after the other: the best one, then the other, which
// becomes like it if it was not whole.
Status write_copies_again(FileSystem& file_system, const std::string& path,
                          const LogCopies& copies);

}  // namespace edgecase::engine
