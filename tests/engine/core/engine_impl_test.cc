#include "edgecase/engine.h"

#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

constexpr const char* kMissing = "<not found: no such key>";

std::string scan_text(Engine& engine, NamespaceId id, const KeyRange& range,
                      Direction direction = Direction::Forward) {
  ReadOptions options;
  options.direction = direction;
  auto iterator = engine.scan(id, range, options);
  REQUIRE(iterator.ok());
  std::string text;
  for (auto& at = **iterator; at.valid(); at.next())
    text.append(at.key()).append("=").append(at.value()).append(" ");
  CHECK((*iterator)->status().ok());
  return text;
}

}  // namespace

TEST_CASE("engine keeps what was written across flush and reopen") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  CHECK(id == 1);
  REQUIRE(store.put(id, "a", "1").ok());
  REQUIRE(store.put(id, "b", "2").ok());
  CHECK(store.get(id, "a") == "1");
  CHECK(store.get(id, "c") == kMissing);
  CHECK(scan_text(*store.engine, id, {}) == "a=1 b=2 ");

  const Status flushed = store.engine->flush();
  INFO(flushed.to_string());
  REQUIRE(flushed.ok());
  CHECK(store.listener.flushes.size() == 1);
  CHECK(store.get(id, "a") == "1");
  REQUIRE(store.put(id, "a", "new").ok());
  WriteBatch batch;
  batch.remove(id, "b");
  batch.put(id, "c", "3");
  REQUIRE(store.engine->write(batch, Durability::Async).ok());
  CHECK(scan_text(*store.engine, id, {}) == "a=new c=3 ");
  CHECK(scan_text(*store.engine, id, {}, Direction::Reverse) == "c=3 a=new ");
  CHECK(store.get(id, "b") == kMissing);

  store.reopen();
  CHECK(store.engine->namespaces().size() == 1);
  CHECK(store.engine->find_namespace("default")->id == id);
  CHECK(scan_text(*store.engine, id, {}) == "a=new c=3 ");
  REQUIRE(store.engine->flush().ok());
  CHECK(scan_text(*store.engine, id, {}) == "a=new c=3 ");
  CHECK(scan_text(*store.engine, id, {"b", "c"}) == "");
  store.reopen();
  CHECK(scan_text(*store.engine, id, {}) == "a=new c=3 ");
  CHECK(store.engine->range_stats(id, {}, {})->entries == 2);
}

TEST_CASE("engine namespaces have names once, within limits") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  CHECK(store.make_namespace("a") == 1);
  CHECK(store.make_namespace("b", {Placement::Metadata, GroupCodec::Series, 8}) == 2);
  CHECK(store.engine->create_namespace("a", {}).status().code() == StatusCode::AlreadyExists);
  CHECK(store.engine->create_namespace("", {}).status().code() == StatusCode::InvalidArgument);
  CHECK(store.engine->create_namespace(std::string(129, 'x'), {}).status().code() ==
        StatusCode::InvalidArgument);
  store.reopen();
  const auto found = store.engine->find_namespace("b");
  REQUIRE(found.ok());
  CHECK(found->id == 2);
  CHECK(found->options.placement == Placement::Metadata);
  CHECK(found->options.codec == GroupCodec::Series);
  CHECK(found->options.scope_bytes == 8);
  CHECK(store.make_namespace("c") == 3);
  CHECK(store.engine->find_namespace("d").status().code() == StatusCode::NotFound);
}

TEST_CASE("engine snapshot and iterators see one moment") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "old").ok());
  ReadOptions then;
  then.snapshot = store.engine->snapshot();
  auto iterator = store.engine->scan(id, {}, then);
  REQUIRE(iterator.ok());
  REQUIRE(store.put(id, "a", "new").ok());
  REQUIRE(store.put(id, "b", "new").ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(*store.engine->get(id, "a", then) == "old");
  CHECK(store.engine->get(id, "b", then).status().code() == StatusCode::NotFound);
  CHECK(store.engine->range_stats(id, {}, then)->entries == 1);
  CHECK((*iterator)->value() == "old");
  (*iterator)->next();
  CHECK_FALSE((*iterator)->valid());
  CHECK(store.get(id, "a") == "new");
  iterator = not_found("closed");
}

TEST_CASE("damage that a read comes to is listed, once a file") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "key", Bytes(300, 'v')).ok());
  REQUIRE(store.engine->flush().ok());
  store.executor.run_all();
  for (const auto& [path, contents] : store.disk.durable_contents())
    if (path.ends_with(".val")) store.disk.set_contents(path, Bytes(contents.size(), '\x5a'));
  for (int i = 0; i < 3; ++i)
    CHECK(store.engine->get(id, "key", {}).status().code() == StatusCode::Corruption);
  store.executor.run_all();
  const auto damaged = store.engine->damaged_files();
  REQUIRE(damaged.size() == 1);
  CHECK(damaged[0].layer == FileLayer::Values);
  CHECK(damaged[0].lost_entries == 1);
}

}  // namespace edgecase::test
