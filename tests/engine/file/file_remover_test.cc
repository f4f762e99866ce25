#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "file/file_remover.h"
#include "file/posix_file_system.h"
#include "support/memory_file_system.h"
#include "support/temp_directory.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using test::FaultMode;
using test::MemoryFileSystem;
using test::Operation;
using Urgency = FileRemover::Urgency;

constexpr std::uint64_t kAll = UINT64_MAX;
constexpr NamespaceId kMine = 1, kOthers = 2;

// Files that are to be overwritten and removed.
struct Removals {
  explicit Removals(std::vector<std::string> names) : paths(std::move(names)) {
    for (const std::string& path : paths) disk.set_contents(path, Bytes(1000, 'x'));
  }
  bool is_blank(const std::string& path) const { return all_zero(disk.contents(path)); }
  // Counts the files that are there, and those of them that hold something.
  std::size_t there() const {
    std::size_t count = 0;
    for (const std::string& path : paths) count += disk.exists(path);
    return count;
  }
  std::size_t full() const {
    std::size_t count = 0;
    for (const std::string& path : paths) count += !is_blank(path);
    return count;
  }

  const std::vector<std::string> paths;
  MemoryFileSystem disk{{"/d"}};
  FileRemover remover{disk, [] { return true; }};
};

TEST_CASE("a file remover overwrites all that is urgent before a name goes") {
  Removals each({"/d/a", "/d/b", "/d/c"});
  for (const std::string& path : each.paths) REQUIRE(each.remover.remove(path).ok());
  each.remover.step(1500, Urgency::Soon);
  CHECK(each.is_blank("/d/a"));
  CHECK(each.disk.contents("/d/b") == Bytes(500, '\0') + Bytes(500, 'x'));
  CHECK(each.there() == 3);
  each.remover.overwrite(kAll, Urgency::Soon);
  CHECK(each.full() == 0);
  CHECK(each.there() == 3);
  CHECK(each.remover.has_waiting(Urgency::Soon));
  CHECK_FALSE(each.remover.has_bytes(Urgency::Whenever));
  each.remover.step(kAll, Urgency::Soon);
  CHECK(each.there() == 0);
  CHECK_FALSE(each.remover.has_waiting(Urgency::Whenever));
  CHECK(each.remover.removed_files() == 3);
  CHECK(each.remover.overwritten_bytes() == 3000);
}

TEST_CASE("a file remover leaves what is not urgent until that is asked for") {
  Removals each({"/d/later", "/d/soon"});
  REQUIRE(each.remover.remove("/d/later", kMine, Urgency::Whenever).ok());
  REQUIRE(each.remover.remove("/d/soon", kMine).ok());
  each.remover.step(kAll, Urgency::Soon);
  CHECK_FALSE(each.disk.exists("/d/soon"));
  CHECK_FALSE(each.is_blank("/d/later"));
  CHECK_FALSE(each.remover.has_bytes(Urgency::Soon));
  CHECK(each.remover.has_bytes(Urgency::Whenever));
  each.remover.step(kAll, Urgency::Whenever);
  CHECK(each.there() == 0);
}

TEST_CASE("a file remover finishes what is of a namespace, and nothing else") {
  Removals each({"/d/mine", "/d/others", "/d/anyones"});
  REQUIRE(each.remover.remove("/d/mine", kMine).ok());
  REQUIRE(each.remover.remove("/d/others", kOthers).ok());
  REQUIRE(each.remover.remove("/d/anyones").ok());
  each.remover.finish(std::vector<NamespaceId>{kMine});
  CHECK_FALSE(each.disk.exists("/d/mine"));
  CHECK_FALSE(each.disk.exists("/d/anyones"));
  CHECK_FALSE(each.is_blank("/d/others"));
}

TEST_CASE("a file that cannot be overwritten keeps its name until it can") {
  for (const Operation operation :
       {Operation::FileSize, Operation::OpenLogFile, Operation::LogWrite, Operation::LogSync}) {
    Removals each({"/d/a", "/d/b"});
    for (const std::string& path : each.paths) REQUIRE(each.remover.remove(path).ok());
    each.disk.fail_nth(operation, 1, EIO, FaultMode::Once);
    each.remover.step(kAll, Urgency::Soon);
    CHECK(each.disk.faults() == 1);
    CHECK(each.disk.exists("/d/a"));
    CHECK_FALSE(each.disk.exists("/d/b"));
    CHECK_FALSE(each.remover.has_waiting(Urgency::Whenever));
    each.remover.queue_left();
    CHECK(each.remover.has_bytes(Urgency::Soon));
    each.remover.step(kAll, Urgency::Soon);
    CHECK_FALSE(each.disk.exists("/d/a"));
    CHECK(each.remover.retry().ok());
  }
}

