// A file of readings, in any format that `export` writes, as batches.
//
// The file is mapped, not read: memory stays bounded by a batch, however large the file. It must
// not shrink meanwhile. Use: open(), then next() until it answers false. One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "import/csv_decoder.h"
#include "wire/line_names.h"
#include "wire/reading.h"

namespace edgecase::cli {

// A gzip file (RFC 1952) from its beginning to its end, a piece at a time. One thread.

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class GzipReader {
 public:
  // NotFound, NotAllowed, IoError: the file.
  static Result<std::unique_ptr<GzipReader>> open(const std::string& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Appends some more to `out`; false at the end. Corruption: no gzip, a wrong checksum, or an end
  // that is missing.
  Result<bool> read(std::string& out);
  // How much of the file was read, 0 to 1.
  double share() const;

 private:
  struct State;
  explicit GzipReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A bad line costs itself alone. How many of them are told word by word, a file.
inline constexpr std::size_t kBadLinesToldMax = 20;
// A JSON array has to be decoded as a whole.
inline constexpr std::size_t kArrayMaxBytes = 64u << 20;

class ReadingSource {
 public:
  virtual ~ReadingSource() = default;

  // `format`: csv, ndjson or line; empty: by the name's ending. "-" is stdin, which needs a format.
  // What names no namespace belongs to `default_namespace`, which outlives the source. NotFound,
  // NotAllowed, IoError: the file; InvalidArgument: no format, or a file that is not of its format
  // as a whole. Counts since 1970 are nanoseconds, or what csv.time_format says of them, in any
  // format. `rules`: which devices lines of line protocol belong to; outlives the source.
  static Result<std::unique_ptr<ReadingSource>> open(const std::string& path,
                                                     const std::string& format,
                                                     const std::string& default_namespace,
                                                     const CsvForm& csv = {},
                                                     const wire::LineRules* rules = nullptr);

  // The next readings into `batch`, which must be empty; they live until the next call. False: the
  // file is used up.
  virtual Result<bool> next(wire::ReadingBatch& batch) = 0;

  // How much of the file was decoded, 0 to 1.
  virtual double share() const = 0;
  // Whether times are counts since 1970, as far as the readings say that have come.
  virtual bool counts_times() const = 0;
  // Lines that say that there is no value; only CSV can.
  virtual std::uint64_t no_values() const { return 0; }
  virtual std::uint64_t bad_lines() const = 0;
  // The first kBadLinesToldMax of them.
  virtual const std::vector<wire::LineError>& errors() const = 0;
};

// "csv", "ndjson", "line", or empty when the ending tells nothing.
std::string_view format_of_file(std::string_view path);

}  // namespace edgecase::cli
