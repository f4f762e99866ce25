// LevelDB with bloom filters and the same write buffer and cache as ours; everything lies in the
// metadata directory.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "bench/peers/peer_stores.h"
#include "bench/processes.h"

namespace edgecase::cli::bench {
namespace {

constexpr int kBloomBits = 10;

leveldb::Slice slice(ByteView bytes) {
  return {bytes.data(), bytes.size()};
}
ByteView view(const leveldb::Slice& slice) {
  return {slice.data(), slice.size()};
}
Status status_of(const leveldb::Status& status) {
  if (status.ok()) return ok();
  if (status.IsNotFound()) return not_found(status.ToString());
  return io_error("leveldb: " + status.ToString());
}

class LeveldbBatch final : public BenchBatch {
 public:
  void put(std::uint32_t, ByteView key, ByteView value) override {
    batch_.Put(slice(key), slice(value));
  }
  void remove(std::uint32_t, ByteView key) override { batch_.Delete(slice(key)); }
  void clear() override { batch_.Clear(); }
  leveldb::WriteBatch& inner() { return batch_; }

 private:
  leveldb::WriteBatch batch_;
};

class LeveldbStore final : public BenchStore {
 public:
  Status open(const StoreSettings& settings) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = settings.memory_bytes / 8;
    cache_.reset(leveldb::NewLRUCache(settings.memory_bytes / 5));
    options.block_cache = cache_.get();
    filter_.reset(leveldb::NewBloomFilterPolicy(kBloomBits));
    options.filter_policy = filter_.get();
    options.compression =
        settings.compression ? leveldb::kSnappyCompression : leveldb::kNoCompression;
    leveldb::DB* db = nullptr;
    EC_TRY(status_of(leveldb::DB::Open(options, settings.metadata_directory + "/leveldb", &db)));
    db_.reset(db);
    return ok();
  }

  std::unique_ptr<BenchBatch> make_batch() override { return std::make_unique<LeveldbBatch>(); }
  Status write(BenchBatch& batch, bool sync) override {
    leveldb::WriteOptions options;
    options.sync = sync;
    return status_of(db_->Write(options, &static_cast<LeveldbBatch&>(batch).inner()));
  }
  Result<Bytes> get(std::uint32_t, ByteView key) override {
    Bytes value;
    EC_TRY(status_of(db_->Get(leveldb::ReadOptions(), slice(key), &value)));
    return value;
  }
  Status scan(ByteView lower, const Visit& visit) override {
    leveldb::ReadOptions options;
    options.fill_cache = !lower.empty();
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator(options));
    for (at->Seek(slice(lower)); at->Valid(); at->Next()) {
      if (!visit(view(at->key()), view(at->value()))) break;
    }
    return status_of(at->status());
  }
  // A full memtable is written out by itself; LevelDB has no call for one that is not.
  Status flush() override { return ok(); }
  std::uint64_t device_bytes_written() const override {
    return own_usage().write_call_bytes - written_before_;
  }

 private:
  const std::uint64_t written_before_ = own_usage().write_call_bytes;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::DB> db_;  // after what it uses
};

}  // namespace

Result<std::unique_ptr<BenchStore>> make_leveldb_store(const StoreSettings& settings) {
  auto store = std::make_unique<LeveldbStore>();
  EC_TRY(store->open(settings));
  return std::unique_ptr<BenchStore>(std::move(store));
}

}  // namespace edgecase::cli::bench
