#include "storage/drive.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "support/temp_directory.h"
#include "support/test_share.h"

namespace edgecase::cli::storage {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Files files_in(const std::string& directory) {
  Files files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::string& bytes = files[entry.path().filename()];
    bytes.resize(entry.file_size());
    std::ifstream(entry.path(), std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  return files;
}

Files tables_in(const std::string& directory) {
  Files files = files_in(directory);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".val"); });
  return files;
}

// The values of a store, as far as a move looks at them.
struct Place {
  Place() {
    fs::create_directory(from);
    fs::create_directory(to);
    put(from + "/IDENTITY", "store one");
    put(from + "/LOCK", "");
    put(from + "/RESERVE", "....");
    put(from + "/AUDIT-HEAD", "head");
    for (int i = 1; i <= 5; ++i) {
      put(from + "/00000000000" + std::to_string(i) + ".val",
          std::string(static_cast<std::size_t>(i) << 20, static_cast<char>('a' + i)));
    }
  }
  test::TempDirectory directory;
  const std::string from = directory.path() + "/old";
  const std::string to = directory.path() + "/new";
  const ValuesMove move{from, to};
};

bool go_on(std::uint64_t) {
  return true;
}

TEST_CASE("values: a move takes every table and the identity along, and leaves nothing behind") {
  const Place place;
  const Files before = tables_in(place.from);
  const Result<MovePlan> plan = place.move.plan();
  REQUIRE(plan.ok());
  CHECK(plan->files == 5);
  CHECK(plan->bytes == std::uint64_t{15} << 20);
  REQUIRE(place.move.copy(go_on).ok());
  CHECK(tables_in(place.to) == before);
  CHECK(tables_in(place.from) == before);
  CHECK(ValuesMove::moved_from(place.to) == place.from);
  REQUIRE(place.move.remove_old().ok());
  CHECK_FALSE(fs::exists(place.from));
  Files wanted = before;
  wanted["IDENTITY"] = "store one";
  wanted["AUDIT-HEAD"] = "head";
  CHECK(files_in(place.to) == wanted);
}

TEST_CASE("values: a move that is stopped anywhere leaves the old ones whole, and goes on") {
  for (int steps = 0; steps < 15; steps += static_cast<int>(test::share_step())) {
    CAPTURE(steps);
    const Place place;
    const Files before = files_in(place.from);
    int left = steps;
    const Status stopped = place.move.copy([&left](std::uint64_t) { return left-- > 0; });
    REQUIRE(stopped.code() == StatusCode::Cancelled);
    CHECK(files_in(place.from) == before);
    CHECK_FALSE(fs::exists(place.to + "/IDENTITY"));

    // Only what is missing is copied.
    const Result<MovePlan> plan = place.move.plan();
    REQUIRE(plan.ok());
    std::uint64_t copied_bytes = 0;
    REQUIRE(place.move
                .copy([&copied_bytes](std::uint64_t bytes) {
                  copied_bytes += bytes;
                  return true;
                })
                .ok());
    CHECK(copied_bytes == plan->bytes);
    CHECK(tables_in(place.to) == tables_in(place.from));
  }
}

TEST_CASE("values: what the store changed after a stop is noticed") {
  const Place place;
  REQUIRE(place.move.copy(go_on).ok());
  fs::remove(place.from + "/000000000002.val");
  put(place.from + "/000000000009.val", "new");
  // As an erasure does: in place, of the same size.
  const std::string erased = place.from + "/000000000003.val";
  const auto written = fs::last_write_time(erased);
  put(erased, std::string(fs::file_size(erased), '\0'));
  fs::last_write_time(erased, written + std::chrono::milliseconds(4));
  put(place.to + "/000000000004.val.moving", "torn");
  REQUIRE(place.move.copy(go_on).ok());
  CHECK(tables_in(place.to) == tables_in(place.from));
  CHECK_FALSE(fs::exists(place.to + "/000000000004.val.moving"));
}

TEST_CASE("values: a deletion that was cut short is done again") {
  const Place place;
  REQUIRE(place.move.copy(go_on).ok());
  const Files moved = tables_in(place.to);
  fs::remove(place.from + "/000000000001.val");
  fs::remove(place.from + "/LOCK");
  REQUIRE(place.move.remove_old().ok());
  CHECK_FALSE(fs::exists(place.from));
  CHECK(tables_in(place.to) == moved);
  CHECK(ValuesMove::moved_from(place.to).empty());
  // Once more: nothing to do, nothing lost.
  REQUIRE(place.move.remove_old().ok());
  CHECK(tables_in(place.to) == moved);
}

TEST_CASE("values: nothing of another store is overwritten or deleted") {
  const Place place;
  put(place.to + "/IDENTITY", "store two");
  CHECK(place.move.copy(go_on).code() == StatusCode::AlreadyExists);
  CHECK(place.move.remove_old().code() == StatusCode::NotAllowed);
  CHECK(tables_in(place.from).size() == 5);
  fs::remove(place.to + "/IDENTITY");
  put(place.to + "/000000000001.val", "not ours");
  CHECK(place.move.copy(go_on).code() == StatusCode::AlreadyExists);
  CHECK(tables_in(place.to).at("000000000001.val") == "not ours");
  fs::remove(place.from + "/IDENTITY");
  CHECK(place.move.plan().status().code() == StatusCode::NotFound);
  CHECK(place.move.copy(go_on).code() == StatusCode::NotFound);
}

}  // namespace
}  // namespace edgecase::cli::storage
