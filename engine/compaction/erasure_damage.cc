// What a round of erasing does about damaged files, so that it comes to its end: what can be read
// goes as always, what cannot goes with its file (compaction/carving.h).
#include <algorithm>
#include <memory>
#include <utility>

#include "compaction/carving.h"
#include "compaction/compactor.h"
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

}  // namespace

// Whether the round has to do something about the table: it may hold some of the ranges, or points
// into a file that is to be emptied.
bool Compactor::concerns_erasure(const TableMetadata& table) const {
  const auto& files = erasure_->to_empty;
  if (std::any_of(table.value_files.begin(), table.value_files.end(),
                  [&](const ValueFileUse& use) { return files.contains(use.file_number); }))
    return true;
  const auto met = meeting(erasure_->ranges, table.smallest, table.largest);
  const SequenceNumber since = std::max(table.sequence_min, table.purged_sequence);
  return std::any_of(met.begin(), met.end(),
                     [&](const RangeDelete& range) { return since < range.sequence; });
}

// Damaged tables that concern the round, one at a time and each by itself: first what stands in the
// way of reading them goes, then they are merged as others are.
Result<bool> Compactor::pick_damaged(const Version& version) {
  const std::set<FileNumber> lost = context_.host.lost_files();
  if (lost.empty()) return false;
  Erasure& round = *erasure_;
  for (const TablePointer& table : version.tables) {
    if (!is_damaged(*table, lost) || !concerns_erasure(*table)) continue;
    EC_TRY(context_.host.check_values());
    if (!round.carved.contains(table->number)) {
      EC_ASSIGN_OR_RETURN(const bool carved, carve(version, *table));
      if (carved) return true;
      round.carved.insert(table->number);
    }
    MergePlan plan;
    plan.mode = MergeMode::Relocate;
    plan.output_level = std::max<std::uint8_t>(table->level, 1);
    plan.output_run = table->level > 0 ? table->run : 0;
    for (const ValueFileUse& use : table->value_files)
      if (round.to_empty.contains(use.file_number)) plan.evacuated.insert(use.file_number);
    (table->kind == TableKind::Groups ? plan.groups : plan.singles).push_back({table});
    plan.set_surroundings(without_tables(version, lost));
    return start_erasing(std::move(plan));
  }
  return false;
}

// False: all that the round needs of it can be read.
Result<bool> Compactor::carve(const Version& version, const TableMetadata& table) {
  Erasure& round = *erasure_;
  const TablePlace place{context_.environment.file_system,
                         metadata_table_path(context_.options.metadata_directory, table.number),
                         context_.store_id, context_.keys};
  ItemProbe items(context_.environment.file_system, [&](FileNumber number) {
    return place_of(number, version.value_files.at(number).placement);
  });
  DropRule* const rule = context_.rule;
  if (rule != nullptr) rule->begin_step();
  const auto is_lost = [&](const UMetaRecord& record) -> Result<bool> {
    const auto verdict = rule == nullptr ? DropRule::Verdict::Keep : rule->judge_item(record);
    const bool is_wanted = verdict != DropRule::Verdict::Keep || record.deletes > 0 ||
                           round.to_empty.contains(record.pointer.file_number);
    return is_wanted && verdict != DropRule::Verdict::Drop && !items.reads(record.pointer);
  };
  const Result<Carving> carving = look_for_lost(place, table, is_lost);
  if (rule != nullptr) rule->end_step();
  EC_TRY(carving.status());
  if (carving->lost.empty()) return false;
  EC_TRY(context_.host.check_values());  // or it is the drive that is lost
  std::uint64_t numbers = carving->lost.size() + 1;
  for (const LostKeys& lost : carving->lost)
    numbers += meeting(round.ranges, lost.first, lost.last).size() + 1;
  EC_TRY(numbers_.reserve(context_.versions, numbers));
  TableWriterContext writer = writer_context_;
  writer.remover = &context_.remover;
  writer.keys = context_.keys;
  EC_ASSIGN_OR_RETURN(TableOutput output, write_carved(writer, place, table, *carving));
  const std::vector<TableMetadata> lost =
      tables_for_lost(writer, table, *carving, round.ranges, round.to_empty);
  VersionEdit edit;
  edit.added_tables = output.tables;
  edit.added_tables.insert(edit.added_tables.end(), lost.begin(), lost.end());
  edit.removed_tables.push_back(table.number);
  remove_unused_value_files(version, edit);
  if (Status applied = context_.versions.apply(edit); !applied.ok()) {
    given_up_.push_back(std::move(output));
    return applied;
  }
  context_.host.publish();
  std::vector<TablePointer> made;
  for (const TableMetadata& each : lost) made.push_back(std::make_shared<TableMetadata>(each));
  context_.host.look_for_damage(made);
  return true;
}

// Reads all again that leads to the value file, past the page cache. Whether damage is found that
// was not known.
bool Compactor::finds_damage_at(const Version& version, FileNumber number) {
  std::vector<TablePointer> users;
  for (const TablePointer& table : version.tables)
    if (is_damaged(*table, {number})) users.push_back(table);
  return !users.empty() && context_.host.look_for_damage(users);
}

// Of a value file that does not open nobody can tell what lies in it, and nothing of it can be
// read: it goes, and what points into it stays damaged, as of any file that is missing. False: it
// may open after all, or nothing points into it, and it goes as others do.
Result<bool> Compactor::destroy_unreadable(const Version& version, FileNumber number) {
  const ValueFilePlace place = place_of(number, version.value_files.at(number).placement);
  EC_TRY(context_.host.check_values());
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
