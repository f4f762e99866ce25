#include "catalog/name_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace edgecase;

TEST_CASE("names stay where they are, whatever comes after them, until they are wiped") {
  catalog::NameStore store;
  CHECK(store.keep("").empty());
  std::vector<std::pair<std::string, std::string_view>> kept;
  for (int i = 0; i < 50'000; ++i) {  // more than a chunk
    std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(i % 120), 'n');
    const std::string_view view = store.keep(name);
    kept.emplace_back(std::move(name), view);
  }
  std::uint64_t bytes = 0;
  for (const auto& [name, view] : kept) {
    REQUIRE(view == name);
    bytes += name.size();
  }
  CHECK(bytes > 2u << 20);
  CHECK(store.used_bytes() == bytes);
  catalog::NameStore::wipe(kept[100].second);
  CHECK(std::all_of(kept[100].second.begin(), kept[100].second.end(),
                    [](char each) { return each == '\0'; }));
  CHECK(kept[99].second == kept[99].first);
  CHECK(kept[101].second == kept[101].first);
}
