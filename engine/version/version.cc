#include "version/version.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace edgecase::engine {
namespace {

Status misfit(std::string_view what, std::uint64_t number) {
  return corruption("manifest edit: " + std::string(what) + " " + std::to_string(number));
}

// What tables point to is counted as they come and go: together they name each value file many
// times, too often to go through them all for each edit of a store of terabytes.
Status count_uses(Version& version, const TableMetadata& table) {
  for (const ValueFileUse& use : table.value_files) {
    if (!version.value_files.contains(use.file_number))
      return misfit("points into no value file", use.file_number);
    if (use.bytes == 0) return misfit("points to no bytes of value file", use.file_number);
    if (std::uint64_t* const live = version.live_bytes.change(use.file_number); live != nullptr) {
      *live += use.bytes;
    } else {
      version.live_bytes.emplace(use.file_number, use.bytes);
    }
  }
  return ok();
}

Status forget_uses(Version& version, const TableMetadata& table) {
  for (const ValueFileUse& use : table.value_files) {
    std::uint64_t* const live = version.live_bytes.change(use.file_number);
    if (live == nullptr || *live < use.bytes)
      return misfit("points to more bytes than there are of value file", use.file_number);
    *live -= use.bytes;
    if (*live == 0) version.live_bytes.erase(use.file_number);
  }
  return ok();
}

void add_to_run(Run& run, const TablePointer& table) {
  if (run.tables.empty()) {
    run.number = table->run;
    run.level = table->level;
    run.kind = table->kind;
    run.life = table->life;
    run.sequence_min = table->sequence_min;
    run.sequence_max = table->sequence_max;
  }
  run.sequence_min = std::min(run.sequence_min, table->sequence_min);
  run.sequence_max = std::max(run.sequence_max, table->sequence_max);
  run.item_bytes += table->item_bytes();
  run.tables.push_back(table);
}

// Makes level0 and trees from the list of all tables.
Status arrange(Version& version) {
  version.level0.clear();
  version.trees.clear();
  std::map<NamespaceId, std::map<FileNumber, Run>> runs;
  for (const TablePointer& table : version.tables) {
    if (table->level == 0) {
      version.level0.push_back(table);
    } else {
      add_to_run(runs[table->namespace_id][table->run], table);
    }
  }
  for (auto& [id, of_namespace] : runs) {
    Tree& tree = version.trees[id];
    for (auto& [number, run] : of_namespace) {
      std::sort(run.tables.begin(), run.tables.end(),
                [](const auto& a, const auto& b) { return a->smallest < b->smallest; });
      for (std::size_t i = 0; i < run.tables.size(); ++i) {
        const TableMetadata& table = *run.tables[i];
        if (table.level != run.level || table.kind != run.kind || table.life != run.life)
          return misfit("mixes levels, kinds or life classes in run", number);
        if (i > 0 && table.smallest <= run.tables[i - 1]->largest)
          return misfit("has tables that overlap in run", number);
      }
      tree.push_back(std::move(run));
    }
    std::stable_sort(tree.begin(), tree.end(),
                     [](const Run& a, const Run& b) { return a.sequence_max > b.sequence_max; });
  }
  return ok();
}

// Tables of level 0 are shared: those that stay forget what they pointed to in a dropped namespace.
Status forget_dropped_files(Version& version) {
  version.live_bytes.clear();
  for (TablePointer& table : version.tables) {
    const auto is_gone = [&](const ValueFileUse& use) {
      return !version.value_files.contains(use.file_number);
    };
    if (table->level == 0 &&
        std::any_of(table->value_files.begin(), table->value_files.end(), is_gone)) {
      TableMetadata rest = *table;
      rest.value_files.erase_if(is_gone);
      table = std::make_shared<const TableMetadata>(std::move(rest));
    }
    EC_TRY(count_uses(version, *table));
  }
  return ok();
}

// All but what arrange() and take_range_deletes() make of it.
Status change_files(Version& version, const VersionEdit& edit) {
  for (const FileNumber number : edit.removed_tables) {
    const auto found = std::find_if(version.tables.begin(), version.tables.end(),
                                    [&](const auto& table) { return table->number == number; });
    if (found == version.tables.end()) return misfit("removes unknown table", number);
    EC_TRY(forget_uses(version, **found));
    version.tables.erase(found);
  }
  for (const FileNumber number : edit.removed_value_files) {
    if (version.value_files.erase(number) == 0) return misfit("removes unknown value file", number);
    if (edit.dropped_namespaces.empty() && version.live_bytes.contains(number))
      return misfit("removes a value file that is pointed into:", number);
  }
  for (const ValueFileMetadata& file : edit.added_value_files) {
    if (!version.value_files.emplace(file.number, file))
      return misfit("adds value file twice:", file.number);
  }
  for (const FileNumber number : edit.blanked_value_files) {
    ValueFileMetadata* const file = version.value_files.change(number);
    if (file == nullptr) return misfit("blanks unknown value file", number);
    file->has_blanks = true;
  }
  for (const TableMetadata& table : edit.added_tables) {
    const bool one_namespace = namespace_of(table.smallest) == table.namespace_id &&
                               namespace_of(table.largest) == table.namespace_id;
    if (table.level > 0 && !one_namespace)
      return misfit("adds a table of other namespaces than it says:", table.number);
    EC_TRY(count_uses(version, table));
    version.tables.push_back(std::make_shared<const TableMetadata>(table));
  }
  if (!edit.dropped_namespaces.empty()) EC_TRY(forget_dropped_files(version));
  const auto is_newer = [](const TablePointer& a, const TablePointer& b) {
    return a->sequence_max > b->sequence_max;
  };
  const auto added = version.tables.end() - static_cast<std::ptrdiff_t>(edit.added_tables.size());
  std::stable_sort(added, version.tables.end(), is_newer);
  std::inplace_merge(version.tables.begin(), added, version.tables.end(), is_newer);
  return ok();
}

bool changes_files(const VersionEdit& edit) {
  return !edit.added_tables.empty() || !edit.removed_tables.empty() ||
         !edit.added_value_files.empty() || !edit.removed_value_files.empty() ||
         !edit.blanked_value_files.empty() || !edit.dropped_namespaces.empty() ||
         !edit.range_deletes.empty();
}

Status apply_retention(VersionState& state, const VersionEdit& edit) {
  if (edit.expiry_mark_ns)
    state.expiry_mark_ns = std::max(state.expiry_mark_ns, *edit.expiry_mark_ns);
  if (edit.held_ns) state.held_ns = *edit.held_ns;
  const bool known = state.retention != nullptr;
  if (edit.rule_changes.empty() && edit.scopes.empty() && edit.given_up.empty() &&
      (edit.dropped_namespaces.empty() || !known))
    return ok();
  auto rules = std::make_shared<RetentionRules>();
  if (known) *rules = *state.retention;
  if (!edit.scopes.empty()) *rules = RetentionRules(edit.scopes);
  const bool fits =
      edit.rule_changes.empty() || rules->change(edit.rule_changes, state.expiry_mark_ns);
  if (!fits) return misfit("has more retention rules than", kRetentionRulesMax);
  for (const GivenUp& each : edit.given_up) rules->give_up(each);
  for (const NamespaceId id : edit.dropped_namespaces) rules->forget_namespace(id);
  state.retention = std::move(rules);
  return ok();
}

bool holds_older(const TableMetadata& table, const RangeDelete& range) {
  return table.sequence_min < range.sequence && table.purged_sequence < range.sequence &&
         table.largest >= range.lower && table.smallest < range.upper;
}

// Asks only the tables of a run that the range meets: there may be thousands of ranges.
bool holds_older(const Run& run, const RangeDelete& range) {
  auto table =
      std::partition_point(run.tables.begin(), run.tables.end(),
                           [&](const TablePointer& each) { return each->largest < range.lower; });
  for (; table != run.tables.end() && (*table)->smallest < range.upper; ++table) {
    if (holds_older(**table, range)) return true;
  }
  return false;
}

bool holds_older(const Version& version, const RangeDelete& range) {
  if (std::any_of(version.level0.begin(), version.level0.end(),
                  [&](const TablePointer& table) { return holds_older(*table, range); }))
    return true;
  const auto first = version.trees.lower_bound(namespace_of(range.lower));
  const auto end = version.trees.upper_bound(namespace_of(range.upper));
  return std::any_of(first, end, [&](const auto& tree) {
    return std::any_of(tree.second.begin(), tree.second.end(),
                       [&](const Run& run) { return holds_older(run, range); });
  });
}

// A range delete goes when no table holds anything older in its range. The tables are arranged.
void take_range_deletes(Version& version, const VersionEdit& edit) {
  std::vector<RangeDelete>& all = version.range_delete_list;
  if (!edit.range_deletes.empty()) {
    all.insert(all.end(), edit.range_deletes.begin(), edit.range_deletes.end());
    all = RangeDeletes(all).newest();
  }
  const std::size_t gone =
      std::erase_if(all, [&](const RangeDelete& each) { return !holds_older(version, each); });
  if (gone == 0 && edit.range_deletes.empty()) return;
  version.range_deletes = all.empty() ? nullptr : std::make_shared<const RangeDeletes>(all);
}

}  // namespace

