#include "config/file_rights.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "config/configuration.h"
#include "support/temp_directory.h"

namespace edgecase::config {
namespace {

constexpr uid_t kOwn = 1000;
constexpr uid_t kService = 990;
constexpr uid_t kOther = 1001;

std::string judged(mode_t mode, uid_t owner, const Owners& owners) {
  struct stat facts {};
  facts.st_mode = mode;
  facts.st_uid = owner;
  return check_file_rights("a.toml", facts, owners).message();
}

TEST_CASE("a file of root's, of one's own or of the service's is believed, its group may write") {
  const Owners owners{.own = kOwn, .service = kService};
  for (const uid_t owner : {uid_t{0}, kOwn, kService}) {
    for (const mode_t mode : {0600u, 0640u, 0644u, 0664u, 0660u, 0444u}) {
      CAPTURE(owner);
      CAPTURE(mode);
      CHECK(judged(S_IFREG | mode, owner, owners).empty());
    }
  }
}

TEST_CASE("a file that everybody may write is refused, whosever it is") {
  const Owners owners{.own = kOwn, .service = kService};
  for (const uid_t owner : {uid_t{0}, kOwn, kService, kOther}) {
    for (const mode_t mode : {0666u, 0646u, 0602u, 0777u}) {
      CAPTURE(owner);
      CAPTURE(mode);
      CHECK(judged(S_IFREG | mode, owner, owners) ==
            "a.toml:1:1: file: everybody on this machine may change it; to do: see what it says, "
            "then chmod o-w a.toml");
    }
  }
  CHECK_FALSE(judged(S_IFIFO | 0666, 0, owners).empty());
}

TEST_CASE("a file of somebody else's is refused") {
  const std::string message =
      "a.toml:1:1: file: belongs to the user with the number 1001, neither to root nor to the "
      "daemon's user; to do: chown root a.toml";
  CHECK(judged(S_IFREG | 0600, kOther, {.own = kOwn, .service = kService}) == message);
  CHECK(judged(S_IFREG | 0644, kOther, {.own = 0, .service = {}}) == message);
  // No service user is not user 0, or whoever it may be.
  CHECK(judged(S_IFREG | 0644, kService, {.own = kOwn, .service = {}}).find(" 990,") !=
        std::string::npos);
}

TEST_CASE("what is no file of a directory is not judged") {
  CHECK(judged(S_IFCHR | 0666, 0, {.own = kOwn, .service = {}}).empty());
  CHECK(judged(S_IFIFO | 0600, kOwn, {.own = kOwn, .service = {}}).empty());
}

TEST_CASE("the rights of the file that is read count") {
  test::TempDirectory directory;
  Sources sources;
  sources.file = directory / "edgecase.toml";
  test::write_file(sources.file, "[http]\nthreads = 3\n");
  for (const mode_t mode : {0600u, 0644u, 0664u}) {
    CAPTURE(mode);
    REQUIRE(chmod(sources.file.c_str(), mode) == 0);
    const auto loaded = load_configuration(sources);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    CHECK(loaded->settings.http.threads == 3);
  }
  REQUIRE(chmod(sources.file.c_str(), 0646) == 0);
  CHECK(load_configuration(sources).status().code() == StatusCode::InvalidArgument);
  // What a link leads to is what counts.
  REQUIRE(symlink(sources.file.c_str(), (directory / "link").c_str()) == 0);
  sources.file = directory / "link";
  CHECK_FALSE(load_configuration(sources).ok());
  sources.file = "/dev/null";
  CHECK(load_configuration(sources).ok());
}

TEST_CASE("a file that was given to somebody else is not read") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root gives files away");
    return;
  }
  test::TempDirectory directory;
  Sources sources;
  sources.file = directory / "edgecase.toml";
  test::write_file(sources.file, "[http]\nthreads = 3\n");
  REQUIRE(chown(sources.file.c_str(), 54321, 0) == 0);
  const Status status = load_configuration(sources).status();
  CHECK(status.message().find("number 54321") != std::string::npos);
}

}  // namespace
}  // namespace edgecase::config
