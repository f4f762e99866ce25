// Erased ranges: hidden from every snapshot at once, then removed from everything that holds their
// bytes. engine/README.md, "Erasure".
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/engine_impl.h"
#include "core/reader.h"
#include "file/file_names.h"

namespace edgecase::engine {

// Snapshots that are held know nothing of what is erased after them.
void EngineImpl::hide_for_good(const RangeDelete& erased) {
  MutexLock lock(mutex_);
  erased_list_.push_back(erased);
  erased_ = std::make_shared<const RangeDeletes>(erased_list_);
  erased_list_ = erased_->newest();
}

void EngineImpl::forget_erased(SequenceNumber through) {
  MutexLock lock(mutex_);
  std::erase_if(erased_list_, [&](const RangeDelete& each) { return each.sequence <= through; });
  erased_ = erased_list_.empty() ? nullptr : std::make_shared<const RangeDeletes>(erased_list_);
}

// What memtables hold counts from the moment it was written.
std::uint64_t EngineImpl::pending_erasures() const {
  std::vector<RangeDelete> all = versions_->state().erasures;
  MutexLock lock(mutex_);
  all.insert(all.end(), erased_list_.begin(), erased_list_.end());
  return RangeDeletes(all).newest().size();
}

Result<ErasureReport> EngineImpl::erase() {
  EC_TRY(flush());
  const std::vector<RangeDelete> pending = versions_->state().erasures;
  ErasureReport report;
  report.ranges = pending.size();
  if (pending.empty()) return report;
  VersionEdit edit;
  edit.erased_sequence = 0;
  for (const RangeDelete& each : pending) {
    const NamespaceId id = namespace_of(each.lower);
    const bool unbounded = namespace_of(each.upper) != id;
    EC_TRY(compactor_->compact({id}, user_key_of(each.lower),
                               unbounded ? ByteView() : user_key_of(each.upper)));
    edit.erased_sequence = std::max(*edit.erased_sequence, each.sequence);
  }
  EC_TRY(versions_->apply(edit));
  forget_erased(*edit.erased_sequence);
  MutexLock lock(mutex_);
  ++erasure_stats_.erasures;
  erasure_stats_.erased_ranges += pending.size();
  return report;
}

namespace {

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

Result<std::vector<FileShare>> EngineImpl::locate(NamespaceId namespace_id, const KeyRange& range) {
  EC_TRY(check_readable(namespace_id));
  const FullKeyRange wanted = full_key_range(namespace_id, range);
  std::vector<FileShare> files;
  if (wanted.empty()) return files;
  const std::vector<Wal::File> log = wal_->files();
  const VisibleView at = visible_view();
  const Version& version = *at.view->version;
  auto shares = shares_of_range(version, *tables_, wanted);
  if (!shares.ok()) return explain_read_failure(shares.status());
  for (const TablePointer& table : version.tables) {
    const auto share = shares->metadata.find(table->number);
    if (share == shares->metadata.end()) continue;
    files.push_back({metadata_table_path(options_.metadata_directory, table->number),
                     FileLayer::Metadata, share->second, table->size_bytes});
  }
  for (const auto& [number, bytes] : shares->values) {
    const ValueFileMetadata& file = version.value_files.at(number);
    files.push_back({value_table_path(options_.metadata_directory, options_.values_directory,
                                      file.placement, number),
                     FileLayer::Values, bytes, file.size_bytes});
  }
  add_log_shares(at, wanted, log, files);
  std::stable_sort(files.begin(), files.end(),
                   [](const FileShare& a, const FileShare& b) { return a.bytes > b.bytes; });
  return files;
}

}  // namespace edgecase::engine
