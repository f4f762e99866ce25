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
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "log/log_reader.h"
#include "log/log_writer.h"

namespace edgecase::engine {

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
