// Random operations on a whole engine, beside a std::map that does the same: every answer must be
// equal. EDGECASE_TEST_SEED replays a run, EDGECASE_TEST_OPERATIONS makes it longer.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "engine/core/engine_fixture.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

using Entries = std::map<Bytes, Bytes>;
using Rows = std::vector<std::pair<Bytes, Bytes>>;

// The entries of each namespace; copied when they change while a snapshot has them too.
class Model {
 public:
  const Entries& at(NamespaceId id) const { return *namespaces_.at(id); }
  Entries& change(NamespaceId id) {
    std::shared_ptr<Entries>& entries = namespaces_[id];
    if (entries == nullptr || entries.use_count() > 1)
      entries =
          entries == nullptr ? std::make_shared<Entries>() : std::make_shared<Entries>(*entries);
    return *entries;
  }

 private:
  std::map<NamespaceId, std::shared_ptr<Entries>> namespaces_;
};

enum class Background : unsigned char { Manual, Threads };

constexpr std::size_t kRowsRead = 5;

struct HeldSnapshot {
  std::shared_ptr<const Snapshot> snapshot;
  Model model;
};

class ModelRun {
 public:
  ModelRun(std::uint64_t seed, Background background) : random_(seed) {
    if (background == Background::Threads) store_.threads = make_thread_executor();
    if (background == Background::Manual) store_.options.erasure_wait_ms = 0;
    store_.options.memtable_bytes = 48u << 10;
    store_.options.coalesce_threshold_bytes = 512;
    store_.options.group_bytes = 4096;
    REQUIRE(store_.open().ok());
    store_.make_namespace("plain");
    store_.make_namespace("scoped", {Placement::Values, GroupCodec::Plain, 2});
    store_.make_namespace("series", {Placement::Values, GroupCodec::Series, 2});
    store_.make_namespace("catalog", {Placement::Metadata, GroupCodec::Plain, 0});
    for (NamespaceId id = 1; id <= 4; ++id) model_.change(id);
  }

