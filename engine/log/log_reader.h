// Reads one log front to back and tells a torn tail from damage. Layout: log_format.h. Used by one
// thread.
#pragma once

#include <memory>
#include <optional>

#include "edgecase/file_system.h"
#include "log/log_writer.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
