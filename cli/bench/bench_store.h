// A key-value store under measurement: EdgeCase's engine, or a peer that edgecase-bench-peers
// brings along (tests/bench/peers/).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/result.h"

namespace edgecase {
class FileSystem;
}

namespace edgecase::cli::bench {

inline constexpr const char* kOwnStore = "edgecase";
// Stores of edgecase-bench-peers; "naive-…" and "unordered-map" are the LogKV paper's.
inline constexpr const char* kPeerStores[] = {"leveldb",   "rocksdb",      "rocksdb-blob",
                                              "naive-32k", "naive-1m",     "naive-2m",
                                              "naive-32m", "unordered-map"};

// The same for every store, as far as it has such a thing.
struct StoreSettings {
  std::string metadata_directory;
  std::string values_directory;
  // An eighth of it is a write buffer, a fifth a cache.
  std::uint64_t memory_bytes = 64u << 20;
  bool compression = false;
  bool coalesce = true;               // of EdgeCase
  std::uint32_t spaces = 1;           // namespaces; a peer has one
  FileSystem* file_system = nullptr;  // of EdgeCase; null: the machine's
};

// Puts and deletes written together. `space` counts from 0.
class BenchBatch {
 public:
  virtual ~BenchBatch() = default;
  virtual void put(std::uint32_t space, ByteView key, ByteView value) = 0;
  virtual void remove(std::uint32_t space, ByteView key) = 0;
  virtual void clear() = 0;
};

using Visit = std::function<bool(ByteView key, ByteView value)>;
using Figures = std::vector<std::pair<std::string, double>>;

// Thread-safe; a batch belongs to one thread.
class BenchStore {
 public:
  virtual ~BenchStore() = default;
  virtual std::unique_ptr<BenchBatch> make_batch() = 0;
  virtual Status write(BenchBatch& batch, bool sync) = 0;
  // NotFound when there is none.
  virtual Result<Bytes> get(std::uint32_t space, ByteView key) = 0;
  // Every entry from `lower` on, in order, until `visit` answers false.
  virtual Status scan(ByteView lower, const Visit& visit) = 0;
  // Everything written out of memory and log; compactions may go on.
  virtual Status flush() = 0;
  // Handed to the drives since open, logs included.
  virtual std::uint64_t device_bytes_written() const = 0;
  // More to report, of this store alone.
  virtual Figures figures() const { return {}; }
};

using MakeStore = Result<std::unique_ptr<BenchStore>>(const std::string& name,
                                                      const StoreSettings& settings);

Result<std::unique_ptr<BenchStore>> make_own_store(const StoreSettings& settings);

}  // namespace edgecase::cli::bench
