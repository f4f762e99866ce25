#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "file/posix_file_system.h"
#include "support/temp_directory.h"

namespace edgecase::engine {
namespace {

Descriptor opened(const std::string& path, int flags) {
  auto file = open_descriptor(path, flags);
  REQUIRE(file.ok());
  return std::move(file).value();
}

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("a descriptor closes itself, once, whoever it was given to") {
  const test::TempDirectory directory;
  int number = -1;
  {
    Descriptor file = opened(directory / "a", O_CREAT | O_RDWR);
    number = file.number();
    Descriptor other = std::move(file);
    CHECK(other.number() == number);
    CHECK(is_open(number));
    // Not inherited by what the process starts.
    CHECK((::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("errors of drives have the code that decides what happens next, and name the file") {
  struct Case {
    int error;
    StatusCode want;
  };
  for (const Case& c :
       {Case{ENOSPC, StatusCode::OutOfSpace}, Case{EDQUOT, StatusCode::OutOfSpace},
        Case{EROFS, StatusCode::IoError}, Case{EIO, StatusCode::IoError},
        Case{ENODEV, StatusCode::IoError}, Case{ENXIO, StatusCode::IoError},
        Case{EACCES, StatusCode::NotAllowed}, Case{EPERM, StatusCode::NotAllowed},
        Case{EMFILE, StatusCode::Busy}, Case{ENAMETOOLONG, StatusCode::InvalidArgument}}) {
    const Status status = errno_status(c.error, "write", "/d/1.val");
    CAPTURE(status.to_string());
    CHECK(status.code() == c.want);
    CHECK(status.message().find("cannot write /d/1.val: ") == 0);
  }
}

TEST_CASE("what is written whole is read whole, and as far as the file goes") {
  const test::TempDirectory directory;
  const std::string path = directory / "a";
  const Descriptor file = opened(path, O_CREAT | O_RDWR);
  const Bytes bytes(100'000, 'b');
  REQUIRE(write_whole(file, 10, bytes, path).ok());
  const auto size = size_of(file, path);
  REQUIRE(size.ok());
  CHECK(*size == 100'010);

  Bytes all(200'000, '?');
  const auto got = read_whole(file, 10, all.size(), all.data(), path);
  REQUIRE(got.ok());
  CHECK(*got == bytes.size());
  CHECK(all.substr(0, *got) == bytes);

  // The second place is filled from where the first ends.
  struct Case {
    std::uint64_t offset;
    std::size_t want;
  };
  for (const Case& c : {Case{0, 30}, Case{100'000, 10}, Case{99'995, 15}, Case{100'010, 0}}) {
    CAPTURE(c.offset);
    std::array<char, 10> first{};
    std::array<char, 20> second{};
    const auto two = read_two_whole(file, c.offset, first, second, path);
    REQUIRE(two.ok());
    REQUIRE(*two == c.want);
    Bytes together(first.data(), first.size());
    together.append(second.data(), second.size());
    const Bytes zeros(10, '\0');
    CHECK(together.substr(0, *two) ==
          (c.offset == 0 ? zeros + Bytes(20, 'b') : Bytes(c.want, 'b')));
  }
}

TEST_CASE("what a file that is not open for it is asked fails and names the path") {
  const test::TempDirectory directory;
  const std::string path = directory / "a";
  opened(path, O_CREAT | O_RDWR);
  const Descriptor file = opened(path, O_WRONLY);
  char byte = 0;
  const Status read = read_whole(file, 0, 1, &byte, path).status();
  CHECK_FALSE(read.ok());
  CHECK(read.message().find(path) != std::string::npos);
  CHECK(open_descriptor(directory / "none", O_RDONLY).status().code() == StatusCode::NotFound);
}

TEST_CASE("files are synced together, more than go at once, and each is told what became of it") {
  const test::TempDirectory directory;
  constexpr std::size_t kFiles = JointSync::kAtOnce + 6;
  constexpr std::size_t kBad = 3;
  std::vector<Descriptor> open;
  std::vector<std::string> paths;
  std::vector<Status> statuses(kFiles, io_error("nobody has asked"));
  for (std::size_t i = 0; i < kFiles; ++i) {
    paths.push_back(directory / std::to_string(i));
    open.push_back(i == kBad ? Descriptor() : opened(paths.back(), O_CREAT | O_RDWR));
    if (i != kBad) REQUIRE(write_whole(open.back(), 0, "bytes", paths.back()).ok());
  }
  std::vector<FileToSync> files;
  for (std::size_t i = 0; i < kFiles; ++i)
    files.push_back({.file = &open[i], .path = &paths[i], .status = &statuses[i]});
  JointSync syncs;
  syncs.sync(files);
  for (std::size_t i = 0; i < kFiles; ++i) {
    CAPTURE(i);
    CHECK(statuses[i].ok() == (i != kBad));
  }
  CHECK(statuses[kBad].message().find(paths[kBad]) != std::string::npos);
}

}  // namespace edgecase::engine
