#include "compaction/carving.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "file/file_names.h"
#include "metadata/umeta_reader.h"

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

}  // namespace edgecase::engine
