// What fuzzing has learned holds in every build: each file of a corpus, whole and cut and with bits
// that differ, stops nothing. A target ends the process where something does not hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/damaged_store.h"
#include "fuzz/fuzz_targets.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

// Variants of one file, so that large ones do not take longer than small ones.
constexpr std::size_t kVariantsMax = 24;

void take_variants(const FuzzTarget& target, std::string bytes) {
  target.take(bytes);
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / share_of(kVariantsMax));
  for (std::size_t i = 0; i < bytes.size(); i += step) {
    target.take(std::string_view(bytes).substr(0, i));
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    target.take(bytes);
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
  }
}

// What a corpus of a store's files begins with: each file, for each thing that is done with it.
void write_files(const std::filesystem::path& folder, engine::FileType type) {
  char index = 0;
  for (const auto& [path, contents] : store_files()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto parsed = engine::parse_file_name(name);
    if (!parsed || parsed->type != type) continue;
    const std::size_t last = contents.find_last_not_of('\0');
    for (char use = 0; use < 4; ++use) {
      std::ofstream file(folder / (name + "-" + std::to_string(use)), std::ios::binary);
      file << use << index << std::string_view(contents).substr(0, last + 1);
    }
    ++index;
  }
}

}  // namespace

TEST_CASE("fuzz: the files of a store that the corpora begin with" *
          doctest::skip(std::getenv("EDGECASE_WRITE_CORPUS") == nullptr)) {
  const std::filesystem::path folder(EDGECASE_CORPUS_DIRECTORY);
  write_files(folder / "manifest", engine::FileType::Manifest);
  write_files(folder / "tables", engine::FileType::MetadataTable);
  write_files(folder / "value_tables", engine::FileType::ValueTable);
  write_files(folder / "wal", engine::FileType::WalSlot);
}

TEST_CASE("fuzz: what the targets have learned holds, cut and with other bits") {
  for (const FuzzTarget& target : fuzz_targets()) {
    CAPTURE(target.name);
    std::size_t files = 0;
    const std::filesystem::path folder(EDGECASE_CORPUS_DIRECTORY);
    for (const auto& entry : std::filesystem::directory_iterator(folder / target.name)) {
      std::ifstream file(entry.path(), std::ios::binary);
      take_variants(target, {std::istreambuf_iterator<char>(file), {}});
      ++files;
    }
    CHECK(files > 0);
  }
}

}  // namespace edgecase::test
