#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "bench/experiments/logkv_commands.h"
#include "bench/peers/naive_store.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("logkv: of the paper's 180 combinations 140 make sense, each once") {
  std::set<std::vector<double>> seen;
  for (const LogkvMix& mix : logkv_mixes()) {
    CHECK(mix.hot_fraction <= mix.hot_rate);
    seen.insert({mix.hit_rate, mix.read_fraction, mix.hot_fraction, mix.hot_rate});
  }
  CHECK(logkv_mixes().size() == 140);
  CHECK(seen.size() == 140);
}

TEST_CASE("logkv: commands hit, read and mean hot keys as often as their mix says") {
  constexpr std::uint64_t kCommands = 200'000;
  for (const LogkvMix& mix : {LogkvMix{0.1, 0.8, 0.2, 0.7}, LogkvMix{0.6, 0.4, 0.05, 0.05},
                              LogkvMix{0.99, 0.2, 0.1, 0.8}}) {
    std::uint32_t keys = 0;
    std::uint64_t reads = 0, hits = 0, hot = 0;
    for (const LogkvCommand& command : make_logkv_commands(mix, kCommands, 7)) {
      reads += command.read ? 1u : 0u;
      if (!command.hits()) {
        CHECK(command.read);
        continue;
      }
      REQUIRE(command.key <= keys);
      if (command.key == keys) {
        CHECK(!command.read);
        ++keys;
        continue;
      }
      ++hits;
      hot += command.key < mix.hot_fraction * keys ? 1u : 0u;
    }
    const auto share = [](std::uint64_t of, std::uint64_t all) {
      return static_cast<double>(of) / static_cast<double>(all);
    };
    CHECK(std::abs(share(reads, kCommands) - mix.read_fraction) < 0.01);
    CHECK(std::abs(share(hits, kCommands) - mix.hit_rate) < 0.01);
    CHECK(std::abs(share(hot, hits) - mix.hot_rate) < 0.02);
  }
}

TEST_CASE("logkv: the same seed gives the same commands, another does not") {
  const LogkvMix mix{0.6, 0.4, 0.1, 0.7};
  const auto same = [](const LogkvCommand& a, const LogkvCommand& b) {
    return a.key == b.key && a.read == b.read;
  };
  const auto once = make_logkv_commands(mix, 1'000, 1);
  const auto again = make_logkv_commands(mix, 1'000, 1);
  const auto other = make_logkv_commands(mix, 1'000, 2);
  CHECK(std::equal(once.begin(), once.end(), again.begin(), again.end(), same));
  CHECK(!std::equal(once.begin(), once.end(), other.begin(), other.end(), same));
}

namespace {

void put(BenchStore& store, const std::string& key, const std::string& value) {
  const auto batch = store.make_batch();
  batch->put(0, key, value);
  REQUIRE(store.write(*batch, true).ok());
}

}  // namespace

TEST_CASE("naive store: opened again, it is what its last snapshot holds") {
  const test::TempDirectory directory;
  StoreSettings settings;
  settings.metadata_directory = directory.path();
  {
    const auto store = make_naive_store("naive-32k", settings).value();
    put(*store, "b", std::string(20'000, 'x'));
    put(*store, "a", std::string(20'000, 'y'));  // beyond the threshold
    put(*store, "c", "not saved");
    std::string order;
    REQUIRE(store
                ->scan("",
                       [&order](ByteView key, ByteView) {
                         order += key;
                         return true;
                       })
                .ok());
    CHECK(order == "abc");
    CHECK(store->device_bytes_written() > 40'000);
  }
  {
    const auto store = make_naive_store("naive-32k", settings).value();
    CHECK(store->get(0, "a").value() == std::string(20'000, 'y'));
    CHECK(store->get(0, "b").ok());
    CHECK(store->get(0, "c").status().code() == StatusCode::NotFound);
    const auto batch = store->make_batch();
    batch->remove(0, "a");
    REQUIRE(store->write(*batch, false).ok());
    REQUIRE(store->flush().ok());
  }
  CHECK(!make_naive_store("naive-32k", settings).value()->get(0, "a").ok());
  const std::string path = directory / "table";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK(make_naive_store("naive-32k", settings).status().code() == StatusCode::Corruption);
  CHECK(make_naive_store("naive-33k", settings).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("naive store: without a threshold nothing is written") {
  const test::TempDirectory directory;
  StoreSettings settings;
  settings.metadata_directory = directory.path();
  const auto store = make_naive_store("unordered-map", settings).value();
  for (int i = 0; i < 100; ++i) put(*store, std::to_string(i), std::string(10'000, 'x'));
  REQUIRE(store->flush().ok());
  CHECK(store->device_bytes_written() == 0);
  CHECK(std::filesystem::is_empty(directory.path()));
}
