#include "core/merge_cursor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "edgecase/machine.h"
#include "support/vector_cursor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::VectorCursor;

OwnedEntry put(const char* key, SequenceNumber sequence) {
  return {key, sequence, EntryKind::Put, std::to_string(sequence)};
}

// Sources of entries in memory.
class TestSources final : public MergeSources {
 public:
  struct Options {
    bool with_bounds = true;
    std::size_t run_max = 0;
    bool in_memory = false;
    std::size_t fail_index = SIZE_MAX;
  };

  void add(std::vector<OwnedEntry> entries, const Options& options) {
    auto& added = *added_.emplace_back(std::make_unique<Added>());
    MergeSource source;
    source.sequence_min = UINT64_MAX;
    for (const OwnedEntry& entry : entries) {
      source.sequence_min = std::min(source.sequence_min, entry.sequence);
      source.sequence_max = std::max(source.sequence_max, entry.sequence);
    }
    added.cursor = std::make_unique<VectorCursor>(entries);
    added.cursor->offer_runs(options.run_max);
    if (options.in_memory) added.cursor->say_in_memory();
    if (options.fail_index != SIZE_MAX)
      added.cursor->fail_at(options.fail_index, io_error("the drive is gone"));
    if (options.with_bounds && !entries.empty()) {
      added.smallest = entries.front().full_key;
      added.largest = entries.back().full_key;
      source.smallest = added.smallest;
      source.largest = added.largest;
    }
    sources_.push_back(source);
  }
  std::size_t opened() const { return opened_; }

  std::span<const MergeSource> all() const override { return sources_; }
  EntryCursor& open(std::size_t index) override {
    ++opened_;
    return *added_[index]->cursor;
  }

 private:
  struct Added {
    Bytes smallest;
    Bytes largest;
    std::unique_ptr<VectorCursor> cursor;
  };

  std::vector<MergeSource> sources_;
  std::vector<std::unique_ptr<Added>> added_;
  std::size_t opened_ = 0;
};

struct Merge {
  TestSources* sources;
  MergeCursor cursor;

  explicit Merge(std::unique_ptr<TestSources> of)
      : sources(of.get()), cursor(std::move(of), Direction::Forward) {}
};

// To the end, `until` where that is not empty; the most entries that came at once.
std::string text_of(MergeCursor& merge, ByteView until = {}, std::size_t* longest = nullptr) {
  std::string text;
  while (merge.valid() && (until.empty() || merge.full_key() < until)) {
    const Bytes next(merge.full_key());
    const std::span<const EntryView> entries = merge.take(until);
    if (!entries.empty()) CHECK(entries.front().full_key == next);
    if (longest != nullptr) *longest = std::max(*longest, entries.size());
    for (const EntryView& entry : entries)
      text.append(entry.full_key).append("=").append(entry.value).append(" ");
  }
  return text;
}

}  // namespace

TEST_CASE("merge cursor returns each key once, its newest entry") {
  auto sources = std::make_unique<TestSources>();
  sources->add({put("a", 1), put("c", 2), put("d", 3)}, {});
  sources->add({put("a", 7), put("b", 8)}, {});
  sources->add({put("a", 4), put("d", 9)}, {.with_bounds = false});  // sequences mix: both loaded
  sources->add({}, {.with_bounds = false});
  Merge merge(std::move(sources));
  CHECK(text_of(merge.cursor) == "a=7 b=8 c=2 d=9 ");
  CHECK(merge.cursor.status().ok());
  merge.cursor.seek("b");
  CHECK(text_of(merge.cursor) == "b=8 c=2 d=9 ");
  merge.cursor.seek("x");
  CHECK_FALSE(merge.cursor.valid());
  merge.cursor.seek("");
  CHECK(text_of(merge.cursor, "c") == "a=7 b=8 ");
  merge.cursor.skip();
  CHECK(text_of(merge.cursor) == "d=9 ");
}

TEST_CASE("merge cursor opens a source when it comes to it") {
  auto sources = std::make_unique<TestSources>();
  sources->add({put("a", 1), put("b", 2)}, {});
  sources->add({put("m", 3)}, {});
  sources->add({put("x", 4)}, {});
  Merge merge(std::move(sources));
  CHECK(merge.sources->opened() == 0);
  REQUIRE(merge.cursor.valid());
  CHECK(merge.sources->opened() == 1);
  CHECK(text_of(merge.cursor, "b") == "a=1 ");
  CHECK(merge.sources->opened() == 1);
  merge.cursor.skip();
  REQUIRE(merge.cursor.valid());
  CHECK(merge.sources->opened() == 2);
  CHECK(merge.cursor.full_key() == "m");
  merge.cursor.seek("a");
  CHECK(merge.sources->opened() == 2);
  CHECK(text_of(merge.cursor) == "a=1 b=2 m=3 x=4 ");
  CHECK(merge.sources->opened() == 3);
}

