// One merge by hand: what comes out answers as what went in.
#include "compaction/merge_job.h"

#include <doctest/doctest.h>

#include <map>

#include "compaction/due_sources.h"
#include "compaction/merge_plan.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes full_key_of(int i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

struct MergeFixture : TableTestStore {
  MergeFixture() { options.group_bytes = 1u << 14; }

  // A table of level 1 that holds these entries, in this run; 0: one of its own.
  TablePointer add_run(std::vector<OwnedEntry> entries, FileNumber run = 0) {
    REQUIRE(write(std::move(entries)).ok());
    REQUIRE(output.tables.size() == 1);
    TableMetadata table = output.tables.front();
    table.level = 1;
    table.run = run != 0 ? run : table.number;
    table.namespace_id = 1;
    VersionEdit edit;
    edit.added_value_files = output.value_files;
    edit.added_tables = {table};
    edit.file_number_limit = next_number;
    REQUIRE(state.apply(edit).ok());
    for (const TablePointer& each : state.version->tables)
      if (each->number == table.number) return each;
    FAIL("the version does not have the table");
    return nullptr;
  }

  MergeCounters merge(MergePlan plan, DropRule* rule = nullptr) {
    MergeJob job(*cache, context(), std::move(plan), rule);
    for (;;) {
      const auto done = job.step(1u << 20, 1u << 13);
      REQUIRE(done.ok());
      if (*done) break;
    }
    output = job.take_output();
    tables.clear();
    for (const auto& file : output.value_files) cache->add_value_file(file);
    for (const auto& table : output.tables)
      tables.push_back(std::make_shared<const TableMetadata>(table));
    return job.counters();
  }

  // Puts what the last merge made into the place of its inputs.
  Status commit(const MergePlan& plan) {
    VersionEdit edit;
    edit.added_value_files = output.value_files;
    edit.added_tables = output.tables;
    edit.file_number_limit = next_number;
    for (const MergeInput& input : plan.groups)
      for (const TablePointer& table : input) edit.removed_tables.push_back(table->number);
    remove_unused_value_files(*state.version, edit);
    return state.apply(edit);
  }

  VersionState state;
};

