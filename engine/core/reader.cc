#include "core/reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "core/drives.h"
#include "core/read_view.h"
#include "file/file_names.h"

namespace edgecase::engine {
FullKeyRange full_key_range(NamespaceId id, const KeyRange& range) {
  FullKeyRange full;
  full.lower = make_full_key(id, range.lower);
  if (!range.upper.empty()) {
    full.upper = make_full_key(id, range.upper);
  } else if (id != UINT32_MAX) {
    full.upper = make_full_key(id + 1, {});
  }
  return full;
}

namespace {

// The newest entry of a key that was found so far, and where.
struct Newest {
  bool is_there = false;
  FoundEntry entry;
  std::uint8_t level = 0;
  // The failure of a table that could not be read, and how new what it holds may be: something
  // newer counts all the same, something older never.
  Status failure = {};
  SequenceNumber failed_max = 0;
};

Status look_into_table(const TableMetadata& table, TableCache& tables, ByteView full_key,
                       bool fill_cache, Newest& newest) {
  if (!newest.is_there) {
    EC_ASSIGN_OR_RETURN(newest.is_there, tables.find(table, full_key, fill_cache, newest.entry));
    newest.level = table.level;
    return ok();
  }
  FoundEntry other;
  EC_ASSIGN_OR_RETURN(const bool is_there, tables.find(table, full_key, fill_cache, other));
  if (is_there && other.sequence > newest.entry.sequence) {
    newest.entry = std::move(other);
    newest.level = table.level;
  }
  return ok();
}

void look_into(const TableMetadata& table, TableCache& tables, ByteView full_key, bool fill_cache,
               Newest& newest) {
  Status looked = look_into_table(table, tables, full_key, fill_cache, newest);
  if (looked.ok()) return;
  if (newest.failure.ok()) newest.failure = std::move(looked);
  newest.failed_max = std::max(newest.failed_max, table.sequence_max);
}

// Tables come with the largest sequence first: behind one that can hold nothing newer than what was
// found nothing newer is found.
Status find_in_tables(const Version& version, TableCache& tables, ByteView full_key,
                      bool fill_cache, Newest& newest) {
  const auto is_older = [&newest](SequenceNumber sequence_max) {
    return newest.is_there && newest.entry.sequence > sequence_max;
  };
  for (const TablePointer& table : version.level0) {
    if (is_older(table->sequence_max)) break;
    look_into(*table, tables, full_key, fill_cache, newest);
  }
  const auto tree = version.trees.find(namespace_of(full_key));
  if (tree != version.trees.end()) {
    for (const Run& run : tree->second) {
      if (is_older(run.sequence_max)) break;
      if (const TablePointer* table = run.find(full_key))
        look_into(**table, tables, full_key, fill_cache, newest);
    }
  }
  if (newest.failure.ok() || (newest.is_there && newest.entry.sequence > newest.failed_max))
    return ok();
  return newest.failure;
}

bool find_in_memory(const ReadView& view, SequenceNumber visible, ByteView full_key,
                    FoundEntry& entry) {
  const auto look = [&](const Memtable& memtable) {
    auto found = memtable.get(full_key, visible);
    if (found) entry = *std::move(found);
    return found.has_value();
  };
  return look(*view.active) || std::any_of(view.immutables.begin(), view.immutables.end(),
                                           [&](const auto& memtable) { return look(*memtable); });
}

}  // namespace

Result<bool> find_entry(const VisibleView& at, TableCache& tables, ByteView full_key,
                        bool fill_cache, HitCounters& hits, FoundEntry& entry) {
  if (find_in_memory(*at.view, at.visible, full_key, entry)) {
    hits.memtables.fetch_add(1, std::memory_order_relaxed);
  } else {
    Newest newest;
    EC_TRY(find_in_tables(*at.view->version, tables, full_key, fill_cache, newest));
    if (!newest.is_there) return false;
    hits.levels[newest.level].fetch_add(1, std::memory_order_relaxed);
    entry = std::move(newest.entry);
  }
  // What is older than the entry that is hidden is hidden, too.
  return !is_hidden(at, full_key, entry.sequence);
}

ViewSources::ViewSources(const VisibleView& at, TableCache& tables, const FullKeyRange& range,
                         Direction direction, bool fill_cache, std::uint64_t large_value_bytes)
    : at_(at),
      range_(range),
      direction_(direction),
      fill_cache_(fill_cache),
      large_value_bytes_(large_value_bytes),
      runs_(tables.lend_cursors()) {
  if (range_.empty()) return;
  const ReadView& view = *at_.view;
  const Version& version = *view.version;
  const auto tree = version.trees.find(namespace_of(range_.lower));
  const std::size_t runs = tree == version.trees.end() ? 0 : tree->second.size();
  const std::size_t count = 1 + view.immutables.size() + version.level0.size() + runs;
  sources_.reserve(count);
  places_.reserve(count);
  add(view.active);
  for (const auto& memtable : view.immutables) add(memtable);
  for (const TablePointer& table : version.level0)
    add({&table, 1}, table->sequence_min, table->sequence_max);
  if (runs == 0) return;
  for (const Run& run : tree->second) add(run.tables, run.sequence_min, run.sequence_max);
}

// What comes into it later is not visible.
void ViewSources::add(const std::shared_ptr<Memtable>& memtable) {
  if (memtable->entry_count() == 0 || memtable->last_sequence() <= at_.newer_than) return;
  places_.push_back({&memtable, {}});
  sources_.push_back({{}, {}, memtable->first_sequence(), memtable->last_sequence()});
}

void ViewSources::add(std::span<const TablePointer> tables, SequenceNumber sequence_min,
                      SequenceNumber sequence_max) {
  const auto begin = std::partition_point(
      tables.begin(), tables.end(),
      [this](const TablePointer& table) { return table->largest < range_.lower; });
  const auto end = std::partition_point(begin, tables.end(), [this](const TablePointer& table) {
    return range_.upper.empty() || table->smallest < range_.upper;
  });
  if (begin == end || sequence_max <= at_.newer_than) return;
  std::span<const TablePointer> wanted(begin, end);
  if (at_.newer_than > 0) {
    std::vector<TablePointer>& newer = newer_.emplace_back();
    std::copy_if(begin, end, std::back_inserter(newer), [this](const TablePointer& table) {
      return table->sequence_max > at_.newer_than;
    });
    if (newer.empty()) return;
    wanted = newer;
  }
  const Bytes& smallest = wanted.front()->smallest;
  const Bytes& largest = wanted.back()->largest;
  places_.push_back({nullptr, wanted});
  sources_.push_back(
      {std::max<ByteView>(smallest, range_.lower),
       range_.upper.empty() ? ByteView(largest) : std::min<ByteView>(largest, range_.upper),
       sequence_min, sequence_max});
}

EntryCursor& ViewSources::open(std::size_t index) {
  const Place& place = places_[index];
  if (place.memtable == nullptr)
    return runs_.open(place.tables, {range_.lower, range_.upper, direction_, fill_cache_,
                                     large_value_bytes_, at_.newer_than});
  memtables_.push_back(Memtable::cursor(*place.memtable, range_.lower, range_.upper, direction_,
                                        at_.visible, at_.newer_than));
  return *memtables_.back();
}

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
