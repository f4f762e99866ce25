#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "edgecase/machine.h"
#include "log/log.h"
#include "log/log_format.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test_seed.h"
#include "support/test_share.h"

using namespace edgecase;
using namespace edgecase::engine;
using namespace edgecase::test;

TEST_CASE("log: records come back from a real file, sync runs beside append") {
  const TempDirectory directory;
  LogIdentity identity;
  identity.store_id[3] = 9;
  identity.number = 7;
  identity.predecessor = 6;
  identity.predecessor_bytes = 640;
  identity.salt = 99;
  constexpr std::uint64_t kRecords = 5'000;
  {
    auto file = posix_file_system().create_log_file(directory / "log", 1u << 20);
    REQUIRE(file.ok());
    auto writer = LogWriter::create(std::move(file).value(), identity);
    REQUIRE(writer.ok());
    std::atomic<bool> done{false};
    std::atomic<int> failures{0};
    std::thread syncer([&] {
      while (!done) failures += !(*writer)->sync().ok();
    });
    for (std::uint64_t i = 1; i <= kRecords; ++i) {
      const std::string text = "record " + std::to_string(i);
      const Bytes tail(i % 50, 'x');
      const std::array<ByteView, 2> parts{text, tail};
      failures += !(*writer)->append(i, parts).ok();
    }
    done = true;
    syncer.join();
    CHECK(failures == 0);
    REQUIRE((*writer)->sync().ok());
    CHECK((*writer)->durable_bytes() == (*writer)->appended_bytes());
  }
  auto file = posix_file_system().open_file(directory / "log");
  REQUIRE(file.ok());
  auto reader = LogReader::open(std::move(file).value());
  REQUIRE(reader.ok());
  CHECK((*reader)->identity().store_id == identity.store_id);
  CHECK((*reader)->identity().number == 7);
  CHECK((*reader)->identity().predecessor == 6);
  CHECK((*reader)->identity().predecessor_bytes == 640);
  for (std::uint64_t i = 1; i <= kRecords; ++i) {
    const auto record = (*reader)->next();
    REQUIRE(record.ok());
    REQUIRE(record->has_value());
    CHECK((*record)->sequence == i);
    CHECK((*record)->payload == "record " + std::to_string(i) + Bytes(i % 50, 'x'));
  }
  const auto end = (*reader)->next();
  REQUIRE(end.ok());
  CHECK_FALSE(end->has_value());
  CHECK_FALSE((*reader)->torn_tail());
}

namespace {

constexpr const char* kPath = "/m/log";

LogIdentity identity_of(std::uint64_t number) {
  LogIdentity identity;
  for (std::size_t i = 0; i < identity.store_id.size(); ++i) {
    identity.store_id[i] = static_cast<std::uint8_t>(i + 1);
  }
  identity.number = number;
  identity.predecessor = number - 1;
  identity.predecessor_bytes = 1000;
  identity.salt = number * 77;
  return identity;
}

Bytes payload_of(std::uint64_t sequence) {
  return "payload " + std::to_string(sequence) + Bytes(sequence * 37 % 90, 'p');
}

Status append(LogWriter& writer, std::uint64_t sequence) {
  const Bytes payload = payload_of(sequence);
  const std::array<ByteView, 1> parts{payload};
  return writer.append(sequence, parts);
}

std::unique_ptr<LogWriter> begin_log(MemoryFileSystem& disk, std::uint64_t number,
                                     std::uint64_t capacity) {
  auto file =
      disk.exists(kPath) ? disk.open_log_file(kPath) : disk.create_log_file(kPath, capacity);
  REQUIRE(file.ok());
  REQUIRE(disk.sync_directory("/m").ok());
  auto writer = LogWriter::create(std::move(file).value(), identity_of(number));
  REQUIRE(writer.ok());
  return std::move(writer).value();
}

struct ReadBack {
  Status open;
  Status end;
  std::uint64_t number = 0;
  std::uint64_t records = 0;  // 1, 2, 3, ... with the right payloads
  bool exact = true;
  std::uint64_t end_bytes = 0;
  bool torn_tail = false;
};

ReadBack read_back(FileSystem& files, const std::string& path) {
  ReadBack result;
  auto file = files.open_file(path);
  REQUIRE(file.ok());
  auto reader = LogReader::open(std::move(file).value());
  result.open = reader.status();
  if (!reader.ok()) return result;
  result.number = (*reader)->identity().number;
  for (;;) {
    const auto record = (*reader)->next();
    result.end = record.status();
    if (!record.ok() || !record->has_value()) break;
    ++result.records;
    if ((*record)->sequence != result.records || (*record)->payload != payload_of(result.records)) {
      result.exact = false;
    }
  }
  result.end_bytes = (*reader)->end_bytes();
  result.torn_tail = (*reader)->torn_tail();
  return result;
}

}  // namespace

