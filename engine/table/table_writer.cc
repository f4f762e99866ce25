#include "table/table_writer.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "buffer/cbuffer.h"
#include "edgecase/engine.h"
#include "edgecase/status.h"
#include "file/file_names.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"
#include "table/bucket_files.h"
#include "value/group.h"
#include "value/series_columns.h"
#include "value/value_format.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

// Above these a group would cost more to read than it saves; they also keep it within what readers
// accept.
constexpr std::size_t kGroupMaxBytes = 1u << 20;
constexpr std::size_t kThresholdMaxBytes = 1u << 20;
static_assert(kGroupMaxBytes + kThresholdMaxBytes + kKeySizeMaxBytes < kGroupRawMaxBytes);

// One call of write_tables(). Holds one open group, or one a life class, one open block of each
// metadata table, and the sums of every file.
class TablesBuilder {
 public:
  explicit TablesBuilder(const TableWriterContext& context);

  Status add_all(EntryCursor& input);
  Status finish();
  TableOutput take_output() { return std::move(output_); }
  // Removes every file that was begun.
  void discard();

 private:
  Status add(const EntryView& entry);
  Status add(const SeriesRun& run);
  Status add_to_series(const EntryView& entry);
  Status add_each(const SeriesRun& run);
  Status add_piece(const SeriesRun& run);
  void enter_namespace(NamespaceId id);
  Status leave_namespace();
  Result<SeriesGathering::Group*> enter_group(ByteView full_key_begin, const ItemExpiry& item);
  Status write_group(SeriesGathering::Group& group);
  Status write_plain_group();
  std::pair<std::span<const EntryView>, SequenceColumn> raise(std::span<const EntryView> entries);
  Status write_groups();
  Status close_pieces();
  Status write_single(const EntryView& entry);
  Status write_record(std::unique_ptr<UMetaWriter>& table, ItemType type,
                      const ValuePointer& pointer, const ItemSummary& summary,
                      std::span<const EntryView> filtered, ByteView pages = {},
                      ByteView numbers = {});
  Result<std::unique_ptr<UMetaWriter>> create_table();
  Status finish_table(UMetaWriter& table, TableKind kind, LifeClass life);
  template <typename Writer>
  Result<Writer> begun(const std::string& path, Result<Writer> created);
  Status sync_value_directories();

  const TableWriterContext& context_;
  const std::size_t threshold_bytes_;
  BucketFiles values_;
  CBuffer group_;  // of a namespace with GroupCodec::Plain
  std::vector<EntryView> raised_;
  std::vector<SequenceNumber> sequences_;
  SeriesGathering series_;  // of one with GroupCodec::Series
  Bytes filter_;            // of the item being written
  Bytes numbers_;           // its summary
  TableOutput output_;
  std::uint64_t pieces_ = 0;  // value tables that were closed for their size
  std::vector<std::string> created_;

  bool in_namespace_ = false;
  NamespaceId namespace_id_ = 0;
  NamespaceOptions namespace_options_;
  ExpiryView expiry_;  // of the current namespace
  std::map<LifeClass, std::unique_ptr<UMetaWriter>> groups_tables_;
  std::unique_ptr<UMetaWriter> singles_table_;
};

TablesBuilder::TablesBuilder(const TableWriterContext& context)
    : context_(context),
      threshold_bytes_(
          std::min<std::size_t>(context.options.coalesce_threshold_bytes, kThresholdMaxBytes)),
      values_(context),
      group_(group_bytes_of(context.options), kGroupEntriesMax),
      series_(group_bytes_of(context.options), kGroupEntriesMax, context.options.group_span_ns,
              !context.raise_limits.is_free()) {}

