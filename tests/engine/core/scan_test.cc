// Scans: of mapped tables, where single values are read to where the cursor wants them; and
// Iterator::take_numbers(), which gives what reading one by one gives.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/coding.h"
#include "engine/core/engine_fixture.h"
#include "engine/core/expiring_store.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

// Values of all sizes, two versions of some, deletes, in two runs and level 0.
struct MappedStore : EngineFixture {
  MappedStore() {
    options.map_tables = true;
    REQUIRE(open().ok());
    id = make_namespace("default");
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 60; i += round + 1) {
        const Bytes key = "key" + std::to_string(100 + i);
        const auto size = static_cast<std::size_t>((i * 7 + round) % 5) * 4'000 + 10;
        const Bytes value(size, static_cast<char>('a' + (i + round) % 26));
        WriteBatch batch;
        if (i % 9 == round) {
          batch.remove(id, key);
          model.erase(key);
        } else {
          batch.put(id, key, value);
          model.insert_or_assign(key, value);
        }
        REQUIRE(engine->write(batch, Durability::Async).ok());
      }
      REQUIRE(engine->flush().ok());
      if (round == 0) REQUIRE(engine->compact({id}, {}).ok());
    }
  }

  Status scan(Direction direction, std::map<Bytes, Bytes>& rows) {
    ReadOptions read;
    read.direction = direction;
    auto iterator = engine->scan(id, {}, read);
    if (!iterator.ok()) return iterator.status();
    for (auto& at = **iterator; at.valid(); at.next()) {
      const Bytes value(at.value());
      if (at.valid()) rows.emplace(at.key(), value);
    }
    return (*iterator)->status();
  }

  NamespaceId id = 0;
  std::map<Bytes, Bytes> model;
};

}  // namespace

TEST_CASE("mapped tables: scans in both directions show every value, whatever its size") {
  MappedStore store;
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    std::map<Bytes, Bytes> rows;
    REQUIRE(store.scan(direction, rows).ok());
    CHECK(rows == store.model);
  }
}

TEST_CASE("mapped tables: a scan never shows a value that is damaged") {
  MappedStore store;
  const auto files = store.disk.list_directory("/v/store");
  REQUIRE(files.ok());
  for (const DirectoryEntry& file : *files) {
    if (!file.name.ends_with(".val")) continue;
    const std::string path = "/v/store/" + file.name;
    const auto size = store.disk.file_size(path);
    REQUIRE(size.ok());
    store.disk.flip_bit(path, *size / 2, 3);
  }
  store.reopen();
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    std::map<Bytes, Bytes> rows;
    CHECK(store.scan(direction, rows).code() == StatusCode::Corruption);
    CHECK(std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      const auto known = store.model.find(row.first);
      return known != store.model.end() && known->second == row.second;
    }));
  }
}

