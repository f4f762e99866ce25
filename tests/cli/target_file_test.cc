#include "target_file.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace edgecase::cli {
namespace {

namespace fs = std::filesystem;

struct Directory {
  Directory() {
    std::string name = (fs::temp_directory_path() / "edgecase-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("a file can take on the permissions of the one it replaces") {
  Directory directory;
  const fs::path path = directory.path / "edgecase.toml";
  std::ofstream(path) << "old";
  fs::permissions(path, fs::perms(0640));
  auto file = TargetFile::create(path.string());
  REQUIRE(file.ok());
  CHECK(file->write("new").ok());
  CHECK(file->keep_permissions().ok());
  CHECK(fs::status(path).permissions() == fs::perms(0640));
  CHECK(file->commit().ok());
  CHECK(contents(path) == "new");
  CHECK(fs::status(path).permissions() == fs::perms(0640));
  auto other = TargetFile::create((directory.path / "none").string());
  REQUIRE(other.ok());
  CHECK(other->keep_permissions().ok());
}

TEST_CASE("a file appears whole, and only when it is committed") {
  Directory directory;
  const std::string path = (directory.path / "x.csv").string();
  auto file = TargetFile::create(path);
  REQUIRE(file.ok());
  CHECK(file->write("half, ").ok());
  CHECK_FALSE(fs::exists(path));
  CHECK(file->write("whole").ok());
  CHECK(file->commit().ok());
  CHECK(contents(path) == "half, whole");
  CHECK(directory.files() == 1);
}

TEST_CASE("what is not committed leaves nothing, and the old file stays") {
  Directory directory;
  const std::string path = (directory.path / "x.csv").string();
  std::ofstream(path) << "old";
  {
    auto file = TargetFile::create(path);
    REQUIRE(file.ok());
    CHECK(file->write("new").ok());
  }
  CHECK(contents(path) == "old");
  CHECK(directory.files() == 1);
}

TEST_CASE("a place that cannot be written is told at once") {
  Directory directory;
  const auto file = TargetFile::create((directory.path / "no" / "x").string());
  CHECK(file.status().code() == StatusCode::NotFound);
}

TEST_CASE("an interrupt removes what was begun, with message and exit code") {
  Directory directory;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    stop_on_interrupt("stopped\n", 6);
    auto file = TargetFile::create((directory.path / "x").string());
    if (!file.ok() || !file->write("half").ok()) _exit(99);
    raise(SIGINT);
    _exit(98);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  close(ends[1]);
  char message[64];
  const ssize_t got = read(ends[0], message, sizeof message);
  close(ends[0]);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 6);
  CHECK(std::string(message, static_cast<std::size_t>(got < 0 ? 0 : got)) == "stopped\n");
  CHECK(directory.files() == 0);
}

}  // namespace
}  // namespace edgecase::cli
