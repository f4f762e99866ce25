// board: what a board can keep up with, for somebody who has to choose one. Which machine it is and
// how fast its drives are; then readings alone, and the CaseDB paper's mix of tiny readings, images
// and video, everything durable before the next, on the engine in this process; then all of it read
// back.
//
// A round of the mix: 1,000 readings of 50 bytes, one of each of 1,000 sensors, in batches of 100;
// 8 images of 256 KiB and a piece of video of 4 MiB, each durable by itself. By count 99.1 %, 0.8 %
// and 0.1 %; by bytes 1 %, 33 % and 66 %. Values are random bytes: real readings take less room.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kBoardSensors = 1'000;
constexpr std::uint64_t kBoardBatch = 100;
constexpr std::uint32_t kReadingBytes = 50;
constexpr std::uint64_t kImages = 8;
constexpr std::uint32_t kImageBytes = 256u << 10;
constexpr std::uint32_t kVideoBytes = 4u << 20;
constexpr std::uint64_t kRoundBytes =
    kBoardSensors * kReadingBytes + kImages * kImageBytes + kVideoBytes;
constexpr std::uint64_t kBoardBytesMax = 2'000'000'000;
constexpr std::uint64_t kBoardRoundsMax = kBoardBytesMax / kRoundBytes;
constexpr std::uint64_t kBoardSmokeRounds = 2;
constexpr std::uint64_t kAloneRoundsMax = 100'000;  // of readings alone, 5 GB of values
constexpr double kBoardSeconds = 20;
constexpr double kAloneShare = 0.25;
constexpr std::uint64_t kBoardLogBytes = 300u << 20;
constexpr std::uint64_t kDriveBytes = 64u << 20;
constexpr std::uint64_t kDriveSmokeBytes = 2u << 20;
constexpr int kDriveSyncs = 200;
constexpr int kDriveSmokeSyncs = 10;
constexpr std::uint64_t kSensorKeys = 1'000'000'000;  // keys of one sensor, by time
constexpr std::uint32_t kBoardKeyBytesMin = 12;       // digits of kBoardSensors * kSensorKeys
constexpr double kSecondsPerDay = 86'400;
constexpr std::uint32_t kReadingSpace = 0;
constexpr std::uint32_t kBlobSpace = 1;

class Board {
 public:
  explicit Board(const BenchOptions& options)
      : options_(options),
        seconds_(options.seconds > 0 ? options.seconds : kBoardSeconds),
        rounds_(std::min(options.num_or(kBoardRoundsMax, kBoardSmokeRounds), kBoardRoundsMax)),
        alone_rounds_(
            std::min(options.num_or(kAloneRoundsMax, kBoardSmokeRounds), kAloneRoundsMax)),
        values_(options.seed, kVideoBytes, 1),
        reading_keys_(options.key_size),
        blob_keys_(options.key_size) {}

