#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "bench/removal.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("bench: a marker is found wherever it stands, and nowhere else") {
  const test::TempDirectory directory;
  const std::string marker = "expires-early.";
  constexpr std::size_t kPiece = 4u << 20;
  std::filesystem::create_directory(directory / "below");
  for (const std::size_t before : {std::size_t{0}, std::size_t{100}, kPiece - 14, kPiece - 7,
                                   kPiece - 1, kPiece, 2 * kPiece - 3}) {
    CAPTURE(before);
    const std::string path = directory / "below/file";
    std::ofstream(path, std::ios::binary) << std::string(before, 'x') << marker << "tail";
    std::ofstream(directory / "other", std::ios::binary) << std::string(before, 'x') << "expires-e";
    const auto found = files_with(directory.path(), marker);
    REQUIRE(found.size() == 1);
    CHECK(found[0].path == path);
  }
  CHECK(files_with(directory / "nowhere", marker).empty());
}
