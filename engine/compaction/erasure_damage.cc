#include "compaction/erasure_source.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "file/file_names.h"
#include "metadata/umeta_table.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

bool is_damage(const Status& status) {
  switch (status.code()) {
    case StatusCode::Corruption:
    case StatusCode::IoError:
    case StatusCode::NotFound:
    case StatusCode::Unavailable: return true;
    default: return false;
  }
}

Bytes behind(ByteView key) {
  return Bytes(key) + '\0';
}

// About the last key before `key`: none that anybody uses lies between.
Bytes before(Bytes key) {
  constexpr std::size_t kTailBytes = 64;
  const auto last = static_cast<unsigned char>(key.back());
  key.pop_back();
  if (last > 0) {
    key.push_back(static_cast<char>(last - 1));
    key.append(kTailBytes, '\xff');
  }
  return key.substr(0, kFullKeyMaxBytes);
}

Result<std::unique_ptr<UMetaReader>> open_table(const TablePlace& place, FileNumber number) {
  EC_ASSIGN_OR_RETURN(auto file, place.file_system.open_file(place.path));
  return UMetaReader::open(std::move(file), place.store_id, number, place.keys);
}

// Writes records into tables of one age.
class CarvedTables {
 public:
  CarvedTables(const TableWriterContext& context, const TableMetadata& table)
      : context_(context), table_(table) {}

  Status add(const UMetaRecord& record) {
    if (writer_ == nullptr) EC_TRY(begin());
    return writer_->add(record);
  }
  Status end() {
    if (writer_ == nullptr) return ok();
    EC_TRY(writer_->finish());
    TableMetadata made = describe_table(*writer_, table_.kind);
    made.level = table_.level;
    if (table_.level > 0) made.run = table_.run;
    made.namespace_id = table_.namespace_id;
    made.life = table_.life;
    made.purged_sequence = table_.purged_sequence;
    made.rule_epoch = table_.rule_epoch;
    output_.metadata_bytes += made.size_bytes;
    output_.tables.push_back(std::move(made));
    writer_.reset();
    return ok();
  }
  Status finish() {
    EC_TRY(end());
    if (output_.tables.empty()) return ok();
    return context_.file_system.sync_directory(
        tables_directory(context_.options.metadata_directory));
  }
  void discard() {
    writer_.reset();
    remove_created(context_, created_);
  }
  TableOutput take_output() { return std::move(output_); }

 private:
  Status begin() {
    const TableIdentity identity{context_.store_id, context_.allocate_file_number()};
    const std::string path =
        metadata_table_path(context_.options.metadata_directory, identity.file_number);
    created_.push_back(path);
    EC_ASSIGN_OR_RETURN(writer_,
                        UMetaWriter::create(context_.file_system, path, identity, context_.keys));
    return name_durably(context_, path);
  }

  const TableWriterContext& context_;
  const TableMetadata& table_;
  std::unique_ptr<UMetaWriter> writer_;
  std::vector<std::string> created_;
  TableOutput output_;
};

}  // namespace

Status walk_readable(const TablePlace& place, const TableMetadata& table,
                     const std::function<Status(const UMetaRecord&)>& take,
                     const std::function<void(LostKeys)>& lose) {
  const auto reader = open_table(place, table.number);
  if (!reader.ok()) {
    if (!is_damage(reader.status())) return reader.status();
    lose(
        {table.smallest, table.largest, {table.item_count, table.entry_count, table.delete_count}});
    return ok();
  }
  Bytes begin = table.smallest;
  const auto& blocks = (*reader)->blocks();
  for (std::size_t i = 0; i < blocks.size(); begin = behind(blocks[i].last), ++i) {
    auto block = (*reader)->read_block(i);
    if (!block.ok()) {
      if (!is_damage(block.status())) return block.status();
      lose({begin, blocks[i].last, blocks[i].totals});
      continue;
    }
    UMetaCursor records;
    records.open(*std::move(block));
    for (std::size_t at = 0; at < records.size(); ++at) {
      if (!records.select(at)) return corruption(place.path + ": a block changes while it is read");
      EC_TRY(take(records.record()));
    }
  }
  return ok();
}