Status TablesBuilder::add_all(EntryCursor& input) {
  group_.set_lent(input.is_in_memory());
  Bytes previous_key;
  bool first = true;
  for (; input.valid(); input.next()) {
    // Only a memtable has runs, and it has a key once.
    for (SeriesRun run = input.take_run(); !run.entries.empty(); run = input.take_run()) {
      EC_TRY(add(run));
      first = true;
    }
    if (!input.valid()) break;
    // Behind the newest entry of a key come its older ones.
    if (!first && input.full_key() == previous_key) continue;
    EC_TRY(input.load());
    const EntryView entry{input.full_key(), input.sequence(), input.kind(), input.value()};
    previous_key.assign(entry.full_key);
    first = false;
    EC_TRY(add(entry));
  }
  EC_TRY(input.status());
  return leave_namespace();
}

Status TablesBuilder::add(const EntryView& entry) {
  const NamespaceId id = namespace_of(entry.full_key);
  if (!in_namespace_ || id != namespace_id_) {
    EC_TRY(leave_namespace());
    enter_namespace(id);
  }
  if (expiry_.hides(entry.full_key)) return ok();
  const bool is_large = entry.kind == EntryKind::Put && entry.value.size() >= threshold_bytes_;
  if (is_large || !context_.options.coalesce) return write_single(entry);
  if (namespace_options_.codec == GroupCodec::Series) return add_to_series(entry);
  if (!group_.takes(entry)) EC_TRY(write_plain_group());
  group_.add(entry);
  return ok();
}

Status TablesBuilder::add_to_series(const EntryView& entry) {
  const ItemExpiry item = expiry_of_entry(expiry_, namespace_options_.codec, entry.full_key);
  EC_ASSIGN_OR_RETURN(SeriesGathering::Group* const group, enter_group(entry.full_key, item));
  if (group->columns->add(entry)) return ok();
  EC_TRY(write_group(*group));
  group->expiry = item;
  EC_CHECK(group->columns->add(entry));
  return ok();
}

Status TablesBuilder::add(const SeriesRun& run) {
  const NamespaceId id = namespace_of(run.prefix);
  if (!in_namespace_ || id != namespace_id_) {
    EC_TRY(leave_namespace());
    enter_namespace(id);
  }
  const bool covers_scope =
      run.prefix.size() >= kNamespacePrefixBytes + namespace_options_.scope_bytes;
  const bool together = context_.options.coalesce && threshold_bytes_ > kTaggedNumberBytes &&
                        namespace_options_.codec == GroupCodec::Series && covers_scope;
  if (!together) return add_each(run);
  if (expiry_.empty()) return add_piece(run);
  // In pieces of one bucket each, without what has expired.
  const auto first_at = [&](std::span<const SeriesEntry> entries, std::uint64_t ordinal) {
    return static_cast<std::size_t>(
        std::partition_point(entries.begin(), entries.end(),
                             [&](const SeriesEntry& entry) { return entry.ordinal < ordinal; }) -
        entries.begin());
  };
  const std::int64_t retention_ns = expiry_.retention_ns(run.prefix);
  std::span<const SeriesEntry> rest =
      run.entries.subspan(first_at(run.entries, expiry_.horizon(run.prefix)));
  while (!rest.empty()) {
    const Bucket bucket = expiry_.bucket_of(time_of_ordinal(rest.front().ordinal), retention_ns);
    std::int64_t end_ns = 0;
    const bool bounded =
        bucket.expires() && !__builtin_sub_overflow(bucket.end_ns, retention_ns, &end_ns);
    const std::size_t count =
        bounded ? std::max<std::size_t>(1, first_at(rest, ordinal_of_time(end_ns))) : rest.size();
    EC_TRY(add_piece({run.prefix, rest.first(count)}));
    rest = rest.subspan(count);
  }
  return ok();
}