TEST_CASE("mapped tables: values are read where they lie, and leave the cache to metadata") {
  struct Case {
    bool mapped = false;
    bool encrypted = false;
    bool keeps = false;
  };
  for (const Case& each :
       {Case{true, false, false}, Case{true, true, true}, Case{false, false, true}}) {
    CAPTURE(each.mapped);
    CAPTURE(each.encrypted);
    EngineFixture store;
    store.options.map_tables = each.mapped;
    store.options.compress = false;
    if (each.encrypted) store.options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(store.open().ok());
    const NamespaceId id = store.make_namespace("default");
    // One single value, and a group of a few pages.
    REQUIRE(store.put(id, "large", Bytes(5'000, 'x')).ok());
    for (int i = 100; i < 130; ++i) REQUIRE(store.put(id, std::to_string(i), Bytes(200, 'x')).ok());
    REQUIRE(store.engine->flush().ok());
    for (const char* key : {"large", "115"}) {
      CAPTURE(key);
      const std::uint64_t before = store.engine->stats().reads.value_reads;
      for (int i = 0; i < 10; ++i) CHECK_FALSE(store.get(id, key).empty());
      const std::uint64_t reads = store.engine->stats().reads.value_reads - before;
      CHECK(reads == (each.keeps ? 1 : 10));
    }
  }
}

TEST_CASE("mapped tables: each file is opened with the bytes of all values") {
  MappedStore store;
  const auto said_when_read = [&] {
    store.reopen();
    std::map<Bytes, Bytes> rows;
    REQUIRE(store.scan(Direction::Forward, rows).ok());
    return store.disk.mapped_store_bytes();
  };
  const std::uint64_t before = said_when_read();
  CHECK(before == store.engine->stats().values.live_bytes);
  CHECK(before > 5'000);
  // Files come, and go again.
  WriteBatch batch;
  batch.put(store.id, "key200", Bytes(200'000, 'z'));
  REQUIRE(store.engine->write(batch, Durability::Async).ok());
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->get(store.id, "key200", {}).ok());
  CHECK(store.disk.mapped_store_bytes() == store.engine->stats().values.live_bytes);
  CHECK(store.disk.mapped_store_bytes() > before + 200'000);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  std::map<Bytes, Bytes> rows;
  REQUIRE(store.scan(Direction::Forward, rows).ok());
  CHECK(store.disk.mapped_store_bytes() == store.engine->stats().values.live_bytes);
}

// Iterator::take_numbers() over random stores gives what reading one by one gives.

namespace {

using Rows = std::vector<std::pair<Bytes, Bytes>>;

Bytes number(char tag, std::uint64_t bits) {
  Bytes value{tag};
  engine::append_fixed64(value, bits);
  return value;
}

// Seconds of three series, most of them floats.
class NumbersRun {
 public:
  explicit NumbersRun(std::uint64_t seed) : random_(seed) {
    store_.options.memtable_bytes = 16u << 10;
    store_.options.group_bytes = 1024;
    store_.options.erasure_wait_ms = 0;
    if (seed % 2 == 1) {
      SecretKey key;
      key.fill(7);
      store_.options.encryption = MasterKeys{key};
    }
    REQUIRE(store_.open().ok());
    id_ = store_.make_namespace("plant", {Placement::Values, GroupCodec::Series, 1});
  }

  void change() {
    switch (random_.below(24)) {
      case 0: return erase();
      case 1: return expire();
      case 2: return flush();
      case 3: return compact();
      case 4: return hold();
      case 5: return reopen();
      case 6: store_.executor.run_all(); return;
      default: return write();
    }
  }

  // Whatever is read, forwards and backwards, now and as of a moment.
  void check() {
    for (int reads = 0; reads < 6; ++reads) {
      ReadOptions options;
      options.direction = random_.below(2) == 0 ? Direction::Forward : Direction::Reverse;
      if (held_ != nullptr && random_.below(2) == 0) options.snapshot = held_;
      if (random_.below(3) == 0) options.newer_than = random_.below(store_.engine->committed() + 1);
      if (random_.below(2) == 0) options = without_damaged(options);
      KeyRange range;
      if (random_.below(2) == 0) range.lower = some_key();
      if (random_.below(2) == 0) range.upper = some_key();
      check_scan(range, options);
    }
  }

  std::uint64_t taken() const { return taken_; }
  std::uint64_t by_value() const { return by_value_; }

 private:
  Bytes key(std::uint64_t series, std::uint64_t second) const {
    return key_at(Bytes(1, static_cast<char>('a' + series)),
                  kStartNs + static_cast<std::int64_t>(second) * kSecond);
  }
  Bytes some_key() { return key(random_.below(3), random_.below(kSeconds)); }

  Bytes some_value() {
    const std::uint64_t choice = random_.below(200);
    if (choice == 0) return Bytes(random_.below(30), 't');
    if (choice < 6) return number(kIntegerTag, random_.below(1000));
    return number(kFloatTag, random_.below(5) == 0 ? random_.next() : random_.below(1000));
  }

  void write() {
    WriteBatch batch;
    const std::uint64_t series = random_.below(3);
    if (random_.below(4) == 0) {  // here and there
      for (std::uint64_t n = random_.below(20); n > 0; --n) {
        if (random_.below(4) == 0) {
          batch.remove(id_, some_key());
        } else {
          batch.put(id_, some_key(), some_value());
        }
      }
    } else {
      std::uint64_t second = random_.below(kSeconds);
      for (std::uint64_t n = random_.below(200); n > 0; --n)
        batch.put(id_, key(series, second++), some_value());
    }
    if (random_.below(30) == 0) {
      const Bytes lower = key(series, random_.below(kSeconds));
      batch.remove_range(id_, lower, key(series, kSeconds));
    }
    REQUIRE(store_.engine->write(batch, Durability::Sync).ok());
  }

  KeyRange hide_some() {
    const std::uint64_t series = random_.below(3);
    const std::uint64_t from = random_.below(kSeconds);
    const KeyRange range{key(series, from), key(series, from + 1 + random_.below(300))};
    WriteBatch batch;
    batch.erase_range(id_, range.lower, range.upper);
    REQUIRE(store_.engine->write(batch, Durability::Sync).ok());
    return range;
  }
  void erase() {
    hide_some();
    if (random_.below(2) == 0) static_cast<void>(store_.engine->erase());
  }

  void expire() {
    store_.clock.advance(static_cast<std::int64_t>(random_.below(100)) * kSecond);
    const RetentionRule rule{id_, Bytes(1, static_cast<char>('a' + random_.below(3))),
                             static_cast<std::int64_t>(1 + random_.below(kSeconds)) * kSecond};
    REQUIRE(store_.engine->set_retention({rule}).ok());
  }

  void flush() { REQUIRE(store_.engine->flush().ok()); }
  void compact() { REQUIRE(store_.engine->compact({id_}, {}).ok()); }
  void hold() { held_ = held_ == nullptr ? store_.engine->snapshot() : nullptr; }

  void reopen() {
    held_ = nullptr;
    store_.reopen();
  }

  Rows one_by_one(const KeyRange& range, const ReadOptions& options) {
    auto iterator = store_.engine->scan(id_, range, options);
    REQUIRE(iterator.ok());
    Rows rows;
    for (; (*iterator)->valid(); (*iterator)->next())
      rows.emplace_back((*iterator)->key(), (*iterator)->value());
    REQUIRE((*iterator)->status().ok());
    return rows;
  }

  void check_scan(const KeyRange& range, const ReadOptions& options) {
    Rows want = one_by_one(range, options);
    std::size_t at = 0;
    auto iterator = store_.engine->scan(id_, range, options);
    REQUIRE(iterator.ok());
    Iterator& it = **iterator;
    NumberColumns columns;
    while (it.valid()) {
      REQUIRE(at < want.size());
      REQUIRE(it.key() == want[at].first);
      if (random_.below(30) == 0) {
        at = random_.below(want.size());
        it.seek(want[at].first);
        continue;
      }
      if (random_.below(40) == 0) {
        const KeyRange gone = hide_some();
        const auto is_gone = [&](const auto& row) {
          return row.first >= gone.lower && row.first < gone.upper;
        };
        const bool stands_there = is_gone(want[at]);
        const auto behind = want.begin() + static_cast<std::ptrdiff_t>(at);
        at -= static_cast<std::size_t>(std::count_if(want.begin(), behind, is_gone));
        want.erase(std::remove_if(want.begin(), want.end(), is_gone), want.end());
        if (stands_there) it.next();
        if (!it.valid()) break;
      }
      const Bytes prefix(it.key().substr(0, it.key().size() - 8));
      const bool was_number = it.value().size() == 9 && it.value().front() != 't';
      const Bytes end = random_.below(3) == 0 ? some_key() : Bytes();
      const std::size_t count = it.take_numbers(end, columns);
      REQUIRE(count == columns.ordinals.size());
      REQUIRE(count == columns.bits.size());
      REQUIRE(count <= want.size() - at);
      for (std::size_t i = 0; i < count; ++i, ++at) {
        Bytes full = prefix;
        full.resize(prefix.size() + 8);
        engine::store_ordinal(full.data() + prefix.size(), columns.ordinals[i]);
        const Bytes value = number(columns.is_float ? kFloatTag : kIntegerTag, columns.bits[i]);
        const bool is_before =
            end.empty() || (options.direction == Direction::Forward ? full < end : full > end);
        if (full == want[at].first && value == want[at].second && is_before) continue;
        CAPTURE(i);
        FAIL("another entry than one by one");
      }
      taken_ += count;
      if (count > 0) continue;
      REQUIRE(it.valid());
      REQUIRE(it.key() == want[at].first);
      if (end.empty()) REQUIRE_FALSE(was_number);
      REQUIRE(it.value() == want[at++].second);
      it.next();
      ++by_value_;
    }
    REQUIRE(it.status().ok());
    REQUIRE(at == want.size());
  }

  static constexpr std::uint64_t kSeconds = 2000;

  SeededRandom random_;
  EngineFixture store_;
  NamespaceId id_ = 0;
  std::shared_ptr<const Snapshot> held_;
  std::uint64_t taken_ = 0, by_value_ = 0;
};

}  // namespace

TEST_CASE("numbers that are taken many at once are those that are read one by one") {
  const std::uint64_t first = test_seed(1);
  std::uint64_t taken = 0;
  std::uint64_t by_value = 0;
  for (std::uint64_t seed = first; seed < first + seeds_of(8, 3); ++seed) {
    CAPTURE(seed);
    NumbersRun run(seed);
    for (int i = 0; i < 12; ++i) {
      for (int changes = 0; changes < 12; ++changes) run.change();
      run.check();
    }
    taken += run.taken();
    by_value += run.by_value();
  }
  CHECK(taken > by_value * 5);
}

}  // namespace edgecase::test