std::vector<LostKeys> without_erased(const LostKeys& lost, std::span<const RangeDelete> ranges,
                                     SequenceNumber sequence_max) {
  std::vector<LostKeys> left;
  LostKeys rest = lost;
  for (const RangeDelete& range : meeting(ranges, lost.first, lost.last)) {
    if (range.sequence <= sequence_max) continue;
    if (range.lower > rest.first) {
      left.push_back(rest);
      left.back().last = before(range.lower);
    }
    rest.first = range.upper.substr(0, kFullKeyMaxBytes);
  }
  if (rest.first <= rest.last) left.push_back(std::move(rest));
  std::erase_if(left, [](const LostKeys& each) { return each.last < each.first; });
  return left;
}

Result<Carving> look_for_lost(const TablePlace& place, const TableMetadata& table,
                              const std::function<Result<bool>(const UMetaRecord&)>& is_lost) {
  Carving carving;
  std::map<FileNumber, std::uint64_t> unknown;
  for (const ValueFileUse& use : table.value_files) unknown[use.file_number] = use.bytes;
  bool follows = false;  // another stretch, with nothing of the table between
  const auto lose = [&](LostKeys lost) {
    if (!std::exchange(follows, true)) {
      carving.lost.push_back(std::move(lost));
      return;
    }
    LostKeys& before = carving.lost.back();
    before.last = std::move(lost.last);
    before.totals.items += lost.totals.items;
    before.totals.entries += lost.totals.entries;
    before.totals.deletes += lost.totals.deletes;
  };
  const auto take = [&](const UMetaRecord& record) -> Status {
    std::uint64_t& bytes = unknown[record.pointer.file_number];
    bytes -= std::min<std::uint64_t>(bytes, record.pointer.size_bytes);
    EC_ASSIGN_OR_RETURN(const bool lost, is_lost(record));
    if (lost) {
      lose({Bytes(record.first), Bytes(record.last), {1, record.entries, record.deletes}});
    } else {
      follows = false;
    }
    return ok();
  };
  EC_TRY(walk_readable(place, table, take, lose));
  for (const auto& [number, bytes] : unknown)
    if (bytes > 0) carving.unknown_uses.push_back({number, bytes});
  return carving;
}

Result<TableOutput> write_carved(const TableWriterContext& context, const TablePlace& place,
                                 const TableMetadata& table, const Carving& carving) {
  CarvedTables tables(context, table);
  auto lost = carving.lost.begin();
  const auto take = [&](const UMetaRecord& record) -> Status {
    while (lost != carving.lost.end() && lost->last < record.first) {
      EC_TRY(tables.end());
      ++lost;
    }
    if (lost != carving.lost.end() && record.first >= ByteView(lost->first)) return ok();
    return tables.add(record);
  };
  bool was_foreseen = true;
  const auto lose = [&](const LostKeys& stretch) {
    was_foreseen &= std::ranges::any_of(carving.lost, [&](const LostKeys& each) {
      return each.first <= stretch.first && stretch.last <= each.last;
    });
  };
  Status written = walk_readable(place, table, take, lose);
  if (!was_foreseen) written = io_error(place.path + ": less of it can be read than a moment ago");
  if (written.ok()) written = tables.finish();
  if (!written.ok()) {
    tables.discard();
    return written;
  }
  return tables.take_output();
}

