// A namespace of a store that nobody has open, read as it lies on the drives.
#include <map>
#include <memory>

#include "base/write_batch_reader.h"
#include "check/store_files.h"
#include "check/table_check.h"
#include "core/wal_recovery.h"
#include "edgecase/store_check.h"
#include "file/file_names.h"
#include "metadata/umeta_table.h"

namespace edgecase::engine {
namespace {

class NobodyListens final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& /*finding*/) override {}
  void on_progress(std::uint64_t /*done_bytes*/, std::uint64_t /*total_bytes*/) override {}
  bool stop() override { return false; }
};

class OfflineNamespace {
 public:
  OfflineNamespace(FileSystem& file_system, StoreFiles files)
      : file_system_(file_system), files_(std::move(files)) {}

  Result<OfflineContents> read(std::string_view name) {
    EC_ASSIGN_OR_RETURN(const std::uint64_t number,
                        read_current(file_system_, current_path(files_.metadata_directory)));
    const ManifestLook manifest = look_at_manifest(
        file_system_, manifest_path(files_.metadata_directory, number), files_.keys());
    EC_TRY(manifest.log.status);
    for (const NamespaceInfo& info : manifest.state.namespaces) {
      if (info.name == name) id_ = info.id;
    }
    if (id_ == 0) return not_found("no namespace " + std::string(name));
    deletes_ = manifest.state.version->range_delete_list;
    for (const TablePointer& table : manifest.state.version->tables)
      read_table(*table, *manifest.state.version);
    EC_TRY(read_log(manifest.state));
    return contents();
  }

 private:
  struct Newest {
    SequenceNumber sequence = 0;
    bool is_put = false;
    Bytes value;
  };

  void take(const EntryView& entry) {
    Newest& newest = newest_[Bytes(entry.full_key)];
    if (entry.sequence < newest.sequence) return;
    newest = {entry.sequence, entry.kind == EntryKind::Put, Bytes(entry.value)};
  }

  // What cannot be read is passed over.
  void read_table(const TableMetadata& table, const Version& version) {
    bool is_used = false;
    for (const ValueFileUse& use : table.value_files) {
      const auto file = version.value_files.find(use.file_number);
      is_used |= file != version.value_files.end() && file->second.namespace_id == id_;
    }
    if (!is_used) return;
    auto file = file_system_.open_file(files_.table_path(table.number));
    if (!file.ok()) return;
    const auto reader =
        UMetaReader::open(std::move(file).value(), files_.store_id, table.number, files_.keys());
    if (!reader.ok()) return;
    for (std::size_t b = 0; b < (*reader)->blocks().size(); ++b) {
      auto block = (*reader)->read_block(b);
      if (!block.ok()) continue;
      UMetaCursor records;
      records.open(*std::move(block));
      while (records.next())
        if (namespace_of(records.record().first) == id_)
          read_record(records.record().pointer, version);
    }
  }

  void read_record(const ValuePointer& pointer, const Version& version) {
    const auto named = version.value_files.find(pointer.file_number);
    if (named == version.value_files.end()) return;
    std::unique_ptr<ValueTableReader>& values = values_[pointer.file_number];
    if (values == nullptr) {
      auto file =
          file_system_.open_file(files_.value_path(pointer.file_number, named->second.placement));
      if (!file.ok()) return;
      auto opened = ValueTableReader::open(std::move(file).value(), files_.store_id,
                                           pointer.file_number, files_.keys());
      if (!opened.ok()) return;
      values = std::move(opened).value();
    }
    const auto item = values->read(pointer);
    if (item.ok()) read_item(*item, id_, [this](const EntryView& entry) { take(entry); });
  }

  Status read_log(const VersionState& state) {
    EC_ASSIGN_OR_RETURN(WalContents log,
                        find_wal(file_system_, files_.metadata_directory, files_.store_id,
                                 state.oldest_wal_segment, files_.keys()));
    const auto apply = [&](SequenceNumber first, ByteView payload) -> Result<std::uint64_t> {
      WriteBatchReader batch(payload);
      SequenceNumber sequence = first;
      while (const auto entry = batch.next()) {
        const SequenceNumber own = sequence++;
        if (entry->namespace_id != id_) continue;
        if (entry->is_range()) {
          deletes_.push_back(make_range_delete(id_, entry->key, entry->value, own));
        } else {
          const Bytes key = make_full_key(id_, entry->key);
          take({key, own, entry->kind, entry->value});
        }
      }
      EC_TRY(batch.status());
      return sequence - first;
    };
    return read_wal(file_system_, files_.metadata_directory, state.flushed_sequence, log, apply,
                    files_.keys());
  }

  OfflineContents contents() const {
    const RangeDeletes deletes(deletes_);
    OfflineContents contents;
    for (const auto& [key, newest] : newest_) {
      if (!newest.is_put || deletes.covering(key, UINT64_MAX >> 2) > newest.sequence) continue;
      contents.emplace(Bytes(ByteView(key).substr(kNamespacePrefixBytes)), newest.value);
    }
    return contents;
  }

  FileSystem& file_system_;
  const StoreFiles files_;
  NamespaceId id_ = 0;
  std::map<Bytes, Newest> newest_;  // by full key
  std::vector<RangeDelete> deletes_;
  std::map<FileNumber, std::unique_ptr<ValueTableReader>> values_;
};

}  // namespace
}  // namespace edgecase::engine

namespace edgecase {

Result<OfflineContents> read_offline(FileSystem& file_system, const Options& options,
                                     std::string_view namespace_name) {
  engine::NobodyListens nobody;
  engine::Findings findings(nobody);
  EC_ASSIGN_OR_RETURN(engine::StoreFiles files,
                      engine::find_store_files(file_system, options, findings));
  return engine::OfflineNamespace(file_system, std::move(files)).read(namespace_name);
}

}  // namespace edgecase
