// What a store refuses to open with, and says of it: other directories, damage, what is missing.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log.h"

namespace edgecase::test {
namespace {

using namespace edgecase::engine;

}  // namespace

TEST_CASE("engine opens one store once") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  auto again = Engine::open(
      store.options, {store.disk, store.clock, store.random, store.executor, store.listener});
  CHECK(again.status().code() == StatusCode::Locked);
}

TEST_CASE("engine tells wrong directories apart") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  store.make_namespace("default");
  REQUIRE(store.put(1, "a", "1").ok());
  store.close();
  const Options own = store.options;
  const auto open_with = [&](const std::string& metadata, const std::string& values) {
    store.options.metadata_directory = metadata;
    store.options.values_directory = values;
    const Status opened = store.open();
    store.close();
    MESSAGE(opened.to_string());
    return opened.code();
  };
  CHECK(open_with("/m/store", "/v/empty") == StatusCode::Unavailable);
  CHECK_FALSE(store.disk.exists("/v/empty"));
  CHECK(open_with("/v/store", "/m/store") == StatusCode::Unavailable);  // swapped
  CHECK(open_with("/m/other", "/v/store") == StatusCode::Unavailable);  // values of another
  CHECK(open_with("/m/store", "/m/store") == StatusCode::InvalidArgument);
  CHECK(open_with("/m/second", "/v/second") == StatusCode::Ok);
  CHECK(open_with("/m/store", "/v/second") == StatusCode::Unavailable);
  store.options.create_if_missing = false;
  CHECK(open_with("/m/third", "/v/third") == StatusCode::Unavailable);
  CHECK_FALSE(store.disk.exists("/m/third"));
  store.options = own;
  store.reopen();
  CHECK(store.get(1, "a") == "1");
}

TEST_CASE("engine reports a missing or damaged manifest and changes nothing") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 200; ++i) {
    REQUIRE(store.put(id, std::to_string(i), Bytes(500, 'v')).ok());
    if (i == 100) REQUIRE(store.engine->flush().ok());
  }
  store.close();
  std::map<std::string, Bytes> before;
  for (const auto& [path, bytes] : store.disk.durable_contents()) before[path] = bytes;
  // The log's last segment; a flip in the middle of what was acknowledged.
  std::size_t tried = 0;
  for (const auto& file : before) {
    const std::string& path = file.first;
    const Bytes& bytes = file.second;
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto parsed = parse_file_name(name);
    if (!parsed || parsed->type != FileType::Manifest) continue;
    CAPTURE(path);
    REQUIRE(store.disk.remove_file(path).ok());
    const Status opened = store.open();
    CHECK_FALSE(opened.ok());
    CHECK((opened.code() == StatusCode::Corruption || opened.code() == StatusCode::Unavailable));
    store.close();
    store.disk.set_contents(path, bytes);
    store.disk.flip_bit(path, 4096 + 40, 2);
    store.disk.flip_bit(path, begin_of_second_copy(bytes.size()) + 4096 + 40, 2);
    CHECK(store.open().code() == StatusCode::Corruption);
    store.close();
    store.disk.set_contents(path, bytes);
    ++tried;
  }
  CHECK(tried >= 1);
  store.reopen();
  CHECK(store.engine->range_stats(id, {}, {})->entries == 200);
}

TEST_CASE("engine refuses a table that needs a feature it does not have, and says so") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", Bytes(500, 'v')).ok());
  REQUIRE(store.engine->flush().ok());
  store.close();
  std::size_t tried = 0;
  for (const auto& file : store.disk.durable_contents()) {
    const std::string& path = file.first;
    const Bytes& bytes = file.second;
    const auto parsed = parse_file_name(path.substr(path.rfind('/') + 1));
    if (!parsed ||
        (parsed->type != FileType::MetadataTable && parsed->type != FileType::ValueTable))
      continue;
    // Bit 1 is known of value tables alone.
    const bool is_value_table = parsed->type == FileType::ValueTable;
    for (const unsigned bit : {is_value_table ? 2u : 1u, 7u, 31u}) {
      CAPTURE(path);
      CAPTURE(bit);
      Bytes newer = bytes;
      newer[12 + bit / 8] =
          static_cast<char>(static_cast<unsigned char>(newer[12 + bit / 8]) | 1u << bit % 8);
      std::string checksum;
      append_fixed32(checksum, crc32c(ByteView(newer).substr(0, 44)));
      newer.replace(44, 4, checksum);
      store.disk.set_contents(path, newer);
      Status refused = store.open();
      if (refused.ok()) refused = store.engine->get(id, "a", {}).status();
      CHECK(refused.code() == StatusCode::Unsupported);
      CHECK(refused.message().find(path) != std::string_view::npos);
      CHECK(refused.message().find("needs features this program does not have") !=
            std::string_view::npos);
      store.close();
      store.disk.set_contents(path, bytes);
      ++tried;
    }
  }
  CHECK(tried == 6);
  store.reopen();
  CHECK(store.get(id, "a") == Bytes(500, 'v'));
}

}  // namespace edgecase::test