TEST_CASE("merge cursor stops at a failure and says so") {
  for (const bool at_choice : {false, true}) {
    auto sources = std::make_unique<TestSources>();
    sources->add({put("a", 1), put("b", 3)},
                 {.with_bounds = false, .fail_index = at_choice ? 0u : 1u});
    if (at_choice) sources->add({put("a", 2)}, {});
    Merge merge(std::move(sources));
    CHECK(text_of(merge.cursor) == (at_choice ? "" : "a=1 "));
    CHECK_FALSE(merge.cursor.valid());
    CHECK(merge.cursor.take().empty());
    CHECK(merge.cursor.status().code() == StatusCode::IoError);
  }
}

TEST_CASE("an entry that a newer one hides is not loaded") {
  for (const bool is_first : {true, false}) {
    auto sources = std::make_unique<TestSources>();
    if (!is_first) sources->add({put("k", 5), put("m", 6)}, {});
    sources->add({put("k", 1), put("l", 2)}, {.fail_index = 0});
    if (is_first) sources->add({put("k", 5), put("m", 6)}, {});
    Merge merge(std::move(sources));
    CHECK(text_of(merge.cursor) == "k=5 l=2 m=6 ");
    CHECK(merge.cursor.status().ok());
  }
}

TEST_CASE("what was gathered comes before what must be loaded") {
  auto sources = std::make_unique<TestSources>();
  sources->add({put("a", 1), put("c", 2), put("e", 3)}, {.run_max = 9});
  sources->add({put("b", 4), put("d", 5)}, {.run_max = 1, .fail_index = 1});
  Merge merge(std::move(sources));
  CHECK(text_of(merge.cursor) == "a=1 b=4 c=2 ");
  CHECK(merge.cursor.status().code() == StatusCode::IoError);
}

TEST_CASE("many entries of one source come as they lie there, until the next source begins") {
  auto sources = std::make_unique<TestSources>();
  sources->add({put("a", 1), put("b", 2), put("c", 3), put("d", 4), put("f", 5), put("g", 6)},
               {.run_max = 9});
  sources->add({put("f", 9), put("fa", 8)}, {.run_max = 9});  // not open yet
  Merge merge(std::move(sources));
  CHECK(merge.cursor.take().size() == 4);
  CHECK(text_of(merge.cursor) == "f=9 fa=8 g=6 ");
}

TEST_CASE("merge cursor answers like a map over random sources") {
  constexpr std::uint64_t kSeed = 11;
  CAPTURE(kSeed);
  std::size_t longest = 0;
  SeededRandom random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::map<Bytes, OwnedEntry> newest;
    auto sources = std::make_unique<TestSources>();
    SequenceNumber sequence = 0;
    const std::uint64_t letters = 2 + random.below(12);
    const bool is_mixed = random.below(2) == 0;
    for (std::uint64_t n = random.below(8); n > 0; --n) {
      std::map<Bytes, OwnedEntry> entries;
      for (std::uint64_t i = random.below(20); i > 0; --i) {
        const Bytes key =
            random.below(3) == 0
                ? Bytes(9, 'p') + static_cast<char>('a' + random.below(letters))
                : Bytes(1 + random.below(2), static_cast<char>('a' + random.below(letters)));
        entries[key] = put(key.c_str(), is_mixed ? 8 * (1 + random.below(1000)) + n : ++sequence);
      }
      std::vector<OwnedEntry> sorted;
      for (const auto& [key, entry] : entries) {
        sorted.push_back(entry);
        if (!newest.contains(key) || newest[key].sequence < entry.sequence) newest[key] = entry;
      }
      TestSources::Options options;
      options.with_bounds = random.below(2) == 0;
      options.in_memory = random.below(3) == 0;
      options.run_max = options.in_memory ? 0 : random.below(2) * (1 + random.below(9));
      sources->add(std::move(sorted), options);
    }
    Merge merge(std::move(sources));
    for (int part = 0; part < 6; ++part) {
      const Bytes from(1, static_cast<char>('a' + random.below(letters)));
      const Bytes until(1, static_cast<char>('a' + random.below(letters)));
      const bool is_sought = part > 0;
      const bool is_bounded = random.below(2) == 0;
      const bool skips = random.below(3) == 0;
      if (is_sought) merge.cursor.seek(from);
      std::vector<std::string> want;
      for (const auto& [key, entry] : newest) {
        if ((!is_sought || key >= from) && (!is_bounded || key < until))
          want.push_back(key + "=" + entry.value + " ");
      }
      if (skips && !want.empty()) {
        merge.cursor.skip();
        want.erase(want.begin());
      }
      std::string text;
      for (const std::string& each : want) text += each;
      REQUIRE(text_of(merge.cursor, is_bounded ? ByteView(until) : ByteView(), &longest) == text);
    }
  }
  CHECK(longest > 8);
}

}  // namespace edgecase::engine
