#include "import/gzip_reader.h"

#include <zlib.h>

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "import/file_closer.h"
#include "target_file.h"

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

}  // namespace edgecase::cli
