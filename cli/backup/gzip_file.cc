#include "backup/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "target_file.h"

namespace edgecase::cli {
namespace {

constexpr std::size_t kOutputBytes = 64u << 10;
constexpr std::size_t kInputMaxBytes = 1u << 30;
constexpr int kGzipOnly = 15 + 16;
// Readings are repetitive: higher levels cost much and gain little.
constexpr int kLevel = 3;
constexpr int kMemoryLevel = 8;

}  // namespace

struct GzipFile::State {
  explicit State(TargetFile target) : file(std::move(target)) {}
  ~State() {
    if (begun) deflateEnd(&stream);
  }

  TargetFile file;
  std::vector<char> output = std::vector<char>(kOutputBytes);
  z_stream stream{};
  bool begun = false;
  std::uint64_t size_bytes = 0;
};

GzipFile::GzipFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipFile::~GzipFile() = default;

Result<std::unique_ptr<GzipFile>> GzipFile::create(const std::string& path,
                                                   const std::string& shown) {
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(path, shown));
  auto state = std::make_unique<State>(std::move(file));
  state->begun = deflateInit2(&state->stream, kLevel, Z_DEFLATED, kGzipOnly, kMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK;
  if (!state->begun) return busy("no memory to write " + path);
  return std::unique_ptr<GzipFile>(new GzipFile(std::move(state)));
}

Status GzipFile::deflate(std::string_view bytes, int flush) {
  State& s = *state_;
  s.stream.next_in =
      const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(bytes.data())));
  s.stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    s.stream.next_out = static_cast<Bytef*>(static_cast<void*>(s.output.data()));
    s.stream.avail_out = static_cast<uInt>(s.output.size());
    ::deflate(&s.stream, flush);
    const std::size_t made = s.output.size() - s.stream.avail_out;
    EC_TRY(s.file.write({s.output.data(), made}));
    s.size_bytes += made;
  } while (s.stream.avail_out == 0);
  return ok();
}

Status GzipFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kInputMaxBytes);
    EC_TRY(deflate(piece, Z_NO_FLUSH));
    bytes.remove_prefix(piece.size());
  }
  return ok();
}

Status GzipFile::commit() {
  EC_TRY(deflate({}, Z_FINISH));
  return state_->file.commit();
}

std::uint64_t GzipFile::size_bytes() const {
  return state_->size_bytes;
}

}  // namespace edgecase::cli
