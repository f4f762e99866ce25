#include "import/importer.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "target_file.h"
#include "wire/decimal.h"
#include "wire/line_protocol.h"
#include "wire/reading_json.h"

namespace edgecase::cli {
namespace {

constexpr std::size_t kInputBytes = 64u << 10;
constexpr std::size_t kUnzippedBytes = 256u << 10;
constexpr int kGzipFormat = 15 + 16;

}  // namespace

struct GzipReader::State {
  ~State() {
    if (begun) inflateEnd(&stream);
  }

  std::string path;
  File file;
  std::uint64_t size = 0, taken = 0;  // bytes of the file
  std::vector<Bytef> input = std::vector<Bytef>(kInputBytes);
  z_stream stream{};
  bool begun = false;
  bool whole = false;  // the last member has ended
};

GzipReader::GzipReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipReader::~GzipReader() = default;

Result<std::unique_ptr<GzipReader>> GzipReader::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->file.reset(std::fopen(path.c_str(), "rbe"));
  if (!state->file) {
    return file_failure(path, errno);
  }
  struct stat status {};
  if (fstat(fileno(state->file.get()), &status) != 0) return file_failure(path, errno);
  state->size = static_cast<std::uint64_t>(status.st_size);
  state->begun = inflateInit2(&state->stream, kGzipFormat) == Z_OK;
  if (!state->begun) return busy("no memory to read " + path);
  return std::unique_ptr<GzipReader>(new GzipReader(std::move(state)));
}

Result<bool> GzipReader::read(std::string& out) {
  State& s = *state_;
  if (s.stream.avail_in == 0) {
    const std::size_t got = std::fread(s.input.data(), 1, s.input.size(), s.file.get());
    if (std::ferror(s.file.get()) != 0) return io_error(s.path + ": " + std::strerror(errno));
    if (got == 0) {
      if (s.whole) return false;
      return corruption(s.path + ": its end is missing");
    }
    s.taken += got;
    s.stream.next_in = s.input.data();
    s.stream.avail_in = static_cast<uInt>(got);
  }
  // A file may be several members, one after another.
  if (s.whole && inflateReset(&s.stream) != Z_OK) return corruption(s.path + ": is no gzip file");
  s.whole = false;
  const std::size_t before = out.size();
  out.resize(before + kUnzippedBytes);
  void* const room = out.data() + before;
  s.stream.next_out = static_cast<Bytef*>(room);
  s.stream.avail_out = static_cast<uInt>(kUnzippedBytes);
  const int result = inflate(&s.stream, Z_NO_FLUSH);
  out.resize(before + kUnzippedBytes - s.stream.avail_out);
  if (result == Z_STREAM_END) {
    s.whole = true;
  } else if (result != Z_OK && result != Z_BUF_ERROR) {
    return corruption(s.path + ": is damaged, or no gzip file");
  }
  return true;
}

double GzipReader::share() const {
  const State& s = *state_;
  if (s.size == 0) return 1;
  return static_cast<double>(s.taken - s.stream.avail_in) / static_cast<double>(s.size);
}
namespace {

// NDJSON is decoded in pieces of about this size.
constexpr std::size_t kPieceBytes = 1u << 20;

// What cannot be mapped, a pipe say, in a file without a name.
Result<File> spool(std::FILE* from, const std::string& path) {
  File copy(std::tmpfile());
  if (!copy) return file_failure("a temporary file", errno);
  char buffer[65536];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, from)) > 0) {
    if (std::fwrite(buffer, 1, got, copy.get()) != got)
      return file_failure("a temporary file", errno);
  }
  if (std::ferror(from) != 0) return file_failure(path, errno);
  if (std::fflush(copy.get()) != 0) return file_failure("a temporary file", errno);
  return copy;
}

// What is in a gzip file, in a file without a name.
Result<File> unpack(const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<GzipReader> packed, GzipReader::open(path));
  File copy(std::tmpfile());
  if (!copy) return file_failure("a temporary file", errno);
  std::string piece;
  for (bool more = true; more; piece.clear()) {
    EC_ASSIGN_OR_RETURN(more, packed->read(piece));
    if (std::fwrite(piece.data(), 1, piece.size(), copy.get()) != piece.size())
      return file_failure("a temporary file", errno);
  }
  if (std::fflush(copy.get()) != 0) return file_failure("a temporary file", errno);
  return copy;
}

