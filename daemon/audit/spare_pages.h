// Where strict records go while the log's drive takes no more: a file made in good time, so that
// what is read then has its record before it is answered. Its pages join the log once that takes
// them, or after a restart, under the same sequences.
//
// File AUDIT-SPARE in the metadata directory, numbers big-endian; frames one behind the other, as
// far as their hashes tell that they are whole:
//   length of the page (4), sequence of its last record (8), page: hash (32) body, as in page.h;
//   the hash is over that of the frame before (32 zero bytes for the first)
// Not for encrypted stores: it is not encrypted. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audit/record.h"
#include "edgecase/file_system.h"

namespace edgecase::audit {

inline constexpr char kSpareFileName[] = "AUDIT-SPARE";
// The queue of the log is full before: a record takes less, but for the longest.
inline constexpr std::uint64_t kSpareBytes = 2u << 20;

class SparePages {
 public:
  // NotFound: there is none, or one whose making was cut short, which is removed. OutOfSpace: nor
  // room for one.
  static Result<SparePages> open(FileSystem& file_system, const std::string& directory);
  static Result<SparePages> create(FileSystem& file_system, const std::string& directory);

  // What is in it, oldest first.
  const std::vector<Record>& found() const { return found_; }
  void forget_found() { found_ = {}; }

  bool empty() const { return end_ == 0; }
  // A page behind the others; durable on return. OutOfSpace: the file is full.
  Status append(std::uint64_t last_sequence, ByteView body);
  // Nothing is left of what was in it.
  Status clear();

 private:
  explicit SparePages(std::unique_ptr<LogFile> file) : file_(std::move(file)) {}
  void read_frames(ByteView bytes);

  std::unique_ptr<LogFile> file_;
  std::uint64_t end_ = 0;
  auth::Digest hash_{};  // of the last frame
  std::vector<Record> found_;
};

}  // namespace edgecase::audit
