// One merge by hand: what comes out answers as what went in.
#include "compaction/merge_job.h"

#include <doctest/doctest.h>

#include <map>

#include "compaction/picker.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes key_of(int i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

struct MergeFixture : TableTestStore {
  MergeFixture() { options.group_bytes = 1u << 14; }

  // A run of level 1 that holds these entries.
  TablePointer add_run(std::vector<OwnedEntry> entries) {
    REQUIRE(write(std::move(entries)).ok());
    REQUIRE(output.tables.size() == 1);
    TableMetadata table = output.tables.front();
    table.level = 1;
    table.run = table.number;
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

  MergeCounters merge(MergePlan plan, const DropRule* rule = nullptr) {
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

  // What a reader sees of these tables: the newest put of each key.
  std::map<Bytes, Bytes> contents(const std::vector<TablePointer>& of) {
    std::map<Bytes, std::pair<SequenceNumber, std::optional<Bytes>>> newest;
    for (const TablePointer& table : of) {
      const auto cursor = cache->cursor(table, "", "", Direction::Forward, false);
      for (; cursor->valid(); cursor->next()) {
        REQUIRE(cursor->load().ok());
        auto& [sequence, value] = newest[Bytes(cursor->full_key())];
        if (cursor->sequence() < sequence) continue;
        sequence = cursor->sequence();
        value.reset();
        if (cursor->kind() == EntryKind::Put) value = Bytes(cursor->value());
      }
      REQUIRE(cursor->status().ok());
    }
    std::map<Bytes, Bytes> seen;
    for (const auto& [key, found] : newest)
      if (found.second) seen.emplace(key, *found.second);
    return seen;
  }

  VersionState state;
};

TEST_CASE("cleaning two runs at once keeps a delete for what the other still holds") {
  MergeFixture store;
  std::vector<OwnedEntry> old_entries;
  for (int i = 0; i < 100; ++i)
    old_entries.push_back({key_of(i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, "old"});
  // Deletes a few of the old ones, too few to write their group anew; half of it is dead itself.
  std::vector<OwnedEntry> newer_entries;
  for (int i = 0; i < 5; ++i)
    newer_entries.push_back(
        {key_of(i), static_cast<SequenceNumber>(201 + i), EntryKind::Delete, ""});
  for (int i = 0; i < 5; ++i)
    newer_entries.push_back(
        {key_of(200 + i), static_cast<SequenceNumber>(211 + i), EntryKind::Put, "newer"});
  std::vector<OwnedEntry> newest_entries;
  for (int i = 0; i < 5; ++i)
    newest_entries.push_back(
        {key_of(200 + i), static_cast<SequenceNumber>(301 + i), EntryKind::Put, "newest"});
  const TablePointer old_run = store.add_run(old_entries);
  const TablePointer newer = store.add_run(newer_entries);
  const TablePointer newest = store.add_run(newest_entries);
  const auto before = store.contents({old_run, newer, newest});
  REQUIRE(before.size() == 100);

  for (const auto& both : {std::vector{old_run, newer}, std::vector{newer, old_run}}) {
    const MergeCounters counters = store.merge(plan_cleaning(*store.state.version, both));
    CHECK(counters.carried_items == 1);
    CHECK(counters.rewritten_items == 1);
    CHECK(counters.superseded_entries == 5);
    std::vector<TablePointer> after = store.tables;
    after.push_back(newest);
    CHECK(store.contents(after) == before);
  }
}

// A range delete that touches every item and covers one key.
class CoveredKey final : public DropRule {
 public:
  explicit CoveredKey(Bytes key) : key_(std::move(key)) {}
  Verdict judge_item(const UMetaRecord&) const override { return Verdict::Inspect; }
  bool drops_entry(ByteView full_key, SequenceNumber) const override { return full_key == key_; }

 private:
  Bytes key_;
};

TEST_CASE("relocation carries an item around a range delete, and writes it anew when it is cut") {
  MergeFixture store;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 20; ++i)
    entries.push_back({key_of(2 * i), static_cast<SequenceNumber>(i + 1), EntryKind::Put, "v"});
  const TablePointer table = store.add_run(entries);
  MergePlan plan;
  plan.mode = MergeMode::Relocate;
  plan.groups = {{table}};
  plan.set_surroundings(*store.state.version);

  const CoveredKey between(key_of(7));
  const MergeCounters carried = store.merge(plan, &between);
  CHECK(carried.carried_items == 1);
  CHECK(carried.rewritten_items == 0);
  CHECK(store.contents(store.tables).size() == 20);

  const CoveredKey within(key_of(8));
  const MergeCounters cut = store.merge(plan, &within);
  CHECK(cut.carried_items == 0);
  CHECK(cut.rewritten_items == 1);
  CHECK(store.contents(store.tables).size() == 19);
}

}  // namespace
}  // namespace edgecase::engine