// What range deletes cover, as the engine answers.
class CoveredRanges final : public DropRule {
 public:
  explicit CoveredRanges(std::shared_ptr<const RangeDeletes> deletes)
      : deletes_(std::move(deletes)) {}
  Verdict judge_item(const UMetaRecord& record) override {
    if (deletes_->covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
    return deletes_->touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                             : Verdict::Keep;
  }
  bool drops_entry(ByteView full_key, SequenceNumber sequence) override {
    return deletes_->covering(full_key, UINT64_MAX) > sequence;
  }

 private:
  std::shared_ptr<const RangeDeletes> deletes_;
};

TEST_CASE("merges pass over items whose key was destroyed, and over nothing beside them") {
  for (const MergeMode mode : {MergeMode::Clean, MergeMode::Relocate}) {
    for (const bool evacuates : {false, true}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(evacuates);
      MergeFixture store;
      store.encrypt();
      store.namespaces[1].scope_bytes = 1;
      store.options.group_bytes = 1024;
      std::vector<OwnedEntry> entries;
      for (const char scope : {'a', 'b', 'c'}) {
        for (int i = 0; i < 60; ++i)
          entries.push_back({make_full_key(1, scope + std::to_string(100 + i)), entries.size() + 1,
                             EntryKind::Put, Bytes(100, scope)});
      }
      const TablePointer table = store.add_run(std::move(entries));
      store.key_ring->retire(make_full_key(1, "b"), make_full_key(1, "c"), 1'000);
      REQUIRE(store.key_ring->destroy_retired(1'000).value() == 1);
      const auto before = store.newest_puts({table});
      REQUIRE(before.size() == 120);

      MergePlan plan;
      plan.mode = mode;
      plan.output_run = table->run;
      plan.groups = {{table}};
      if (evacuates)
        for (const ValueFileUse& use : table->value_files) plan.evacuated.insert(use.file_number);
      plan.set_surroundings(*store.state.version);
      const MergeCounters counters = store.merge(std::move(plan));
      CHECK(store.newest_puts(store.tables) == before);
      if (mode == MergeMode::Clean || evacuates) CHECK(counters.dropped_items > 3);
    }
  }
}

TEST_CASE("what is merged of a run does not reach over tables of it that stay") {
  MergeFixture store;
  store.options.group_bytes = 1024;
  store.options.compress = false;
  const auto entries = [](int from) {
    std::vector<OwnedEntry> made;
    for (int i = from; i < from + 100; ++i)
      made.push_back(
          {full_key_of(i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, Bytes(200, 'v')});
    return made;
  };
  const TablePointer first = store.add_run(entries(0));
  const TablePointer middle = store.add_run(entries(100), first->run);
  const TablePointer last = store.add_run(entries(200), first->run);
  VersionEdit deletes;
  deletes.range_deletes = {make_range_delete(1, "000000", "000053", 1000),
                           make_range_delete(1, "000247", "000300", 1001)};
  REQUIRE(store.state.apply(deletes).ok());
  const auto is_of_ends = [&](const MergePlan& plan) {
    return plan.groups.size() == 1 && plan.groups.front().size() == 2 &&
           plan.output_run == first->run && plan.barriers == std::vector<Bytes>{middle->smallest};
  };

  CoveredRanges rule(store.state.version->range_deletes);
  PurgeContext everywhere;
  everywhere.within.push_back({});
  const auto purge = pick_purge(*store.state.version, everywhere);
  REQUIRE(purge);
  REQUIRE(is_of_ends(*purge));
  CHECK(store.merge(*purge, &rule).dropped_items > 0);
  const Status purged = store.commit(*purge);
  INFO(purged.to_string());
  REQUIRE(purged.ok());
  const auto left = store.newest_puts(store.state.version->tables);
  CHECK(left.size() == 47 + 100 + 47);

  // What was dropped left garbage at both ends of the run.
  const auto evacuation = pick_evacuation(*store.state.version, EvacuationLimits{});
  REQUIRE(evacuation);
  REQUIRE(is_of_ends(*evacuation));
  CHECK(store.merge(*evacuation, &rule).copied_items > 0);
  const Status evacuated = store.commit(*evacuation);
  INFO(evacuated.to_string());
  REQUIRE(evacuated.ok());
  CHECK(store.newest_puts(store.state.version->tables) == left);
  CHECK(store.state.version->trees.at(1).size() == 1);
  CHECK_FALSE(pick_evacuation(*store.state.version, EvacuationLimits{}));
}

TEST_CASE("cleaning keeps a delete for what other runs hold, and makes one run of several") {
  MergeFixture store;
  std::vector<OwnedEntry> old_entries;
  for (int i = 0; i < 100; ++i)
    old_entries.push_back(
        {full_key_of(i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, "old"});
  // Deletes a few of the old ones, too few to write their group anew; half of it is dead itself.
  std::vector<OwnedEntry> newer_entries;
  for (int i = 0; i < 5; ++i)
    newer_entries.push_back(
        {full_key_of(i), static_cast<SequenceNumber>(201 + i), EntryKind::Delete, ""});
  for (int i = 0; i < 5; ++i)
    newer_entries.push_back(
        {full_key_of(200 + i), static_cast<SequenceNumber>(211 + i), EntryKind::Put, "newer"});
  std::vector<OwnedEntry> newest_entries;
  for (int i = 0; i < 5; ++i)
    newest_entries.push_back(
        {full_key_of(200 + i), static_cast<SequenceNumber>(301 + i), EntryKind::Put, "newest"});
  const TablePointer old_run = store.add_run(old_entries);
  const TablePointer newer = store.add_run(newer_entries);
  const TablePointer newest = store.add_run(newest_entries);
  const auto before = store.newest_puts({old_run, newer, newest});
  REQUIRE(before.size() == 100);

  const Version& version = *store.state.version;
  const MergeCounters alone = store.merge(plan_cleaning(version, 1, {newer->number}));
  CHECK(alone.rewritten_items == 1);
  CHECK(alone.superseded_entries == 5);
  CHECK(alone.dropped_deletes == 0);
  CHECK(store.tables.front()->run == newer->run);
  CHECK(store.newest_puts({old_run, store.tables.front(), newest}) == before);

  const MergeCounters both =
      store.merge(plan_cleaning(version, 1, {old_run->number, newer->number}));
  CHECK(both.rewritten_items == 2);
  CHECK(both.superseded_entries == 10);  // five by a delete, five by the newest
  CHECK(both.dropped_deletes == 5);
  REQUIRE(store.tables.size() == 1);
  CHECK(store.tables.front()->run == store.tables.front()->number);
  std::vector<TablePointer> after = store.tables;
  after.push_back(newest);
  CHECK(store.newest_puts(after) == before);
}

TEST_CASE("cleaning frees the files of what it cleans, also of groups that all live") {
  MergeFixture store;
  store.options.group_bytes = 256;
  std::vector<OwnedEntry> old_entries;
  for (int i = 0; i < 400; ++i)
    old_entries.push_back(
        {full_key_of(i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, Bytes(20, 'o')});
  std::vector<OwnedEntry> newer_entries;
  for (int i = 0; i < 200; ++i)
    newer_entries.push_back(
        {full_key_of(i), static_cast<SequenceNumber>(i + 1001), EntryKind::Put, "n"});
  const TablePointer old_run = store.add_run(old_entries);
  const TablePointer newer = store.add_run(newer_entries);
  const auto before = store.newest_puts({old_run, newer});
  const MergePlan plan = plan_cleaning(*store.state.version, 1, {old_run->number});
  const MergeCounters counters = store.merge(plan);
  CHECK(counters.superseded_entries == 200);
  CHECK(counters.carried_items == 0);
  CHECK(counters.copied_items > 10);
  CHECK(store.newest_puts({newer, store.tables.front()}) == before);
  REQUIRE(store.commit(plan).ok());
  CHECK_FALSE(store.state.version->value_files.contains(old_run->value_files.begin()->file_number));
}

// A range delete that touches every item and covers one key.
class CoveredKey final : public DropRule {
 public:
  explicit CoveredKey(Bytes key) : key_(std::move(key)) {}
  Verdict judge_item(const UMetaRecord&) override { return Verdict::Inspect; }
  bool drops_entry(ByteView full_key, SequenceNumber) override { return full_key == key_; }

 private:
  Bytes key_;
};

TEST_CASE("relocation carries an item around a range delete, and writes it anew when it is cut") {
  MergeFixture store;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 20; ++i)
    entries.push_back(
        {full_key_of(2 * i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, "v"});
  const TablePointer table = store.add_run(entries);
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.groups = {{table}};
  plan.set_surroundings(*store.state.version);

  CoveredKey between(full_key_of(7));
  const MergeCounters carried = store.merge(plan, &between);
  CHECK(carried.carried_items == 1);
  CHECK(carried.rewritten_items == 0);
  CHECK(store.newest_puts(store.tables).size() == 20);

  CoveredKey within(full_key_of(8));
  const MergeCounters cut = store.merge(plan, &within);
  CHECK(cut.carried_items == 0);
  CHECK(cut.rewritten_items == 1);
  CHECK(store.newest_puts(store.tables).size() == 19);
}

TEST_CASE("emptying a file moves what lies in it, and no other file becomes emptier") {
  MergeFixture store;
  const auto entries = [](int from) {
    std::vector<OwnedEntry> made;
    for (int i = from; i < from + 20; ++i)
      made.push_back({full_key_of(2 * i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, "v"});
    return made;
  };
  MergePlan both;
  both.groups = {{store.add_run(entries(0))}, {store.add_run(entries(20))}};
  both.set_surroundings(*store.state.version);
  store.merge(both);
  REQUIRE(store.commit(both).ok());
  const TablePointer table = store.state.version->tables.front();
  REQUIRE(store.state.version->tables.size() == 1);
  REQUIRE(table->value_files.size() == 2);

  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.output_run = table->run;
  plan.evacuated = {table->value_files.begin()->file_number};
  plan.groups = {{table}};
  plan.set_surroundings(*store.state.version);
  CoveredKey between(full_key_of(7));
  const MergeCounters counters = store.merge(plan, &between);
  CHECK(counters.copied_items == 1);
  CHECK(counters.carried_items == 1);
  CHECK(counters.rewritten_items == 0);
  REQUIRE(store.commit(plan).ok());
  CHECK_FALSE(store.state.version->value_files.contains(table->value_files.begin()->file_number));
  const ValueFileUse other = *std::next(table->value_files.begin());
  CHECK(store.state.version->live_bytes.at(other.file_number) == other.bytes);
}

TEST_CASE("runs are merged by all bytes of their keys, zeros at their ends among them") {
  MergeFixture store;
  std::map<Bytes, Bytes> wanted;
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  // In the first 24 bytes of a full key, just behind them, and far behind.
  for (int run = 0; run < 3; ++run) {
    std::map<Bytes, OwnedEntry> entries;
    for (const std::size_t size : {0u, 3u, 19u, 20u, 21u, 60u}) {
      for (std::size_t zeros = static_cast<std::size_t>(run); zeros < 5; ++zeros) {
        for (const char* end : {"", "a", "b"}) {
          const Bytes key = make_full_key(1, Bytes(size, 'k') + Bytes(zeros, '\0') + end);
          const Bytes value = std::to_string(run) + "/" + std::to_string(zeros) + end;
          entries[key] = {key, static_cast<SequenceNumber>(100 * run + 1), EntryKind::Put, value};
        }
      }
    }
    std::vector<OwnedEntry> sorted;
    for (const auto& [key, entry] : entries) {
      sorted.push_back(entry);
      wanted[key] = entry.value;
    }
    plan.groups.push_back({store.add_run(std::move(sorted))});
  }
  plan.set_surroundings(*store.state.version);
  const MergeCounters counters = store.merge(std::move(plan));
  CHECK(store.newest_puts(store.tables) == wanted);
  CHECK(counters.superseded_entries == counters.seen_entries - wanted.size());
}

TEST_CASE("stretches of several runs come out merged, whatever a step may look at") {
  for (const std::uint64_t turns : {1u, 2u, 7u, 1'000u}) {
    CAPTURE(turns);
    MergeFixture store;
    std::map<Bytes, Bytes> wanted;
    MergePlan plan;
    plan.mode = MergeMode::Relocate;
    // Each has stretches of a length of its own, which meet those of the others at some keys.
    for (int run = 0; run < 4; ++run) {
      std::vector<OwnedEntry> entries;
      for (int i = 0; i < 600; ++i) {
        if (i / (3 + 5 * run) % 4 != run && i % 50 != 0) continue;
        const Bytes value = std::to_string(run) + "/" + std::to_string(i);
        const auto sequence = static_cast<SequenceNumber>(1'000 * run + i + 1);
        entries.push_back({full_key_of(i), sequence, EntryKind::Put, value});
        wanted[full_key_of(i)] = value;
      }
      plan.groups.push_back({store.add_run(entries)});
    }
    plan.set_surroundings(*store.state.version);
    MergeJob job(*store.cache, store.context(), plan, nullptr);
    for (bool done = false; !done;) {
      const std::uint64_t before = job.counters().seen_entries;
      const auto stepped = job.step(1u << 20, turns);
      REQUIRE(stepped.ok());
      done = *stepped;
      // All four entries of a key are looked at together.
      CHECK(job.counters().seen_entries - before <= 4 * turns);
    }
    store.output = job.take_output();
    store.tables.clear();
    for (const auto& file : store.output.value_files) store.cache->add_value_file(file);
    for (const auto& table : store.output.tables)
      store.tables.push_back(std::make_shared<const TableMetadata>(table));
    CHECK(store.newest_puts(store.tables) == wanted);
    CHECK(job.counters().rewritten_items == 4);
    CHECK(job.counters().superseded_entries == job.counters().seen_entries - wanted.size());
  }
}

}  // namespace
}  // namespace edgecase::engine
