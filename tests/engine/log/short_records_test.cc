// Records of the log with nine bytes in front of their payloads (log/log_format.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "log/log.h"
#include "log/log_format.h"
#include "support/memory_file_system.h"

using namespace edgecase;
using namespace edgecase::engine;
using namespace edgecase::test;

namespace {

constexpr const char* kShortLogPath = "/m/log";

LogIdentity short_log(LogType type = LogType::Wal) {
  LogIdentity identity;
  identity.store_id[3] = 9;
  identity.type = type;
  identity.number = 3;
  identity.salt = 231;
  return identity;
}

std::unique_ptr<LogWriter> begin_log(MemoryFileSystem& disk, std::uint64_t capacity,
                                     const LogIdentity& identity = short_log()) {
  auto file = disk.create_log_file(kShortLogPath, capacity);
  REQUIRE(file.ok());
  auto writer = LogWriter::create(std::move(file).value(), identity);
  REQUIRE(writer.ok());
  return std::move(writer).value();
}

std::unique_ptr<LogReader> read_log(MemoryFileSystem& disk) {
  auto reader = LogReader::open(std::move(disk.open_file(kShortLogPath)).value());
  REQUIRE(reader.ok());
  return std::move(reader).value();
}

constexpr std::uint64_t kSmallRecordBytes = 112;

// Appends 100 bytes: kSmallRecordBytes each but the first.
Status append_small(LogWriter& writer, std::uint64_t sequence) {
  const Bytes payload(100, static_cast<char>('a' + sequence % 26));
  const ByteView part = payload;
  return writer.append(sequence, {&part, 1});
}

// `count` of them in front of `behind` that say that those before were durable; all from the second
// to those are zeros.
Status read_damaged(std::uint64_t count, std::uint64_t behind) {
  MemoryFileSystem disk({"/m"});
  auto writer = begin_log(disk, kLogHeadBytes + 128 + (count + behind) * kSmallRecordBytes);
  std::uint64_t sequence = 0;
  while (sequence < count) REQUIRE(append_small(*writer, ++sequence).ok());
  REQUIRE(writer->sync().ok());
  const std::uint64_t durable = writer->durable_bytes();
  while (sequence < count + behind) REQUIRE(append_small(*writer, ++sequence).ok());
  REQUIRE(writer->appended_bytes() == durable + behind * kSmallRecordBytes);
  Bytes bytes = disk.contents(kShortLogPath);
  const std::uint64_t begin = kLogHeadBytes + durable - (count - 1) * kSmallRecordBytes;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes.begin() + static_cast<std::ptrdiff_t>(kLogHeadBytes + durable), '\0');
  disk.set_contents(kShortLogPath, bytes);
  const auto reader = read_log(disk);
  REQUIRE(reader->next().ok());
  const Status end = reader->next().status();
  CHECK(reader->proven_bytes() == durable);
  return end;
}

}  // namespace

TEST_CASE("log: a record is short where little stands before its payload that others do not say") {
  struct Case {
    std::uint64_t step;
    std::uint64_t payload_bytes;
    bool is_short;
  };
  for (const LogType type : {LogType::Wal, LogType::Manifest}) {
    MemoryFileSystem disk({"/m"});
    const auto writer = begin_log(disk, 16u << 20, short_log(type));
    std::vector<std::pair<std::uint64_t, Bytes>> written;
    const auto append_one = [&](std::uint64_t sequence, std::uint64_t payload_bytes) {
      written.emplace_back(sequence, Bytes(payload_bytes, static_cast<char>('a' + sequence % 26)));
      const ByteView part = written.back().second;
      const std::uint64_t before = writer->appended_bytes();
      REQUIRE(writer->append(sequence, {&part, 1}).ok());
      return writer->appended_bytes() - before;
    };
    std::uint64_t sequence = 7;
    CHECK(append_one(sequence, 70) == 104);  // the first: nothing stands before it
    const Case cases[] = {{1, 70, true},    {1, 0, true},     {255, 7, true},   {1, 2047, true},
                          {256, 70, false}, {1, 2048, false}, {0, 70, false},   {1, 71, true},
                          {1, 72, true},    {2, 16, true},    {1, 4096, false}, {1, 1, true}};
    for (const Case& each : cases) {
      CAPTURE(each.step);
      CAPTURE(each.payload_bytes);
      sequence += each.step;
      const bool is_short = each.is_short && type == LogType::Wal;
      CHECK(append_one(sequence, each.payload_bytes) ==
            log_aligned(each.payload_bytes + (is_short ? 9 : 32)));
    }
    // Where it could not say how much is durable.
    while (writer->appended_bytes() <= kShortDurableMaxBytes) append_one(++sequence, 1u << 20);
    CHECK(append_one(++sequence, 70) == (type == LogType::Wal ? 80 : 104));
    REQUIRE(writer->sync().ok());
    CHECK(append_one(++sequence, 70) == 104);

    const auto reader = read_log(disk);
    CHECK(reader->version() == (type == LogType::Wal ? 3 : 1));
    for (const auto& [wanted, payload] : written) {
      const auto record = reader->next();
      REQUIRE(record.ok());
      REQUIRE(record->has_value());
      CHECK((*record)->sequence == wanted);
      CHECK((*record)->payload == payload);
    }
    CHECK_FALSE(reader->next()->has_value());
    CHECK(reader->end_bytes() == writer->appended_bytes());
  }
}

TEST_CASE("log: damage is proven by one short record that is near, by two that are not") {
  CHECK(read_damaged(2, 1).code() == StatusCode::Corruption);
  CHECK(read_damaged(500, 1).code() == StatusCode::Corruption);
  CHECK(read_damaged(700, 1).ok());
  CHECK(read_damaged(700, 2).code() == StatusCode::Corruption);
}

TEST_CASE("log: one of an older version has no short records") {
  MemoryFileSystem disk({"/m"});
  {
    auto writer = begin_log(disk, kLogHeadBytes + 2'000);
    for (std::uint64_t i = 1; i <= 8; ++i) REQUIRE(append_small(*writer, i).ok());
  }
  Bytes bytes = disk.contents(kShortLogPath);
  for (const std::uint64_t offset : kLogHeadCopyOffsets) {
    encode_fixed32(bytes.data() + offset + 8, kLogVersion);
    encode_fixed32(bytes.data() + offset + 64, crc32c(ByteView(bytes).substr(offset, 64)));
  }
  disk.set_contents(kShortLogPath, bytes);
  const auto reader = read_log(disk);
  CHECK(reader->next()->has_value());
  const auto end = reader->next();
  REQUIRE(end.ok());
  CHECK_FALSE(end->has_value());
  CHECK_FALSE(reader->torn_tail());
}
