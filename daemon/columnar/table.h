// Readings as files in columns: a group of rows in memory (ReadingTable), which one of the two
// writers turns into bytes (ArrowWriter, ParquetWriter). Used by the HTTP face.
//
// Use: ReadingTable table; table.add(reading) until is_full(); a writer takes table.columns();
// clear_rows(). One thread. A group takes at most about 5 MB.
//
// The columns of readings, in this order; what is not there is null:
//
//   namespace, device, sensor   names, from a dictionary
//   time                        nanoseconds since 1970, UTC
//   value                       every number as a double; a bool is 1 or 0
//   type                        float int bool text bytes, from a dictionary
//   value_int, value_bool       ints and bools as they are
//   value_text                  UTF-8
//   value_bytes, content_type   bytes, and what they are
//
// With WindowColumns::Told, of a window of a tier (its type is `window`): its length, and what it
// keeps, every number as a double: window, count, min, max, sum, mean, first, last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::columnar {

inline constexpr std::size_t kRowsPerGroup = 65'536;
// A group ends with the row that reaches this, of texts and bytes.
inline constexpr std::size_t kTextBytesPerGroup = 1u << 20;
// A larger text, or larger bytes, is no cell: it would have to lie in memory as a whole.
inline constexpr std::size_t kCellMaxBytes = 1u << 20;

enum class WindowColumns : std::uint8_t { NotTold, Told };

enum class Kind : std::uint8_t { Time, Int64, Double, Bool, Text, Bytes, Name };

struct Column {
  // `rows` rows, one after another, of the name with this index.
  struct Run {
    std::uint32_t index = 0, rows = 0;
  };

  std::string name;
  Kind kind = Kind::Time;
  bool is_optional = false;
  // The rows that have a value, ascending; of a column that is not optional, and of names, nothing:
  // all have one.
  std::vector<std::uint32_t> rows = {};
  // The values of these rows, where the kind has them.
  std::vector<std::int64_t> whole = {};      // Time, Int64, Bool
  std::vector<double> numbers = {};          // Double
  std::string bytes = {};                    // Text, Bytes: one behind another
  std::vector<std::uint32_t> ends = {};      // of each in `bytes`
  std::vector<Run> runs = {};                // Name
  std::vector<std::string_view> names = {};  // that `index` counts; they live as long as `known`
  std::map<std::string, std::uint32_t, std::less<>> known = {};

  std::uint32_t index_of(std::string_view text);
  void add_name(std::uint32_t index, std::uint32_t count = 1);
  void add_text(std::uint32_t row, std::string_view text);
  void forget_names();
};

// What a file says of itself.
using Metadata = std::vector<std::pair<std::string, std::string>>;

class ReadingTable {
 public:
  explicit ReadingTable(WindowColumns windows = WindowColumns::NotTold);

  // Names before their readings come, for a writer that tells all of them first.
  void know(std::string_view namespace_name, std::string_view device, std::string_view sensor);
  std::size_t known_bytes() const { return known_bytes_; }

  // `time_ns` is set. The value of a cell that is too large is left out by the caller: `is_told`
  // false adds the row without it.
  void add(const wire::Reading& reading, bool is_told = true);
  // Readings behind one of the same series.
  void add(const wire::Numbers& numbers);
  std::uint32_t rows() const { return rows_; }
  std::size_t room() const { return kRowsPerGroup - rows_; }
  bool is_full() const { return rows_ >= kRowsPerGroup || text_bytes_ >= kTextBytesPerGroup; }
  const std::vector<Column>& columns() const { return columns_; }
  // For the next group. Names stay where they were known before.
  void clear_rows();

 private:
  void find_series(const wire::Reading& reading);
  void add_window(const wire::Window& window, std::uint32_t row);

  std::vector<Column> columns_;
  std::uint32_t rows_ = 0;
  std::size_t text_bytes_ = 0, known_bytes_ = 0;
  bool keeps_names_ = false;
  // The series of the row before.
  bool has_series_ = false;
  std::uint32_t namespace_ = 0, device_ = 0, sensor_ = 0;
};

// Turns groups into bytes: begin(), group()..., end(), each behind what came before. What was not
// ended is no file: its readers look for what end() writes.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  virtual void begin(const std::vector<Column>& columns, const Metadata& metadata,
                     std::string& out) = 0;
  // LimitReached: the file has as many groups as it may have (kIndexMaxBytes).
  virtual Status group(const std::vector<Column>& columns, std::uint32_t rows,
                       std::string& out) = 0;
  virtual void end(std::string& out) = 0;
};

