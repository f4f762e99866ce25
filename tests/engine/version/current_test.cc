// CURRENT and its copy: which manifest is the store's, whatever a cut or damage leaves of the two.
#include "version/current.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "file/file_names.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

struct Names {
  Result<std::uint64_t> find() {
    damage = ok();
    return find_current(disk, "/m", damage);
  }

  test::MemoryFileSystem disk{{"/m"}};
  Status damage;
  const std::string current = current_path("/m");
  const std::string copy = current_copy_path("/m");
};

}  // namespace

TEST_CASE("CURRENT: a store that was never begun has none") {
  Names names;
  CHECK(names.find().status().code() == StatusCode::NotFound);
  CHECK(names.damage.ok());
}

TEST_CASE("CURRENT names the manifest that was written last, and so does its copy") {
  Names names;
  for (const std::uint64_t number : {7u, 8u, 4'000'000'000u}) {
    CAPTURE(number);
    REQUIRE(write_current(names.disk, "/m", number).ok());
    CHECK(*names.find() == number);
    CHECK(names.damage.ok());
    CHECK(*read_current(names.disk, names.copy) == number);
  }
}

TEST_CASE("CURRENT: where it is lost or damaged its copy stands in, and that is told") {
  for (const bool lost : {true, false}) {
    CAPTURE(lost);
    Names names;
    REQUIRE(write_current(names.disk, "/m", 7).ok());
    if (lost) {
      REQUIRE(names.disk.remove_file(names.current).ok());
    } else {
      names.disk.flip_bit(names.current, 2, 1);
    }
    CHECK(*names.find() == 7);
    CHECK(names.damage.code() == StatusCode::Corruption);
  }
}

TEST_CASE("CURRENT: without a whole copy its own damage is the answer") {
  for (const char* content : {"", "MANIFEST-7", "MANIFEST-x\n", "LOCK\n", "MANIFEST-000007\n\n",
                              "a name that is far longer than that of any manifest could ever be, "
                              "cut or not\n"}) {
    CAPTURE(content);
    Names names;
    names.disk.set_contents(names.current, ByteView(content));
    CHECK(names.find().status().code() == StatusCode::Corruption);
    names.disk.set_contents(names.copy, ByteView("LOCK\n"));
    CHECK(names.find().status().code() == StatusCode::Corruption);
  }
}

TEST_CASE("CURRENT: a drive that cannot be read is no store without a manifest") {
  Names names;
  REQUIRE(write_current(names.disk, "/m", 7).ok());
  names.disk.fail_nth(test::Operation::OpenFile, 1, EIO, test::FaultMode::Once);
  CHECK(names.find().status().code() == StatusCode::IoError);
}

TEST_CASE("CURRENT: a cut at any operation leaves the manifest before or the one after") {
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    Names names;
    REQUIRE(write_current(names.disk, "/m", 7).ok());
    names.disk.stop_at(nth);
    const bool written = write_current(names.disk, "/m", 8).ok();
    const bool stopped = names.disk.stopped();
    names.disk.stop_at(test::MemoryFileSystem::kNever);
    if (!stopped) return;
    names.disk.power_cut(nth, test::CutPolicy::Any);
    const auto found = names.find();
    CAPTURE(nth);
    REQUIRE(found.ok());
    CHECK((*found == 8 || (*found == 7 && !written)));
  }
  FAIL("it never ended");
}

}  // namespace edgecase::engine
