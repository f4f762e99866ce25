#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "log/log.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

using test::FaultMode;
using test::MemoryFileSystem;
using test::Operation;

const std::string kLogPath = "/m/log";

std::unique_ptr<LogFile> new_file(MemoryFileSystem& disk, std::uint64_t bytes) {
  auto file = disk.create_log_file(kLogPath, bytes);
  REQUIRE(file.ok());
  return std::move(file).value();
}

template <typename Writer>
Status append_record(Writer& writer, std::uint64_t sequence, ByteView payload) {
  const std::array<ByteView, 1> parts{payload};
  return writer.append(sequence, parts);
}

std::unique_ptr<LogWriter> new_log(MemoryFileSystem& disk, std::uint64_t bytes) {
  auto writer = LogWriter::create(new_file(disk, bytes), {});
  REQUIRE(writer.ok());
  return std::move(writer).value();
}

// Three records of a doubled log, durable, and the file that they lie in.
Bytes doubled_log(MemoryFileSystem& disk) {
  LogIdentity identity;
  identity.type = LogType::Manifest;
  auto writer =
      DoubledLogWriter::create(new_file(disk, doubled_log_bytes_for(1'000, false)), identity);
  REQUIRE(writer.ok());
  for (const std::uint64_t sequence : {1u, 2u, 3u})
    REQUIRE(append_record(**writer, sequence, "record " + std::to_string(sequence)).ok());
  REQUIRE((*writer)->sync().ok());
  CHECK((*writer)->durable_bytes() == (*writer)->appended_bytes());
  return disk.contents(kLogPath);
}

// What the copy that counts has.
std::string records_of(MemoryFileSystem& disk, const LogCopies& copies) {
  auto file = open_copy(disk, kLogPath, copies.best_copy().begin);
  REQUIRE(file.ok());
  auto reader = LogReader::open(std::move(file).value());
  REQUIRE(reader.ok());
  std::string all;
  for (;;) {
    const auto record = (*reader)->next();
    REQUIRE(record.ok());
    if (!record->has_value()) return all;
    all += std::string((*record)->payload) + ";";
  }
}

constexpr const char* kAllRecords = "record 1;record 2;record 3;";

}  // namespace

TEST_CASE("log: fits() is exact, and the largest record that fits comes back") {
  for (std::uint64_t payload : {0u, 1u, 7u, 8u, 9u, 100'000u, 300'000u}) {
    CAPTURE(payload);
    MemoryFileSystem disk({"/m"});
    auto writer = new_log(disk, log_file_bytes_for(payload, false));
    CHECK(writer->fits(payload));
    CHECK_FALSE(writer->fits(payload + 8));
    const Bytes whole(payload, 'w');
    const ByteView view = whole;
    const std::array<ByteView, 3> parts{view.substr(0, payload / 3), ByteView(),
                                        view.substr(payload / 3)};
    REQUIRE(writer->append(5, parts).ok());
    CHECK_FALSE(writer->fits(0));
    auto reader = LogReader::open(std::move(disk.open_file(kLogPath)).value());
    const auto record = (*reader)->next();
    REQUIRE(record.ok());
    REQUIRE(record->has_value());
    CHECK((*record)->payload == whole);
    CHECK_FALSE((*reader)->next()->has_value());
    CHECK((*reader)->end_bytes() == writer->appended_bytes());
  }
}

TEST_CASE("log: after an error every call gives the same answer") {
  MemoryFileSystem disk({"/m"});
  auto writer = new_log(disk, 100'000);
  REQUIRE(append_record(*writer, 1, "one").ok());
  disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Once);
  const Status first = writer->sync();
  CHECK(first.code() == StatusCode::IoError);
  CHECK(append_record(*writer, 2, "two").message() == first.message());
  CHECK(writer->sync().message() == first.message());
  CHECK(writer->durable_bytes() == 0);
}

TEST_CASE("doubled log: either copy has all records, and the first counts where they are alike") {
  MemoryFileSystem disk({"/m"});
  const Bytes bytes = doubled_log(disk);
  const auto copies = look_at_copies(disk, kLogPath, nullptr);
  REQUIRE(copies.ok());
  CHECK(copies->doubled);
  CHECK(copies->status.ok());
  CHECK(copies->damage.ok());
  CHECK_FALSE(copies->ends_differ);
  CHECK(copies->best == 0);
  CHECK(copies->copies[1].begin == begin_of_second_copy(bytes.size()));
  CHECK(copies->copies[0].end_bytes == copies->copies[1].end_bytes);
  CHECK(records_of(disk, *copies) == kAllRecords);
}

TEST_CASE("doubled log: what one copy has lost the other makes up for, and it is told") {
  for (const std::size_t damaged : {0u, 1u}) {
    CAPTURE(damaged);
    MemoryFileSystem disk({"/m"});
    Bytes bytes = doubled_log(disk);
    const std::size_t half = begin_of_second_copy(bytes.size());
    const std::size_t at = bytes.find("record 2", damaged * half);
    REQUIRE(at != Bytes::npos);
    bytes[at] = 'R';
    disk.set_contents(kLogPath, bytes);
    const auto copies = look_at_copies(disk, kLogPath, nullptr);
    REQUIRE(copies.ok());
    CHECK(copies->status.ok());
    CHECK(copies->ends_differ);  // nothing proves that what is missing was durable
    CHECK(copies->best == 1 - damaged);
    CHECK(records_of(disk, *copies) == kAllRecords);

    REQUIRE(write_copies_again(disk, kLogPath, *copies).ok());
    const auto mended = look_at_copies(disk, kLogPath, nullptr);
    REQUIRE(mended.ok());
    CHECK_FALSE(mended->ends_differ);
    CHECK(mended->copies[0].end_bytes == mended->copies[1].end_bytes);
  }
}

}  // namespace edgecase::engine
