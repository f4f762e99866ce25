// The two copies of a manifest: whatever is damaged of one, nothing is lost.
#include <doctest/doctest.h>

#include <array>
#include <cerrno>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "engine/version/some_edits.h"
#include "file/file_names.h"
#include "log/log.h"
#include "log/log_format.h"
#include "support/memory_file_system.h"
#include "support/test_share.h"
#include "version/version_set.h"

namespace edgecase::engine {
namespace {

using test::EngineFixture;
using test::MemoryFileSystem;
using test::RecordingObserver;
using test_edits::added_file;
using test_edits::kStoreId;

constexpr std::size_t kEdits = 6;

// A closed set of kEdits files.
struct ClosedSet {
  ClosedSet() {
    auto set = VersionSet::create(disk, "/m", kStoreId);
    REQUIRE(set.ok());
    for (FileNumber i = 1; i <= kEdits; ++i) {
      ends.push_back(end());
      REQUIRE((*set)->apply(added_file(i)).ok());
    }
    ends.push_back(end());
    whole = disk.contents(path);
    second = begin_of_second_copy(whole.size());
  }
  // Where the records of the first copy end, in the file.
  std::size_t end() const {
    const auto copies = look_at_copies(disk_of(), path, nullptr);
    REQUIRE(copies.ok());
    return kLogHeadBytes + copies->copies[0].end_bytes;
  }
  MemoryFileSystem& disk_of() const { return disk; }
  std::size_t begin_of(std::size_t copy) const { return copy == 0 ? 0 : second; }
  void zero(std::size_t from, std::size_t size) {
    Bytes bytes = disk.contents(path);
    bytes.replace(from, size, size, '\0');
    disk.set_contents(path, bytes);
  }
  void restore() { disk.set_contents(path, whole); }

