#include "retention/eviction.h"

#include <doctest/doctest.h>

#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::retention {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;
constexpr std::int64_t kClockNs = test::ManualClock::kStartWallNs;
constexpr std::uint64_t kDriveBytes = 8000;  // the watermark is 1000
constexpr std::uint64_t kReadingBytes = wire::kReadingKeyBytes + wire::kNumberValueBytes;

// Says how full two drives are, and nothing else.
class Drives final : public FileSystem {
 public:
  Result<Space> space(const std::string& path) override {
    if (path == "/values") return Space{kDriveBytes * scale, values_free_bytes * scale, 1};
    return Space{kDriveBytes * scale, metadata_free_bytes * scale, 2};
  }
  Result<std::unique_ptr<WritableFile>> create_file(const std::string&) override { return none(); }
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string&) override {
    return none();
  }
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string&, std::uint64_t) override {
    return none();
  }
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string&) override { return none(); }
  Status create_directory(const std::string&) override { return none(); }
  Result<std::vector<DirectoryEntry>> list_directory(const std::string&) override { return none(); }
  Status sync_directory(const std::string&) override { return none(); }
  Status rename_file(const std::string&, const std::string&) override { return none(); }
  Status remove_file(const std::string&) override { return none(); }
  Result<std::uint64_t> file_size(const std::string&) override { return none(); }
  Result<std::unique_ptr<FileLock>> lock_file(const std::string&) override { return none(); }

  std::uint64_t scale = 1;
  std::uint64_t values_free_bytes = kDriveBytes;
  std::uint64_t metadata_free_bytes = kDriveBytes;

 private:
  static Status none() { return unsupported("nobody asks for files"); }
};

struct FullRoom {
  FullRoom() {
    engine.set_expiry_now_ns(kClockNs);
    engine.set_live_bytes(4000, 4000);
    restart();
  }
  void restart(Thinning* thinning = nullptr, std::uint64_t keep_free_bytes = 0) {
    pipeline.reset();
    eviction = std::make_unique<Eviction>(EvictionParts{
        .engine = engine,
        .catalog = *catalog,
        .file_system = drives,
        .clock = clock,
        .metadata_directory = "/meta",
        .values_directory = "/values",
        .thinning = thinning,
        .keep_free_bytes = keep_free_bytes,
        .events = {
            .begun = [this](const EvictionStep&) { ++begun; },
            .done = [this](const EvictionStep& step, const Status&) { steps.push_back(step); },
            .thinned = [this](const Thinned& each, const std::string&) { thinned.push_back(each); },
            .blocked = [this](const std::string& why) { blocked.push_back(why); }}});
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock);
    pipeline->refuse_evicted(eviction.get());
  }
  // A reading a minute, the newest of that time. How many are refused.
  std::uint64_t write(const std::string& device, std::int64_t newest_ns, int count) {
    wire::ReadingBatch batch;
    for (int i = 0; i < count; ++i)
      batch.readings.push_back(
          {"default", device, "n", newest_ns - i * kMinute, wire::Value::of_int64(i)});
    return ingest(batch);
  }
  std::uint64_t ingest(const wire::ReadingBatch& batch) {
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    ingest::Outcome outcome;
    REQUIRE(pipeline->ingest(*authorized, &outcome).ok());
    CHECK(outcome.of(ingest::Loss::Evicted) == outcome.not_stored());
    return outcome.not_stored();
  }
  std::uint64_t left(const std::string& device) {
    const auto entry = catalog->find("default", device, "n");
    REQUIRE(entry.ok());
    char first[wire::kReadingKeyBytes], end[wire::kReadingKeyBytes];
    wire::encode_reading_key({entry->id.device, entry->id.sensor, INT64_MIN}, first);
    wire::encode_reading_key({entry->id.device, entry->id.sensor, INT64_MAX}, end);
    return engine
        .range_stats(entry->id.namespace_id, {Bytes(first, sizeof first), Bytes(end, sizeof end)},
                     {})
        .value()
        .entries;
  }
  // Past every patience.
  void look_later() {
    clock.advance(kRoomPatienceNs + 1);
    eviction->look();
  }

  test::ManualClock clock;
  test::ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  Drives drives;
  int begun = 0;
  std::vector<EvictionStep> steps;
  std::vector<Thinned> thinned;
  std::vector<std::string> blocked;
  std::unique_ptr<Eviction> eviction;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
};

}  // namespace