// A whole file as one view.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path) {
    const bool standard_input = path == "-";
    File file(standard_input ? nullptr : std::fopen(path.c_str(), "rbe"));
    if (!standard_input && !file) return file_failure(path, errno);
    struct stat status {};
    if (fstat(fileno(standard_input ? stdin : file.get()), &status) != 0)
      return file_failure(path, errno);
    if (S_ISDIR(status.st_mode)) return invalid_argument(path + ": is a directory");
    if (!S_ISREG(status.st_mode) || standard_input) {
      EC_ASSIGN_OR_RETURN(file, spool(standard_input ? stdin : file.get(), path));
      if (fstat(fileno(file.get()), &status) != 0) return file_failure(path, errno);
    }
    if (path.ends_with(".gz")) {
      EC_ASSIGN_OR_RETURN(file, unpack(path));
      if (fstat(fileno(file.get()), &status) != 0) return file_failure(path, errno);
    }
    MappedFile mapped;
    if (status.st_size == 0) return mapped;
    mapped.size_ = static_cast<std::size_t>(status.st_size);
    mapped.bytes_ = mmap(nullptr, mapped.size_, PROT_READ, MAP_PRIVATE, fileno(file.get()), 0);
    if (mapped.bytes_ == MAP_FAILED) {
      mapped.bytes_ = nullptr;
      return file_failure(path, errno);
    }
    madvise(mapped.bytes_, mapped.size_, MADV_SEQUENTIAL);
    return mapped;
  }
  ~MappedFile() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
  }
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view view() const { return {static_cast<const char*>(bytes_), size_}; }

 private:
  MappedFile() = default;

  void* bytes_ = nullptr;
  std::size_t size_ = 0;
};

double share_of(std::size_t left, std::size_t size) {
  return size == 0 ? 1 : 1 - static_cast<double>(left) / static_cast<double>(size);
}

class CsvSource : public ReadingSource {
 public:
  CsvSource(MappedFile file, CsvDecoder decoder)
      : file_(std::move(file)), decoder_(std::move(decoder)) {}
  Result<bool> next(wire::ReadingBatch& batch) override { return decoder_.next(batch); }
  double share() const override { return share_of(decoder_.left(), file_.view().size()); }
  bool counts_times() const override { return decoder_.counts_times(); }
  std::uint64_t no_values() const override { return decoder_.no_values(); }
  std::uint64_t bad_lines() const override { return decoder_.bad_lines(); }
  const std::vector<wire::LineError>& errors() const override { return decoder_.errors(); }

 private:
  const MappedFile file_;
  CsvDecoder decoder_;
};

class LineSource : public ReadingSource {
 public:
  LineSource(MappedFile file, std::string_view default_namespace, std::int64_t unit_ns,
             const wire::LineRules* rules)
      : file_(std::move(file)),
        decoder_(file_.view(), {default_namespace, unit_ns, kBadLinesToldMax,
                                wire::LineContexts::Followed, rules}) {}
  Result<bool> next(wire::ReadingBatch& batch) override { return decoder_.next(batch); }
  double share() const override { return share_of(decoder_.left(), file_.view().size()); }
  bool counts_times() const override { return true; }
  std::uint64_t bad_lines() const override { return decoder_.bad_lines(); }
  const std::vector<wire::LineError>& errors() const override { return decoder_.errors(); }

 private:
  const MappedFile file_;
  wire::LineProtocolDecoder decoder_;
};

// What came before, and what of it was no reading.
struct LinesDecoded {
  std::uint64_t before = 0;
  std::uint64_t bad = 0;
  std::vector<wire::LineError> errors;
  bool count_times = false;
};

// Whether a time of these lines is written as a number.
bool has_counted_time(std::string_view piece) {
  constexpr std::string_view kMember = "\"time\"";
  for (std::size_t at = 0; (at = piece.find(kMember, at)) != std::string_view::npos;) {
    at = piece.find_first_not_of(" \t:", at + kMember.size());
    if (at != std::string_view::npos && wire::is_digit(piece[at])) return true;
  }
  return false;
}

Status decode_lines(std::string_view piece, const wire::JsonDecodeOptions& options,
                    LinesDecoded& lines, wire::ReadingBatch& batch) {
  wire::JsonDecodeOutcome outcome;
  EC_TRY(wire::decode_readings_json(piece, options, batch, outcome));
  if (lines.before == 0) lines.count_times = has_counted_time(piece);
  lines.bad += outcome.bad;
  for (wire::LineError& error : outcome.errors) {
    if (lines.errors.size() == kBadLinesToldMax) break;
    if (error.line != 0) error.line += lines.before;
    lines.errors.push_back(std::move(error));
  }
  lines.before += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
  return ok();
}

class JsonSource : public ReadingSource {
 public:
  JsonSource(MappedFile file, std::string_view default_namespace, std::int64_t unit_ns)
      : file_(std::move(file)) {
    options_.default_namespace = default_namespace;
    options_.time_unit_ns = unit_ns;
    options_.errors_max = kBadLinesToldMax;
    rest_ = file_.view();
  }