std::vector<TableMetadata> tables_for_lost(const TableWriterContext& context,
                                           const TableMetadata& table, const Carving& carving,
                                           std::span<const RangeDelete> ranges,
                                           const std::set<FileNumber>& leaving) {
  std::vector<TableMetadata> made;
  for (const LostKeys& stretch : carving.lost) {
    for (const LostKeys& lost : without_erased(stretch, ranges, table.sequence_max)) {
      TableMetadata& each = made.emplace_back(table);
      each.number = context.allocate_file_number();
      each.run = each.number;
      each.size_bytes = 0;
      each.checksum = 0;
      each.entry_count = lost.totals.entries;
      each.delete_count = lost.totals.deletes;
      each.item_count = lost.totals.items;
      each.smallest = lost.first;
      each.largest = lost.last;
      each.value_files = {};
      // What is left under a range may be newer: nobody can tell, and nobody needs to look again.
      for (const RangeDelete& range : meeting(ranges, lost.first, lost.last))
        each.purged_sequence = std::max(each.purged_sequence, range.sequence);
    }
  }
  if (made.empty()) return made;
  // A byte less than what it was: a file of which all seems to live is not looked at, and what was
  // erased in the stretch lives no more.
  for (const ValueFileUse& use : carving.unknown_uses)
    if (!leaving.contains(use.file_number))
      made.front().value_files.push_back(
          {use.file_number, std::max<std::uint64_t>(use.bytes - 1, 1)});
  return made;
}

namespace {

// Answers whether items of value files can be read; keeps one file open.
class ItemProbe {
 public:
  using PlaceOf = std::function<ValueFilePlace(FileNumber)>;
  ItemProbe(FileSystem& file_system, PlaceOf place_of)
      : file_system_(file_system), place_of_(std::move(place_of)) {}

  // An item whose key was destroyed needs no reading.
  bool reads(const ValuePointer& pointer) {
    if (pointer.file_number != number_) open(pointer.file_number);
    if (values_ == nullptr) return false;
    const StatusCode code = values_->read(pointer).status().code();
    return code == StatusCode::Ok || code == StatusCode::NotFound;
  }

 private:
  void open(FileNumber number) {
    number_ = number;
    values_.reset();
    const ValueFilePlace place = place_of_(number);
    auto file = file_system_.open_file(place.path);
    if (!file.ok()) return;
    auto opened =
        ValueTableReader::open(std::move(file).value(), place.store_id, number, place.keys);
    if (opened.ok()) values_ = *std::move(opened);
  }

  FileSystem& file_system_;
  const PlaceOf place_of_;
  FileNumber number_ = 0;
  std::unique_ptr<ValueTableReader> values_;  // null: it does not open
};

// Whether the round has to do something about the table: it may hold some of the ranges, or points
// into a file that is to be emptied.
bool concerns(const ErasureTargets& targets, const TableMetadata& table) {
  if (std::any_of(table.value_files.begin(), table.value_files.end(), [&](const ValueFileUse& use) {
        return targets.to_empty.contains(use.file_number);
      }))
    return true;
  const auto met = meeting(targets.ranges, table.smallest, table.largest);
  const SequenceNumber since = std::max(table.sequence_min, table.purged_sequence);
  return std::any_of(met.begin(), met.end(),
                     [&](const RangeDelete& range) { return since < range.sequence; });
}

}  // namespace

ValueFilePlace place_of(const CompactorContext& context, FileNumber number, Placement placement) {
  return {value_table_path(context.options.metadata_directory, context.options.values_directory,
                           placement, number),
          context.store_id, number, context.keys};
}

Result<Offer> ErasureDamage::next(const Version& version, const ErasureTargets& targets) {
  const std::set<FileNumber> lost = context_.host.lost_files();
  if (lost.empty()) return Offer::none();
  for (const TablePointer& table : version.tables) {
    if (!is_damaged(*table, lost) || !concerns(targets, *table)) continue;
    EC_TRY(context_.host.check_drives());
    if (!carved_.contains(table->number)) {
      EC_ASSIGN_OR_RETURN(const bool carved, carve(version, *table, targets));
      if (carved) return Offer::step();
      carved_.insert(table->number);
    }
    MergePlan plan;
    plan.mode = MergeMode::Relocate;
    plan.output_level = std::max<std::uint8_t>(table->level, 1);
    plan.output_run = table->level > 0 ? table->run : 0;
    for (const ValueFileUse& use : table->value_files)
      if (targets.to_empty.contains(use.file_number)) plan.evacuated.insert(use.file_number);
    (table->kind == TableKind::Groups ? plan.groups : plan.singles).push_back({table});
    plan.set_surroundings(without_tables(version, lost));
    return Offer::merge(std::move(plan));
  }
  return Offer::none();
}

