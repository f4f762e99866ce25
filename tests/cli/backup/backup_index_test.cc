#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "backup/backup.h"
#include "edgecase/machine.h"
#include "import/importer.h"
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

void check_read(const std::string& directory, const BackupIndex& index) {
  const BackupIndex read = read_index(directory).value();
  CHECK(read.made == index.made);
  CHECK(read.state == index.state);
  CHECK(read.readings() == 7);
  REQUIRE(read.files.size() == 2);
  CHECK(read.files[1].path == index.files[1].path);
  CHECK(read.files[1].size_bytes == 71);
}

}  // namespace

TEST_CASE("backup index: written and read back") {
  const edgecase::test::TempDirectory directory;
  CHECK(read_index(directory.path()).status().code() == StatusCode::NotFound);
  const BackupIndex index = example();
  CHECK(write_index(directory.path(), index).ok());
  check_read(directory.path(), index);
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
  CHECK(code_of(R"({"format":3})") == StatusCode::Unsupported);
  for (const char* outside : {"/etc/passwd", "../x", "a/../../x", ""}) {
    CAPTURE(outside);
    CHECK(code_of(R"({"format":1,"files":[{"file":")" + std::string(outside) + R"("}]})") ==
          StatusCode::Corruption);
  }
  CHECK(code_of(R"({"format":1,"files":[{"file":"a..b/.../c"}]})") == StatusCode::Ok);
}

TEST_CASE("backup index: one that says whose devices are is of format 2") {
  const edgecase::test::TempDirectory directory;
  BackupIndex index = example();
  const auto format = [&] {
    CHECK(write_index(directory.path(), index).ok());
    CHECK(read_index(directory.path()).value().state == index.state);
    std::ifstream file(index_path(directory.path()));
    return nlohmann::json::parse(file)["format"].get<int>();
  };
  CHECK(format() == 1);
  index.state["origins"] = nlohmann::ordered_json::array({{{"origin", 1}}});
  CHECK(format() == kBackupFormat);
}

// Written once, read for good.
TEST_CASE("backup index: of format 2 is read as it was written") {
  const std::string golden = std::string(EDGECASE_GOLDEN_DIRECTORY) + "/backup-v2.json";
  const edgecase::test::TempDirectory directory;
  BackupIndex index = example();
  index.state["devices"] = {{{"namespace", "default"}, {"device", "a"}, {"owner", "alice"}}};
  index.state["origins"] = {{{"origin", 1}, {"store", "00112233"}}};
  index.state["device_origins"] = {{{"namespace", "default"}, {"device", "a"}, {"origin", 1}}};
  index.state["retention"] = {{{"select", "*/*"}, {"keep", "7d"}, {"tiers", "1m:90d"}}};
  REQUIRE(write_index(directory.path(), index).ok());
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string written = text_of(index_path(directory.path()));
  if (std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr) test::write_file(golden, written);
  CHECK(written == text_of(golden));
  test::write_file(index_path(directory.path()), text_of(golden));
  check_read(directory.path(), index);
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

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Status unpack(const std::string& path, std::string& out) {
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<GzipReader> reader, GzipReader::open(path));
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, reader->read(out));
    if (!more) return ok();
  }
}

void pack(const std::string& path, std::string_view text) {
  const auto file = GzipFile::create(path).value();
  REQUIRE(file->write(text).ok());
  REQUIRE(file->commit().ok());
  CHECK(file->size_bytes() == read_file(path).size());
}

}  // namespace

TEST_CASE("gzip: what was written is read back, and damage is found wherever it is") {
  const edgecase::test::TempDirectory directory;
  const std::string path = directory / "x.gz";
  SeededRandom random(20261122);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(random.next() % 1000) + "\n";
  pack(path, text);
  std::string out;
  CHECK(unpack(path, out).ok());
  CHECK(out == text);

  const std::string bytes = read_file(path);
  CHECK(bytes.size() < text.size());
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
    CAPTURE(cut);
    test::write_file(path, bytes.substr(0, cut));
    out.clear();
    CHECK(unpack(path, out).code() == StatusCode::Corruption);
  }
  for (int i = 0; i < 50; ++i) {
    std::string damaged = bytes;
    // The first ten bytes name no content: time, system.
    const std::size_t at = 10 + random.next() % (bytes.size() - 10);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random.next() % 8)));
    CAPTURE(at);
    test::write_file(path, damaged);
    out.clear();
    CHECK_FALSE((unpack(path, out).ok() && out == text));
  }
  // Two, one behind the other, are one.
  test::write_file(path, bytes + bytes);
  out.clear();
  CHECK(unpack(path, out).ok());
  CHECK(out == text + text);
  CHECK(GzipReader::open(directory / "none").status().code() == StatusCode::NotFound);
}

TEST_CASE("gzip: readings in lines longer and shorter than what is read at once") {
  const edgecase::test::TempDirectory directory;
  const std::string path = directory / "x.ndjson.gz";
  std::string text;
  std::size_t count = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, std::size_t{3'000'000}, std::size_t{100}}) {
    text += R"({"namespace":"n","device":"d","sensor":"s","time":)" + std::to_string(count++) +
            R"(,"value":")" + std::string(size, 'x') + "\"}\n";
  }
  text += "no reading\n";
  text += R"({"namespace":"n","device":"d","sensor":"s","time":9,"value":1})";  // without an end
  pack(path, text);
  const std::string none;
  const auto source = ReadingSource::open(path, "", none).value();
  std::size_t read = 0;
  wire::ReadingBatch batch;
  while (true) {
    batch.clear();
    const auto more = source->next(batch);
    REQUIRE(more.ok());
    if (!*more) break;
    read += batch.readings.size();
  }
  CHECK(read == count + 1);
  CHECK(source->bad_lines() == 1);
  REQUIRE(source->errors().size() == 1);
  CHECK(source->errors().front().line == count + 1);

  const std::string table = directory / "x.csv.gz";
  pack(table, "device,sensor,time,value\nd,s,0,1\nd,s,1,2\n");
  const std::string plant = "plant";
  const auto rows = ReadingSource::open(table, "", plant).value();
  batch.clear();
  CHECK(rows->next(batch).value());
  CHECK(batch.readings.size() == 2);
}

}  // namespace edgecase::cli