Status TablesBuilder::add_piece(const SeriesRun& run) {
  SeriesRun rest = run;
  while (!rest.entries.empty()) {
    ItemExpiry item;
    item.time_min_ns = time_of_ordinal(rest.entries.front().ordinal);
    item.time_max_ns = time_of_ordinal(rest.entries.back().ordinal);
    if (!expiry_.empty()) {
      const std::int64_t retention_ns = expiry_.retention_ns(rest.prefix);
      item.bucket = expiry_.bucket_of(item.time_min_ns, retention_ns);
      item.expiry_min_ns = expiry_of(item.time_min_ns, retention_ns);
      item.expiry_max_ns = expiry_of(time_of_ordinal(rest.entries.back().ordinal), retention_ns);
    }
    EC_ASSIGN_OR_RETURN(SeriesGathering::Group* const group, enter_group(rest.prefix, item));
    const std::size_t taken = group->columns->add(rest);
    rest.entries = rest.entries.subspan(taken);
    if (taken == 0) EC_TRY(write_group(*group));
  }
  return ok();
}

// Before an entry is added: a group lies in one bucket.
Result<SeriesGathering::Group*> TablesBuilder::enter_group(ByteView full_key_begin,
                                                           const ItemExpiry& item) {
  if (!expiry_.empty() && series_.leaves_scope(full_key_begin)) {
    EC_TRY(write_groups());
    series_.enter_scope(full_key_begin);
  }
  SeriesGathering::Group& group = expiry_.empty() ? series_.main() : series_.group_for(item);
  const bool other = !group.columns->empty() && !(item.bucket == group.expiry.bucket);
  if (other) EC_TRY(write_group(group));
  if (group.columns->empty()) {
    group.expiry = item;
  } else {
    group.expiry.add(item);
  }
  return &group;
}

Status TablesBuilder::add_each(const SeriesRun& run) {
  Bytes key(run.prefix);
  key.resize(key.size() + kOrdinalBytes);
  for (const SeriesEntry& entry : run.entries) {
    store_ordinal(key.data() + run.prefix.size(), entry.ordinal);
    char number[kTaggedNumberBytes] = {entry.value_class() == SeriesClass::Float ? kFloatTag
                                                                                 : kIntegerTag};
    std::memcpy(number + 1, &entry.payload, sizeof entry.payload);
    const bool is_delete = entry.value_class() == SeriesClass::Delete;
    EC_TRY(add(EntryView{key, entry.sequence(), is_delete ? EntryKind::Delete : EntryKind::Put,
                         is_delete ? ByteView() : ByteView(number, sizeof number)}));
  }
  return ok();
}

void TablesBuilder::enter_namespace(NamespaceId id) {
  in_namespace_ = true;
  namespace_id_ = id;
  namespace_options_ = context_.namespace_options(id);
  group_.set_scope_bytes(namespace_options_.scope_bytes);
  series_.begin(namespace_options_.scope_bytes);
  expiry_ = context_.expiry.of_namespace(id);
  values_.begin(id, namespace_options_);
}

Status TablesBuilder::leave_namespace() {
  if (!in_namespace_) return ok();
  EC_TRY(write_groups());
  EC_TRY(values_.close_all(output_));
  in_namespace_ = false;
  return ok();
}

Status TablesBuilder::write_group(SeriesGathering::Group& group) {
  SeriesColumns& columns = *group.columns;
  context_.raise_limits.raise(columns.sequences());
  EC_ASSIGN_OR_RETURN(ValueTableWriter* const values, values_.open(group.expiry));
  EC_ASSIGN_OR_RETURN(const ValuePointer pointer, values->append_group(columns));
  ValueClass value_class = ValueClass::Other;
  const auto numbers = columns.numbers_of_one_series(value_class);
  numbers_.clear();
  append_number_summary(
      numbers_, value_class == ValueClass::Integer ? NumberType::Integer : NumberType::Float,
      numbers);
  EC_TRY(write_record(groups_tables_[group.life], ItemType::SeriesGroup, pointer, columns.summary(),
                      columns.heads(), {}, numbers_));
  columns.clear();
  return close_pieces();
}

