#include "compaction/erasure_damage.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "compaction/carving.h"
#include "file/file_names.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {
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