  void step() {
    const std::uint64_t choice = random_.below(10'000);
    if (choice < 2000) return static_cast<void>(write());
    if (choice < 9000) return get();
    if (choice < 9300) return scan();
    if (choice < 9350) return count();
    if (choice < 9800) return background();
    if (choice < 9850) return hold_snapshot();
    if (choice < 9900) return release_snapshot();
    if (choice < 9930) return flush();
    if (choice < 9935) return compact();
    if (choice < 9937) return rest();
    if (choice < 9939) return erase();
    if (choice < 9998) return get();
    reopen();
  }

  void check_everything() {
    for (NamespaceId id = 1; id <= 4; ++id) check_scan(id, {}, {}, model_, Direction::Forward);
  }

  Stats stats() const { return store_.engine->stats(); }
  const CompactionStats& compactions() const { return compactions_; }

 private:
  NamespaceId some_namespace() { return static_cast<NamespaceId>(1 + random_.below(4)); }

  // Two bytes of scope and, mostly, a big-endian ordinal; else anything.
  Bytes some_key() {
    if (random_.below(10) == 0) {
      Bytes key;
      for (std::uint64_t i = random_.below(6); i > 0; --i)
        key.push_back("\x00\x01\x7f\x80\xff"[random_.below(5)]);
      return key;
    }
    Bytes key{'s', static_cast<char>('0' + random_.below(4))};
    const std::uint64_t ordinal = 1000 * random_.below(100);
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
    return key;
  }

  Bytes some_value() {
    switch (random_.below(6)) {
      case 0: return {};
      case 1: return number(kFloatTag);
      case 2: return number(kIntegerTag);
      case 3: return Bytes(random_.below(2000), 'v');  // either side of the threshold
      default: return Bytes(random_.below(40), static_cast<char>(random_.below(256)));
    }
  }
  Bytes number(char tag) {
    Bytes value{tag};
    for (int i = 0; i < 8; ++i) value.push_back(static_cast<char>(random_.below(3)));
    return value;
  }

  using ErasedRanges = std::vector<std::pair<NamespaceId, KeyRange>>;

  // Returns what it erased, which iterators that are open do not show any more.
  ErasedRanges write() {
    WriteBatch batch;
    std::vector<std::pair<NamespaceId, std::pair<Bytes, std::optional<Bytes>>>> changes;
    std::map<std::size_t, KeyRange> ranges;  // of those changes that delete one
    ErasedRanges erased;
    for (std::uint64_t n = 1 + random_.below(random_.below(10) == 0 ? 50 : 4); n > 0; --n) {
      const NamespaceId id = some_namespace();
      Bytes key = some_key();
      if (random_.below(120) == 0) {
        const KeyRange range = some_range();
        if (random_.below(2) == 0) {
          batch.remove_range(id, range.lower, range.upper);
        } else {
          batch.erase_range(id, range.lower, range.upper);
          erased.emplace_back(id, range);
        }
        changes.push_back({id, {{}, std::nullopt}});
        ranges.emplace(changes.size() - 1, range);
      } else if (random_.below(5) == 0) {
        batch.remove(id, key);
        changes.push_back({id, {key, std::nullopt}});
      } else {
        Bytes value = some_value();
        batch.put(id, key, value);
        changes.push_back({id, {key, value}});
      }
    }
    const Durability durability = random_.below(3) == 0 ? Durability::Sync : Durability::Async;
    const Status written = store_.engine->write(batch, durability);
    INFO(written.to_string());
    REQUIRE(written.ok());
    for (HeldSnapshot& held : snapshots_) {
      for (const auto& [id, range] : erased) remove(held.model.change(id), range);
    }
    for (std::size_t i = 0; i < changes.size(); ++i) {
      auto& [id, change] = changes[i];
      if (const auto range = ranges.find(i); range != ranges.end()) {
        remove(model_.change(id), range->second);
      } else if (change.second) {
        model_.change(id)[change.first] = *change.second;
      } else {
        model_.change(id).erase(change.first);
      }
    }
    return erased;
  }

  static bool holds(const ErasedRanges& ranges, NamespaceId id, ByteView key) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& each) {
      const auto& [of, range] = each;
      return of == id && key >= range.lower && (range.upper.empty() || key < range.upper);
    });
  }

  static void remove(Entries& entries, const KeyRange& range) {
    const auto [first, last] = bounds_in(entries, range);
    entries.erase(first, last);
  }

  // Now, or one of the snapshots.
  const Model& choose_moment(ReadOptions& options) {
    if (snapshots_.empty() || random_.below(3) != 0) return model_;
    const HeldSnapshot& held = snapshots_[random_.below(snapshots_.size())];
    options.snapshot = held.snapshot;
    return held.model;
  }

  void get() {
    ReadOptions options;
    options.fill_cache = random_.below(2) == 0;
    const Model& model = choose_moment(options);
    const NamespaceId id = some_namespace();
    const Bytes key = some_key();
    const auto got = store_.engine->get(id, key, options);
    const auto want = model.at(id).find(key);
    INFO(got.status().to_string());
    REQUIRE(got.ok() == (want != model.at(id).end()));
    if (got.ok()) {
      REQUIRE(*got == want->second);
    } else {
      REQUIRE(got.status().code() == StatusCode::NotFound);
    }
  }

  KeyRange some_range() {
    KeyRange range;
    if (random_.below(3) != 0) range.lower = some_key();
    if (random_.below(3) != 0) range.upper = some_key();
    return range;
  }

  using Place = Entries::const_iterator;

  static std::pair<Place, Place> bounds_in(const Entries& entries, const KeyRange& range) {
    const Place last = range.upper.empty() ? entries.end() : entries.lower_bound(range.upper);
    if (!range.upper.empty() && range.upper <= range.lower) return {last, last};
    return {entries.lower_bound(range.lower), last};
  }

  static Rows rows_in(const Entries& entries, const KeyRange& range, Direction direction) {
    const auto [first, last] = bounds_in(entries, range);
    Rows rows(first, last);
    if (direction == Direction::Reverse) std::reverse(rows.begin(), rows.end());
    return rows;
  }

  // Up to one more than kRowsRead of those that a seek to `target` comes to.
  static Rows rows_from(const Entries& entries, const KeyRange& range, Direction direction,
                        const Bytes& target) {
    auto [first, last] = bounds_in(entries, range);
    Rows rows;
    if (direction == Direction::Forward) {
      if (target > range.lower) first = bounds_in(entries, {target, range.upper}).first;
      for (; first != last && rows.size() <= kRowsRead; ++first) rows.emplace_back(*first);
      return rows;
    }
    const Place behind = entries.upper_bound(target);
    if (first != last && behind != entries.end() &&
        (last == entries.end() || behind->first < last->first))
      last = behind->first < first->first ? first : behind;
    while (last != first && rows.size() <= kRowsRead) rows.emplace_back(*--last);
    return rows;
  }

  static Rows rest_of(Iterator& iterator) {
    Rows rows;
    for (; iterator.valid(); iterator.next()) rows.emplace_back(iterator.key(), iterator.value());
    INFO(iterator.status().to_string());
    REQUIRE(iterator.status().ok());
    return rows;
  }

  void check_scan(NamespaceId id, const KeyRange& range, ReadOptions options, const Model& model,
                  Direction direction) {
    options.direction = direction;
    auto iterator = store_.engine->scan(id, range, options);
    REQUIRE(iterator.ok());
    REQUIRE(rest_of(**iterator) == rows_in(model.at(id), range, direction));
  }

  void scan() {
    ReadOptions options;
    const Model& chosen = choose_moment(options);
    const bool is_now = &chosen == &model_;
    Model model = chosen;  // an iterator that is open sees no change but what is erased
    const NamespaceId id = some_namespace();
    const KeyRange range = some_range();
    options.direction = random_.below(2) == 0 ? Direction::Forward : Direction::Reverse;
    if (random_.below(16) == 0) return check_scan(id, range, options, model, options.direction);
    auto iterator = store_.engine->scan(id, range, options);
    REQUIRE(iterator.ok());
    for (int seeks = 0; seeks < 3; ++seeks) {
      const Bytes target = some_key();
      (*iterator)->seek(target);
      if (random_.below(2) == 0) {
        const ErasedRanges erased = write();
        for (const auto& [of, gone] : erased) remove(model.change(of), gone);
        // The entry on which it stands goes with the next step.
        if ((*iterator)->valid() && holds(erased, id, (*iterator)->key())) (*iterator)->next();
      }
      const Rows want = rows_from(model.at(id), range, options.direction, target);
      for (std::size_t i = 0; i < std::min(want.size(), kRowsRead); ++i) {
        REQUIRE((*iterator)->valid());
        REQUIRE((*iterator)->key() == want[i].first);
        REQUIRE((*iterator)->value() == want[i].second);
        (*iterator)->next();
      }
      if (want.size() <= kRowsRead) REQUIRE_FALSE((*iterator)->valid());
      REQUIRE((*iterator)->status().ok());
      if (is_now) break;  // the model may have moved on
    }
  }

  void count() {
    ReadOptions options;
    const Model& model = choose_moment(options);
    const NamespaceId id = some_namespace();
    const KeyRange range = some_range();
    const auto counted = store_.engine->range_stats(id, range, options);
    REQUIRE(counted.ok());
    const auto [first, last] = bounds_in(model.at(id), range);
    REQUIRE(counted->entries == static_cast<std::uint64_t>(std::distance(first, last)));
    // The same by prefix.
    const std::size_t prefix_bytes = 1 + counted->entries % 4;
    auto at = first;
    const auto end = last;
    const Status summarized =
        store_.engine->summarize(id, range, prefix_bytes, options, [&](const PrefixStats& stats) {
          REQUIRE(at != end);
          REQUIRE(at->first == stats.first);
          const Bytes prefix(stats.first.substr(0, prefix_bytes));
          std::uint64_t entries = 0;
          ByteView newest;
          for (; at != end && ByteView(at->first).starts_with(prefix) &&
                 ByteView(at->first).substr(0, prefix_bytes) == ByteView(prefix);
               ++at, ++entries)
            newest = at->first;
          REQUIRE(entries == stats.entries);
          REQUIRE(newest == stats.last);
          return ok();
        });
    REQUIRE_MESSAGE(summarized.ok(), summarized.to_string());
    REQUIRE(at == end);
  }

  void background() {
    for (std::uint64_t tasks = random_.below(4); tasks > 0; --tasks) store_.executor.run_one();
  }

  void hold_snapshot() {
    if (snapshots_.size() < 4) snapshots_.push_back({store_.engine->snapshot(), model_});
  }
  void release_snapshot() {
    if (!snapshots_.empty()) snapshots_.erase(snapshots_.begin());
  }

  void flush() { REQUIRE(store_.engine->flush().ok()); }

  void compact() {
    KeyRange range;
    if (random_.below(2) == 0) range = some_range();
    const Status compacted = store_.engine->compact({some_namespace(), some_namespace()}, range);
    INFO(compacted.to_string());
    REQUIRE(compacted.ok());
  }

  // A snapshot is waited for in vain where all is done by one thread.
  void erase() {
    if (store_.threads != nullptr) snapshots_.clear();
    const auto erased = store_.engine->erase();
    INFO(erased.status().to_string());
    const bool held = !snapshots_.empty() && erased.status().code() == StatusCode::Busy;
    REQUIRE((erased.ok() || held));
    if (erased.ok()) CHECK(stats().erasure.pending_ranges == 0);
  }

  // Nobody writes for a while: what overlaps is merged.
  void rest() {
    for (std::uint64_t seconds = random_.below(4); seconds > 0; --seconds) {
      store_.clock.advance(1'100'000'000);
      store_.executor.advance(1'100'000'000);
      store_.executor.run_all();
    }
  }

  void reopen() {
    snapshots_.clear();
    if (random_.below(2) == 0) store_.executor.run_all();
    const CompactionStats done = stats().compaction;
    compactions_.merges += done.merges;
    compactions_.relocations += done.relocations;
    compactions_.dropped_items += done.dropped_items;
    compactions_.dropped_deletes += done.dropped_deletes;
    compactions_.superseded_entries += done.superseded_entries;
    compactions_.removed_files += done.removed_files;
    store_.close();
    if (random_.below(2) == 0) store_.disk.kill_process(random_.next());
    if (store_.threads != nullptr) store_.threads = make_thread_executor();
    store_.reopen();
    check_everything();
  }

  SeededRandom random_;
  EngineFixture store_;
  Model model_;
  std::vector<HeldSnapshot> snapshots_;
  CompactionStats compactions_;  // of the lives before
};

}  // namespace