TEST_CASE("log: a file without a whole head holds no log, a newer format is refused") {
  MemoryFileSystem disk({"/m"});
  disk.set_contents(kPath, Bytes(10'000, '\0'));
  CHECK(read_back(disk, kPath).open.code() == StatusCode::NotFound);
  disk.set_contents(kPath, "");
  CHECK(read_back(disk, kPath).open.code() == StatusCode::NotFound);
  disk.set_contents(kPath, Bytes(10'000, '\0'));
  auto writer = begin_log(disk, 1, 10'000);
  Bytes bytes = disk.contents(kPath);
  for (const std::uint64_t offset : kLogHeadCopyOffsets) {
    encode_fixed32(bytes.data() + offset + 8, kLogVersionMax + 1);
    encode_fixed32(bytes.data() + offset + 64, crc32c(ByteView(bytes).substr(offset, 64)));
  }
  disk.set_contents(kPath, bytes);
  CHECK(read_back(disk, kPath).open.code() == StatusCode::Unsupported);
}

TEST_CASE("log: records of an earlier use of the file are never taken for its own") {
  MemoryFileSystem disk({"/m"});
  {
    auto writer = begin_log(disk, 1, 40'000);
    for (std::uint64_t i = 1; i <= 200; ++i) REQUIRE(append(*writer, i).ok());
    REQUIRE(writer->sync().ok());
  }
  for (std::uint64_t number = 2; number < 5; ++number) {
    auto writer = begin_log(disk, number, 0);
    CHECK(read_back(disk, kPath).records == 0);
    for (std::uint64_t i = 1; i <= 20; ++i) {
      REQUIRE(append(*writer, i).ok());
      REQUIRE(writer->sync().ok());
      const ReadBack got = read_back(disk, kPath);
      CHECK(got.end.ok());
      CHECK(got.number == number);
      CHECK(got.records == i);
      CHECK(got.exact);
      CHECK_FALSE(got.torn_tail);
    }
  }
}

TEST_CASE("log: a number that came twice does not bring the first one's records back") {
  MemoryFileSystem disk({"/m"});
  {
    auto writer = begin_log(disk, 1, 40'000);
    for (std::uint64_t i = 1; i <= 100; ++i) REQUIRE(append(*writer, i).ok());
    REQUIRE(writer->sync().ok());
  }
  LogIdentity again = identity_of(1);
  again.salt += 1;
  auto writer = LogWriter::create(std::move(disk.open_log_file(kPath)).value(), again);
  REQUIRE(writer.ok());
  REQUIRE(append(**writer, 1).ok());
  const ReadBack got = read_back(disk, kPath);
  CHECK(got.end.ok());
  CHECK(got.records == 1);
}

TEST_CASE("log: a flipped bit anywhere gives corruption, a shorter log, or nothing different") {
  MemoryFileSystem disk({"/m"});
  std::vector<std::uint64_t> ends;
  {
    auto writer = begin_log(disk, 3, kLogHeadBytes + 2'000);
    for (std::uint64_t i = 1; i <= 12; ++i) {
      REQUIRE(append(*writer, i).ok());
      REQUIRE(writer->sync().ok());
      ends.push_back(writer->appended_bytes());
    }
  }
  const Bytes original = disk.contents(kPath);
  for (std::uint64_t byte = 0; byte < original.size(); ++byte) {
    CAPTURE(byte);
    disk.set_contents(kPath, original);
    disk.flip_bit(kPath, byte, static_cast<int>(byte % 8));
    const ReadBack got = read_back(disk, kPath);
    REQUIRE(got.open.ok());  // one flip leaves one copy of the head
    CHECK(got.exact);
    if (got.end.ok()) {
      // Nothing after the last record proves that it was durable; before it everything is.
      CHECK(got.records >= 11);
      if (byte < kLogHeadBytes || byte >= kLogHeadBytes + ends.back()) CHECK(got.records == 12);
    } else {
      CHECK(got.end.code() == StatusCode::Corruption);
      CHECK(got.end.message().find(std::string(kPath) + " at byte ") == 0);
      CHECK(byte >= kLogHeadBytes);
      CHECK(byte < kLogHeadBytes + ends[10]);
    }
  }
}

TEST_CASE("log: cut at any length it gives a prefix") {
  MemoryFileSystem disk({"/m"});
  std::vector<std::uint64_t> ends{0};
  {
    auto writer = begin_log(disk, 3, kLogHeadBytes + 1'200);
    for (std::uint64_t i = 1; i <= 8; ++i) {
      REQUIRE(append(*writer, i).ok());
      ends.push_back(writer->appended_bytes());
    }
  }
  const Bytes original = disk.contents(kPath);
  for (std::uint64_t size = 0; size <= original.size(); ++size) {
    CAPTURE(size);
    disk.set_contents(kPath, original.substr(0, size));
    const ReadBack got = read_back(disk, kPath);
    if (size < kLogHeadCopyBytes) {
      CHECK(got.open.code() == StatusCode::NotFound);
      continue;
    }
    REQUIRE(got.open.ok());
    CHECK(got.end.ok());
    CHECK(got.exact);
    // The padding of the last record may be missing.
    std::uint64_t whole = 0;
    for (std::uint64_t i = 1; i < ends.size(); ++i) {
      const std::uint64_t header = i == 1 ? kLogRecordHeaderBytes : kShortRecordHeaderBytes;
      const std::uint64_t end = ends[i - 1] + header + payload_of(i).size();
      if (size >= kLogHeadBytes + end) whole = i;
    }
    CHECK(got.records == whole);
  }
}

TEST_CASE("log: whatever a power cut leaves, what was synced is read and no damage is claimed") {
  const std::uint64_t start = test_seed(0);
  for (std::uint64_t seed = start; seed < start + test::share_of(2'000); ++seed) {
    CAPTURE(seed);
    SeededRandom random(seed);
    MemoryFileSystem disk({"/m"});
    if (random.below(2) == 0) {  // an earlier use of the file
      auto earlier = begin_log(disk, 8, kLogHeadBytes + 8'000);
      for (std::uint64_t i = 1; i <= 50; ++i) REQUIRE(append(*earlier, i).ok());
      REQUIRE(earlier->sync().ok());
    }
    auto writer = begin_log(disk, 9, kLogHeadBytes + 8'000);
    std::uint64_t synced = 0;
    const std::uint64_t count = random.below(60);
    for (std::uint64_t i = 1; i <= count; ++i) {
      REQUIRE(append(*writer, i).ok());
      if (random.below(8) == 0) {
        REQUIRE(writer->sync().ok());
        synced = i;
      }
    }
    disk.power_cut(seed, CutPolicy::Any);
    const ReadBack got = read_back(disk, kPath);
    if (!got.open.ok() || got.number == 8) {  // the new head was not written whole
      CHECK(synced == 0);
      continue;
    }
    CHECK(got.end.ok());
    CHECK(got.exact);
    CHECK(got.records >= synced);
    CHECK(got.records <= count);
  }
}

TEST_CASE("log: any bytes are read within their bounds") {
  const std::uint64_t seed = test::test_seed(31);
  CAPTURE(seed);
  SeededRandom random(seed);
  MemoryFileSystem disk({"/m"});
  auto writer = begin_log(disk, 3, kLogHeadBytes + 2'000);
  for (std::uint64_t i = 1; i <= 12; ++i) REQUIRE(append(*writer, i).ok());
  const Bytes original = disk.contents(kPath);
  for (int round = 0; round < 2'000; ++round) {
    Bytes bytes = original;
    for (std::uint64_t flips = 1 + random.below(20); flips > 0; --flips) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }
    bytes.resize(random.below(bytes.size() + 1));
    disk.set_contents(kPath, bytes);
    const ReadBack got = read_back(disk, kPath);
    if (got.open.ok()) CHECK(got.exact);
  }
}

TEST_CASE("log: versions 1, 3 and 5 stay readable, and 3 and 5 byte for byte what is written") {
  // Log 3 of identity_of(3), eight records, synced after the fourth. Never written again once
  // released: a new version gets a file of its own.
  const std::string directory = EDGECASE_GOLDEN_DIRECTORY;
  for (const bool open : {false, true}) {
    const std::string golden = directory + (open ? "/log-v5.bin" : "/log-v3.bin");
    CAPTURE(golden);
    MemoryFileSystem disk({"/m"});
    LogIdentity identity = identity_of(3);
    identity.open_predecessor = open;
    auto writer = LogWriter::create(
        std::move(disk.create_log_file(kPath, kLogHeadBytes + 1'024)).value(), identity);
    for (std::uint64_t i = 1; i <= 8; ++i) {
      REQUIRE(append(**writer, i).ok());
      if (i == 4) REQUIRE((*writer)->sync().ok());
    }
    if (std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr) {
      (void)posix_file_system().remove_file(golden);
      auto out = posix_file_system().create_file(golden);
      REQUIRE(out.ok());
      REQUIRE((*out)->append(disk.contents(kPath)).ok());
      REQUIRE((*out)->sync().ok());
    }
    auto file = posix_file_system().open_file(golden);
    REQUIRE(file.ok());
    Bytes bytes((*file)->size_bytes(), '\0');
    REQUIRE((*file)->read(0, bytes.size(), bytes.data()).ok());
    CHECK(bytes == disk.contents(kPath));
    CHECK(LogReader::open(disk.open_file(kPath).value()).value()->identity().open_predecessor ==
          open);
    // Either of the two copies of a head that was being written again may count.
    const Bytes before = disk.contents(kPath);
    REQUIRE((*writer)->close_predecessor().ok());
    const Bytes after = disk.contents(kPath);
    for (const std::size_t half : {0u, 512u}) {
      Bytes torn = before;
      torn.replace(half, 512, after.substr(half, 512));
      disk.set_contents(kPath, torn);
      CHECK_FALSE(
          LogReader::open(disk.open_file(kPath).value()).value()->identity().open_predecessor);
      CHECK(read_back(disk, kPath).records == 8);
    }
  }
  for (const char* name : {"/log-v1.bin", "/log-v3.bin", "/log-v5.bin"}) {
    CAPTURE(name);
    const ReadBack got = read_back(posix_file_system(), directory + name);
    REQUIRE(got.open.ok());
    CHECK(got.end.ok());
    CHECK(got.number == 3);
    CHECK(got.records == 8);
    CHECK(got.exact);
  }
}

TEST_CASE("log: the rest mark stays readable, byte for byte what is written") {
  // As log-v3.bin, with the mark of a log that came to rest. Never written again once released.
  const std::string golden = std::string(EDGECASE_GOLDEN_DIRECTORY) + "/log-v3-rest.bin";
  MemoryFileSystem disk({"/m"});
  auto writer = begin_log(disk, 3, kLogHeadBytes + 1'024);
  for (std::uint64_t i = 1; i <= 8; ++i) REQUIRE(append(*writer, i).ok());
  REQUIRE(writer->sync().ok());
  REQUIRE(writer->write_rest().ok());
  if (std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr) {
    (void)posix_file_system().remove_file(golden);
    auto out = posix_file_system().create_file(golden);
    REQUIRE(out.ok());
    REQUIRE((*out)->append(disk.contents(kPath)).ok());
    REQUIRE((*out)->sync().ok());
  }
  auto file = posix_file_system().open_file(golden);
  REQUIRE(file.ok());
  Bytes bytes((*file)->size_bytes(), '\0');
  REQUIRE((*file)->read(0, bytes.size(), bytes.data()).ok());
  CHECK(bytes == disk.contents(kPath));
  disk.set_contents(kPath, bytes);
  const ReadBack whole = read_back(disk, kPath);
  CHECK(whole.end.ok());
  CHECK(whole.records == 8);
  // What the mark is for: a last record that is lost is damage.
  const std::size_t end = bytes.find_last_not_of('\0');
  bytes[end] = static_cast<char>(bytes[end] + 1);
  disk.set_contents(kPath, bytes);
  const ReadBack cut = read_back(disk, kPath);
  CHECK(cut.end.code() == StatusCode::Corruption);
  CHECK(cut.records == 7);
}

TEST_CASE("log: without its head it is none, nor is what was in its file before") {
  MemoryFileSystem disk({"/m"});
  REQUIRE(append(*begin_log(disk, 3, kLogHeadBytes + 1'024), 1).ok());
  auto writer = LogWriter::prepare(std::move(disk.open_log_file(kPath)).value(), identity_of(4));
  REQUIRE(writer.ok());
  REQUIRE(append(**writer, 1).ok());
  CHECK(read_back(disk, kPath).open.code() == StatusCode::NotFound);
  REQUIRE((*writer)->write_head().ok());
  CHECK(read_back(disk, kPath).number == 4);
  CHECK(read_back(disk, kPath).records == 1);
  // Durable is the head alone.
  disk.power_cut(1, CutPolicy::None);
  CHECK(read_back(disk, kPath).number == 4);
  CHECK(read_back(disk, kPath).records == 0);
}

TEST_CASE("log: a link to the next log is one of this very log, and whole") {
  MemoryFileSystem disk({"/m"});
  LogIdentity identity;
  identity.store_id[3] = 9;
  identity.number = 7;
  const auto begin = [&](std::unique_ptr<LogFile> file) {
    REQUIRE(LogWriter::create(std::move(file), identity).ok());
  };
  const auto successor = [&] {
    auto reader = LogReader::open(disk.open_file("/m/log").value());
    REQUIRE(reader.ok());
    return (*reader)->successor();
  };
  begin(disk.create_log_file("/m/log", 16384).value());
  CHECK(successor() == 0);
  const auto link = [&](std::uint64_t number, std::uint64_t next) {
    const auto file = disk.open_log_file("/m/log");
    REQUIRE(file.ok());
    REQUIRE(write_link(**file, identity.store_id, number, next).ok());
  };
  link(6, 8);
  CHECK(successor() == 0);
  link(7, 8);
  CHECK(successor() == 8);
  for (std::uint64_t byte = 0; byte < kLogLinkBytes; ++byte) {
    CAPTURE(byte);
    disk.flip_bit("/m/log", kLogLinkOffset + byte, 3);
    CHECK(successor() == 0);
    disk.flip_bit("/m/log", kLogLinkOffset + byte, 3);
  }
  // The bytes are a format.
  StoreId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::uint8_t>(i);
  CHECK(encode_log_link(id, 7, 0x100000008) ==
        Bytes("\7\0\0\0\0\0\0\0\10\0\0\0\1\0\0\0\265\333\040\351\0\0\0\0", 24));
  // Another use of the file begins without one.
  begin(disk.open_log_file("/m/log").value());
  CHECK(successor() == 0);
}
