#include "backup/backup_index.h"

#include <doctest/doctest.h>

#include <fstream>

#include "support/temp_directory.h"

namespace edgecase::cli {
namespace {

BackupIndex example() {
  BackupIndex index;
  index.moment = "5-1";
  index.made = "2026-11-22T00:00:00.000000000Z";
  index.state = {{"namespaces", {"default"}}};
  index.files = {{"default/a/b.ndjson.gz", 3, 70}, {"default/a/c.ndjson.gz", 4, 71}};
  return index;
}

}  // namespace

TEST_CASE("backup index: written and read back") {
  const edgecase::test::TempDirectory directory;
  CHECK(read_index(directory.path()).status().code() == StatusCode::NotFound);
  const BackupIndex index = example();
  CHECK(write_index(directory.path(), index).ok());
  const BackupIndex read = read_index(directory.path()).value();
  CHECK(read.made == index.made);
  CHECK(read.state == index.state);
  CHECK(read.readings() == 7);
  REQUIRE(read.files.size() == 2);
  CHECK(read.files[1].path == index.files[1].path);
  CHECK(read.files[1].size_bytes == 71);
}

TEST_CASE("backup index: what is none, newer, or leads out of the directory is refused") {
  const edgecase::test::TempDirectory directory;
  const std::string path = index_path(directory.path());
  const auto code_of = [&](const std::string& text) {
    test::write_file(path, text);
    return read_index(directory.path()).status().code();
  };
  CHECK(code_of("") == StatusCode::Corruption);
  CHECK(code_of("[]") == StatusCode::Corruption);
  CHECK(code_of(R"({"format":"1"})") == StatusCode::Corruption);
  CHECK(code_of(R"({"format":2})") == StatusCode::Unsupported);
  for (const char* outside : {"/etc/passwd", "../x", "a/../../x", ""}) {
    CAPTURE(outside);
    CHECK(code_of(R"({"format":1,"files":[{"file":")" + std::string(outside) + R"("}]})") ==
          StatusCode::Corruption);
  }
  CHECK(code_of(R"({"format":1,"files":[{"file":"a..b/.../c"}]})") == StatusCode::Ok);
}

TEST_CASE("backup index: of one that was broken off, whole lines count") {
  const edgecase::test::TempDirectory directory;
  const std::string path = progress_path(directory.path());
  const BackupIndex index = example();
  const std::string head = progress_head(index);
  const std::string first = progress_line(index.files[0]);
  const std::string second = progress_line(index.files[1]);
  CHECK(read_progress(directory.path()).status().code() == StatusCode::NotFound);
  test::write_file(path, head + first + second.substr(0, second.size() - 3));
  const BackupIndex read = read_progress(directory.path()).value();
  CHECK(read.moment == index.moment);
  CHECK(read.state == index.state);
  REQUIRE(read.files.size() == 1);
  CHECK(read.files[0].path == index.files[0].path);
  test::write_file(path, head + first + second);
  CHECK(read_progress(directory.path()).value().files.size() == 2);
  test::write_file(path, head.substr(0, 5));
  CHECK(read_progress(directory.path()).status().code() == StatusCode::Corruption);
}

}  // namespace edgecase::cli
