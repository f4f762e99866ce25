// Large values read in pieces: what was written comes, nothing that was not checked does, and no
// more than a piece of it lies in memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "edgecase/options.h"
#include "engine/core/engine_fixture.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr std::uint64_t kReadMebibyte = 1u << 20;
constexpr std::uint64_t kLargeBytes = 100'000;

ReadOptions in_pieces(Direction direction = Direction::Forward) {
  ReadOptions options;
  options.direction = direction;
  options.large_value_bytes = kLargeBytes;
  return options;
}

Bytes random_bytes(SeededRandom& random, std::size_t size) {
  Bytes bytes(size, '\0');
  for (char& each : bytes) each = static_cast<char>(random.next());
  return bytes;
}

Result<Bytes> read_all(LargeValue& value) {
  Bytes all;
  while (true) {
    EC_ASSIGN_OR_RETURN(const ByteView piece, value.next_piece());
    if (piece.empty()) return all;
    CHECK(piece.size() <= kLargeValuePieceBytes);
    CHECK((!all.empty() || piece.size() >= 1024));
    all += piece;
  }
}

Result<Bytes> read_current(Iterator& iterator) {
  const ByteView whole = iterator.value();
  if (!iterator.valid()) return iterator.status();
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<LargeValue> large, iterator.large_value());
  if (large == nullptr) {
    CHECK(whole.size() < kLargeBytes);
    return Bytes(whole);
  }
  CHECK(whole.empty());
  EC_ASSIGN_OR_RETURN(Bytes all, read_all(*large));
  CHECK(all.size() == large->size_bytes());
  return all;
}

void compare(EngineFixture& store, NamespaceId id, const std::map<Bytes, Bytes>& wanted) {
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    std::map<Bytes, Bytes> seen;
    auto iterator = store.engine->scan(id, {}, in_pieces(direction));
    REQUIRE(iterator.ok());
    for (; (*iterator)->valid(); (*iterator)->next()) {
      auto value = read_current(**iterator);
      INFO(value.status().to_string());
      REQUIRE(value.ok());
      seen[Bytes((*iterator)->key())] = *std::move(value);
    }
    CHECK((*iterator)->status().ok());
    CHECK(seen == wanted);
  }
}

// A store with one value of several pieces in a table, and where it lies.
struct OneLargeValue : EngineFixture {
  explicit OneLargeValue(bool encrypted) : value(3 * kLargeValuePieceBytes + 500, 'v') {
    options.memtable_bytes = kReadMebibyte;
    if (encrypted) options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(open().ok());
    id = make_namespace("data", {.scope_bytes = 1});
    REQUIRE(put(id, "key", value).ok());
    REQUIRE(engine->flush().ok());
    for (const auto& [name, contents] : disk.durable_contents()) {
      if (name.starts_with("/v/store/") && name.ends_with(".val")) path = name;
    }
    REQUIRE(!path.empty());
  }
  std::unique_ptr<Iterator> at_value() {
    auto iterator = engine->scan(id, {}, in_pieces());
    REQUIRE(iterator.ok());
    REQUIRE((*iterator)->valid());
    return *std::move(iterator);
  }

  Bytes value;
  NamespaceId id = 0;
  std::string path;
};

}  // namespace