TEST_CASE("eviction: the oldest of all devices goes, as much as is missing, and is told of") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 100);
  room.write("b", kClockNs - kMinute, 50);
  room.eviction->look();
  CHECK(room.steps.empty());  // there is room

  room.drives.values_free_bytes = 1000 + 1000 / 4 - 2 * kReadingBytes - 1000 / 4;
  room.eviction->look();
  REQUIRE(room.steps.size() == 1);
  CHECK(room.begun == 1);
  const EvictionStep step = room.steps.front();
  const std::uint64_t gone = room.steps.front().readings;
  CHECK(step.is_exact);
  CHECK(step.drive == "/values");
  CHECK(step.watermark_bytes == 1000);
  CHECK(step.value_bytes >= 1000 / 4 + 2 * kReadingBytes);
  CHECK(gone == step.value_bytes / kReadingBytes);
  CHECK(room.left("a") == 100 - gone);
  CHECK(room.left("b") == 50);
  const EvictionStatus status = room.eviction->status();
  CHECK(status.makes_room);
  CHECK(status.evictions == 1);
  CHECK(status.readings == gone);
  CHECK(status.before_ns == step.before_ns);
  CHECK(status.last_at_ns == room.clock.wall_ns());

  // No more before that had its effect, or its time.
  room.eviction->look();
  CHECK(room.steps.size() == 1);
  room.look_later();
  CHECK(room.steps.size() == 2);
  CHECK(room.steps.back().before_ns > step.before_ns);
  room.drives.values_free_bytes = 1000;
  room.look_later();
  CHECK(room.steps.size() == 2);
  CHECK_FALSE(room.eviction->status().makes_room);
}

TEST_CASE("eviction: what was evicted is refused and counted, whatever comes later is taken") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 100);
  room.drives.values_free_bytes = 0;
  room.eviction->look();
  REQUIRE(room.steps.size() == 1);
  const std::uint64_t left = room.left("a");
  CHECK(left < 100);
  for (const bool again : {false, true}) {
    CAPTURE(again);
    // Redelivered as a whole: what is there is written over, the rest is not taken.
    CHECK(room.write("a", kClockNs - kMinute, 100) == 100 - left);
    CHECK(room.left("a") == left);
    CHECK(room.write("b", kClockNs - 1000 * kMinute, 5) == 5);
    CHECK(room.eviction->status().refused_readings == 100 - left + 5);
    CHECK(room.eviction->status().before_ns == room.steps.front().before_ns);
    room.restart();
  }
  // The clock is behind: what arrives now is stored all the same, and each has a time of its own.
  room.clock.set_wall_ns(room.steps.front().before_ns - 1000 * kMinute);
  for (int i = 0; i < 3; ++i) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "c", "n", std::nullopt, wire::Value::of_int64(i)});
    CHECK(room.ingest(batch) == 0);
  }
  CHECK(room.left("c") == 3);
}

TEST_CASE("eviction: what the clock has not reached stays, and a reason is given once") {
  FullRoom room;
  room.write("a", kClockNs + 1000 * kMinute, 100);
  room.drives.values_free_bytes = 0;
  room.look_later();
  room.look_later();
  CHECK(room.steps.empty());
  CHECK(room.left("a") == 100);
  REQUIRE(room.blocked.size() == 1);
  CHECK(room.blocked.front().find("older than the clock") != std::string::npos);
  CHECK(room.eviction->status().blocked == room.blocked.front());
  room.write("b", kClockNs - kMinute, 1);
  room.look_later();
  CHECK(room.steps.size() == 1);
  CHECK(room.left("a") == 100);
  CHECK(room.left("b") == 0);
  CHECK(room.eviction->status().blocked.empty());
}

TEST_CASE(
    "eviction: a clock that is not trusted makes nothing older than the store knows it to be") {
  FullRoom room;
  room.write("a", kClockNs + 10 * kMinute, 5);
  room.drives.values_free_bytes = 0;
  room.clock.set_trust(ClockTrust::Untrusted);
  room.clock.set_wall_ns(0);
  room.look_later();
  CHECK(room.steps.empty());
  room.engine.set_expiry_now_ns(kClockNs + 20 * kMinute);
  room.look_later();
  CHECK(room.steps.size() == 1);
}