// False: all that the round needs of it can be read.
Result<bool> ErasureDamage::carve(const Version& version, const TableMetadata& table,
                                  const ErasureTargets& targets) {
  const TablePlace place{context_.environment.file_system,
                         metadata_table_path(context_.options.metadata_directory, table.number),
                         context_.store_id, context_.keys};
  ItemProbe items(context_.environment.file_system, [&](FileNumber number) {
    return place_of(context_, number, version.value_files.at(number).placement);
  });
  DropRule* const rule = context_.rule;
  if (rule != nullptr) rule->begin_step();
  const auto is_lost = [&](const UMetaRecord& record) -> Result<bool> {
    const auto verdict = rule == nullptr ? DropRule::Verdict::Keep : rule->judge_item(record);
    const bool is_wanted = verdict != DropRule::Verdict::Keep || record.deletes > 0 ||
                           targets.to_empty.contains(record.pointer.file_number);
    return is_wanted && verdict != DropRule::Verdict::Drop && !items.reads(record.pointer);
  };
  const Result<Carving> carving = look_for_lost(place, table, is_lost);
  if (rule != nullptr) rule->end_step();
  EC_TRY(carving.status());
  if (carving->lost.empty()) return false;
  EC_TRY(context_.host.check_drives());  // or it is the drive that is lost
  std::uint64_t numbers = carving->lost.size() + 1;
  for (const LostKeys& lost : carving->lost)
    numbers += meeting(targets.ranges, lost.first, lost.last).size() + 1;
  EC_ASSIGN_OR_RETURN(const TableWriterContext writer, files_.writer(numbers));
  EC_ASSIGN_OR_RETURN(TableOutput output, write_carved(writer, place, table, *carving));
  const std::vector<TableMetadata> lost =
      tables_for_lost(writer, table, *carving, targets.ranges, targets.to_empty);
  VersionEdit edit;
  edit.added_tables = output.tables;
  edit.added_tables.insert(edit.added_tables.end(), lost.begin(), lost.end());
  edit.removed_tables.push_back(table.number);
  remove_unused_value_files(version, edit);
  if (Status applied = context_.versions.apply(edit); !applied.ok()) {
    removals_.keep(std::move(output));
    return applied;
  }
  context_.host.publish();
  std::vector<TablePointer> made;
  for (const TableMetadata& each : lost) made.push_back(std::make_shared<TableMetadata>(each));
  context_.host.look_for_damage(made);
  return true;
}

bool ErasureDamage::finds_damage_at(const Version& version, FileNumber number) {
  std::vector<TablePointer> users;
  for (const TablePointer& table : version.tables)
    if (is_damaged(*table, {number})) users.push_back(table);
  return !users.empty() && context_.host.look_for_damage(users);
}

Result<bool> ErasureDamage::destroy_unreadable(const Version& version, FileNumber number) {
  const ValueFilePlace place = place_of(context_, number, version.value_files.at(number).placement);
  EC_TRY(context_.host.check_drives());
  auto file = context_.environment.file_system.open_file(place.path);
  if (file.status().code() == StatusCode::NotFound) return true;
  if (!file.ok()) return file.status();
  const auto opened =
      ValueTableReader::open(std::move(file).value(), place.store_id, number, place.keys);
  if (opened.status().code() != StatusCode::Corruption ||
      !context_.host.lost_files().contains(number))
    return false;
  context_.tables.forget(number);
  EC_TRY(context_.remover.remove_now(place.path));
  return true;
}

}  // namespace edgecase::engine