Status TablesBuilder::write_plain_group() {
  EC_ASSIGN_OR_RETURN(ValueTableWriter* const values, values_.open({}));
  const auto [entries, column] = raise(group_.entries());
  EC_ASSIGN_OR_RETURN(const ValuePointer pointer, values->append_group(entries, column));
  EC_TRY(write_record(groups_tables_[0], ItemType::PlainGroup, pointer, summary_of(entries),
                      entries, values->page_index()));
  group_.clear();
  return close_pieces();
}

// As they are written; until the next call.
std::pair<std::span<const EntryView>, SequenceColumn> TablesBuilder::raise(
    std::span<const EntryView> entries) {
  if (context_.raise_limits.is_free()) return {entries, SequenceColumn::None};
  sequences_.clear();
  for (const EntryView& entry : entries) sequences_.push_back(entry.sequence);
  const bool alike = context_.raise_limits.raise(sequences_);
  raised_.assign(entries.begin(), entries.end());
  for (std::size_t i = 0; i < raised_.size(); ++i) raised_[i].sequence = sequences_[i];
  return {raised_, alike ? SequenceColumn::None : SequenceColumn::Written};
}

// All that is gathered.
Status TablesBuilder::write_groups() {
  if (!group_.empty()) EC_TRY(write_plain_group());
  return series_.for_each([this](SeriesGathering::Group& group) { return write_group(group); });
}

Status TablesBuilder::close_pieces() {
  if (pieces_ == kPiecesPerFlushMax) return ok();
  const std::size_t closed = output_.value_files.size();
  EC_TRY(values_.close_full(
      pieces_ == 0 ? context_.first_value_file_bytes : context_.value_file_bytes, output_));
  pieces_ += output_.value_files.size() - closed;
  return ok();
}

Status TablesBuilder::write_single(const EntryView& entry) {
  EC_ASSIGN_OR_RETURN(
      ValueTableWriter* const values,
      values_.open(expiry_of_entry(expiry_, namespace_options_.codec, entry.full_key)));
  EC_ASSIGN_OR_RETURN(const ValuePointer pointer, values->append_single(entry));
  const std::span<const EntryView> entries(&entry, 1);
  return write_record(singles_table_, ItemType::Single, pointer, summary_of(entries), entries);
}

Status TablesBuilder::write_record(std::unique_ptr<UMetaWriter>& table, ItemType type,
                                   const ValuePointer& pointer, const ItemSummary& summary,
                                   std::span<const EntryView> filtered, ByteView pages,
                                   ByteView numbers) {
  if (!table) {
    EC_ASSIGN_OR_RETURN(table, create_table());
  }
  UMetaRecord record = describe_item(type, pointer, summary);
  filter_.clear();
  append_item_filter(filter_, type, pointer.size_bytes, filtered);
  record.filter = filter_;
  record.pages = pages;
  record.numbers = numbers;
  return table->add(record);
}

Result<std::unique_ptr<UMetaWriter>> TablesBuilder::create_table() {
  const TableIdentity identity{context_.store_id, context_.allocate_file_number()};
  const std::string path =
      metadata_table_path(context_.options.metadata_directory, identity.file_number);
  return begun(path, UMetaWriter::create(context_.file_system, path, identity, context_.keys));
}

// Notes a file for discard(), unless it was there before and is not ours.
template <typename Writer>
Result<Writer> TablesBuilder::begun(const std::string& path, Result<Writer> created) {
  if (created.status().code() != StatusCode::AlreadyExists) created_.push_back(path);
  if (created.ok()) EC_TRY(name_durably(context_, path));
  return created;
}

Status TablesBuilder::sync_value_directories() {
  const auto any_in = [this](Placement placement) {
    return std::any_of(output_.value_files.begin(), output_.value_files.end(),
                       [&](const ValueFileMetadata& f) { return f.placement == placement; });
  };
  for (const Placement placement : {Placement::Values, Placement::Metadata}) {
    if (!any_in(placement)) continue;
    const std::string directory = value_tables_directory(
        context_.options.metadata_directory, context_.options.values_directory, placement);
    EC_TRY(context_.file_system.sync_directory(directory).on(drive_of(placement)));
  }
  return ok();
}

