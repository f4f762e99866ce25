#include "target_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
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

TEST_CASE("target file: while it is written it has no name, whatever ends the process") {
  Directory directory;
  const int unnamed = open(directory.path.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) return;  // this file system knows no such files
  close(unnamed);
  const std::string path = (directory.path / "x.csv").string();
  for (const std::string text : {"first", "in its place"}) {
    const std::size_t before = directory.files();
    auto file = TargetFile::create(path);
    REQUIRE(file.ok());
    CHECK(file->write(text).ok());
    CHECK(directory.files() == before);
    CHECK(file->commit().ok());
    CHECK(contents(path) == text);
    CHECK(directory.files() == 1);
  }
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

TEST_CASE("an output that is a link or a pipe stays one") {
  Directory directory;
  const fs::path target = directory.path / "target";
  const fs::path link = directory.path / "link";
  std::ofstream(target) << "old";
  fs::permissions(target, fs::perms(0600));
  fs::create_symlink("target", link);
  auto file = TargetFile::open_output(link.string());
  REQUIRE(file.ok());
  CHECK(file->write("new").ok());
  CHECK(contents(target) == "old");
  CHECK(file->commit().ok());
  CHECK(fs::is_symlink(link));
  CHECK(contents(target) == "new");
  CHECK(fs::status(target).permissions() == fs::perms(0600));
  CHECK(directory.files() == 2);

  const fs::path fifo = directory.path / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  auto pipe = TargetFile::open_output(fifo.string());
  REQUIRE(pipe.ok());
  CHECK(pipe->write("through").ok());
  CHECK(pipe->commit().ok());
  char text[16];
  CHECK(read(reader, text, sizeof text) == 7);
  close(reader);
  CHECK(fs::is_fifo(fifo));

  CHECK_FALSE(TargetFile::open_output(directory.path.string()).ok());
  CHECK(TargetFile::open_output((directory.path / "fresh").string()).ok());
  CHECK(directory.files() == 3);
}

TEST_CASE("an output that stdout leads to already goes on where that is") {
  Directory directory;
  const fs::path path = directory.path / "log";
  std::ofstream(path) << "before ";
  const int kept = dup(STDOUT_FILENO);
  const int redirected = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(kept >= 0);
  REQUIRE(redirected >= 0);
  REQUIRE(lseek(redirected, 0, SEEK_END) == 7);
  REQUIRE(dup2(redirected, STDOUT_FILENO) == STDOUT_FILENO);
  close(redirected);
  Status status;
  {
    auto file = TargetFile::open_output("/dev/stdout");
    status = file.ok() ? file->write("ours") : file.status();
    if (status.ok()) status = file->commit();
  }
  const bool goes_on = write(STDOUT_FILENO, " after", 6) == 6;
  REQUIRE(dup2(kept, STDOUT_FILENO) == STDOUT_FILENO);
  close(kept);
  CHECK(status.ok());
  CHECK(goes_on);
  CHECK(contents(path) == "before ours after");
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
