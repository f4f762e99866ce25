#include "catalog/name_index.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace edgecase;

TEST_CASE("name index: finds every row among many, and none that is not there") {
  constexpr std::uint64_t kSeed = 42;
  catalog::NameIndex index;
  std::vector<std::string> names;
  const auto find = [&](const std::string& name) {
    return index.find(catalog::hash_name(kSeed, 1, name),
                      [&](std::uint32_t row) { return names[row] == name; });
  };
  for (std::uint32_t row = 0; row < 20'000; ++row) {
    names.push_back("sensor-" + std::to_string(row));
    CHECK(find(names.back()) == catalog::kNoRow);
    index.insert(catalog::hash_name(kSeed, 1, names.back()), row);
  }
  for (std::uint32_t row = 0; row < 20'000; ++row) CHECK(find(names[row]) == row);
  CHECK(find("sensor-20000") == catalog::kNoRow);
  CHECK(find("") == catalog::kNoRow);
}

TEST_CASE("name index: rows with one hash are told apart by the caller") {
  catalog::NameIndex index;
  for (std::uint32_t row = 0; row < 100; ++row) index.insert(7, row);
  for (std::uint32_t row = 0; row < 100; ++row) {
    CHECK(index.find(7, [&](std::uint32_t candidate) { return candidate == row; }) == row);
  }
  CHECK(index.find(8, [](std::uint32_t) { return true; }) == catalog::kNoRow);
}

TEST_CASE("name index: the hash looks at parent, length and every byte") {
  const auto hash = [](std::uint32_t parent, std::string_view name) {
    return catalog::hash_name(1, parent, name);
  };
  CHECK(hash(1, "abc") != hash(2, "abc"));
  CHECK(hash(1, "abc") != catalog::hash_name(2, 1, "abc"));
  CHECK(hash(1, "") != hash(1, std::string_view("\0", 1)));
  std::string name(33, 'x');
  const std::uint32_t before = hash(1, name);
  for (char& c : name) {
    c = 'y';
    CHECK(hash(1, name) != before);
    c = 'x';
  }
}
