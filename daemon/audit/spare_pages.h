// A spare file for strict records while the log's drive takes no more. It is made in good time, so
// that what is read then has its record before it is answered. Its pages join the log once that
// takes them, or after a restart, under the same sequences.
//
// File AUDIT-SPARE in the metadata directory, numbers big-endian; frames one behind the other, as
// far as they are whole, then zeros:
//   length of the page (4), sequence of its last record (8), page: hash (32) body, as in page.h;
//   the hash is over that of the frame before (32 zero bytes for the first)
// In an encrypted store, of such a frame
//   2^31 + length of what follows (4), sequence and page as one, sealed (edgecase/sealer.h): its
//   place is that of the frame in the file
// A key that opens the store opens them, also when the master key has changed. Frames of the other
// kind, and those of another store, are none. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/record.h"
#include "edgecase/file_system.h"
#include "edgecase/sealer.h"

namespace edgecase::audit {

inline constexpr char kSpareFileName[] = "AUDIT-SPARE";
// The queue of the log is full before: a record takes less, but for the longest.
inline constexpr std::uint64_t kSpareBytes = 2u << 20;

class SparePages {
 public:
  // `sealer` is the store's, null where that is in clear; it and `file_system` must outlive this.
  // NotFound: there is none, or one whose making was cut short, which is removed. OutOfSpace: nor
  // room for one.
  static Result<SparePages> open(FileSystem& file_system, const std::string& directory,
                                 Sealer* sealer);
  static Result<SparePages> create(FileSystem& file_system, const std::string& directory,
                                   Sealer* sealer);

  // What is in it, oldest first.
  const std::vector<Record>& found() const { return found_; }
  void forget_found() { found_ = {}; }
  // How much was behind that when it was opened, and is overwritten: of a page that was cut short,
  // which nobody was told was durable, or what was damaged, or is none of this store's.
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

  // Whether it holds nothing that has to go from there.
  bool empty() const { return written_ == 0; }
  // A page behind the others; durable on return. OutOfSpace: the file is full.
  Status append(std::uint64_t last_sequence, ByteView body);
  // Nothing is left of what was in it.
  Status clear();

 private:
  struct Frame {
    std::uint64_t bytes = 0;  // of it in the file
    std::uint64_t last = 0;
    Bytes page;
  };

  SparePages(FileSystem& file_system, std::unique_ptr<LogFile> file, Sealer* sealer)
      : file_system_(&file_system),
        path_(file->path()),
        capacity_bytes_(file->capacity_bytes()),
        file_(std::move(file)),
        sealer_(sealer) {}
  std::optional<Frame> frame_at_end(ByteView bytes) const;
  void read_frames(ByteView bytes);
  Bytes encode_frame(std::uint64_t last_sequence, ByteView page) const;
  Status overwrite(std::uint64_t begin);
  Status write(std::uint64_t offset, ByteView bytes);

  FileSystem* file_system_;
  std::string path_;
  std::uint64_t capacity_bytes_;
  std::unique_ptr<LogFile> file_;  // null: it is to be opened again
  Sealer* sealer_;
  std::uint64_t end_ = 0;      // of the frames
  std::uint64_t written_ = 0;  // of what may not be zero; not before `end_`
  std::uint64_t dropped_bytes_ = 0;
  auth::Digest hash_{};  // of the last frame
  std::vector<Record> found_;
};

}  // namespace edgecase::audit
