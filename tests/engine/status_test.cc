#include "edgecase/status.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

namespace edgecase::test {

TEST_CASE("status: facts go with it, whatever words are put around") {
  const Status failed =
      Status::of_file(StatusCode::IoError, "cannot write ", "/d/7.val", ": no luck", EIO)
          .on(Drive::Values);
  CHECK(failed.message() == "cannot write /d/7.val: no luck");
  const Status told = failed.with_context("the flush: ", "; later").on(Drive::Metadata);
  CHECK(told.message() == "the flush: cannot write /d/7.val: no luck; later");
  for (const Status& each : {failed, told, failed.in_file("/other"), failed.as(StatusCode::Busy)}) {
    CAPTURE(each.to_string());
    CHECK(each.file() == "/d/7.val");
    CHECK(each.drive() == Drive::Values);
    CHECK(each.system_error() == EIO);
  }
  CHECK(failed.as(StatusCode::Busy).code() == StatusCode::Busy);
  CHECK(failed.as(StatusCode::Busy).message() == failed.message());
  const Result<int> result = Result<int>(io_error("x")).on(Drive::Metadata);
  CHECK(result.status().drive() == Drive::Metadata);
}

TEST_CASE("status: one that is of no file, or of one too far behind, names none") {
  CHECK(busy("later").file().empty());
  CHECK(busy("later").drive() == Drive::None);
  CHECK(busy("later").system_error() == 0);
  CHECK(invalid_argument("is cut").in_file("/d/KEYS-1").message() == "/d/KEYS-1: is cut");
  CHECK(invalid_argument("is cut").in_file("/d/KEYS-1").file() == "/d/KEYS-1");
  CHECK(corruption_in("/d/x", ": cut").with_context(std::string(70'000, ' ')).file().empty());
}

TEST_CASE("status: nothing becomes of one that is ok") {
  for (const Status& each : {ok().on(Drive::Values), ok().with_context("a", "b"),
                             ok().in_file("/x"), Result<int>(1).on(Drive::Values).status()}) {
    CHECK(each.ok());
    CHECK(each.drive() == Drive::None);
    CHECK(each.message().empty());
  }
}

}  // namespace edgecase::test