TEST_CASE("engine does not copy a memtable's large value for who reads it in pieces") {
  // How a memtable keeps a series: as nodes, as strips, as both.
  enum class Kept { Nodes, Strips, Both };
  for (const Kept kept : {Kept::Nodes, Kept::Strips, Kept::Both}) {
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      CAPTURE(static_cast<int>(kept));
      CAPTURE(static_cast<int>(direction));
      EngineFixture store;
      store.options.memtable_bytes = 4 * kReadMebibyte;
      REQUIRE(store.open().ok());
      const GroupCodec codec = kept == Kept::Nodes ? GroupCodec::Plain : GroupCodec::Series;
      const NamespaceId id = store.make_namespace("data", {.codec = codec});
      Bytes key = "dev-sens";
      key.append(8, '\0');
      constexpr char kLargeOne = 10;
      const auto put = [&](char at) {
        key.back() = at;
        const bool is_large = at == kLargeOne;
        REQUIRE(store.put(id, key, Bytes(is_large ? 4 * kLargeValuePieceBytes : 9, '\1')).ok());
      };
      for (char at = 0; at < 20; ++at) put(at);
      // In no order.
      for (char at = 20; kept == Kept::Both && at-- > 0;) put(at);
      // Two readers are given the same bytes.
      key.back() = kLargeOne;
      std::vector<std::unique_ptr<Iterator>> iterators;
      std::vector<std::unique_ptr<LargeValue>> values;
      for (int reader = 0; reader < 2; ++reader) {
        auto iterator = store.engine->scan(id, {}, in_pieces(direction));
        REQUIRE(iterator.ok());
        while ((*iterator)->valid() && (*iterator)->key() != key) (*iterator)->next();
        REQUIRE((*iterator)->valid());
        auto large = (*iterator)->large_value();
        REQUIRE(large.ok());
        REQUIRE(*large != nullptr);
        values.push_back(*std::move(large));
        iterators.push_back(*std::move(iterator));
      }
      for (int piece = 0; piece < 4; ++piece) {
        const auto one = values[0]->next_piece();
        const auto other = values[1]->next_piece();
        REQUIRE((one.ok() && other.ok()));
        CHECK(one->size() == kLargeValuePieceBytes);
        CHECK(one->data() == other->data());
      }
    }
  }
}

TEST_CASE("engine reads large values in pieces as they were written") {
  const std::uint64_t seed = test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int way = 0; way < 4; ++way) {
    CAPTURE(way);
    EngineFixture store;
    store.options.memtable_bytes = kReadMebibyte;
    store.options.wal_segment_bytes = 4 * kReadMebibyte;
    store.options.wal_limit_bytes = 32 * kReadMebibyte;
    if ((way & 1) != 0) store.options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(store.open().ok());
    NamespaceOptions options;
    if ((way & 2) != 0) options.codec = GroupCodec::Series;
    const NamespaceId id = store.make_namespace("data", options);
    // Around what is large, around the ends of pieces, and beside small ones.
    const std::vector<std::size_t> sizes = {
        1,       20,      kLargeBytes - 1,           kLargeBytes, 2 * kLargeValuePieceBytes - 40,
        131'073, 200'000, 3 * kLargeValuePieceBytes, 400'001};
    std::map<Bytes, Bytes> wanted;
    for (int i = 0; i < 30; ++i) {
      Bytes key = "dev-sens";
      key.append(7, '\0').push_back(static_cast<char>(random.below(20)));
      Bytes value = random_bytes(random, sizes[random.below(sizes.size())]);
      if (random.below(8) == 0) {
        WriteBatch batch;
        batch.remove(id, key);
        REQUIRE(store.engine->write(batch, Durability::Sync).ok());
        wanted.erase(key);
        continue;
      }
      REQUIRE(store.put(id, key, value).ok());
      wanted[key] = std::move(value);
    }
    compare(store, id, wanted);
    REQUIRE(store.engine->flush().ok());
    compare(store, id, wanted);
    store.reopen();
    compare(store, id, wanted);
    REQUIRE(store.engine->compact({id}, {}).ok());
    compare(store, id, wanted);
    CHECK(store.listener.corruptions.empty());
  }
}

TEST_CASE("a large value outlives its iterator, and what replaces it") {
  OneLargeValue store(false);
  auto large = store.at_value()->large_value();
  REQUIRE(large.ok());
  REQUIRE(*large != nullptr);
  CHECK((*large)->next_piece()->substr(0, 10) == ByteView("vvvvvvvvvv"));
  REQUIRE(store.put(store.id, "key", "small").ok());
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  store.executor.run_all();
  Bytes rest;
  for (;;) {
    const auto piece = (*large)->next_piece();
    INFO(piece.status().to_string());
    REQUIRE(piece.ok());
    if (piece->empty()) break;
    rest += *piece;
  }
  CHECK(rest.size() > 2 * kLargeValuePieceBytes);
  CHECK(std::all_of(rest.begin(), rest.end(), [](char each) { return each == 'v'; }));
  const auto newer = store.at_value();
  CHECK(newer->value() == "small");
}

