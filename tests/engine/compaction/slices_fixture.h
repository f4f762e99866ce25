// A tree of groups that overlap, and merges of parts of it.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compaction/merge_job.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {

inline std::uint64_t slices_seed() {
  const char* given = std::getenv("EDGECASE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261122;
  MESSAGE("EDGECASE_TEST_SEED=" << seed);
  return seed;
}

inline Bytes slice_key(std::uint64_t i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

struct SlicesFixture : test::TableTestStore {
  explicit SlicesFixture(std::uint64_t seed) : random(seed) {
    options.group_bytes = 1024;
    options.compress = false;
  }

  // A run of level 1 with random entries, in value files of `piece_bytes`.
  void add_run(std::uint64_t keys, std::size_t entry_count, std::uint64_t piece_bytes) {
    std::map<Bytes, test::OwnedEntry> chosen;
    while (chosen.size() < entry_count) {
      const Bytes key = slice_key(random.below(keys));
      const bool removes = random.below(8) == 0;
      const Bytes value =
          removes ? Bytes() : std::to_string(sequence) + Bytes(random.below(150), 'v');
      chosen.insert_or_assign(
          key,
          test::OwnedEntry{key, sequence++, removes ? EntryKind::Delete : EntryKind::Put, value});
    }
    std::vector<test::OwnedEntry> entries;
    for (auto& [key, entry] : chosen) entries.push_back(std::move(entry));
    add_run_of(std::move(entries), piece_bytes);
  }

  // The same of these keys, ascending.
  void add_run_of(const std::vector<std::uint64_t>& keys) {
    std::vector<test::OwnedEntry> entries;
    for (const std::uint64_t key : keys)
      entries.push_back({slice_key(key), sequence++, EntryKind::Put, std::to_string(sequence)});
    add_run_of(std::move(entries), UINT64_MAX);
  }

  void add_run_of(std::vector<test::OwnedEntry> entries, std::uint64_t piece_bytes) {
    test::VectorCursor input(std::move(entries));
    TableWriterContext writer = context();
    writer.value_file_bytes = piece_bytes;
    writer.first_value_file_bytes = piece_bytes / 2;
    auto written = write_tables(input, writer);
    REQUIRE(written.ok());
    REQUIRE(written->tables.size() == 1);
    written->tables.front().level = 1;
    written->tables.front().namespace_id = 1;
    install(*written, {});
  }

  // Carries the plan out, in steps.
  void merge(const MergePlan& plan, std::vector<FileNumber>* made_runs = nullptr) {
    MergeJob job(*cache, context(), plan, nullptr);
    for (bool done = false; !done;) {
      const auto stepped = job.step(1u << 14, 100);
      REQUIRE(stepped.ok());
      done = *stepped;
    }
    left_rest = job.leaves_rest();
    const TableOutput made = job.take_output();
    install(made, job.replaced_tables());
    if (made_runs == nullptr) return;
    for (const TableMetadata& table : made.tables) made_runs->push_back(table.run);
  }

  void install(const TableOutput& made, const std::vector<FileNumber>& replaced) {
    for (const ValueFileMetadata& file : made.value_files) cache->add_value_file(file);
    VersionEdit edit;
    edit.added_value_files = made.value_files;
    edit.added_tables = made.tables;
    edit.removed_tables = replaced;
    edit.file_number_limit = next_number;
    remove_unused_value_files(*state.version, edit);
    const Status applied = state.apply(edit);
    INFO(applied.to_string());
    REQUIRE(applied.ok());
  }

  std::map<Bytes, Bytes> contents() { return newest_puts(state.version->tables); }

  std::uint64_t value_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [number, file] : state.version->value_files) bytes += file.size_bytes;
    return bytes;
  }

  SeededRandom random;
  SequenceNumber sequence = 1;
  bool left_rest = false;  // the last merge did
  VersionState state;
};

}  // namespace edgecase::engine
