#include "file/overwriting.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "edgecase/random.h"
#include "file/joint_sync.h"
#include "support/temp_directory.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using test::TempDirectory;

void make_file(const std::string& path, ByteView bytes) {
  auto file = posix_file_system().create_file(path);
  REQUIRE(file.ok());
  REQUIRE((*file)->append(bytes).ok());
  REQUIRE((*file)->sync().ok());
}

Bytes read_all(Result<std::unique_ptr<RandomAccessFile>> file) {
  REQUIRE(file.ok());
  Bytes bytes((*file)->size_bytes(), '?');
  REQUIRE((*file)->read(0, bytes.size(), bytes.data()).ok());
  return bytes;
}

TEST_CASE("posix files: zeros lie where they were asked for, and nowhere else") {
  const std::uint64_t seed = test::test_seed(31);
  CAPTURE(seed);
  SeededRandom random(seed);
  const TempDirectory directory;
  constexpr std::uint64_t kBlock = 4096;
  std::vector<Overwriting> stretches;
  std::vector<Bytes> want;
  const auto add = [&](std::uint64_t size, std::uint64_t offset, std::uint64_t bytes) {
    const std::string path = directory / std::to_string(want.size());
    Bytes content(size, 'x');
    make_file(path, content);
    // Part of it is cached, as of a file that was read.
    if (random.below(2) == 0) REQUIRE(read_all(posix_file_system().open_file(path)) == content);
    stretches.push_back({path, offset, bytes});
    want.push_back(content.replace(offset, bytes, Bytes(bytes, '\0')));
  };
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, kBlock - 1, kBlock,
                                   kBlock + 1, 100 * kBlock, 103 * kBlock + 7})
    add(size, 0, size);
  add(11u << 20, 5, (9u << 20) + 1);  // more than one write
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t size = 1 + random.below(40 * kBlock);
    const std::uint64_t offset = random.below(size);
    add(size, offset, random.below(size - offset + 1));
  }
  posix_file_system().overwrite(stretches);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CAPTURE(stretches[i].status.to_string());
    CHECK(stretches[i].status.ok());
    CHECK(read_all(posix_file_system().open_file(stretches[i].path)) == want[i]);
    CHECK(read_all(posix_file_system().open_uncached(stretches[i].path)) == want[i]);
  }
}

TEST_CASE("posix files: one that cannot be overwritten does not hinder others") {
  const TempDirectory directory;
  for (const char* name : {"a", "b", "c"}) make_file(directory / name, "something");
  std::vector<Overwriting> stretches{{directory / "a", 0, 9},
                                     {directory / "missing", 0, 9},
                                     {directory / "b", 0, 9, io_error("failed before")},
                                     {directory / "c", 4, 5}};
  posix_file_system().overwrite(stretches);
  CHECK(stretches[0].status.ok());
  CHECK(stretches[1].status.code() == StatusCode::NotFound);
  CHECK(stretches[2].status.message() == "failed before");
  CHECK(stretches[3].status.ok());
  const auto content = [&](const char* name) {
    return read_all(posix_file_system().open_file(directory / name));
  };
  CHECK(content("a") == Bytes(9, '\0'));
  CHECK(content("b") == "something");
  CHECK(content("c") == "some" + Bytes(5, '\0'));
}

TEST_CASE("posix files: a file is overwritten whole, or is not there") {
  const TempDirectory directory;
  make_file(directory / "a", Bytes(70'000, 'x'));
  CHECK(overwrite_file(posix_file_system(), directory / "a").value() == 70'000);
  CHECK(read_all(posix_file_system().open_file(directory / "a")) == Bytes(70'000, '\0'));
  CHECK(overwrite_file(posix_file_system(), directory / "b").status().code() ==
        StatusCode::NotFound);
}

TEST_CASE("a joint sync answers for each file") {
  const TempDirectory directory;
  constexpr std::size_t kCount = 2 * JointSync::kAtOnce + 3;
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const Descriptor reader(ends[0]), writer(ends[1]);  // which no system syncs
  const std::string pipe = "pipe";
  JointSync syncs;
  for (const std::size_t bad : {kCount, std::size_t{0}, std::size_t{70}, kCount - 1}) {
    CAPTURE(bad);
    std::vector<std::string> paths;
    std::vector<Descriptor> files;
    std::vector<Status> statuses(kCount, io_error("not yet"));
    for (std::size_t i = 0; i < kCount; ++i) {
      paths.push_back(directory / std::to_string(i));
      auto file = open_descriptor(paths.back(), O_RDWR | O_CREAT);
      REQUIRE(file.ok());
      REQUIRE(write_whole(*file, 0, "bytes", paths.back()).ok());
      files.push_back(*std::move(file));
    }
    std::vector<FileToSync> to_sync;
    for (std::size_t i = 0; i < kCount; ++i)
      to_sync.push_back(
          {i == bad ? &writer : &files[i], i == bad ? &pipe : &paths[i], &statuses[i]});
    syncs.sync(to_sync);
    for (std::size_t i = 0; i < kCount; ++i) {
      CAPTURE(i);
      CHECK(statuses[i].ok() == (i != bad));
    }
    if (bad < kCount) CHECK(statuses[bad].message().find("cannot sync pipe: ") == 0);
  }
}

}  // namespace
}  // namespace edgecase::engine