TEST_CASE("nothing of a damaged large value is given out") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    OneLargeValue store(encrypted);
    const Bytes whole = store.disk.contents(store.path);
    // Where the item begins and ends: what a flip there does is told.
    std::size_t refused = 0;
    for (std::size_t byte = 0; byte < whole.size(); byte += byte < 400 ? 1 : 997) {
      CAPTURE(byte);
      Bytes flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 4);
      store.disk.set_contents(store.path, flipped);
      const auto iterator = store.engine->scan(store.id, {}, in_pieces());
      if (!iterator.ok()) continue;  // the file's head
      const auto large = (*iterator)->large_value();
      if (large.ok()) {
        // It lies before or behind the item.
        REQUIRE(*large != nullptr);
        const auto all = read_all(**large);
        REQUIRE(all.ok());
        CHECK((*all == store.value));
        continue;
      }
      ++refused;
      CHECK(large.status().code() == StatusCode::Corruption);
    }
    CHECK(refused > store.value.size() / 997);
    CHECK(!store.listener.corruptions.empty());
    for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{200}}) {
      store.disk.set_contents(store.path, ByteView(whole).substr(0, size));
      const auto iterator = store.engine->scan(store.id, {}, in_pieces());
      if (!iterator.ok() || !(*iterator)->valid()) continue;
      if (size == whole.size() - 1) continue;  // behind the item
      CHECK(!(*iterator)->large_value().ok());
    }
  }
}

TEST_CASE("a piece that is another than the one that was checked is not given out") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    OneLargeValue store(encrypted);
    const Bytes whole = store.disk.contents(store.path);
    auto large = store.at_value()->large_value();
    REQUIRE(large.ok());
    CHECK((*large)->next_piece().ok());
    Bytes flipped = whole;
    const std::size_t third = 2 * kLargeValuePieceBytes + 5'000;
    flipped[third] = static_cast<char>(flipped[third] ^ 1);
    store.disk.set_contents(store.path, flipped);
    CHECK((*large)->next_piece().ok());
    CHECK((*large)->next_piece().status().code() == StatusCode::Corruption);
    CHECK(store.listener.corruptions.size() == 1);
  }
}

TEST_CASE("a large value whose drive fails while it is read says so") {
  OneLargeValue store(false);
  auto large = store.at_value()->large_value();
  REQUIRE(large.ok());
  CHECK((*large)->next_piece().ok());
  store.disk.set_gone("/v", true);
  CHECK((*large)->next_piece().status().code() == StatusCode::IoError);
  const auto iterator = store.at_value();
  CHECK(iterator->large_value().status().code() == StatusCode::IoError);
  store.disk.set_gone("/v", false);
  auto again = store.at_value()->large_value();
  REQUIRE(again.ok());
  CHECK(read_all(**again)->size() == store.value.size());
}

TEST_CASE("a large value whose key was destroyed reads as deleted") {
  OneLargeValue store(true);
  const auto reader = store.at_value();
  store.disk.set_read_only("/v", true);  // the key alone can go
  WriteBatch batch;
  batch.erase_range(store.id, "k", "l");
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  CHECK(!store.engine->erase().ok());
  const auto large = reader->large_value();
  CHECK(large.status().code() == StatusCode::NotFound);
  const auto iterator = store.engine->scan(store.id, {}, in_pieces());
  REQUIRE(iterator.ok());
  CHECK(!(*iterator)->valid());
  CHECK(store.listener.corruptions.empty());
}

TEST_CASE("a large value that is erased while it is read says so") {
  OneLargeValue store(false);
  auto large = store.at_value()->large_value();
  REQUIRE(large.ok());
  CHECK((*large)->next_piece().ok());
  // As an erasure does that waits for no reader any more.
  Bytes overwritten = store.disk.contents(store.path);
  overwritten.replace(500, store.value.size(), store.value.size(), '\0');
  store.disk.set_contents(store.path, overwritten);
  CHECK((*large)->next_piece().status().code() == StatusCode::NotFound);
  CHECK(store.listener.corruptions.empty());
}