TEST_CASE("eviction: a clock that expiry waits to follow does not keep a full drive full") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 5);
  room.drives.values_free_bytes = 0;
  room.engine.set_expiry_now_ns(kClockNs - 500 * kMinute);
  room.look_later();
  CHECK(room.steps.size() == 1);
}

TEST_CASE("eviction: a drive that other things fill costs no reading") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 100);
  room.engine.set_live_bytes(4000, 999);
  room.drives.values_free_bytes = 0;
  room.look_later();
  CHECK(room.steps.empty());
  REQUIRE(room.blocked.size() == 1);
  CHECK(room.blocked.front().find("other things") != std::string::npos);
  CHECK(room.left("a") == 100);
}

TEST_CASE(
    "eviction: a metadata drive that is full is relieved, too, one step takes a quarter at most") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 200);
  room.engine.set_live_bytes(1000, 200 * kReadingBytes);
  room.drives.metadata_free_bytes = 0;
  room.look_later();
  REQUIRE(room.steps.size() == 1);
  CHECK(room.steps.front().drive == "/meta");
  CHECK(room.left("a") >= 149);
  CHECK(room.left("a") <= 150);
}

TEST_CASE("eviction: a step that the drive refuses is tried again, and nothing is counted") {
  FullRoom room;
  room.write("a", kClockNs - kMinute, 100);
  room.drives.values_free_bytes = 0;
  room.engine.fail_writes(out_of_space("full"));
  room.look_later();
  CHECK(room.steps.size() == 1);
  CHECK(room.eviction->status().evictions == 0);
  room.engine.fail_writes(ok());
  CHECK(room.left("a") == 100);
  room.look_later();
  CHECK(room.eviction->status().evictions == 1);
  CHECK(room.left("a") < 100);
}

namespace {

struct Thinner final : Thinning {
  Thinned thin_oldest(std::uint64_t value_bytes, std::int64_t) override {
    asked.push_back(value_bytes);
    return next;
  }
  bool is_going(bool is_urgent) override { return going && !is_urgent; }

  std::vector<std::uint64_t> asked;
  Thinned next{.readings = 7, .windows = 2, .value_bytes = 300, .before_ns = 0, .left = {}};
  bool going = false;
};

}  // namespace

TEST_CASE("eviction: where readings are thinned nothing is given up, and what keeps them is told") {
  FullRoom room;
  Thinner thinner;
  room.restart(&thinner);
  CHECK(room.write("a", kClockNs - kMinute, 100) == 0);
  room.eviction->look();
  CHECK(thinner.asked.empty());  // there is room
  room.drives.values_free_bytes = 900;
  room.eviction->look();
  CHECK(thinner.asked == std::vector<std::uint64_t>{350});
  CHECK(room.eviction->status().thinned_readings == 7);
  CHECK(room.eviction->status().thinned_windows == 2);
  CHECK(room.thinned.size() == 1);
  // Until the bytes are gone nothing more is; a reader holds them for a while at most.
  thinner.going = true;
  room.eviction->look();
  CHECK(thinner.asked.size() == 1);
  room.look_later();
  CHECK(thinner.asked.size() == 2);
  thinner.going = false;
  thinner.next = {.left = "no rule has tiers"};
  room.eviction->look();
  CHECK(room.eviction->status().blocked == "no rule has tiers");
  CHECK(room.blocked == std::vector<std::string>{"no rule has tiers"});
  CHECK(room.left("a") == 100);
  CHECK(room.steps.empty());
  CHECK(room.begun == 0);
  room.drives.values_free_bytes = 2000;
  room.eviction->look();
  CHECK(room.eviction->status().blocked.empty());
}

TEST_CASE("eviction: room is made before writes leave what is kept free") {
  FullRoom room;
  Thinner thinner;
  // A watermark of an eighth has an upper bound; what is kept free may be more than that.
  room.drives.scale = std::uint64_t{1} << 30;
  room.engine.set_live_bytes(std::uint64_t{4000} << 30, std::uint64_t{4000} << 30);
  room.restart(&thinner, std::uint64_t{100} << 30);
  room.drives.values_free_bytes = 126;
  room.eviction->look();
  CHECK(thinner.asked.empty());
  room.drives.values_free_bytes = 124;
  room.eviction->look();
  CHECK(thinner.asked.size() == 1);
}

}  // namespace edgecase::retention
