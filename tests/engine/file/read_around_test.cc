// What is loaded around a read: seen as the kernel tells it, of a real file.
#include "file/read_around.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "file/posix_mapped_file.h"
#include "support/temp_directory.h"

namespace edgecase::engine {
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
