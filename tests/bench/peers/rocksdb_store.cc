// RocksDB, with or without blob files, with bloom filters and the same write buffer and cache as
// ours; everything lies in the metadata directory.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "bench/peers/peer_stores.h"
#include "bench/processes.h"

namespace edgecase::cli::bench {
namespace {

constexpr double kFilterBits = 10;
constexpr std::uint64_t kBlobMinBytes = 256;
constexpr int kWriteBuffersMax = 3;  // as many memtables as ours has

rocksdb::Slice rocks_slice(ByteView bytes) {
  return {bytes.data(), bytes.size()};
}
ByteView view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}
Status status_of(const rocksdb::Status& status) {
  if (status.ok()) return ok();
  if (status.IsNotFound()) return not_found(status.ToString());
  return io_error("rocksdb: " + status.ToString());
}

class RocksdbBatch final : public BenchBatch {
 public:
  void put(std::uint32_t, ByteView key, ByteView value) override {
    failed_ = failed_ || !batch_.Put(rocks_slice(key), rocks_slice(value)).ok();
  }
  void remove(std::uint32_t, ByteView key) override {
    failed_ = failed_ || !batch_.Delete(rocks_slice(key)).ok();
  }
  void clear() override { batch_.Clear(); }
  bool failed() const { return failed_; }
  rocksdb::WriteBatch& inner() { return batch_; }

 private:
  rocksdb::WriteBatch batch_;
  bool failed_ = false;
};

class RocksdbStore final : public BenchStore {
 public:
  Status open(const StoreSettings& settings, bool blobs) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(settings.memory_bytes / 5);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBits));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = settings.memory_bytes / 8;
    options.max_write_buffer_number = kWriteBuffersMax;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.compression = settings.compression ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
    if (blobs) {
      options.enable_blob_files = true;
      options.min_blob_size = kBlobMinBytes;
      options.blob_compression_type = options.compression;
      options.enable_blob_garbage_collection = true;
    }
    rocksdb::DB* db = nullptr;
    EC_TRY(status_of(rocksdb::DB::Open(options, settings.metadata_directory + "/rocksdb", &db)));
    db_.reset(db);
    return ok();
  }

  std::unique_ptr<BenchBatch> make_batch() override { return std::make_unique<RocksdbBatch>(); }
  Status write(BenchBatch& batch, bool sync) override {
    auto& own = static_cast<RocksdbBatch&>(batch);
    if (own.failed()) return io_error("rocksdb: a batch took no more");
    rocksdb::WriteOptions options;
    options.sync = sync;
    return status_of(db_->Write(options, &own.inner()));
  }
  Result<Bytes> get(std::uint32_t, ByteView key) override {
    Bytes value;
    EC_TRY(status_of(db_->Get(rocksdb::ReadOptions(), rocks_slice(key), &value)));
    return value;
  }
  Status scan(ByteView lower, const Visit& visit) override {
    rocksdb::ReadOptions options;
    options.fill_cache = !lower.empty();
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
    for (at->Seek(rocks_slice(lower)); at->Valid(); at->Next()) {
      if (!visit(view(at->key()), view(at->value()))) break;
    }
    return status_of(at->status());
  }
  Status flush() override { return status_of(db_->Flush(rocksdb::FlushOptions())); }
  std::uint64_t device_bytes_written() const override {
    return own_usage().write_call_bytes - written_before_;
  }

 private:
  const std::uint64_t written_before_ = own_usage().write_call_bytes;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

Result<std::unique_ptr<BenchStore>> make_rocksdb_store(const StoreSettings& settings, bool blobs) {
  auto store = std::make_unique<RocksdbStore>();
  EC_TRY(store->open(settings, blobs));
  return std::unique_ptr<BenchStore>(std::move(store));
}

}  // namespace edgecase::cli::bench