TEST_CASE("a name that goes is of a file that is durably overwritten") {
  Removals each({"/d/a", "/d/b"});
  for (const std::string& path : each.paths) REQUIRE(each.remover.remove(path).ok());
  each.remover.overwrite(1700, Urgency::Soon);
  each.disk.power_cut(1, test::CutPolicy::Any);
  CHECK(each.is_blank("/d/a"));
  CHECK(ByteView(each.disk.contents("/d/b")).substr(700) == Bytes(300, 'x'));
}

TEST_CASE("a file that is not there any more is removed") {
  Removals each({"/d/a"});
  REQUIRE(each.remover.remove("/d/missing").ok());
  REQUIRE(each.remover.remove("/d/a").ok());
  each.remover.step(kAll, Urgency::Soon);
  CHECK(each.there() == 0);
  CHECK_FALSE(each.remover.has_waiting(Urgency::Whenever));
  CHECK(each.remover.retry().ok());
}

// Tells what it was asked for.
class RecordingFileSystem final : public FileSystem {
 public:
  std::function<void()> on_overwrite;
  std::vector<std::size_t> overwritten;  // files at once
  std::size_t removed = 0;
  std::uint64_t bytes_each = 10;

  void overwrite(std::span<Overwriting> stretches) override {
    on_overwrite();
    overwritten.push_back(stretches.size());
  }
  Status remove_file(const std::string&) override {
    ++removed;
    return ok();
  }
  Result<std::uint64_t> file_size(const std::string&) override { return bytes_each; }

  Result<std::unique_ptr<WritableFile>> create_file(const std::string&) override { return no(); }
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string&) override { return no(); }
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string&, std::uint64_t) override {
    return no();
  }
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string&) override { return no(); }
  Status create_directory(const std::string&) override { return no(); }
  Result<std::vector<DirectoryEntry>> list_directory(const std::string&) override { return no(); }
  Status sync_directory(const std::string&) override { return no(); }
  Status rename_file(const std::string&, const std::string&) override { return no(); }
  Result<Space> space(const std::string&) override { return no(); }
  Result<std::unique_ptr<FileLock>> lock_file(const std::string&) override { return no(); }

 private:
  static Status no() { return unsupported("not asked for here"); }
};

TEST_CASE("a file remover has many files overwritten at once, and says so meanwhile") {
  RecordingFileSystem files;
  FileRemover remover(files, [] { return true; });
  files.on_overwrite = [&] { CHECK(remover.has_bytes(Urgency::Soon)); };
  for (int i = 0; i < 100; ++i) REQUIRE(remover.remove(std::to_string(i)).ok());
  remover.step(kAll, Urgency::Soon);
  CHECK(files.removed == 0);
  remover.step(kAll, Urgency::Soon);
  CHECK(files.overwritten == std::vector<std::size_t>{64, 36});
  CHECK(files.removed == 64);
  remover.step(kAll, Urgency::Soon);
  CHECK(files.removed == 100);
}

TEST_CASE("a file remover gives room back while much waits to be overwritten") {
  RecordingFileSystem files;
  files.bytes_each = 300u << 20;
  files.on_overwrite = [] {};
  FileRemover remover(files, [] { return true; });
  for (int i = 0; i < 5; ++i) REQUIRE(remover.remove(std::to_string(i)).ok());
  remover.overwrite(files.bytes_each, Urgency::Soon);
  CHECK(files.removed == 0);
  remover.overwrite(files.bytes_each, Urgency::Soon);
  CHECK(files.removed == 2);
  CHECK(remover.has_bytes(Urgency::Soon));
  remover.step(2 * files.bytes_each, Urgency::Soon);
  CHECK(files.removed == 4);
  CHECK(remover.has_bytes(Urgency::Soon));
  remover.step(kAll, Urgency::Soon);
  CHECK(files.removed == 5);
}

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
