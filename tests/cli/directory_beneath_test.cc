#include "target_file.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/temp_directory.h"

namespace edgecase::cli {
namespace {

namespace fs = std::filesystem;

constexpr LinkCheck kBoth[] = {LinkCheck::Kernel, LinkCheck::EachName};

}  // namespace

TEST_CASE("directory beneath: what is missing is made, what is there is used") {
  for (const LinkCheck check : kBoth) {
    const test::TempDirectory root;
    for (int again = 0; again < 2; ++again) {
      const auto made = DirectoryBeneath::open(root.path(), {"default", "kitchen"}, check);
      REQUIRE_MESSAGE(made.ok(), made.status().to_string());
      auto file = TargetFile::create(made->path() + "/temp.csv", "shown");
      REQUIRE(file.ok());
      CHECK(file->write("x").ok());
      CHECK(made->holds_file("temp.csv") == (again == 1));
      CHECK(file->commit().ok());
      CHECK(made->holds_file("temp.csv"));
    }
    CHECK(fs::file_size(root / "default/kitchen/temp.csv") == 1);
  }
}

TEST_CASE("directory beneath: nothing is written through a link, wherever one is planted") {
  for (const LinkCheck check : kBoth) {
    for (const char* const planted : {"default", "default/kitchen"}) {
      for (const char* const target : {"outside", "inside", "nowhere"}) {
        CAPTURE(planted);
        CAPTURE(target);
        const test::TempDirectory base;
        fs::create_directories(base / "outside/kitchen");
        fs::create_directories(base / "export/inside/kitchen");
        if (std::string(planted) != "default") fs::create_directory(base / "export/default");
        fs::create_directory_symlink(
            base / (std::string(target) == "inside" ? "export/inside" : target),
            base / ("export/" + std::string(planted)));
        const auto opened = DirectoryBeneath::open(base / "export", {"default", "kitchen"}, check);
        REQUIRE_FALSE(opened.ok());
        CHECK(opened.status().code() == StatusCode::NotAllowed);
        CHECK(opened.status().file() == base / ("export/" + std::string(planted)));
        CHECK(fs::is_empty(base / "outside/kitchen"));
        CHECK_FALSE(fs::exists(base / "nowhere"));
      }
    }
  }
}

TEST_CASE("directory beneath: a directory that is swapped for a link meanwhile stays what it was") {
  const test::TempDirectory base;
  fs::create_directory(base / "outside");
  const auto held = DirectoryBeneath::open(base.path(), {"default"});
  REQUIRE(held.ok());
  fs::rename(base / "default", base / "away");
  fs::create_directory_symlink(base / "outside", base / "default");
  auto file = TargetFile::create(held->path() + "/x");
  REQUIRE(file.ok());
  CHECK(file->commit().ok());
  CHECK(fs::is_empty(base / "outside"));
  CHECK(fs::exists(base / "away/x"));
}

TEST_CASE("directory beneath: a file that is a link is none, and is replaced, not followed") {
  const test::TempDirectory base;
  std::ofstream(base / "victim") << "mine";
  const auto held = DirectoryBeneath::open(base.path(), {"default"});
  REQUIRE(held.ok());
  fs::create_symlink(base / "victim", base / "default/x.csv");
  CHECK_FALSE(held->holds_file("x.csv"));
  auto file = TargetFile::create(held->path() + "/x.csv");
  REQUIRE(file.ok());
  CHECK(file->write("longer").ok());
  CHECK(file->commit().ok());
  CHECK(fs::file_size(base / "victim") == 4);
  CHECK(held->holds_file("x.csv"));
}

TEST_CASE("directory beneath: errors have the file, and what the system said of it") {
  const test::TempDirectory base;
  CHECK(DirectoryBeneath::open(base / "none", {"a"}).status().code() == StatusCode::NotFound);
  std::ofstream(base / "file") << "x";
  const auto opened = DirectoryBeneath::open(base.path(), {"file"});
  CHECK(opened.status().code() == StatusCode::NotFound);
  CHECK(opened.status().system_error() == ENOTDIR);
  CHECK(opened.status().file() == base / "file");
}

}  // namespace edgecase::cli