std::uint64_t Version::value_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, file] : value_files) bytes += file.size_bytes;
  return bytes;
}

std::uint64_t Version::memory_bytes() const {
  std::uint64_t bytes = value_files.memory_bytes() + live_bytes.memory_bytes();
  for (const TablePointer& table : tables)
    bytes += sizeof(TableMetadata) + table->smallest.size() + table->largest.size() +
             table->value_files.memory_bytes();
  return bytes;
}

const TablePointer* Run::find(ByteView full_key) const {
  const auto found = std::partition_point(
      tables.begin(), tables.end(),
      [&](const TablePointer& table) { return ByteView(table->largest) < full_key; });
  if (found == tables.end() || full_key < ByteView((*found)->smallest)) return nullptr;
  return &*found;
}

void remove_unused_value_files(const Version& before, VersionEdit& edit) {
  const std::set<FileNumber> removed(edit.removed_tables.begin(), edit.removed_tables.end());
  std::map<FileNumber, std::uint64_t> live;
  for (const TablePointer& table : before.tables) {
    if (!removed.contains(table->number)) continue;
    for (const ValueFileUse& use : table->value_files) {
      const auto found = live.try_emplace(use.file_number, 0);
      if (found.second) found.first->second = before.live_bytes.at(use.file_number);
      found.first->second -= use.bytes;
    }
  }
  for (const TableMetadata& table : edit.added_tables) {
    for (const ValueFileUse& use : table.value_files) {
      if (const auto found = live.find(use.file_number); found != live.end())
        found->second += use.bytes;
    }
  }
  for (const auto& [number, bytes] : live) {
    if (bytes == 0) edit.removed_value_files.push_back(number);
  }
}

