#include "core/merge_cursor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "edgecase/random.h"
#include "support/vector_cursor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::VectorCursor;

OwnedEntry put(const char* key, SequenceNumber sequence) {
  return {key, sequence, EntryKind::Put, std::to_string(sequence)};
}

MergeSource source_of(std::vector<OwnedEntry> entries, bool with_bounds, int* opened = nullptr,
                      std::size_t run_max = 0) {
  MergeSource source;
  source.sequence_min = UINT64_MAX;
  for (const OwnedEntry& entry : entries) {
    source.sequence_min = std::min(source.sequence_min, entry.sequence);
    source.sequence_max = std::max(source.sequence_max, entry.sequence);
  }
  if (with_bounds && !entries.empty()) {
    source.smallest = entries.front().full_key;
    source.largest = entries.back().full_key;
  }
  source.open = [entries = std::move(entries), opened, run_max] {
    if (opened != nullptr) ++*opened;
    auto cursor = std::make_unique<VectorCursor>(entries);
    cursor->offer_runs(run_max);
    return cursor;
  };
  return source;
}

std::string text_of(MergeCursor& merge) {
  std::string text;
  for (; merge.valid(); merge.next()) {
    REQUIRE(merge.load().ok());
    text.append(merge.full_key()).append("=").append(merge.value()).append(" ");
  }
  return text;
}

// The same by runs, where there are any.
std::string text_by_runs(MergeCursor& merge, std::size_t& longest) {
  std::string text;
  while (merge.valid()) {
    REQUIRE(merge.load().ok());
    const std::span<const EntryView> run = merge.loaded_run({});
    longest = std::max(longest, run.size());
    if (run.empty()) text.append(merge.full_key()).append("=").append(merge.value()).append(" ");
    for (const EntryView& entry : run)
      text.append(entry.full_key).append("=").append(entry.value).append(" ");
    merge.skip(std::max<std::size_t>(1, run.size()));
  }
  return text;
}

}  // namespace

TEST_CASE("merge cursor returns each key once, its newest entry") {
  std::vector<MergeSource> sources;
  sources.push_back(source_of({put("a", 1), put("c", 2), put("d", 3)}, true));
  sources.push_back(source_of({put("a", 7), put("b", 8)}, true));
  sources.push_back(source_of({put("a", 4), put("d", 9)}, false));  // sequences mix: both loaded
  sources.push_back(source_of({}, false));
  MergeCursor merge(std::move(sources), Direction::Forward);
  CHECK(text_of(merge) == "a=7 b=8 c=2 d=9 ");
  CHECK(merge.status().ok());
  merge.seek("b");
  CHECK(text_of(merge) == "b=8 c=2 d=9 ");
  merge.seek("x");
  CHECK_FALSE(merge.valid());
  merge.seek("");
  CHECK(text_of(merge) == "a=7 b=8 c=2 d=9 ");
}

TEST_CASE("merge cursor opens a source when it comes to it") {
  int opened = 0;
  std::vector<MergeSource> sources;
  sources.push_back(source_of({put("a", 1), put("b", 2)}, true, &opened));
  sources.push_back(source_of({put("m", 3)}, true, &opened));
  sources.push_back(source_of({put("x", 4)}, true, &opened));
  MergeCursor merge(std::move(sources), Direction::Forward);
  CHECK(opened == 1);
  merge.next();
  CHECK(opened == 1);
  merge.next();
  CHECK(opened == 2);
  CHECK(merge.full_key() == "m");
  merge.seek("a");
  CHECK(opened == 2);
  CHECK(text_of(merge) == "a=1 b=2 m=3 x=4 ");
  CHECK(opened == 3);
}

TEST_CASE("merge cursor stops at a failure and says so") {
  for (const bool at_choice : {false, true}) {
    auto failing = [at_choice] {
      auto cursor =
          std::make_unique<VectorCursor>(std::vector<OwnedEntry>{put("a", 1), put("b", 3)});
      cursor->fail_at(at_choice ? 0 : 1, io_error("the drive is gone"));
      return cursor;
    };
    std::vector<MergeSource> sources;
    MergeSource source;
    source.sequence_min = 1;
    source.sequence_max = 3;
    source.open = failing;
    sources.push_back(std::move(source));
    if (at_choice) sources.push_back(source_of({put("a", 2)}, true));
    MergeCursor merge(std::move(sources), Direction::Forward);
    while (merge.valid() && merge.load().ok()) merge.next();
    CHECK_FALSE(merge.valid());
    CHECK(merge.status().code() == StatusCode::IoError);
  }
}

TEST_CASE("a run of a merge ends where the next source begins") {
  std::vector<MergeSource> sources;
  sources.push_back(
      source_of({put("a", 1), put("b", 2), put("d", 3), put("f", 4)}, true, nullptr, 9));
  sources.push_back(source_of({put("d", 9), put("e", 8)}, true, nullptr, 9));  // not open yet
  MergeCursor merge(std::move(sources), Direction::Forward);
  REQUIRE(merge.load().ok());
  CHECK(merge.loaded_run({}).size() == 2);
  CHECK(merge.loaded_run("b").size() == 1);
  merge.skip(2);
  REQUIRE(merge.load().ok());
  CHECK(merge.full_key() == "d");
  CHECK(merge.value() == "9");
  CHECK(merge.loaded_run({}).empty());  // another source stands on the same key
  merge.skip(1);
  CHECK(text_of(merge) == "e=8 f=4 ");
}

TEST_CASE("merge cursor answers like a map over random sources") {
  std::size_t longest = 0;
  SeededRandom random(11);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::map<Bytes, OwnedEntry> newest;
    std::vector<MergeSource> sources;
    SequenceNumber sequence = 0;
    for (std::uint64_t n = random.below(8); n > 0; --n) {
      std::map<Bytes, OwnedEntry> entries;
      for (std::uint64_t i = random.below(10); i > 0; --i) {
        const Bytes key(1 + random.below(2), static_cast<char>('a' + random.below(12)));
        entries[key] = put(key.c_str(), ++sequence);
      }
      std::vector<OwnedEntry> sorted;
      for (const auto& [key, entry] : entries) {
        sorted.push_back(entry);
        if (!newest.contains(key) || newest[key].sequence < entry.sequence) newest[key] = entry;
      }
      sources.push_back(
          source_of(std::move(sorted), random.below(2) == 0, nullptr, random.below(2) * 3));
    }
    MergeCursor merge(std::move(sources), Direction::Forward);
    const Bytes target(1, static_cast<char>('a' + random.below(12)));
    for (const bool sought : {false, true}) {
      std::string want;
      for (const auto& [key, entry] : newest) {
        if (!sought || key >= target) want += key + "=" + entry.value + " ";
      }
      if (sought) merge.seek(target);
      CHECK((random.below(2) == 0 ? text_of(merge) : text_by_runs(merge, longest)) == want);
    }
  }
  CHECK(longest == 3);
}

}  // namespace edgecase::engine
