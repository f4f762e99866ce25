#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "file/posix_file_system.h"
#include "support/temp_directory.h"

using namespace edgecase;
using edgecase::test::TempDirectory;

TEST_CASE("posix log file: a page that the drive cannot give does not end the process") {
  constexpr std::uint64_t kCapacity = 1u << 20;
  const TempDirectory directory;
  auto created = engine::PosixLogFile::create(directory / "log", kCapacity);
  REQUIRE(created.ok());
  LogFile& log = **created;
  std::uint64_t offset = 0;
  const auto write = [&](char byte) {
    offset += 100;
    return log.write(offset - 100, Bytes(100, byte));
  };
  // The last of them are copies into the mapping.
  for (std::uint32_t i = 0; i < engine::PosixLogFile::kKernelWrites + 100; ++i)
    REQUIRE(write('a').ok());
  // What lies behind the end of a file no drive has: its pages are gone, as those of a full one.
  REQUIRE(::truncate((directory / "log").c_str(), 0) == 0);
  for (int i = 0; i < 100; ++i) REQUIRE(write('b').ok());
  REQUIRE(log.sync().ok());
  const auto file = posix_file_system().open_file(directory / "log");
  REQUIRE(file.ok());
  Bytes read(10'000, '\0');
  const auto got = (*file)->read(offset - read.size(), read.size(), read.data());
  REQUIRE(got.ok());
  CHECK(*got == read.size());
  CHECK(read == Bytes(read.size(), 'b'));
}

TEST_CASE("posix mapped file: it reads what the file holds, and what is left of it") {
  const TempDirectory directory;
  const std::string path = directory / "table";
  constexpr std::size_t kBytes = 256u << 10;
  Bytes contents(kBytes, '\0');
  for (std::size_t i = 0; i < kBytes; ++i) contents[i] = static_cast<char>('a' + i / 1000 % 26);
  {
    const auto file = posix_file_system().create_file(path);
    REQUIRE(file.ok());
    REQUIRE((*file)->append(contents).ok());
    REQUIRE((*file)->sync().ok());
  }
  const auto opened = posix_file_system().open_mapped(path, 0);
  REQUIRE(opened.ok());
  const RandomAccessFile& file = **opened;
  CHECK(file.size_bytes() == kBytes);
  Bytes got(kBytes, '\0');
  const auto reads = [&](std::size_t offset, std::size_t size) {
    const auto count = file.read(offset, size, got.data());
    REQUIRE(count.ok());
    return ByteView(got).substr(0, *count);
  };
  constexpr std::size_t kLarge = engine::PosixMappedFile::kMappedReadMaxBytes + 1;
  // Before it is mapped, and after.
  for (std::uint32_t i = 0; i < 2 * engine::PosixMappedFile::kReadsUnmapped; ++i)
    CHECK(reads(i, 100) == ByteView(contents).substr(i, 100));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, kLarge, kBytes})
    for (const std::size_t offset : {std::size_t{0}, std::size_t{4095}, kBytes - 5000, kBytes}) {
      CAPTURE(offset);
      CAPTURE(size);
      CHECK(reads(offset, size) == ByteView(contents).substr(offset, size));
    }
  const auto plain = posix_file_system().open_file(path);
  REQUIRE(plain.ok());
  for (const RandomAccessFile* both : {&file, static_cast<const RandomAccessFile*>(plain->get())})
    for (const std::size_t first : {std::size_t{0}, std::size_t{7}, std::size_t{4096}})
      for (const std::size_t second : {std::size_t{0}, std::size_t{5000}, kLarge})
        for (const std::size_t offset : {std::size_t{0}, kBytes - 4100, kBytes - 3, kBytes}) {
          CAPTURE(first);
          CAPTURE(second);
          CAPTURE(offset);
          both->expect_read(offset, first + second);
          Bytes head(first, '\0');
          Bytes rest(second, '\0');
          const auto count = both->read_two(offset, first, head.data(), second, rest.data());
          REQUIRE(count.ok());
          CHECK((head + rest).substr(0, *count) == contents.substr(offset, first + second));
        }
  // Pages that no drive has any more; those that are left are read all the same.
  REQUIRE(::truncate(path.c_str(), 10'000) == 0);
  CHECK(reads(200'000, 100).empty());
  CHECK(reads(9000, 2000) == ByteView(contents).substr(9000, 1000));
  CHECK(reads(100, 5000) == ByteView(contents).substr(100, 5000));
  const auto count = file.read_two(9000, 500, got.data(), 1000, got.data() + 500);
  REQUIRE(count.ok());
  CHECK(ByteView(got).substr(0, *count) == ByteView(contents).substr(9000, 1000));
}

TEST_CASE("posix mapped file: no reader takes what stands in for a lost page for the file's") {
  const TempDirectory directory;
  const std::string path = directory / "table";
  constexpr std::size_t kBytes = 4u << 20;
  for (int round = 0; round < 20; ++round) {
    {
      const auto file = posix_file_system().create_file(path + std::to_string(round));
      REQUIRE(file.ok());
      REQUIRE((*file)->append(Bytes(kBytes, 'x')).ok());
      REQUIRE((*file)->sync().ok());
    }
    const auto opened = posix_file_system().open_mapped(path + std::to_string(round), 0);
    REQUIRE(opened.ok());
    std::atomic<int> wrong{0};
    std::atomic<int> begun{0};
    const auto look = [&] {
      Bytes got(4096, '\0');
      ++begun;
      for (std::size_t offset = 0; offset < kBytes; offset += got.size()) {
        const auto count = (*opened)->read(offset, got.size(), got.data());
        if (!count.ok() || got.find_first_not_of('x') < *count) ++wrong;
      }
    };
    std::thread first(look);
    std::thread second(look);
    while (begun < 2) std::this_thread::yield();
    REQUIRE(::truncate((path + std::to_string(round)).c_str(), 0) == 0);
    first.join();
    second.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("mapped copy: a SIGBUS that is none of its own ends the process as before") {
  const TempDirectory directory;
  const auto end_of = [&](void (*cause)(char* page)) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit no_dump{0, 0};
      if (::setrlimit(RLIMIT_CORE, &no_dump) != 0) ::_exit(5);
      const int file = ::open((directory / "file").c_str(), O_RDWR | O_CREAT, 0600);
      if (file < 0 || ::ftruncate(file, 1 << 16) != 0) ::_exit(5);
      void* const page = ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (page == MAP_FAILED) ::_exit(5);
      auto* const bytes = static_cast<char*>(page);
      if (!engine::copy_to_mapped("whole", bytes)) ::_exit(2);
      if (::ftruncate(file, 0) != 0) ::_exit(5);
      if (engine::copy_to_mapped("not whole", bytes)) ::_exit(3);
      cause(bytes);
      ::_exit(4);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    // A sanitizer reports it, and ends the process by exit().
    const int code = WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
    CAPTURE(code);
    CHECK((WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : code == 1 || code > 5));
  };
  end_of([](char* page) { *static_cast<volatile char*>(page + (1 << 15)) = 'x'; });
  end_of([](char* /*page*/) { ::raise(SIGBUS); });
}

namespace edgecase::engine {

// What is loaded around a read: seen as the kernel tells it, of a real file.

namespace {

constexpr std::uint64_t kRegion = ReadAround::kRegionBytes;
constexpr std::uint64_t kFileBytes = 8 * kRegion;

// A file of which nothing is in the page cache.
struct ColdFile {
  ColdFile() : path(directory.path() + "/1.val") {
    auto opened = open_descriptor(path, O_RDWR | O_CREAT | O_EXCL);
    REQUIRE(opened.ok());
    file = std::move(*opened);
    REQUIRE(write_whole(file, 0, Bytes(kFileBytes, 'x'), path).ok());
    REQUIRE(sync_data(file, path).ok());
    REQUIRE(::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    seen = static_cast<char*>(::mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, file.number(), 0));
    REQUIRE(seen != MAP_FAILED);
  }
  ~ColdFile() { ::munmap(seen, kFileBytes); }

  // A file system that lies in memory has nothing else.
  bool is_cold() const {
    for (std::uint64_t at = 0; at < kFileBytes; at += kRegion)
      if (is_resident(at)) return false;
    return true;
  }
  bool is_resident(std::uint64_t at) const {
    unsigned char page = 0;
    REQUIRE(::mincore(seen + at, 1, &page) == 0);
    return (page & 1) != 0;
  }
  bool becomes_resident(std::uint64_t at) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!is_resident(at)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  test::TempDirectory directory;
  std::string path;
  Descriptor file;
  char* seen = nullptr;
};

TEST_CASE("a read of a mapped file brings its region, and no other") {
  const ColdFile cold;
  if (!cold.is_cold()) {
    MESSAGE("skipped: this file system keeps what it is told to forget");
    return;
  }
  const auto mapped = PosixMappedFile::open(cold.path, kFileBytes);
  REQUIRE(mapped.ok());
  char byte = 0;
  REQUIRE((*mapped)->read(2 * kRegion + 100, 1, &byte).ok());
  CHECK(byte == 'x');
  CHECK(cold.becomes_resident(2 * kRegion));
  CHECK(cold.becomes_resident(3 * kRegion - 4096));
  for (const std::uint64_t other : {0u, 1u, 3u, 4u, 5u, 6u, 7u})
    CHECK(!cold.is_resident(other * kRegion));
}

TEST_CASE("nothing is read around where files would push each other out of memory") {
  const ColdFile cold;
  if (!cold.is_cold()) {
    MESSAGE("skipped: this file system keeps what it is told to forget");
    return;
  }
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  ReadAround of_many(kFileBytes, memory / 2 + kFileBytes);
  of_many.touch(cold.file, 2 * kRegion, 100);
  const auto mapped = PosixMappedFile::open(cold.path, memory);
  REQUIRE(mapped.ok());
  char byte = 0;
  REQUIRE((*mapped)->read(5 * kRegion, 1, &byte).ok());
  for (const std::uint64_t other : {0u, 1u, 2u, 3u, 4u, 6u, 7u})
    CHECK(!cold.is_resident(other * kRegion));
  CHECK(!cold.is_resident(6 * kRegion - 4096));
  ReadAround around(kFileBytes, memory / 2 - kFileBytes);
  around.touch(cold.file, 3 * kRegion - 50, 100);
  CHECK(cold.becomes_resident(2 * kRegion));
  CHECK(cold.becomes_resident(3 * kRegion));
  CHECK(!cold.is_resident(4 * kRegion));
}

}  // namespace
}  // namespace edgecase::engine