std::vector<ObsoleteFile> withdraw_dropped(const VersionState& state, VersionEdit& edit) {
  std::vector<ObsoleteFile> withdrawn;
  // None was ever dropped.
  if (state.namespaces.size() + 1 == state.namespace_id_limit) return withdrawn;
  const auto is_live = [&](NamespaceId id) {
    return std::any_of(state.namespaces.begin(), state.namespaces.end(),
                       [id](const NamespaceInfo& info) { return info.id == id; });
  };
  const Version& version = *state.version;
  for (auto* numbers : {&edit.removed_value_files, &edit.blanked_value_files})
    std::erase_if(*numbers,
                  [&](FileNumber number) { return !version.value_files.contains(number); });
  std::erase_if(edit.removed_tables, [&](FileNumber number) {
    return std::none_of(version.tables.begin(), version.tables.end(),
                        [&](const TablePointer& table) { return table->number == number; });
  });
  std::set<FileNumber> gone;
  std::erase_if(edit.added_value_files, [&](const ValueFileMetadata& file) {
    if (is_live(file.namespace_id)) return false;
    withdrawn.push_back(
        {ObsoleteFile::Kind::Values, file.placement, file.number, file.namespace_id});
    gone.insert(file.number);
    return true;
  });
  std::erase_if(edit.added_tables, [&](TableMetadata& table) {
    const bool of_dropped = table.level > 0 && !is_live(table.namespace_id);
    if (table.level == 0) {
      table.value_files.erase_if(
          [&](const ValueFileUse& use) { return gone.contains(use.file_number); });
    }
    if (!of_dropped && !table.value_files.empty()) return false;
    withdrawn.push_back({ObsoleteFile::Kind::Table, Placement::Metadata, table.number, 0,
                         table.smallest, table.largest});
    return true;
  });
  return withdrawn;
}

