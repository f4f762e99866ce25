// Keeps together what expires together, while a table is written: value files of a bucket each, and
// groups of a life class each.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/status.h"
#include "expiry/retention_rules.h"
#include "table/table_writer.h"
#include "value/series_columns.h"
#include "value/value_table.h"

namespace edgecase::engine {

// Beyond these an item goes into the next later one that is open, or into the latest.
inline constexpr std::size_t kOpenBucketsMax = 32;

// Files that are closed and not synced yet: what is written out before is not waited for.
inline constexpr std::size_t kUnsyncedFilesMax = 32;

// When an item expires.
struct ItemExpiry {
  Bucket bucket;
  std::int64_t expiry_min_ns = kNeverNs;  // nothing of it before
  std::int64_t expiry_max_ns = kNeverNs;  // all of it by then
  std::int64_t time_min_ns = kNeverNs;    // of its entries, where they have times
  std::int64_t time_max_ns = kEverNs;

  void add(const ItemExpiry& more) {
    if (bucket < more.bucket) bucket = more.bucket;
    expiry_min_ns = std::min(expiry_min_ns, more.expiry_min_ns);
    expiry_max_ns = std::max(expiry_max_ns, more.expiry_max_ns);
    time_min_ns = std::min(time_min_ns, more.time_min_ns);
    time_max_ns = std::max(time_max_ns, more.time_max_ns);
  }
};
// When one entry of a namespace expires; `expiry` may be empty.
ItemExpiry expiry_of_entry(const ExpiryView& expiry, GroupCodec codec, ByteView full_key);

// The value tables of one namespace that a flush or a merge is writing, one a bucket, so
// that what expires together lies together. Owned by one thread.
//
// Use: begin() a namespace; open() the file for each item and append to it; close() or close_all();
// sync() at last.
// After an error only destruction is allowed, and removing what was created.
class BucketFiles {
 public:
  explicit BucketFiles(const TableWriterContext& context) : context_(context) {}

  // The files of another namespace must be closed.
  void begin(NamespaceId id, const NamespaceOptions& options);
  // Where the next item goes. The writer is borrowed until the next call.
  Result<ValueTableWriter*> open(const ItemExpiry& item);
  // Closes files of this size and more.
  Status close_full(std::uint64_t size_bytes_max, TableOutput& output);
  Status close_all(TableOutput& output) { return close_full(0, output); }
  // Files that were closed, of all namespaces. Until then the drive is busy with them.
  Status sync();

  NamespaceId namespace_id() const { return namespace_id_; }
  bool empty() const { return files_.empty(); }
  void discard() {
    files_.clear();
    unsynced_.clear();
  }
  // Every path that was begun.
  const std::vector<std::string>& created() const { return created_; }

 private:
  struct File {
    std::unique_ptr<ValueTableWriter> writer;
    ItemExpiry expiry;
  };

  Status create(const ItemExpiry& item);
  Status close(File& file, TableOutput& output);
  Status sync_oldest();

  const TableWriterContext& context_;
  NamespaceId namespace_id_ = 0;
  NamespaceOptions options_;
  std::vector<File> files_;                                 // ascending by bucket
  std::deque<std::unique_ptr<ValueTableWriter>> unsynced_;  // closed, old to new
  std::vector<std::string> created_;
};

// The groups of a namespace with GroupCodec::Series that a flush has open at once. Mostly that is
// one. Where entries that expire soon lie among others that last much longer, they are gathered
// apart, for a table of their own: else each would close the other's group, many groups would hold
// an entry or two, and when the ones expire every record would have to be written again for the
// others' sake.
//
// Use: when leaves_scope() answers true, write every group that holds something and call
// enter_scope(); then group_for() says where an entry goes. A group lies in one bucket: who finds
// another there writes it first. Owned by one thread; holds a group a life class.
class SeriesGathering {
 public:
  struct Group {
    std::unique_ptr<SeriesColumns> columns;
    ItemExpiry expiry;
    LifeClass life = 0;    // of the table it goes to (TableMetadata)
    bool is_kept = false;  // what is of its life class goes here until the scope ends
  };

  // `keeps_sequences`: SeriesColumns::keep_sequences().
  SeriesGathering(std::size_t group_bytes, std::size_t entries_max, std::int64_t span_ns,
                  bool keeps_sequences);

  // Another namespace. Nothing may be gathered.
  void begin(std::size_t scope_bytes);
  // `full_key_begin` is a full key or what of it covers the scope.
  bool leaves_scope(ByteView full_key_begin) const;
  void enter_scope(ByteView full_key_begin);

  Group& main() { return main_; }
  Group& group_for(const ItemExpiry& item);
  // `write` answers a Status for each group that holds something; the first failure ends it.
  template <typename Write>
  Status for_each(const Write& write) {
    if (!main_.columns->empty()) EC_TRY(write(main_));
    for (auto& [life, group] : apart_)
      if (!group.columns->empty()) EC_TRY(write(group));
    return ok();
  }

 private:
  Group& keep(LifeClass life);
  std::unique_ptr<SeriesColumns> new_columns() const;

  const std::size_t group_bytes_;
  const std::size_t entries_max_;
  const std::int64_t span_ns_;
  const bool keeps_sequences_;
  std::size_t scope_bytes_ = 0;
  Bytes scope_;
  Group main_;
  std::map<LifeClass, Group> apart_;
};

}  // namespace edgecase::engine
