// Turns sorted entries into value tables and metadata tables: the body of a flush, later of a
// merge.
//
// Small values are gathered into groups (buffer/cbuffer.h, value/series_columns.h), large ones
// become items of their own; groups and large items go to separate metadata tables, so that neither
// cuts the other's groups short. Only the newest entry of each full key is kept. On return every
// file and its directory is synced, value layer first; nothing refers to the files yet. After an
// error the files are removed as far as the drive allows.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/entry.h"
#include "edgecase/file_system.h"
#include "edgecase/options.h"
#include "expiry/retention_rules.h"
#include "feed/raise_limits.h"
#include "file/file_remover.h"
#include "metadata/umeta_block.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

class KeyRing;
class UMetaWriter;
class ValueTableWriter;

struct TableOutput {
  std::vector<ValueFileMetadata> value_files;
  std::vector<TableMetadata> tables;  // all of one age: their keys are disjoint
  std::uint64_t value_bytes = 0;      // written to the values directory
  std::uint64_t metadata_bytes = 0;   // written to the metadata directory
};

struct TableWriterContext {
  FileSystem& file_system;
  const Options& options;
  StoreId store_id;
  std::function<FileNumber()> allocate_file_number;
  std::function<NamespaceOptions(NamespaceId)> namespace_options;
  std::function<Bytes(NamespaceId)> namespace_name = {};  // for value tables; may be missing
  ExpiryView expiry = {};          // of all namespaces: what has expired is left out
  FileRemover* remover = nullptr;  // of files that come to nothing; null: they are just unlinked
  KeyRing* keys = nullptr;         // null: not encrypted
  // Value tables are closed at a size, so that what lies next to each other can go without the
  // rest: the first of a flush at another than those behind it. A flush makes kPiecesPerFlushMax
  // besides those that it has open at its end.
  std::uint64_t value_file_bytes = UINT64_MAX;
  std::uint64_t first_value_file_bytes = UINT64_MAX;
  RaiseLimits raise_limits = {};  // for entries of groups
};
inline constexpr std::uint64_t kPiecesPerFlushMax = 16;

// How large groups are, within what readers accept.
std::size_t group_bytes_of(const Options& options);
// The record of an item, without a filter. The keys are those of `summary`.
UMetaRecord describe_item(ItemType type, const ValuePointer& pointer, const ItemSummary& summary);
// Files that no manifest will name. What cannot be removed now is removed by the next recovery.
void remove_created(const TableWriterContext& context, const std::vector<std::string>& paths);
// Before anything is written into a file that was just made, where files are overwritten when they
// go: one whose name a power cut takes would keep what it held, and nobody could find it.
Status name_durably(const TableWriterContext& context, const std::string& path);
// What the manifest is to say of finished files; of a table, as one of level 0.
ValueFileMetadata describe_values(const ValueTableWriter& values);
TableMetadata describe_table(const UMetaWriter& table, TableKind kind);

// `input` is positioned on its first entry and runs forward.
Result<TableOutput> write_tables(EntryCursor& input, const TableWriterContext& context);

}  // namespace edgecase::engine
