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

MergeSource source_of(std::vector<OwnedEntry> entries, bool with_bounds, int* opened = nullptr) {
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
  source.open = [entries = std::move(entries), opened] {
    if (opened != nullptr) ++*opened;
    return std::make_unique<VectorCursor>(entries);
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

TEST_CASE("merge cursor answers like a map over random sources") {
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
      sources.push_back(source_of(std::move(sorted), random.below(2) == 0));
    }
    MergeCursor merge(std::move(sources), Direction::Forward);
    const Bytes target(1, static_cast<char>('a' + random.below(12)));
    for (const bool sought : {false, true}) {
      std::string want;
      for (const auto& [key, entry] : newest) {
        if (!sought || key >= target) want += key + "=" + entry.value + " ";
      }
      if (sought) merge.seek(target);
      CHECK(text_of(merge) == want);
    }
  }
}

}  // namespace edgecase::engine