bool is_damaged(const TableMetadata& table, const std::set<FileNumber>& lost) {
  return lost.contains(table.number) ||
         std::any_of(table.value_files.begin(), table.value_files.end(),
                     [&](const ValueFileUse& use) { return lost.contains(use.file_number); });
}

Version without_tables(const Version& version, const std::set<FileNumber>& lost) {
  const auto is_apart = [&](const TablePointer& table) { return is_damaged(*table, lost); };
  Version sound = version;
  std::copy_if(version.tables.begin(), version.tables.end(), std::back_inserter(sound.set_apart),
               is_apart);
  std::erase_if(sound.tables, is_apart);
  std::erase_if(sound.level0, is_apart);
  for (auto& [id, tree] : sound.trees) {
    for (Run& run : tree) std::erase_if(run.tables, is_apart);
    std::erase_if(tree, [](const Run& run) { return run.tables.empty(); });
  }
  std::erase_if(sound.trees, [](const auto& tree) { return tree.second.empty(); });
  return sound;
}

Version without_runs(const Version& version, const std::set<FileNumber>& lost) {
  const auto is_lost = [&](const TablePointer& table) { return is_damaged(*table, lost); };
  // By run, from level 1 on: a table of it that was merged alone could not come back between
  // others.
  std::set<FileNumber> runs;
  for (const TablePointer& table : version.tables)
    if (table->level > 0 && is_lost(table)) runs.insert(table->run);
  const auto is_apart = [&](const TablePointer& table) {
    return table->level > 0 ? runs.contains(table->run) : is_lost(table);
  };
  Version sound = version;
  std::copy_if(version.tables.begin(), version.tables.end(), std::back_inserter(sound.set_apart),
               is_apart);
  std::erase_if(sound.tables, is_apart);
  std::erase_if(sound.level0, is_apart);
  for (auto& [id, tree] : sound.trees)
    std::erase_if(tree, [&](const Run& run) { return runs.contains(run.number); });
  std::erase_if(sound.trees, [](const auto& tree) { return tree.second.empty(); });
  return sound;
}

Status VersionState::apply(const VersionEdit& edit) {
  EC_TRY(apply_names(edit));
  if (changes_files(edit)) {
    Version next = *version;
    EC_TRY(change_files(next, edit));
    EC_TRY(arrange(next));
    take_range_deletes(next, edit);
    version = std::make_shared<const Version>(std::move(next));
  }
  return apply_marks(edit);
}

