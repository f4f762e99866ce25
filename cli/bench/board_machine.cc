#include "bench/board_machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::size_t kSyncPieceBytes = 4096;
constexpr std::size_t kDrivePieceBytes = 1u << 20;
constexpr std::uint64_t kMeminfoUnitBytes = 1024;

// Without the zero byte of a device tree and the line's end; empty if there is no such file.
std::string first_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == '\0' || line.back() == ' ')) line.pop_back();
  return line;
}

std::string model_of(const std::string& root) {
  std::string model = first_line(root + "/proc/device-tree/model");
  if (!model.empty()) return model;
  const std::string vendor = first_line(root + "/sys/class/dmi/id/sys_vendor");
  model = first_line(root + "/sys/class/dmi/id/product_name");
  if (model.empty()) return vendor.empty() ? "unknown" : vendor;
  return vendor.empty() ? model : vendor + " " + model;
}

// The line of /proc/self/mountinfo for the device that the directory lies on.
std::string place_of(const std::string& directory) {
  struct stat state {};
  if (::stat(directory.c_str(), &state) != 0) return "unknown";
  const std::string number =
      std::to_string(major(state.st_dev)) + ":" + std::to_string(minor(state.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skipped, device, word, kind, source;
    words >> skipped >> skipped >> device;
    if (device != number) continue;
    while (words >> word && word != "-") {
    }
    if (words >> kind >> source) return source + ", " + kind;
  }
  return "unknown";
}

Status drive_failure(const std::string& what, int error) {
  const std::string text = what + ": " + std::strerror(error);
  return error == ENOSPC ? out_of_space(text) : io_error(text);
}

// A file of ours without a name: gone whatever happens.
class NamelessFile {
 public:
  explicit NamelessFile(std::string directory) : path_(std::move(directory)) {
    path_ += "/.edgecase-board-XXXXXX";
    descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor_ >= 0) ::unlink(path_.c_str());
  }
  ~NamelessFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  int descriptor() const { return descriptor_; }
  Status write(const Bytes& piece, std::uint64_t offset) const {
    std::size_t done = 0;
    while (done < piece.size()) {
      const ssize_t got = ::pwrite(descriptor_, piece.data() + done, piece.size() - done,
                                   static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return drive_failure(path_, errno);
      done += static_cast<std::size_t>(got);
    }
    return ok();
  }
  Status sync() const { return ::fdatasync(descriptor_) == 0 ? ok() : drive_failure(path_, errno); }
  Status read(Bytes& piece, std::uint64_t offset) const {
    const ssize_t got =
        ::pread(descriptor_, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (got < 0) return drive_failure(path_, errno);
    return static_cast<std::size_t>(got) == piece.size() ? ok() : io_error(path_ + ": cut short");
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

Bytes random_piece(std::size_t size) {
  SeededRandom random(1);
  Bytes piece(size, '\0');
  for (char& c : piece) c = static_cast<char>(random.next());
  return piece;
}

Status time_syncs(const NamelessFile& file, int syncs, DriveFigures& figures) {
  const Bytes piece = random_piece(kSyncPieceBytes);
  Histogram times;
  for (int i = 0; i < syncs; ++i) {
    EC_TRY(check_interrupt());
    const auto start = std::chrono::steady_clock::now();
    EC_TRY(file.write(piece, static_cast<std::uint64_t>(i) * piece.size()));
    EC_TRY(file.sync());
    times.add(ns_since(start));
  }
  figures.sync_p50_us = static_cast<double>(times.percentile_ns(0.5)) / 1e3;
  figures.sync_p99_us = static_cast<double>(times.percentile_ns(0.99)) / 1e3;
  return ok();
}

Status time_pieces(const NamelessFile& file, std::uint64_t bytes, DriveFigures& figures) {
  Bytes piece = random_piece(kDrivePieceBytes);
  const std::uint64_t pieces = std::max<std::uint64_t>(bytes / piece.size(), 1);
  const auto rate = [&](std::chrono::steady_clock::time_point start) {
    return static_cast<double>(pieces * piece.size()) / 1e6 /
           (static_cast<double>(ns_since(start)) / 1e9);
  };
  auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < pieces; ++i) {
    EC_TRY(check_interrupt());
    EC_TRY(file.write(piece, i * piece.size()));
  }
  EC_TRY(file.sync());
  figures.write_mb_per_second = rate(start);
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < pieces; ++i) {
    EC_TRY(check_interrupt());
    EC_TRY(file.read(piece, i * piece.size()));
  }
  figures.read_mb_per_second = rate(start);
  return ok();
}

}  // namespace

Machine look_at_machine(const std::string& root) {
  Machine machine;
  machine.model = model_of(root);
  machine.cores = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  std::ifstream memory(root + "/proc/meminfo");
  for (std::string word; memory >> word;) {
    if (word == "MemTotal:" && memory >> machine.memory_bytes) break;
  }
  machine.memory_bytes *= kMeminfoUnitBytes;
  return machine;
}

Result<DriveFigures> measure_drive(const std::string& directory, std::uint64_t bytes, int syncs) {
  DriveFigures figures;
  figures.place = place_of(directory);
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) return io_error(directory + ": " + error.message());
  figures.free_bytes = space.available;
  figures.total_bytes = space.capacity;
  const NamelessFile file(directory);
  if (file.descriptor() < 0) return drive_failure(directory, errno);
  EC_TRY(time_syncs(file, syncs, figures));
  EC_TRY(time_pieces(file, bytes, figures));
  return figures;
}

}  // namespace edgecase::cli::bench
