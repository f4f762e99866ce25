// The audit log as bytes: its pages, and its head beside the values.
//
// A page: records that one commit took along, as one entry of the engine, with one
// hash. Most are like others of their page but for time and counts: what is alike is there once.
// Pure functions; any thread.
//
// In the engine's namespace `_audit` (record.h), numbers of fixed size big-endian, `zigzag` a
// signed number as varint:
//   'R' sequence of the last record (8)  ->  hash (32) body
// hash = SHA-256 of the hash of the page before (32 zero bytes for the first), the sequence of the
// last record (8), and the body:
//   version 1; how many records (varint); time of the first (8), how much later the last is
//   (zigzag) how many descriptions (varint), each a varint length and
//     flags (1: bit 0 reaches more than is named); operation, actor, token, namespace, selector,
//     detail, each a varint length and bytes; how many devices (varint), each a pseudonym (8)
//   of each record: number of its description (varint); 2 * outcome + clock trusted (1); how much
//     later than the one before (zigzag; the first: 0); readings (varint); how many devices more
//     than those named (varint); readings of each device (varint)
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/record.h"
#include "edgecase/file_system.h"
#include "edgecase/secrets.h"

namespace edgecase::audit {

inline constexpr std::size_t kPageRecordsMax = 1'024;
// Bytes of a page's descriptions, as if none were alike; it ends beyond that.
inline constexpr std::size_t kPageBytesMax = 128u << 10;

// A record as it waits for its page: what is the same for many as bytes, the rest as numbers.
struct Draft {
  Bytes description;
  std::int64_t time_ns = 0;
  ClockTrust trust = ClockTrust::Trusted;
  Outcome outcome = Outcome::Ok;
  std::uint64_t count = 0;
  std::uint64_t more_devices = 0;
  std::vector<std::uint64_t> target_counts;

  std::size_t memory_bytes() const {
    return sizeof(Draft) + description.size() + 8 * target_counts.size();
  }
};

// Without time and trust. At most kTargetsMax targets are kept; texts are cut at kTextMaxBytes.
Draft draft_of(const Record& record);

// The same of a record that says no more than this; its count is that of all targets, at most
// kTargetsMax.
struct Stored {
  std::string_view operation, actor, token, namespace_name;
};
Draft draft_of(const Stored& stored, std::span<const Target> targets);

// A page of 1 to kPageRecordsMax records.
Bytes encode_page(std::span<const Draft* const> drafts);
auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t last_sequence, ByteView body);
Bytes page_value(const auth::Digest& hash, ByteView body);
ByteView body_of(ByteView value);

// What is said of a page before its records.
struct PageHead {
  std::uint64_t first = 0, last = 0;  // sequences
  std::int64_t first_ns = 0, last_ns = 0;
  auth::Digest hash{};
};
// Corruption says what is wrong. decode_page() alone looks at the records.
Result<PageHead> decode_page_head(std::uint64_t last_sequence, ByteView value);

struct Page {
  PageHead head;
  std::vector<Record> records;  // with the page's hash
};
// Asked of each description, which is a record without what differs from one to the next.
using Wanted = std::function<bool(const Record& description)>;
// Decodes the records that are wanted, or all. Where none is, no more is looked at than that.
Result<Page> decode_page(std::uint64_t last_sequence, ByteView value, const Wanted& wanted = {});

inline constexpr char kSpareFileName[] = "AUDIT-SPARE";
// The queue of the log is full before: a record takes less, but for the longest.
inline constexpr std::uint64_t kSpareBytes = 2u << 20;

// A spare file for strict records while the log's drive takes no more. It is made in good time, so
// that what is read then has its record before it is answered. Its pages join the log once that
// takes them, or after a restart, under the same sequences.
//
// File AUDIT-SPARE in the metadata directory, numbers big-endian; frames one behind the other, as
// far as they are whole, then zeros:
//   length of the page (4), sequence of its last record (8), page: hash (32) body, as above;
//   the hash is over that of the frame before (32 zero bytes for the first)
// In an encrypted store, of such a frame
//   2^31 + length of what follows (4), sequence and page as one, sealed (edgecase/secrets.h): its
//   place is that of the frame in the file
// A key that opens the store opens them, also when the master key has changed. Frames of the other
// kind, and those of another store, are none. One thread at a time.
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

// The head of the audit log beside the values, on the other drive than the log itself: who cuts the
// log's end off has to change both. A line of text and its SHA-256, replaced atomically.
//
// In the values directory; the engine leaves names alone that are not its own.
inline constexpr char kHeadFileName[] = "AUDIT-HEAD";

// Durable on return.
Status write_head_file(FileSystem& file_system, const std::string& directory, const Mark& head);
// nullopt: there is none. Corruption: it is not what was written.
Result<std::optional<Mark>> read_head_file(FileSystem& file_system, const std::string& directory);

}  // namespace edgecase::audit