  mutable MemoryFileSystem disk{{"/m"}};
  const std::string path = manifest_path("/m", 1);
  std::vector<std::size_t> ends;  // before each edit, and behind the last
  Bytes whole;
  std::size_t second = 0;
};

struct Found {
  std::size_t files = 0;
  bool told = false;
};

// Opens it; nothing may be lost.
Found recover(ClosedSet& closed) {
  const auto set = VersionSet::recover(closed.disk, "/m", kStoreId);
  INFO(set.status().to_string());
  REQUIRE(set.ok());
  return {(*set)->current()->value_files.size(),
          !(*set)->damage().ok() || (*set)->copies_differed()};
}

StatusCode code_of(ClosedSet& closed) {
  return VersionSet::recover(closed.disk, "/m", kStoreId).status().code();
}

}  // namespace

TEST_CASE("a manifest with any byte of one copy damaged loses nothing, and it is told") {
  ClosedSet closed;
  CHECK_FALSE(recover(closed).told);
  for (const std::size_t copy : {0u, 1u}) {
    CAPTURE(copy);
    const std::size_t begin = closed.begin_of(copy);
    std::size_t untold = 0;
    for (std::size_t byte = begin + copy % test::share_step(); byte < begin + closed.ends.back();
         byte += test::share_step()) {
      CAPTURE(byte);
      closed.disk.flip_bit(closed.path, byte, static_cast<int>(byte % 8));
      const Found found = recover(closed);
      CHECK(found.files == kEdits);
      // Heads are there twice, in each copy.
      if (byte < begin + kLogHeadBytes) {
        CHECK_FALSE(found.told);
      } else if (!found.told) {
        ++untold;
      }
      closed.disk.flip_bit(closed.path, byte, static_cast<int>(byte % 8));
    }
    // Bytes that fill up a record.
    CHECK(untold <= (kEdits + 1) * (kLogAlignmentBytes - 1));
  }
}

TEST_CASE("a manifest with any part of one copy gone loses nothing, and it is told") {
  ClosedSet closed;
  for (const std::size_t copy : {0u, 1u}) {
    const std::size_t begin = closed.begin_of(copy);
    for (const std::size_t size : {std::size_t{1024}, std::size_t{4096}, closed.second}) {
      for (std::size_t at = 0; at < closed.ends.back(); at += size) {
        CAPTURE(copy);
        CAPTURE(size);
        CAPTURE(at);
        closed.zero(begin + at, std::min(size, closed.second - at));
        const Found found = recover(closed);
        CHECK(found.files == kEdits);
        // Only the first KiB of the head says anything.
        CHECK(found.told == (at == 0 || at + size > kLogHeadBytes));
        closed.restore();
      }
    }
  }
}

TEST_CASE("of two copies of a manifest the one that reaches further counts") {
  ClosedSet closed;
  for (const std::size_t copy : {0u, 1u}) {
    CAPTURE(copy);
    const std::size_t begin = closed.begin_of(copy);
    const std::size_t last = closed.ends[kEdits - 1];
    closed.zero(begin + last, closed.ends.back() - last);
    auto set = VersionSet::recover(closed.disk, "/m", kStoreId);
    REQUIRE(set.ok());
    CHECK((*set)->current()->value_files.size() == kEdits);
    // As a power cut leaves it: no damage.
    CHECK((*set)->copies_differed());
    CHECK((*set)->damage().ok());
    closed.restore();
  }
  // In neither: it was never confirmed.
  const std::size_t last = closed.ends[kEdits - 1];
  for (const std::size_t copy : {0u, 1u})
    closed.zero(closed.begin_of(copy) + last, closed.ends.back() - last);
  const Found found = recover(closed);
  CHECK(found.files == kEdits - 1);
  CHECK_FALSE(found.told);
}

TEST_CASE("a manifest whose copies are both damaged does not open") {
  ClosedSet closed;
  // The same record, and each in another place; what one copy lacks at its end the other proves.
  const std::array<std::size_t, 2> pairs[] = {{2, 2}, {1, 4}, {4, 1}, {3, kEdits - 2}};
  for (const auto& pair : pairs) {
    const std::size_t first = pair[0];
    const std::size_t second = pair[1];
    CAPTURE(first);
    CAPTURE(second);
    closed.disk.flip_bit(closed.path, closed.ends[first] + 40, 1);
    closed.zero(closed.second + closed.ends[second], closed.ends.back() - closed.ends[second]);
    CHECK(code_of(closed) == StatusCode::Corruption);
    closed.restore();
  }
  closed.zero(0, kLogHeadBytes);
  closed.zero(closed.second, kLogHeadBytes);
  CHECK(code_of(closed) == StatusCode::Corruption);
}

TEST_CASE("a damaged copy of a manifest is healed by the next start, on a full drive too") {
  for (const bool is_full : {false, true}) {
    for (const std::size_t copy : {0u, 1u}) {
      for (const std::size_t part : {std::size_t{0}, std::size_t{4200}}) {
        CAPTURE(is_full);
        CAPTURE(copy);
        CAPTURE(part);
        ClosedSet closed;
        closed.zero(closed.begin_of(copy) + part, 4096);
        if (is_full) closed.disk.set_capacity("/m", closed.disk.used_bytes("/m") + 100);
        {
          auto set = VersionSet::recover(closed.disk, "/m", kStoreId);
          REQUIRE(set.ok());
          CHECK((*set)->damage().code() == StatusCode::Corruption);
          REQUIRE((*set)->make_durable().ok());
          CHECK((*set)->manifest_number() == (is_full ? 1 : 2));
        }
        closed.disk.power_cut(1, test::CutPolicy::None);
        const Found found = recover(closed);
        CHECK(found.files == kEdits);
        CHECK_FALSE(found.told);
      }
    }
  }
}

TEST_CASE("a manifest is read once more where a read of a copy failed, or the other one is taken") {
  ClosedSet closed;
  const std::uint64_t before = closed.disk.operations(test::Operation::Read);
  REQUIRE(recover(closed).files == kEdits);
  const std::uint64_t reads = closed.disk.operations(test::Operation::Read) - before;
  std::size_t opened = 0;
  for (std::uint64_t nth = 1; nth <= reads; ++nth) {
    closed.disk.fail_nth(test::Operation::Read, nth, EIO, test::FaultMode::Once, "/m");
    const auto set = VersionSet::recover(closed.disk, "/m", kStoreId);
    closed.disk.clear_faults();
    if (!set.ok()) {
      CHECK(set.status().code() == StatusCode::IoError);
      continue;
    }
    ++opened;
    CHECK((*set)->current()->value_files.size() == kEdits);
  }
  CHECK(opened >= 2);
}

TEST_CASE("a manifest of an older version, once in its file, opens, and the next one lies twice") {
  ClosedSet closed;
  const auto from = LogReader::open(*closed.disk.open_file(closed.path));
  REQUIRE(from.ok());
  // Longer than half of the file, too.
  for (const std::uint64_t capacity : {std::uint64_t{1} << 20, std::uint64_t{8192}}) {
    CAPTURE(capacity);
    closed.restore();
    const auto reader = LogReader::open(*closed.disk.open_file(closed.path));
    REQUIRE(reader.ok());
    LogIdentity identity = (*reader)->identity();
    identity.salt = 0;
    REQUIRE(closed.disk.remove_file("/m/once").code() != StatusCode::IoError);
    auto writer = LogWriter::create(*closed.disk.create_log_file("/m/once", capacity), identity);
    REQUIRE(writer.ok());
    for (std::size_t edits = 0;; ++edits) {
      const auto record = (*reader)->next();
      REQUIRE(record.ok());
      // An older version reads the first copy like this.
      if (!*record) CHECK(edits == kEdits + 1);
      if (!*record) break;
      const ByteView part = (*record)->payload;
      REQUIRE((*writer)->append((*record)->sequence, {&part, 1}).ok());
      REQUIRE((*writer)->sync().ok());
    }
    closed.disk.set_contents(closed.path, closed.disk.contents("/m/once"));
    {
      auto set = VersionSet::recover(closed.disk, "/m", kStoreId);
      REQUIRE(set.ok());
      CHECK((*set)->damage().ok());
      CHECK_FALSE((*set)->copies_differed());
      CHECK((*set)->current()->value_files.size() == kEdits);
      REQUIRE((*set)->make_durable().ok());
    }
    const auto copies = look_at_copies(closed.disk, manifest_path("/m", 2), nullptr);
    REQUIRE(copies.ok());
    CHECK(copies->doubled);
    REQUIRE(closed.disk.remove_file(manifest_path("/m", 2)).ok());
    closed.disk.set_contents("/m/CURRENT", Bytes(manifest_name(1) + "\n"));
  }
}

TEST_CASE("a scrub finds what rots of either copy of a manifest, and begins a new one") {
  MemoryFileSystem disk({"/m"});
  auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  REQUIRE((*set)->apply(added_file(1)).ok());
  CHECK((*set)->scrub().ok());
  for (std::uint64_t number = 1; number < 5; ++number) {
    REQUIRE((*set)->manifest_number() == number);
    const std::string path = manifest_path("/m", number);
    const std::size_t begin =
        number % 2 == 0 ? 0 : begin_of_second_copy(disk.contents(path).size());
    // In the last record too, or in all of it.
    disk.flip_bit(path, begin + (number < 3 ? 4096 + 40 : 4096 + 8), 1);
    CHECK((*set)->scrub().code() == StatusCode::Corruption);
    CHECK((*set)->scrub().ok());
    CHECK_FALSE(disk.exists(path));
    REQUIRE((*set)->apply(added_file(number + 1)).ok());
  }
  set = not_found("closed");
  const auto again = VersionSet::recover(disk, "/m", kStoreId);
  REQUIRE(again.ok());
  CHECK((*again)->current()->value_files.size() == 5);
}

TEST_CASE("a store opens whatever is damaged of one copy of its manifest, check tells it") {
  for (const bool sealed : {false, true}) {
    for (const std::size_t copy : {0u, 1u}) {
      CAPTURE(sealed);
      CAPTURE(copy);
      EngineFixture store;
      if (sealed) store.options.encryption = MasterKeys{SecretKey{1}};
      REQUIRE(store.open().ok());
      const NamespaceId id = store.make_namespace("default");
      for (int i = 0; i < 20; ++i) {
        REQUIRE(store.put(id, std::to_string(i), "value").ok());
        if (i % 5 == 0) REQUIRE(store.engine->flush().ok());
      }
      store.close();
      std::string path;
      for (const auto& [name, bytes] : store.disk.durable_contents())
        if (name.find("MANIFEST") != std::string::npos) path = name;
      const Bytes whole = store.disk.contents(path);
      const std::size_t begin = copy == 0 ? 0 : begin_of_second_copy(whole.size());
      if (sealed) CHECK(whole.substr(4096, 64) != whole.substr(whole.size() / 2 + 4096, 64));
      for (const std::size_t at : {std::size_t{0}, std::size_t{4100}, std::size_t{4200}}) {
        CAPTURE(at);
        Bytes damaged = whole;
        damaged.replace(begin + at, 600, 600, '\xa5');
        const auto files = store.disk.durable_contents();
        store.disk.set_contents(path, damaged);
        RecordingObserver observer;
        const auto report = check_store(store.disk, store.options, observer);
        REQUIRE(report.ok());
        CHECK(report->problems == 0);
        CHECK(observer.all().find("of its two copies is damaged") != std::string::npos);
        store.listener.corruptions.clear();
        REQUIRE(store.open().ok());
        REQUIRE(store.listener.corruptions.size() == 1);
        CHECK(store.listener.corruptions.front().message().find(path) != std::string::npos);
        CHECK(store.engine->range_stats(id, {}, {})->entries == 20);
        store.close();
        // Back to the files that were.
        for (const auto& [name, bytes] : store.disk.durable_contents())
          if (!files.contains(name)) REQUIRE(store.disk.remove_file(name).ok());
        for (const auto& [name, bytes] : files) store.disk.set_contents(name, bytes);
        store.disk.set_contents(path, whole);
      }
    }
  }
}

}  // namespace edgecase::engine