Status TablesBuilder::finish() {
  EC_TRY(values_.sync());
  EC_TRY(sync_value_directories());
  if (groups_tables_.empty() && !singles_table_) return ok();
  for (const auto& [life, table] : groups_tables_)
    EC_TRY(finish_table(*table, TableKind::Groups, life));
  if (singles_table_) EC_TRY(finish_table(*singles_table_, TableKind::Singles, 0));
  return context_.file_system.sync_directory(tables_directory(context_.options.metadata_directory));
}

Status TablesBuilder::finish_table(UMetaWriter& table, TableKind kind, LifeClass life) {
  EC_TRY(table.finish());
  TableMetadata metadata = describe_table(table, kind);
  metadata.rule_epoch = context_.expiry.epoch();
  metadata.life = life;
  output_.metadata_bytes += metadata.size_bytes;
  output_.tables.push_back(std::move(metadata));
  return ok();
}

void TablesBuilder::discard() {
  values_.discard();
  groups_tables_.clear();
  singles_table_.reset();
  remove_created(context_, created_);
  remove_created(context_, values_.created());
}

}  // namespace

void remove_created(const TableWriterContext& context, const std::vector<std::string>& paths) {
  if (context.remover != nullptr) return context.remover->remove_new(paths);
  for (const std::string& path : paths)
    static_cast<void>(context.file_system.remove_file(path).ok());
}

Status name_durably(const TableWriterContext& context, const std::string& path) {
  if (context.options.removal != Removal::Overwrite) return ok();
  return context.file_system.sync_directory(path.substr(0, path.rfind('/')));
}

std::size_t group_bytes_of(const Options& options) {
  return std::min<std::size_t>(options.group_bytes, kGroupMaxBytes);
}

UMetaRecord describe_item(ItemType type, const ValuePointer& pointer, const ItemSummary& summary) {
  UMetaRecord record;
  record.type = type;
  record.first = summary.first;
  record.last = summary.last;
  record.entries = summary.entries;
  record.deletes = summary.deletes;
  record.sequence_min = summary.sequence_min;
  record.sequence_max = summary.sequence_max;
  record.pointer = pointer;
  return record;
}

ValueFileMetadata describe_values(const ValueTableWriter& values) {
  ValueFileMetadata file;
  file.number = values.head().identity.file_number;
  file.namespace_id = values.head().namespace_id;
  file.placement = values.head().placement;
  file.size_bytes = values.size_bytes();
  file.item_count = values.item_count();
  file.checksum = values.checksum();
  file.item_bytes = values.item_bytes();
  return file;
}

TableMetadata describe_table(const UMetaWriter& table, TableKind kind) {
  TableMetadata metadata;
  metadata.number = table.identity().file_number;
  metadata.run = metadata.number;
  metadata.kind = kind;
  metadata.size_bytes = table.size_bytes();
  metadata.entry_count = table.totals().entries;
  metadata.delete_count = table.totals().deletes;
  metadata.item_count = table.totals().items;
  metadata.checksum = table.checksum();
  metadata.sequence_min = table.sequence_min();
  metadata.sequence_max = table.sequence_max();
  metadata.smallest = table.smallest();
  metadata.largest = table.largest();
  metadata.value_files = table.value_files();
  return metadata;
}

Result<TableOutput> write_tables(EntryCursor& input, const TableWriterContext& context) {
  TablesBuilder builder(context);
  Status status = builder.add_all(input);
  if (status.ok()) status = builder.finish();
  if (!status.ok()) {
    builder.discard();
    return status;
  }
  return builder.take_output();
}

}  // namespace edgecase::engine
