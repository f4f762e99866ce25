#include "bench/store_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bench/child_process.h"
#include "bench/interrupt.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

// Nothing written for so long: compactions are over. Longer than an engine takes to see that it is
// quiet.
constexpr int kQuietMs = 3'500;
constexpr int kQuietSmokeMs = 5;
constexpr int kWatchMs = 100;

template <typename VisitFile>
void for_each_file(const std::string& path, const VisitFile& visit) {
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(path, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    visit(at->path());
  }
}

std::uint64_t table_bytes_in(const std::string& path) {
  std::uint64_t bytes = 0;
  for_each_file(path, [&](const std::filesystem::path& file) {
    struct stat state {};
    if (file.extension() != ".log" && ::lstat(file.c_str(), &state) == 0 && S_ISREG(state.st_mode))
      bytes += static_cast<std::uint64_t>(state.st_size);
  });
  return bytes;
}

void drop_page_cache(const std::string& path) {
  for_each_file(path, [](const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) return;
    ::fdatasync(descriptor);  // only clean pages can be dropped
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  });
}

}  // namespace

Status check_store_sizes(const BenchOptions& options, std::uint32_t key_size_min_bytes) {
  if (options.key_size < key_size_min_bytes || options.key_size > kKeySizeMaxBytes) {
    return invalid_argument("--key-size is " + std::to_string(key_size_min_bytes) + " to " +
                            std::to_string(kKeySizeMaxBytes));
  }
  if (options.value_size > kValueSizeMaxBytes) {
    return invalid_argument("--value-size is at most " + std::to_string(kValueSizeMaxBytes));
  }
  return ok();
}

Result<std::unique_ptr<BenchStore>> open_store(const BenchOptions& options, const std::string& name,
                                               const StoreSettings& settings) {
  if (name == kOwnStore) return make_own_store(settings);
  if (options.make_peer == nullptr) return unsupported(name + " is not built in");
  return options.make_peer(name, settings);
}

Result<std::unique_ptr<StoreSession>> StoreSession::create(const BenchOptions& options,
                                                           std::uint32_t spaces,
                                                           std::uint64_t memory_bytes) {
  EC_ASSIGN_OR_RETURN(StoreDirectories directories,
                      create_store_directories(options.metadata, options.values));
  StoreSettings settings;
  settings.metadata_directory = directories.metadata;
  settings.values_directory = directories.values;
  settings.memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : memory_bytes;
  settings.compression = options.compression;
  settings.coalesce = options.coalesce;
  settings.spaces = spaces;
  settings.file_system = options.file_system;
  std::unique_ptr<StoreSession> session(
      new StoreSession(options, std::move(directories), std::move(settings)));
  EC_TRY(session->open());
  return session;
}

StoreSession::StoreSession(const BenchOptions& options, StoreDirectories directories,
                           StoreSettings settings)
    : options_(options),
      quiet_ms_(options.smoke ? kQuietSmokeMs : kQuietMs),
      directories_(std::move(directories)),
      settings_(std::move(settings)) {}

StoreSession::~StoreSession() {
  stop_watching();
}

Status StoreSession::open() {
  EC_ASSIGN_OR_RETURN(store_, open_store(options_, options_.engine, settings_));
  return ok();
}

Status StoreSession::settle() {
  EC_TRY(store_->flush());
  std::uint64_t before = device_bytes_written();
  for (int quiet_ms = 0; quiet_ms < quiet_ms_ && !interrupted();) {
    sleep_ms(kQuietSmokeMs);
    const std::uint64_t now = device_bytes_written();
    quiet_ms = now == before ? quiet_ms + kQuietSmokeMs : 0;
    before = now;
  }
  return ok();
}

Status StoreSession::reopen_cold() {
  written_before_ = device_bytes_written();
  store_.reset();
  drop_page_cache(settings_.metadata_directory);
  drop_page_cache(settings_.values_directory);
  return open();
}

std::uint64_t StoreSession::table_bytes() const {
  return table_bytes_in(settings_.metadata_directory) + table_bytes_in(settings_.values_directory);
}

std::uint64_t StoreSession::device_bytes_written() const {
  return written_before_ + store_->device_bytes_written();
}

void StoreSession::watch_space() {
  watching_ = true;
  watch_ = std::thread([this] {
    while (watching_) {
      peak_ = std::max(peak_.load(), table_bytes());
      for (int slept = 0; slept < kWatchMs && watching_; slept += kQuietSmokeMs) {
        sleep_ms(kQuietSmokeMs);
      }
    }
  });
}

std::uint64_t StoreSession::stop_watching() {
  watching_ = false;
  if (watch_.joinable()) watch_.join();
  return std::max(peak_.load(), table_bytes());
}

}  // namespace edgecase::cli::bench
