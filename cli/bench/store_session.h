// One store of a workload: its private directories, removed with all they hold at the end, and what
// the drives hold of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "bench/workloads.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// Directories of the benchmark's own, removed with all they hold at the end of their scope, and
// what is looked at before a workload writes to those that the user named.
class PrivateDirectory {
 public:
  // Inside `parent`, which must exist; empty: the working directory.
  static Result<std::unique_ptr<PrivateDirectory>> create(const std::string& parent);
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The pair of directories of one store, both private.
struct StoreDirectories {
  std::unique_ptr<PrivateDirectory> metadata_parent;
  std::unique_ptr<PrivateDirectory> values_parent;  // null: inside the other
  std::string metadata;
  std::string values;
};
Result<StoreDirectories> create_store_directories(const std::string& metadata,
                                                  const std::string& values);

// InvalidArgument if the directory (empty: the working one) holds a store of EdgeCase.
Status check_no_store(const std::string& directory);
// InvalidArgument if both lead to one directory, through links too.
Status check_apart(const std::string& one, const std::string& other);
// OutOfSpace unless so many bytes are free where the directory (empty: the working one) lies.
Status check_room(const std::string& directory, std::uint64_t bytes);

// Bytes of a stopped store's tables on both drives once everything is in them, write-ahead log
// aside. Errors: the engine's.
Result<std::uint64_t> table_bytes(const StoreDirectories& directories);

inline constexpr std::uint32_t kKeySizeMinBytes = 8;  // digits enough for what is usual

// Whether keys and values can be as large as is asked for.
Status check_store_sizes(const BenchOptions& options,
                         std::uint32_t key_size_min_bytes = kKeySizeMinBytes);

// A store by its name: EdgeCase's engine, or a peer if options.make_peer brings it along.
Result<std::unique_ptr<BenchStore>> open_store(const BenchOptions& options, const std::string& name,
                                               const StoreSettings& settings);

// Not thread-safe; the store is.
class StoreSession {
 public:
  // Makes a session of options.engine. `memory_bytes` counts where the command line says nothing.
  static Result<std::unique_ptr<StoreSession>> create(const BenchOptions& options,
                                                      std::uint32_t spaces,
                                                      std::uint64_t memory_bytes);
  ~StoreSession();
  StoreSession(const StoreSession&) = delete;
  StoreSession& operator=(const StoreSession&) = delete;

  BenchStore& store() { return *store_; }

  // Everything written out, and nothing more handed to the drives for a while.
  Status settle();
  // Closes the store, drops what the page cache holds of its files, and opens it again.
  Status reopen_cold();

  // Bytes of every file but the logs on both drives.
  std::uint64_t table_bytes() const;
  std::uint64_t device_bytes_written() const;
  // The most that table_bytes() was seen to be, looked at ten times a second from watch_space() on.
  void watch_space();
  std::uint64_t stop_watching();

  static constexpr std::uint64_t kUsualMemoryBytes = 64u << 20;

 private:
  StoreSession(const BenchOptions& options, StoreDirectories directories, StoreSettings settings);
  Status open();

  const BenchOptions options_;
  const int quiet_ms_;
  StoreDirectories directories_;
  StoreSettings settings_;
  std::uint64_t written_before_ = 0;  // by stores that were closed
  std::unique_ptr<BenchStore> store_;
  std::thread watch_;
  std::atomic<bool> watching_{false};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace edgecase::cli::bench
