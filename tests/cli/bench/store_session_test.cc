#include "bench/store_session.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::cli::bench;

TEST_CASE("drive checks: a directory with a store is none to measure in") {
  const test::TempDirectory directory;
  CHECK(check_no_store(directory.path()).ok());
  CHECK(check_no_store("").ok());
  test::write_file(directory / "IDENTITY", "x");
  const Status status = check_no_store(directory.path());
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message() == directory.path() + " holds a store: name a directory beside it");
}

TEST_CASE("drive checks: one directory by two names is one") {
  const test::TempDirectory directory;
  std::filesystem::create_directory(directory / "a");
  std::filesystem::create_directory(directory / "b");
  std::filesystem::create_symlink(directory / "a", directory / "link");
  CHECK(check_apart(directory / "a", directory / "b").ok());
  CHECK(check_apart(directory / "a", directory / "link").code() == StatusCode::InvalidArgument);
  CHECK(check_apart(directory / "a", directory / "none").code() == StatusCode::IoError);
}

TEST_CASE("drive checks: room is asked for before it is taken") {
  const test::TempDirectory directory;
  CHECK(check_room(directory.path(), 1).ok());
  CHECK(check_room(directory.path(), std::uint64_t{1} << 60).code() == StatusCode::OutOfSpace);
  CHECK(check_room(directory / "none", 1).code() == StatusCode::IoError);
}