Status VersionState::apply_names(const VersionEdit& edit) {
  if (edit.file_number_limit) {
    if (*edit.file_number_limit < file_number_limit)
      return misfit("lowers the file number limit to", *edit.file_number_limit);
    file_number_limit = *edit.file_number_limit;
  }
  if (edit.namespace_id_limit) {
    if (*edit.namespace_id_limit < namespace_id_limit)
      return misfit("lowers the namespace id limit to", *edit.namespace_id_limit);
    if (*edit.namespace_id_limit > kNamespaceIdMax + 1)
      return misfit("has a namespace id limit beyond all there are:", *edit.namespace_id_limit);
    namespace_id_limit = *edit.namespace_id_limit;
  }
  for (const NamespaceInfo& info : edit.namespaces) {
    const bool known = !namespaces.empty() && info.id <= namespaces.back().id;
    if (info.id == 0 || info.id >= namespace_id_limit || known)
      return misfit("adds a namespace out of order:", info.id);
    namespaces.push_back(info);
  }
  for (const NamespaceId id : edit.dropped_namespaces) {
    if (std::erase_if(namespaces, [id](const NamespaceInfo& info) { return info.id == id; }) == 0)
      return misfit("drops unknown namespace", id);
  }
  return ok();
}

Status VersionState::apply_marks(const VersionEdit& edit) {
  if (edit.flushed_sequence) {
    if (*edit.flushed_sequence < flushed_sequence)
      return misfit("lowers the flushed sequence to", *edit.flushed_sequence);
    flushed_sequence = *edit.flushed_sequence;
  }
  if (edit.oldest_wal_segment) {
    if (*edit.oldest_wal_segment < oldest_wal_segment)
      return misfit("lowers the oldest WAL segment to", *edit.oldest_wal_segment);
    oldest_wal_segment = *edit.oldest_wal_segment;
  }
  if (edit.erased_sequence) {
    std::erase_if(erasures,
                  [&](const RangeDelete& each) { return each.sequence <= *edit.erased_sequence; });
  }
  if (!edit.erasures.empty()) {
    erasures.insert(erasures.end(), edit.erasures.begin(), edit.erasures.end());
    erasures = RangeDeletes(erasures).newest();
  }
  return apply_retention(*this, edit);
}

Status VersionReplay::apply(const VersionEdit& edit) {
  EC_TRY(state_.apply_names(edit));
  if (changes_files(edit)) {
    EC_TRY(change_files(version_, edit));
    is_arranged_ = false;
    // Which range deletes go is asked of the tables of that moment.
    if (!version_.range_delete_list.empty() || !edit.range_deletes.empty()) {
      EC_TRY(arrange(version_));
      is_arranged_ = true;
      take_range_deletes(version_, edit);
    }
  }
  return state_.apply_marks(edit);
}

Result<VersionState> VersionReplay::finish() {
  if (!is_arranged_) EC_TRY(arrange(version_));
  state_.version = std::make_shared<const Version>(std::move(version_));
  return std::move(state_);
}

VersionEdit VersionState::snapshot() const {
  VersionEdit edit;
  edit.format_version = kManifestFormatVersion;
  edit.file_number_limit = file_number_limit;
  edit.namespace_id_limit = namespace_id_limit;
  edit.namespaces = namespaces;
  for (const auto& [number, file] : version->value_files) {
    edit.added_value_files.push_back(file);
    if (file.has_blanks) edit.blanked_value_files.push_back(number);
  }
  for (const auto& table : version->tables) edit.added_tables.push_back(*table);
  edit.range_deletes = version->range_delete_list;
  edit.erasures = erasures;
  edit.flushed_sequence = flushed_sequence;
  edit.oldest_wal_segment = oldest_wal_segment;
  if (expiry_mark_ns != kNoMarkNs) edit.expiry_mark_ns = expiry_mark_ns;
  if (held_ns != 0) edit.held_ns = held_ns;
  if (retention != nullptr) {
    edit.scopes = retention->scopes();
    edit.given_up = retention->given_up();
  }
  return edit;
}

}  // namespace edgecase::engine
