#include "core/read_path.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/identity.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

// A full key that takes memory only when it is long.
class ShortFullKey {
 public:
  ShortFullKey(NamespaceId id, ByteView key) {
    const std::size_t size = kNamespacePrefixBytes + key.size();
    if (size > sizeof bytes_) {
      long_ = make_full_key(id, key);
      view_ = long_;
      return;
    }
    encode_namespace(bytes_, id);
    key.copy(bytes_ + kNamespacePrefixBytes, key.size());
    view_ = ByteView(bytes_, size);
  }
  ShortFullKey(const ShortFullKey&) = delete;
  ShortFullKey& operator=(const ShortFullKey&) = delete;

  ByteView view() const { return view_; }

 private:
  char bytes_[128];
  Bytes long_;
  ByteView view_;
};

// What memtables hold lies in the log: in the first segment that ends behind it.
void add_log_shares(const VisibleView& at, const FullKeyRange& range,
                    const std::vector<Wal::File>& log, std::vector<FileShare>& files) {
  std::map<std::string, FileShare> shares;
  std::vector<std::shared_ptr<const Memtable>> memtables{at.view->active};
  memtables.insert(memtables.end(), at.view->immutables.begin(), at.view->immutables.end());
  for (const auto& memtable : memtables) {
    const auto entries =
        Memtable::cursor(memtable, range.lower, range.upper, Direction::Forward, at.visible);
    for (; entries->valid() && entries->load().ok(); entries->next()) {
      const auto segment = std::find_if(log.begin(), log.end(), [&](const Wal::File& file) {
        return entries->sequence() <= file.last_sequence;
      });
      if (segment == log.end()) continue;
      FileShare& share = shares[segment->path];
      share.path = segment->path;
      share.layer = FileLayer::Log;
      share.bytes += user_key_of(entries->full_key()).size() + entries->value().size();
      share.file_bytes = segment->bytes;
    }
  }
  for (auto& [path, share] : shares) files.push_back(std::move(share));
}

}  // namespace

VisibleView ReadPath::view_for(const ReadOptions& options) const {
  VisibleView at = options.snapshot == nullptr
                       ? store_.views.now()
                       : static_cast<const EngineSnapshot&>(*options.snapshot).at();
  // Ranges that were erased since.
  if (options.snapshot != nullptr) at.erased = store_.views.erased();
  at.newer_than = options.newer_than;
  return at;
}

std::shared_ptr<const Snapshot> ReadPath::snapshot() {
  std::shared_ptr<const void> generation = generations_.current();
  const std::uint64_t revocations = store_.revocations.count();
  return std::make_shared<const EngineSnapshot>(std::move(generation), store_.views.now(),
                                                revocations);
}

Status ReadPath::renew_hidden(NamespaceId id, VisibleView& at, ExpiryView& expiry) const {
  EC_TRY(check_readable(id));
  expiry = store_.expiry_of_reads(id);
  at.erased = store_.views.erased();
  return ok();
}

bool ReadPath::is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                          std::uint64_t since) const {
  if (store_.revocations.count() == since) return false;
  if (store_.versions.dropped().contains(namespace_id)) return true;
  const Bytes from = make_full_key(namespace_id, first);
  const Bytes to = make_full_key(namespace_id, last);
  if (const ExpiryView expiry = store_.expiry_of_reads(namespace_id); expiry.may_hide(from, to))
    return true;
  return store_.revocations.has_erased(from, to, since);
}

Status ReadPath::explain(Status failure) const {
  const bool is_missing = failure.code() == StatusCode::Unavailable;
  if (is_missing || failure.code() == StatusCode::IoError) {
    const Status values = check_values_identity(store_.environment.file_system,
                                                store_.options.values_directory, store_.id);
    if (values.code() == StatusCode::Unavailable)
      failure = values.with_context("", "; " + failure.message());
    else if (is_missing && values.ok())
      failure = std::move(failure)
                    .as(StatusCode::Corruption)
                    .with_context("", ", but the manifest names it");
  }
  if (failure.code() == StatusCode::Corruption) {
    store_.environment.listener.on_corruption(failure);
    scrubber_.doubt(failure.file());
  }
  return failure;
}

Status ReadPath::check_readable(NamespaceId id) const {
  if (!store_.versions.dropped().contains(id)) return ok();
  return not_found("namespace " + std::to_string(id) + " was dropped");
}

Result<Bytes> ReadPath::get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) {
  gets_.fetch_add(1, std::memory_order_relaxed);
  if (store_.versions.dropped().contains(namespace_id)) return check_readable(namespace_id);
  const ShortFullKey full_key(namespace_id, key);
  if (const ExpiryView expiry = store_.expiry_of_reads(namespace_id); expiry.hides(full_key.view()))
    return not_found("no such key");
  FoundEntry entry;
  const auto found = find_entry(view_for(options), store_.tables, full_key.view(),
                                options.fill_cache, hits_, entry);
  if (!found.ok()) return explain(found.status());
  if (!*found || entry.kind == EntryKind::Delete) return not_found("no such key");
  return std::move(entry.value);
}