// Numbers in files lie with their lowest byte first.
template <typename T>
void append_little(T number, std::string& out) {
  auto bits = static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8) out.push_back(static_cast<char>(bits));
}

// What a writer keeps of the groups that it wrote, to list them at the end: of 65,536 rows each
// these are some 400 million readings of Parquet.
inline constexpr std::size_t kIndexMaxBytes = 8u << 20;

// Arrow IPC, the file form (Feather version 2): schema, dictionaries of all names, one record batch
// after another, and the footer that lists them. DESIGN.md has the picture. One thread.
//
// All names are told before the first batch: some readers take no later ones. Buffers of batches
// are packed by zstd where that makes them shorter: a column without a value takes next to nothing.

// The names that dictionaries hold: they lie in memory as long as the answer lasts.
inline constexpr std::size_t kNamesMaxBytes = 4u << 20;

class ArrowWriter final : public TableWriter {
 public:
  void begin(const std::vector<Column>& columns, const Metadata& metadata,
             std::string& out) override;
  Status group(const std::vector<Column>& columns, std::uint32_t rows, std::string& out) override;
  void end(std::string& out) override;

 private:
  // Where a message lies in the file.
  struct Block {
    std::int64_t offset_bytes = 0;
    std::int32_t head_bytes = 0;
    std::int64_t body_bytes = 0;
  };
  Block append_message(std::string_view head, std::string_view body, std::string& out);

  std::vector<Block> dictionaries_, batches_;
  std::vector<Column> described_;  // without rows or names: for the footer's schema
  Metadata metadata_;
  std::int64_t offset_bytes_ = 0;  // of what was written
};

// Parquet, as far as readings need it: one row group after another, one page a column, and the
// footer that lists them. DESIGN.md has the picture. One thread.
//
//   times, ints   DELTA_BINARY_PACKED: readings that come each second take next to nothing
//   names         RLE_DICTIONARY
//   doubles       RLE_DICTIONARY where a group has few values (sensors with one decimal), else
//                 BYTE_STREAM_SPLIT
//   bools, texts  PLAIN
//
// A column of a group is packed by zstd where that takes a tenth off. Each has its count of nulls;
// times and names also their least and greatest, by which readers pass over groups.

class ParquetWriter final : public TableWriter {
 public:
  void begin(const std::vector<Column>& columns, const Metadata& metadata,
             std::string& out) override;
  Status group(const std::vector<Column>& columns, std::uint32_t rows, std::string& out) override;
  void end(std::string& out) override;

 private:
  std::string schema_, metadata_;  // of the footer, in Thrift
  std::size_t schema_elements_ = 0, metadata_pairs_ = 0;
  std::string groups_;  // the same of the row groups
  std::uint32_t group_count_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t offset_bytes_ = 0;  // of what was written
};

// Numbers as Parquet packs them. Used by parquet.cc; no state, any thread.

// Seven bits a byte, the lowest first; the highest bit tells that more follow.
void append_varint(std::uint64_t number, std::string& out);

// 0, -1, 1, -2 become 0, 1, 2, 3: what is near zero is short.
inline std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}

// The bits that `greatest` and all below it need.
unsigned width_of(std::uint64_t greatest);

// Numbers of so many bits each, one behind another, the lowest bit first.
class BitPacker {
 public:
  explicit BitPacker(std::string& out) : out_(out) {}
  void put(std::uint64_t number, unsigned width) {
    if (width == 0) return;
    bits_ |= number << used_;
    used_ += width;
    if (used_ < 64) return;
    flush(64);
    used_ -= 64;
    bits_ = used_ == 0 ? 0 : number >> (width - used_);
  }
  void finish() {
    flush(used_);
    used_ = 0;
    bits_ = 0;
  }

 private:
  void flush(unsigned bits) {
    for (unsigned i = 0; i < bits; i += 8) out_.push_back(static_cast<char>(bits_ >> i));
  }

  std::string& out_;
  std::uint64_t bits_ = 0;
  unsigned used_ = 0;
};

// RLE: runs of equal numbers, and between them groups of eight in packed bits.
void append_hybrid(const std::vector<std::uint32_t>& values, unsigned width, std::string& out);

// DELTA_BINARY_PACKED: differences, in blocks whose least is told once.
void append_delta(const std::vector<std::int64_t>& values, std::string& out);

}  // namespace edgecase::columnar