  Result<Report> run() {
    report_.workload = options_.workload;
    report_.seed = options_.seed;
    report_.value_size = kReadingBytes;
    report_.sync = true;
    EC_TRY(look());
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, 2, StoreSession::kUsualMemoryBytes));
    batch_ = session_->store().make_batch();
    reset_own_peak();
    EC_TRY(readings_alone());
    EC_TRY(mix());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    EC_TRY(read_back());
    batch_.reset();
    session_.reset();
    finish();
    return std::move(report_);
  }

 private:
  using Steady = std::chrono::steady_clock;
  static double since(Steady::time_point start) {
    return std::max(static_cast<double>(ns_since(start)) / 1e9, 1e-9);
  }
  void add(const std::string& name, double value) { report_.more.emplace_back(name, value); }

  // The machine, and its drives one after the other.
  Status look() {
    const Machine machine = look_at_machine("");
    report_.words.emplace_back("model", machine.model);
    add("cores", machine.cores);
    add("memory_bytes", static_cast<double>(machine.memory_bytes));
    say("  %u cores, %.1f GB of memory.", machine.cores,
        static_cast<double>(machine.memory_bytes) / 1e9);
    EC_TRY(look_at_drive("metadata", options_.metadata, metadata_));
    if (options_.values.empty()) {
      report_.words.emplace_back("values_drive", "the same directory");
      drive_ = metadata_;
      return ok();
    }
    return look_at_drive("values", options_.values, drive_);
  }

  Status look_at_drive(const std::string& name, const std::string& directory,
                       DriveFigures& figures) {
    EC_ASSIGN_OR_RETURN(figures, measure_drive(directory.empty() ? "." : directory,
                                               options_.smoke ? kDriveSmokeBytes : kDriveBytes,
                                               options_.smoke ? kDriveSmokeSyncs : kDriveSyncs));
    report_.words.emplace_back(name + "_drive", figures.place);
    add(name + "_free_bytes", static_cast<double>(figures.free_bytes));
    add(name + "_sync_p50_us", figures.sync_p50_us);
    add(name + "_sync_p99_us", figures.sync_p99_us);
    add(name + "_write_mb_per_second", figures.write_mb_per_second);
    add(name + "_read_mb_per_second", figures.read_mb_per_second);
    return ok();
  }

  Status commit() {
    const auto start = Steady::now();
    EC_TRY(session_->store().write(*batch_, true));
    report_.latency.add(ns_since(start));
    batch_->clear();
    return check_interrupt();
  }

  // One of each sensor, of one second.
  Status put_readings() {
    for (std::uint64_t sensor = 0; sensor < kBoardSensors; ++sensor) {
      batch_->put(kReadingSpace, reading_keys_.of(sensor * kSensorKeys + time_),
                  values_.of(time_ * kBoardSensors + sensor).substr(0, kReadingBytes));
      if ((sensor + 1) % kBoardBatch == 0) EC_TRY(commit());
    }
    ++time_;
    return ok();
  }

  Status put_blob(std::uint32_t size) {
    batch_->put(kBlobSpace, blob_keys_.of(blobs_), values_.of(blobs_).substr(0, size));
    ++blobs_;
    return commit();
  }

  Status readings_alone() {
    const auto start = Steady::now();
    const std::uint64_t cpu_ns = own_usage().cpu_ns;
    while (time_ < alone_rounds_ && (time_ == 0 || since(start) < seconds_ * kAloneShare)) {
      EC_TRY(put_readings());
    }
    const auto readings = static_cast<double>(time_ * kBoardSensors);
    alone_per_second_ = readings / since(start);
    EC_TRY(session_->settle());
    cpu_us_ = static_cast<double>(own_usage().cpu_ns - cpu_ns) / 1e3 / readings;
    stored_bytes_ = static_cast<double>(session_->table_bytes()) / readings;
    return check_interrupt();
  }

  Status mix() {
    const std::uint64_t first = time_;
    const std::uint64_t written = session_->device_bytes_written();
    const std::uint64_t stored = session_->table_bytes();
    const auto start = Steady::now();
    std::uint64_t rounds = 0;
    while (rounds < rounds_ && (rounds == 0 || since(start) < seconds_ * (1 - kAloneShare))) {
      EC_TRY(put_readings());
      for (std::uint64_t image = 0; image < kImages; ++image) EC_TRY(put_blob(kImageBytes));
      EC_TRY(put_blob(kVideoBytes));
      ++rounds;
    }
    EC_TRY(session_->store().flush());
    report_.seconds = since(start);
    const std::uint64_t readings = (time_ - first) * kBoardSensors;
    report_.num = readings + blobs_;
    report_.user_bytes = rounds * kRoundBytes + report_.num * options_.key_size;
    blob_mb_per_second_ =
        static_cast<double>(rounds * (kRoundBytes - kBoardSensors * kReadingBytes)) / 1e6 /
        report_.seconds;
    sensors_ = static_cast<double>(readings) / report_.seconds;
    EC_TRY(session_->settle());
    const double user = static_cast<double>(report_.user_bytes);
    const std::uint64_t grown = std::max(session_->table_bytes(), stored) - stored;
    report_.write_amplification =
        static_cast<double>(session_->device_bytes_written() - written) / user;
    report_.space_amplification = static_cast<double>(grown) / user;
    growth_per_second_ = static_cast<double>(grown) / report_.seconds;
    return check_interrupt();
  }

  // Every blob, and every reading of as many sensors as take a hundredth of all.
  Status read_back() {
    EC_TRY(session_->reopen_cold());
    std::uint64_t bytes = 0;
    auto start = Steady::now();
    for (std::uint64_t blob = 0; blob < blobs_; ++blob) {
      EC_TRY(check_interrupt());
      const std::uint32_t size = (blob + 1) % (kImages + 1) == 0 ? kVideoBytes : kImageBytes;
      EC_TRY(expect(kBlobSpace, blob_keys_.of(blob), values_.of(blob).substr(0, size)));
      bytes += size;
    }
    add("blob_read_mb_per_second", static_cast<double>(bytes) / 1e6 / since(start));
    start = Steady::now();
    std::uint64_t readings = 0;
    for (std::uint64_t sensor = 0; sensor < kBoardSensors; sensor += 100) {
      for (std::uint64_t time = 0; time < time_; ++time, ++readings) {
        EC_TRY(check_interrupt());
        EC_TRY(expect(kReadingSpace, reading_keys_.of(sensor * kSensorKeys + time),
                      values_.of(time * kBoardSensors + sensor).substr(0, kReadingBytes)));
      }
    }
    add("readings_read_per_second", static_cast<double>(readings) / since(start));
    return ok();
  }

  Status expect(std::uint32_t space, ByteView key, ByteView wanted) {
    const auto value = session_->store().get(space, key);
    if (!value.ok()) return value.status();
    return ByteView(*value) == wanted ? ok() : corruption("what was read is not what was written");
  }

  void finish() {
    const auto free = static_cast<double>(drive_.free_bytes);
    const double days = free / std::max(growth_per_second_, 1e-9) / kSecondsPerDay;
    const double quiet_days =
        free / std::max(stored_bytes_ * static_cast<double>(kBoardSensors), 1e-9) / kSecondsPerDay;
    add("sensors_at_1_hz", sensors_);
    add("blob_mb_per_second", blob_mb_per_second_);
    add("readings_alone_per_second", alone_per_second_);
    add("cpu_us_per_reading", cpu_us_);
    add("stored_bytes_per_reading", stored_bytes_);
    add("days_until_full", days);
    add("days_until_full_of_1000_sensors", quiet_days);
    say("  This board keeps %.0f sensors at one reading a second, and %.1f MB/s of images and "
        "video\n  beside them, all of it durable.",
        sensors_, blob_mb_per_second_);
    say("  Readings alone: %.0f a second, %.1f us of processor time and %.0f bytes of tables each.",
        alone_per_second_, cpu_us_, stored_bytes_);
    say("  Read back from the drives: %.1f MB/s of images and video, %.0f readings a second.",
        report_.figure("blob_read_mb_per_second"), report_.figure("readings_read_per_second"));
    say("  A small durable write takes %.0f us on the metadata drive (99 %%: within %.0f us).",
        metadata_.sync_p50_us, metadata_.sync_p99_us);
    say("  In order: metadata drive %.0f MB/s written, values drive %.0f MB/s.",
        metadata_.write_mb_per_second, drive_.write_mb_per_second);
    say("  The values drive has %.1f GB free: full after %.2f days at the rates of the first line,",
        free / 1e9, days);
    say("  after %.0f days of %.0f sensors once a second and nothing else.", quiet_days,
        static_cast<double>(kBoardSensors));
  }

  [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);

  const BenchOptions& options_;
  const double seconds_;
  const std::uint64_t rounds_;
  const std::uint64_t alone_rounds_;
  const ValueMaker values_;
  KeyMaker reading_keys_;
  KeyMaker blob_keys_;
  std::unique_ptr<StoreSession> session_;
  std::unique_ptr<BenchBatch> batch_;
  DriveFigures metadata_;
  DriveFigures drive_;  // of the values
  std::uint64_t time_ = 0;
  std::uint64_t blobs_ = 0;
  double alone_per_second_ = 0;
  double cpu_us_ = 0;
  double stored_bytes_ = 0;
  double sensors_ = 0;
  double blob_mb_per_second_ = 0;
  double growth_per_second_ = 0;
  Report report_;
};

void Board::say(const char* format, ...) {
  std::array<char, 256> line{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  report_.table += line.data();
  report_.table += '\n';
}

Status check_board(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options, kBoardKeyBytesMin));
  if (options.engine != kOwnStore || !options.peers.empty()) {
    return invalid_argument("board measures EdgeCase alone");
  }
  EC_TRY(check_no_store(options.metadata));
  const std::uint64_t rounds =
      std::min(options.num_or(kBoardRoundsMax, kBoardSmokeRounds), kBoardRoundsMax);
  const std::uint64_t room = rounds * kRoundBytes * 2 + kBoardLogBytes;
  if (options.values.empty()) return check_room(options.metadata, room + kBoardLogBytes);
  EC_TRY(check_no_store(options.values));
  EC_TRY(check_apart(options.metadata, options.values));
  EC_TRY(check_room(options.metadata, 2 * kBoardLogBytes));
  return check_room(options.values, room);
}

}  // namespace

Result<Report> run_board(const BenchOptions& options) {
  EC_TRY(check_board(options));
  return Board(options).run();
}

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
