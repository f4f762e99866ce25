#include "bench/peers/naive_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace edgecase::cli::bench {
namespace {

struct Threshold {
  const char* name;
  std::uint64_t bytes;
};
constexpr Threshold kThresholds[] = {{"naive-32k", 1u << 15},
                                     {"naive-1m", 1u << 20},
                                     {"naive-2m", 1u << 21},
                                     {"naive-32m", 1u << 25},
                                     {"unordered-map", 0}};
static_assert(std::size(kThresholds) == std::size(kNaiveStores));
constexpr std::uint32_t kEndMark =
    0xffffffff;  // where a key's size would be: the snapshot is whole

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Status failed(const std::string& path) {
  return io_error(path + ": " + std::strerror(errno));
}

bool write_number(std::FILE* file, std::uint32_t number) {
  return std::fwrite(&number, sizeof(number), 1, file) == 1;
}
bool write_bytes(std::FILE* file, ByteView bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}
bool read_bytes(std::FILE* file, std::uint32_t size, Bytes& bytes) {
  bytes.resize(size);
  return std::fread(bytes.data(), 1, size, file) == size;
}

class NaiveBatch final : public BenchBatch {
 public:
  struct Change {
    Bytes key, value;
    bool put;
  };
  void put(std::uint32_t, ByteView key, ByteView value) override {
    changes.push_back({Bytes(key), Bytes(value), true});
  }
  void remove(std::uint32_t, ByteView key) override { changes.push_back({Bytes(key), {}, false}); }
  void clear() override { changes.clear(); }

  std::vector<Change> changes;
};

class NaiveStore final : public BenchStore {
 public:
  NaiveStore(std::string path, std::uint64_t threshold_bytes)
      : path_(std::move(path)), threshold_bytes_(threshold_bytes) {}

  Status load() {
    const File file(std::fopen(path_.c_str(), "rb"));
    if (!file) return errno == ENOENT ? ok() : failed(path_);
    std::uint32_t sizes[2];
    Bytes key, value;
    while (std::fread(sizes, sizeof(sizes), 1, file.get()) == 1) {
      if (sizes[0] == kEndMark) return ok();
      if (!read_bytes(file.get(), sizes[0], key) || !read_bytes(file.get(), sizes[1], value)) break;
      table_[key] = value;
    }
    return corruption(path_ + ": the snapshot is not whole");
  }

  std::unique_ptr<BenchBatch> make_batch() override { return std::make_unique<NaiveBatch>(); }

  Status write(BenchBatch& batch, bool) override {
    const std::lock_guard lock(mutex_);
    for (NaiveBatch::Change& change : static_cast<NaiveBatch&>(batch).changes) {
      unsaved_bytes_ += change.key.size() + change.value.size();
      if (change.put) {
        table_[std::move(change.key)] = std::move(change.value);
      } else {
        table_.erase(change.key);
      }
    }
    if (threshold_bytes_ == 0 || unsaved_bytes_ < threshold_bytes_) return ok();
    return save();
  }

  Result<Bytes> get(std::uint32_t, ByteView key) override {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(Bytes(key));
    if (found == table_.end()) return not_found("no such key");
    return found->second;
  }

  // A hash table knows no order: all keys are sorted first.
  Status scan(ByteView lower, const Visit& visit) override {
    const std::lock_guard lock(mutex_);
    std::vector<ByteView> keys;
    for (const auto& [key, value] : table_) {
      if (ByteView(key) >= lower) keys.emplace_back(key);
    }
    std::sort(keys.begin(), keys.end());
    for (const ByteView key : keys) {
      if (!visit(key, table_.find(Bytes(key))->second)) break;
    }
    return ok();
  }

  Status flush() override {
    const std::lock_guard lock(mutex_);
    return threshold_bytes_ == 0 || unsaved_bytes_ == 0 ? ok() : save();
  }

  std::uint64_t device_bytes_written() const override {
    const std::lock_guard lock(mutex_);
    return written_bytes_;
  }

 private:
  // A new snapshot takes the old one's name when it is whole.
  Status save() {
    const std::string fresh = path_ + ".new";
    File file(std::fopen(fresh.c_str(), "wb"));
    if (!file) return failed(fresh);
    bool written = true;
    for (const auto& [key, value] : table_) {
      written = written && write_number(file.get(), static_cast<std::uint32_t>(key.size())) &&
                write_number(file.get(), static_cast<std::uint32_t>(value.size())) &&
                write_bytes(file.get(), key) && write_bytes(file.get(), value);
      written_bytes_ += 2 * sizeof(std::uint32_t) + key.size() + value.size();
    }
    written = written && write_number(file.get(), kEndMark) && write_number(file.get(), 0);
    if (std::fclose(file.release()) != 0 || !written) return failed(fresh);
    if (std::rename(fresh.c_str(), path_.c_str()) != 0) return failed(path_);
    unsaved_bytes_ = 0;
    return ok();
  }

  const std::string path_;
  const std::uint64_t threshold_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<Bytes, Bytes> table_;
  std::uint64_t unsaved_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace

bool is_naive_store(const std::string& name) {
  return std::any_of(std::begin(kNaiveStores), std::end(kNaiveStores),
                     [&](const char* known) { return name == known; });
}

Result<std::unique_ptr<BenchStore>> make_naive_store(const std::string& name,
                                                     const StoreSettings& settings) {
  for (const Threshold& each : kThresholds) {
    if (name != each.name) continue;
    auto store = std::make_unique<NaiveStore>(settings.metadata_directory + "/table", each.bytes);
    EC_TRY(store->load());
    return std::unique_ptr<BenchStore>(std::move(store));
  }
  return invalid_argument("no such store: " + name);
}

}  // namespace edgecase::cli::bench
