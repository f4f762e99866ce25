#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "file/posix_file_system.h"
#include "support/temp_directory.h"
#include "support/test_seed.h"

using namespace edgecase;
using engine::PosixLogFile;
using test::TempDirectory;

namespace {

Bytes contents_of(const std::string& path) {
  auto file = posix_file_system().open_file(path);
  REQUIRE(file.ok());
  Bytes bytes((*file)->size_bytes(), '\0');
  const auto got = (*file)->read(0, bytes.size(), bytes.data());
  REQUIRE(got.ok());
  REQUIRE(*got == bytes.size());
  return bytes;
}

Bytes random_bytes(SeededRandom& random, std::size_t size) {
  Bytes bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

}  // namespace

TEST_CASE("posix files: appends of every size arrive in order") {
  const std::uint64_t seed = test::test_seed(5);
  CAPTURE(seed);
  SeededRandom random(seed);
  const TempDirectory directory;
  auto file = posix_file_system().create_file(directory / "a");
  REQUIRE(file.ok());
  Bytes want;
  for (int i = 0; i < 200; ++i) {
    const Bytes piece = random_bytes(random, random.below(i % 20 == 0 ? 700'000 : 5'000));
    REQUIRE((*file)->append(piece).ok());
    want += piece;
    REQUIRE((*file)->size_bytes() == want.size());
    if (i % 50 == 49) {
      REQUIRE((*file)->sync().ok());
      REQUIRE(contents_of(directory / "a") == want);
    }
  }
}

TEST_CASE("posix files: reads stop at the end of the file") {
  const TempDirectory directory;
  {
    auto file = posix_file_system().create_file(directory / "a");
    REQUIRE(file.ok());
    REQUIRE((*file)->append("0123456789").ok());
    REQUIRE((*file)->sync().ok());
  }
  auto file = posix_file_system().open_file(directory / "a");
  REQUIRE(file.ok());
  CHECK((*file)->size_bytes() == 10);
  CHECK((*file)->path() == directory / "a");
  char buffer[20];
  CHECK((*file)->read(4, 3, buffer).value() == 3);
  CHECK(ByteView(buffer, 3) == "456");
  CHECK((*file)->read(8, 20, buffer).value() == 2);
  CHECK((*file)->read(10, 1, buffer).value() == 0);
  CHECK((*file)->read(1000, 1, buffer).value() == 0);
}

TEST_CASE("posix files: each failure has its code and names the path") {
  const TempDirectory directory;
  FileSystem& files = posix_file_system();
  const std::string missing = directory / "missing";
  CHECK(files.open_file(missing).status().code() == StatusCode::NotFound);
  CHECK(files.open_log_file(missing).status().code() == StatusCode::NotFound);
  CHECK(files.remove_file(missing).code() == StatusCode::NotFound);
  CHECK(files.file_size(missing).status().code() == StatusCode::NotFound);
  CHECK(files.rename_file(missing, directory / "b").code() == StatusCode::NotFound);
  CHECK(files.list_directory(missing).status().code() == StatusCode::NotFound);
  CHECK(files.sync_directory(missing).code() == StatusCode::NotFound);
  CHECK(files.space(missing).status().code() == StatusCode::NotFound);
  CHECK(files.open_file(missing).status().message().find(missing) != std::string::npos);

  REQUIRE(files.create_file(directory / "a").ok());
  CHECK(files.create_file(directory / "a").status().code() == StatusCode::AlreadyExists);
  CHECK(files.create_log_file(directory / "a", 4096).status().code() == StatusCode::AlreadyExists);
  CHECK(files.create_directory(directory / "a").code() == StatusCode::AlreadyExists);
  CHECK(files.create_file(directory / "a/b").status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("posix files: a file that failed once stays failed") {
  // /dev/full takes no byte: the same answer as a full drive.
  if (::access("/dev/full", W_OK) != 0) {
    MESSAGE("skipped: no /dev/full here");
    return;
  }
  auto descriptor = engine::open_descriptor("/dev/full", O_RDWR);
  REQUIRE(descriptor.ok());
  PosixLogFile file(std::move(descriptor).value(), "/dev/full", 1 << 20);
  const Status first = file.write(0, "record");
  CHECK(first.code() == StatusCode::OutOfSpace);
  CHECK(file.write(0, "").code() == StatusCode::OutOfSpace);
  CHECK(file.sync().message() == first.message());
}

TEST_CASE("posix files: directories list what they hold, names can be replaced and removed") {
  const TempDirectory directory;
  FileSystem& files = posix_file_system();
  REQUIRE(files.create_directory(directory / "sub").ok());
  REQUIRE(files.create_directory(directory / "sub").ok());
  for (const char* name : {"a", "b"}) {
    auto file = files.create_file(directory / name);
    REQUIRE(file.ok());
    REQUIRE((*file)->append(name).ok());
    REQUIRE((*file)->sync().ok());
  }
  REQUIRE(files.rename_file(directory / "a", directory / "b").ok());
  REQUIRE(files.sync_directory(directory.path()).ok());
  CHECK(contents_of(directory / "b") == "a");
  auto listed = files.list_directory(directory.path());
  REQUIRE(listed.ok());
  std::map<std::string, bool> names;
  for (const DirectoryEntry& entry : *listed) names[entry.name] = entry.is_directory;
  CHECK(names == std::map<std::string, bool>{{"b", false}, {"sub", true}});
  CHECK(files.file_size(directory / "b").value() == 1);
  REQUIRE(files.remove_file(directory / "b").ok());
  CHECK(files.file_size(directory / "b").status().code() == StatusCode::NotFound);
}

TEST_CASE("posix files: space is that of the file system the path lies on") {
  const TempDirectory directory;
  REQUIRE(posix_file_system().create_directory(directory / "sub").ok());
  const auto space = posix_file_system().space(directory.path());
  REQUIRE(space.ok());
  CHECK(space->total_bytes > 0);
  CHECK(space->free_bytes <= space->total_bytes);
  CHECK(posix_file_system().space(directory / "sub")->device == space->device);
}

TEST_CASE("posix files: a lock excludes a second holder, also within one process") {
  const TempDirectory directory;
  auto first = posix_file_system().lock_file(directory / "LOCK");
  REQUIRE(first.ok());
  const auto second = posix_file_system().lock_file(directory / "LOCK");
  CHECK(second.status().code() == StatusCode::Locked);
  first.value().reset();
  CHECK(posix_file_system().lock_file(directory / "LOCK").ok());
}

TEST_CASE("posix log file: every block is there before the first write") {
  const TempDirectory directory;
  const std::uint64_t capacity = 300'000;  // not whole pages
  auto file = posix_file_system().create_log_file(directory / "log", capacity);
  REQUIRE(file.ok());
  CHECK((*file)->capacity_bytes() == capacity);
  struct stat state {};
  REQUIRE(::stat((directory / "log").c_str(), &state) == 0);
  CHECK(state.st_size == static_cast<off_t>(capacity));
  CHECK(state.st_blocks * 512 >= static_cast<off_t>(capacity));
  CHECK(contents_of(directory / "log") == Bytes(capacity, '\0'));
}

TEST_CASE("posix log file: what does not fit on the drive leaves nothing behind") {
  const TempDirectory directory;
  const std::uint64_t free = posix_file_system().space(directory.path())->free_bytes;
  const auto file = posix_file_system().create_log_file(directory / "log", free + (1ull << 40));
  CHECK(file.status().code() == StatusCode::OutOfSpace);
  // Nothing was taken meanwhile either: others on this drive are not to notice.
  CHECK(posix_file_system().file_size(directory / "log").status().code() == StatusCode::NotFound);
}

TEST_CASE("posix log file: both ways of writing give the same file, synced, written out or not") {
  const std::uint64_t seed = test::test_seed(17);
  CAPTURE(seed);
  SeededRandom random(seed);
  const TempDirectory directory;
  const std::uint64_t capacity = 3 * PosixLogFile::kMappingBytes + 777;
  Bytes want(capacity, '\0');
  auto file = posix_file_system().create_log_file(directory / "log", capacity);
  REQUIRE(file.ok());
  for (int round = 0; round < 2; ++round) {
    std::uint64_t offset = 0;
    std::uint64_t writes = 0;
    while (offset < capacity) {
      const std::uint64_t size = std::min<std::uint64_t>(
          capacity - offset, random.below(random.below(50) == 0 ? 30'000 : 200));
      const Bytes bytes = random_bytes(random, size);
      REQUIRE((*file)->write(offset, bytes).ok());
      want.replace(offset, size, bytes);
      offset += size;
      if (round == 1) (*file)->begin_write_out(offset);
      if (random.below(400) == 0) {
        const Bytes head = random_bytes(random, 100);
        REQUIRE((*file)->write_durably(0, head).ok());
        want.replace(0, head.size(), head);
      }
      if (random.below(400) == 0) (*file)->rest();
      // Runs with few and with many writes between two syncs.
      if (++writes % (offset < capacity / 2 ? 10 : 500) == 0) REQUIRE((*file)->sync().ok());
    }
    CHECK(contents_of(directory / "log") == want);  // what kill -9 would leave
    REQUIRE((*file)->sync().ok());
    auto reopened = posix_file_system().open_log_file(directory / "log");
    REQUIRE(reopened.ok());
    CHECK((*reopened)->capacity_bytes() == capacity);
    file = std::move(reopened);
  }
}

TEST_CASE("posix log file: sync runs beside write") {
  const TempDirectory directory;
  const std::uint64_t capacity = 1u << 20;
  auto file = posix_file_system().create_log_file(directory / "log", capacity);
  REQUIRE(file.ok());
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::thread syncer([&] {
    while (!done) failures += !(*file)->sync().ok();
  });
  Bytes want(capacity, '\0');
  for (std::uint64_t offset = 0; offset + 64 <= capacity; offset += 64) {
    const Bytes bytes(64, static_cast<char>('a' + offset / 64 % 26));
    failures += !(*file)->write(offset, bytes).ok();
    want.replace(offset, bytes.size(), bytes);
  }
  done = true;
  syncer.join();
  CHECK(failures == 0);
  CHECK(contents_of(directory / "log") == want);
}