Result<std::unique_ptr<Iterator>> ReadPath::scan(NamespaceId namespace_id, const KeyRange& range,
                                                 const ReadOptions& options) {
  EC_TRY(check_readable(namespace_id));
  compactor_.note_scan();
  ScanHost host{[this](Status failure) { return explain(std::move(failure)); }, store_.revocations,
                [this, namespace_id](VisibleView& at, ExpiryView& expiry) {
                  return renew_hidden(namespace_id, at, expiry);
                }};
  // Counted before anything is looked at.
  const std::uint64_t revocations = store_.revocations.count();
  auto iterator = make_scan(view_for(options), store_.tables, store_.expiry_of_reads(namespace_id),
                            namespace_id, range, options, std::move(host), revocations);
  if (!iterator->status().ok()) return iterator->status();
  return iterator;
}

Result<RangeStats> ReadPath::range_stats(NamespaceId namespace_id, const KeyRange& range,
                                         const ReadOptions& options) {
  EC_TRY(check_readable(namespace_id));
  auto counted = count_range(view_for(options), store_.tables, store_.expiry_of_reads(namespace_id),
                             full_key_range(namespace_id, range), options.patience);
  if (!counted.ok() && counted.status().code() != StatusCode::Cancelled)
    return explain(counted.status());
  return counted;
}

Status ReadPath::summarize(NamespaceId namespace_id, const KeyRange& range,
                           std::size_t prefix_bytes, const ReadOptions& options,
                           const PrefixTaker& take) {
  EC_TRY(check_readable(namespace_id));
  // Its own errors are not of the drives.
  Status taken;
  Status status =
      summarize_range(view_for(options), store_.tables, store_.expiry_of_reads(namespace_id),
                      full_key_range(namespace_id, range), prefix_bytes, options.patience,
                      [&](const PrefixStats& stats) {
                        taken = take(stats);
                        return taken;
                      });
  if (!taken.ok() || status.ok() || status.code() == StatusCode::Cancelled) return status;
  return explain(std::move(status));
}

Result<std::uint64_t> ReadPath::approximate_size(NamespaceId namespace_id, const KeyRange& range) {
  EC_TRY(check_readable(namespace_id));
  auto size = size_of_range(*store_.views.now().view->version, store_.tables, namespace_id,
                            full_key_range(namespace_id, range));
  if (!size.ok()) return explain(size.status());
  return size;
}

Result<std::vector<FileShare>> ReadPath::locate(NamespaceId namespace_id, const KeyRange& range) {
  EC_TRY(check_readable(namespace_id));
  const FullKeyRange wanted = full_key_range(namespace_id, range);
  std::vector<FileShare> files;
  if (wanted.empty()) return files;
  const std::vector<Wal::File> log = store_.wal.files();
  const VisibleView at = store_.views.now();
  const Version& version = *at.view->version;
  auto shares = shares_of_range(version, store_.tables, wanted);
  if (!shares.ok()) return explain(shares.status());
  for (const TablePointer& table : version.tables) {
    const auto share = shares->metadata.find(table->number);
    if (share == shares->metadata.end()) continue;
    files.push_back({metadata_table_path(store_.options.metadata_directory, table->number),
                     FileLayer::Metadata, share->second, table->size_bytes});
  }
  for (const auto& [number, bytes] : shares->values) {
    const auto file = version.value_files.find(number);
    if (file == version.value_files.end()) {
      return corruption("metadata lead to value file " + std::to_string(number) +
                        ", which does not belong to the store");
    }
    files.push_back(
        {value_table_path(store_.options.metadata_directory, store_.options.values_directory,
                          file->second.placement, number),
         FileLayer::Values, bytes, file->second.size_bytes});
  }
  add_log_shares(at, wanted, log, files);
  std::stable_sort(files.begin(), files.end(),
                   [](const FileShare& a, const FileShare& b) { return a.bytes > b.bytes; });
  return files;
}

void ReadPath::add_to(ReadStats& stats) const {
  static_assert(ReadStats::kLevels == kLevelMax + 1);
  stats.gets = gets_.load();
  stats.memtable_hits = hits_.memtables.load();
  std::ranges::transform(hits_.levels, stats.level_hits.begin(),
                         [](const std::atomic<std::uint64_t>& hits) { return hits.load(); });
  const ReadCounters& read = store_.tables.counters();
  stats.level0_skips = read.level0_skips.load();
  stats.filter_probes = read.filter_probes.load();
  stats.filter_negatives = read.filter_negatives.load();
  stats.metadata_block_loads = read.metadata_block_loads.load();
  stats.value_reads = read.value_reads.load();
  stats.cache_hits = read.cache_hits.load();
  stats.cache_misses = read.cache_misses.load();
}

}  // namespace edgecase::engine