  Result<bool> next(wire::ReadingBatch& batch) override {
    while (batch.readings.empty() && rest_.find_first_not_of(" \t\r\n") != std::string_view::npos) {
      const std::string_view piece = rest_.substr(0, piece_bytes());
      if (piece.size() > kArrayMaxBytes) {
        return invalid_argument("larger than a JSON array may be, write one object a line");
      }
      EC_TRY(decode_lines(piece, options_, lines_, batch));
      rest_.remove_prefix(piece.size());
    }
    return !batch.readings.empty();
  }
  double share() const override { return share_of(rest_.size(), file_.view().size()); }
  bool counts_times() const override { return lines_.count_times; }
  std::uint64_t bad_lines() const override { return lines_.bad; }
  const std::vector<wire::LineError>& errors() const override { return lines_.errors; }

 private:
  // Lines can be taken apart, an array cannot.
  std::size_t piece_bytes() const {
    const std::size_t first = rest_.find_first_not_of(" \t\r\n");
    if (rest_[first] == '[' || rest_.size() <= kPieceBytes) return rest_.size();
    const std::size_t line_end = rest_.find('\n', kPieceBytes);
    return line_end == std::string_view::npos ? rest_.size() : line_end + 1;
  }

  const MappedFile file_;
  wire::JsonDecodeOptions options_;
  std::string_view rest_;
  LinesDecoded lines_;
};

// NDJSON in gzip, decoded as it is read.
class GzipSource : public ReadingSource {
 public:
  GzipSource(std::unique_ptr<GzipReader> file, std::string_view default_namespace,
             std::int64_t unit_ns)
      : file_(std::move(file)) {
    options_.default_namespace = default_namespace;
    options_.time_unit_ns = unit_ns;
    options_.errors_max = kBadLinesToldMax;
  }

  Result<bool> next(wire::ReadingBatch& batch) override {
    while (batch.readings.empty()) {
      text_.erase(0, used_);
      used_ = 0;
      while (more_ && (text_.size() < kPieceBytes || text_.find('\n') == std::string::npos)) {
        EC_ASSIGN_OR_RETURN(more_, file_->read(text_));
      }
      if (text_.find_first_not_of(" \t\r\n") == std::string::npos) return false;
      // Whole lines, but for a last one without an end.
      used_ = more_ ? text_.rfind('\n') + 1 : text_.size();
      EC_TRY(decode_lines(std::string_view(text_).substr(0, used_), options_, lines_, batch));
    }
    return true;
  }
  double share() const override { return file_->share(); }
  bool counts_times() const override { return lines_.count_times; }
  std::uint64_t bad_lines() const override { return lines_.bad; }
  const std::vector<wire::LineError>& errors() const override { return lines_.errors; }

 private:
  const std::unique_ptr<GzipReader> file_;
  wire::JsonDecodeOptions options_;
  std::string text_;
  std::size_t used_ = 0;  // of text_, by the batch before
  bool more_ = true;
  LinesDecoded lines_;
};

}  // namespace

std::string_view format_of_file(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  if (path.ends_with(".csv")) return "csv";
  for (const std::string_view ending : {".ndjson", ".jsonl", ".json"})
    if (path.ends_with(ending)) return "ndjson";
  for (const std::string_view ending : {".line", ".lp"})
    if (path.ends_with(ending)) return "line";
  return "";
}

Result<std::unique_ptr<ReadingSource>> ReadingSource::open(const std::string& path,
                                                           const std::string& format,
                                                           const std::string& default_namespace,
                                                           const CsvForm& csv,
                                                           const wire::LineRules* rules) {
  const std::string_view chosen = format.empty() ? format_of_file(path) : format;
  if (chosen.empty()) {
    // A name that is mistyped has no ending to speak of either.
    if (path != "-") EC_TRY(MappedFile::open(path).status());
    return invalid_argument(
        path + ": its name does not tell the format, add --format csv, ndjson or line");
  }
  const std::int64_t unit_ns = csv.time_format ? csv.time_format->unit_ns() : 1;
  if (chosen != "csv" && (csv.is_foreign() || unit_ns == 0)) {
    return invalid_argument(path + ": columns and patterns of times are of CSV alone");
  }
  std::unique_ptr<ReadingSource> source;
  if (chosen == "ndjson" && path.ends_with(".gz")) {
    EC_ASSIGN_OR_RETURN(std::unique_ptr<GzipReader> file, GzipReader::open(path));
    source = std::make_unique<GzipSource>(std::move(file), default_namespace, unit_ns);
    return source;
  }
  EC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (chosen == "csv") {
    Result<CsvDecoder> decoder =
        CsvDecoder::create(file.view(), default_namespace, kBadLinesToldMax, csv);
    if (!decoder.ok()) return invalid_argument(path + ": " + decoder.status().message());
    source = std::make_unique<CsvSource>(std::move(file), std::move(decoder).value());
  } else if (chosen == "line") {
    source = std::make_unique<LineSource>(std::move(file), default_namespace, unit_ns, rules);
  } else {
    source = std::make_unique<JsonSource>(std::move(file), default_namespace, unit_ns);
  }
  return source;
}

}  // namespace edgecase::cli