// The whole of it by default; where each costs ten times as much, enough that something is merged.
std::uint64_t operations_of(std::uint64_t whole, std::uint64_t least) {
  const std::uint64_t share = test_share_percent();
  return environment_number("EDGECASE_TEST_OPERATIONS",
                            share == 100 ? whole : std::max(whole * share / 1000, least));
}

TEST_CASE("engine answers like a std::map over random operations") {
  constexpr std::uint64_t kRuns = 8;
  const std::uint64_t seed = environment_number("EDGECASE_TEST_SEED", 20261120);
  const std::uint64_t operations = operations_of(1'000'000, 40'000);
  MESSAGE("EDGECASE_TEST_SEED=" << seed << " EDGECASE_TEST_OPERATIONS=" << operations);
  CompactionStats done;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    CAPTURE(run);
    ModelRun model(seed + run, Background::Manual);
    for (std::uint64_t i = 0; i < operations / kRuns; ++i) {
      CAPTURE(i);
      model.step();
    }
    model.check_everything();
    CHECK(model.stats().last_sequence > 0);
    done.merges += model.compactions().merges;
    done.relocations += model.compactions().relocations;
    done.dropped_deletes += model.compactions().dropped_deletes;
    done.superseded_entries += model.compactions().superseded_entries;
  }
  // A short run may have no life that ended.
  CHECK(done.merges > 0);
  CHECK(done.relocations > 0);
  CHECK(done.dropped_deletes > 0);
  CHECK(done.superseded_entries > 0);
}

TEST_CASE("engine answers like a std::map while threads flush and merge") {
  const std::uint64_t seed = environment_number("EDGECASE_TEST_SEED", 20261121);
  const std::uint64_t operations = operations_of(100'000, 5'000);
  MESSAGE("EDGECASE_TEST_SEED=" << seed << " EDGECASE_TEST_OPERATIONS=" << operations);
  ModelRun model(seed, Background::Threads);
  for (std::uint64_t i = 0; i < operations; ++i) {
    CAPTURE(i);
    model.step();
  }
  model.check_everything();
}

}  // namespace edgecase::test
