// Readings without a time while the clock is not trusted, on drives that lose their power: every
// one that was acknowledged is there once in the end, in the order in which they came, none before
// its time, and at its time exactly where the board was not rebooted. The pipeline and the redating
// work on the real engine over the simulated drives; one thread, so that a seed decides everything.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/redating.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::test {
namespace {

// What the daemon might do wrong: the harness must find it.
enum class PlantedDating : unsigned char {
  Nothing,
  ByTheWall,    // readings get the time of a clock that is not trusted
  OneBoot,      // a boot is taken for another
  RecordsLost,  // periods are not durable
};

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3'600 * kSecond;
constexpr std::int64_t kKeptNs = 30 * 24 * kHour;
constexpr std::int64_t kBumpMaxNs = 10'000;
constexpr int kDatingSteps = 60;
constexpr std::uint64_t kDatingOperations = 300;
constexpr int kDatingCrashes = 5;
constexpr CutPolicy kDatingCuts[] = {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                     CutPolicy::Any, CutPolicy::Torn};
constexpr const char* kSensors[] = {"x", "y", "z"};

struct Sent {
  std::string sensor;
  std::int64_t true_ns = 0;
  int boot = 0;
  bool acknowledged = false;
};

class DatingLife {
 public:
  DatingLife(std::uint64_t seed, PlantedDating planted)
      : random_(seed), executor_(seed), planted_(planted) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 16u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 8 * options_.wal_segment_bytes;
    boot();
  }
  ~DatingLife() { close(); }

  // What was broken; empty: nothing.
  std::string run() {
    std::string broken = open();
    for (int crash = 0; broken.empty() && crash < kDatingCrashes; ++crash) {
      disk_.stop_at(1 + random_.below(kDatingOperations));
      for (int step = 0; step < kDatingSteps && !disk_.stopped(); ++step) take_step();
      end_process(random_.below(4) != 0, kDatingCuts[random_.below(std::size(kDatingCuts))]);
      broken = open();
    }
    return broken.empty() ? finish() : broken;
  }

  // A short life: the clock becomes right, and the redating is cut at its nth operation. Whether it
  // came that far is told by `was_cut`.
  std::string run_cut(std::uint64_t nth, std::optional<CutPolicy> policy, bool& was_cut) {
    std::string broken = open();
    if (!broken.empty()) return broken;
    for (int i = 0; i < 12; ++i) write();
    if (nth % 2 == 0 && !engine_->flush().ok()) return "what was written cannot be flushed";
    set_clock_right();
    disk_.stop_at(nth);
    static_cast<void>(redating_->look().ok());
    was_cut = disk_.stopped();
    end_process(policy.has_value(), policy.value_or(CutPolicy::All));
    broken = open();
    return broken.empty() ? finish() : broken;
  }

  std::size_t acknowledged() const {
    return static_cast<std::size_t>(std::count_if(
        sent_.begin(), sent_.end(), [](const Sent& each) { return each.acknowledged; }));
  }
  std::uint64_t redated() const {
    return redated_ + (redating_ ? redating_->status().redated_readings : 0);
  }

 private:
  void boot() {
    clock_ = std::make_unique<ManualClock>();
    clock_->set_wall_ns(kSecond);
    clock_->set_trust(ClockTrust::Untrusted);
    ++boot_;
  }

  std::string open() {
    pass(kSecond);
    auto engine = Engine::open(options_, {disk_, *clock_, random_, executor_, listener_});
    if (!engine.ok()) return "the store does not open: " + engine.status().to_string();
    engine_ = std::move(engine).value();
    if (const Status status = open_parts(); !status.ok()) return status.to_string();
    return "";
  }

  Status open_parts() {
    EC_ASSIGN_OR_RETURN(catalog_, catalog::Catalog::open(*engine_, {}));
    EC_ASSIGN_OR_RETURN(const NamespaceId readings, catalog_->ensure_namespace("default"));
    const RetentionRule rule{readings, {}, kKeptNs};
    EC_TRY(engine_->set_retention({rule}));
    if (planted_ == PlantedDating::RecordsLost) EC_TRY(lose_records());
    fences_.emplace(0, erase::Pseudonyms(Bytes(auth::kPseudonymKeyBytes, 'k')));
    const std::string id = "boot-" + std::to_string(planted_ == PlantedDating::OneBoot ? 0 : boot_);
    EC_ASSIGN_OR_RETURN(periods_, ingest::UndatedPeriods::open(*engine_, *clock_, random_, id));
    pipeline_ = std::make_unique<ingest::IngestPipeline>(*engine_, *catalog_, *clock_, nullptr,
                                                         nullptr, nullptr, &*fences_);
    if (planted_ != PlantedDating::ByTheWall) pipeline_->date_later(periods_.get());
    redating_ = std::make_unique<ingest::Redating>(ingest::RedatingParts{.engine = *engine_,
                                                                         .catalog = *catalog_,
                                                                         .clock = *clock_,
                                                                         .fences = *fences_,
                                                                         .periods = *periods_});
    return ok();
  }

  Status lose_records() {
    const auto found = engine_->find_namespace(wire::kUndatedNamespace);
    if (!found.ok()) return ok();
    WriteBatch batch;
    batch.remove_range(found->id, {}, Bytes(1, '\xff'));
    return engine_->write(batch, Durability::Sync);
  }

  void close() {
    if (redating_) redated_ += redating_->status().redated_readings;
    redating_.reset();
    pipeline_.reset();
    periods_.reset();
    catalog_.reset();
    engine_.reset();
    executor_.drop_all();
  }

  // The drives do nothing any more: what the destructors would write does not arrive.
  void end_process(bool power_goes, CutPolicy policy) {
    if (!disk_.stopped()) disk_.stop_at(1);
    const std::uint64_t seed = random_.next();
    close();
    if (power_goes) {
      disk_.power_cut(seed, policy);
      true_ns_ += kHour;
      boot();
    } else {
      disk_.kill_process(seed);
    }
    disk_.stop_at(MemoryFileSystem::kNever);
  }

  void pass(std::int64_t ns) {
    true_ns_ += ns;
    clock_->advance(ns);
  }

  void take_step() {
    pass(kSecond / 3);
    switch (random_.below(10)) {
      case 0: return set_clock_right();
      case 1: return static_cast<void>(redating_->look().ok());
      case 2: return static_cast<void>(executor_.run_one());
      case 3:
        if (random_.below(4) == 0) static_cast<void>(engine_->flush().ok());
        return;
      case 4:
        if (random_.below(4) == 0) clock_->set_trust(ClockTrust::Untrusted);
        return;
      default: return write();
    }
  }

  void set_clock_right() {
    clock_->set_wall_ns(true_ns_);
    clock_->set_trust(ClockTrust::Trusted);
  }

  // One to three readings, each of another sensor or of the same one.
  void write() {
    pass(kSecond / 7);
    wire::ReadingBatch batch;
    const std::size_t first = sent_.size();
    const std::uint64_t count = 1 + random_.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      const char* const sensor = kSensors[random_.below(std::size(kSensors))];
      batch.readings.push_back({"default", "board", sensor, std::nullopt,
                                wire::Value::of_int64(static_cast<std::int64_t>(sent_.size()))});
      sent_.push_back({sensor, true_ns_, boot_, false});
    }
    const auth::Principal principal{auth::PrincipalKind::Mqtt, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    if (!pipeline_->ingest(*authorized).ok()) return;
    for (std::size_t i = first; i < sent_.size(); ++i) sent_[i].acknowledged = true;
  }

  std::string finish() {
    for (int i = 0; i < 3; ++i) write();
    pass(kHour);
    set_clock_right();
    if (const Status status = redating_->look(); !status.ok())
      return "the readings cannot be dated: " + status.to_string();
    if (redating_->status().waiting_periods > 0) return "a period waits though the clock is right";
    std::map<std::int64_t, int> times;
    for (const char* const sensor : kSensors) {
      if (std::string broken = compare(sensor, times); !broken.empty()) return broken;
    }
    for (std::size_t id = 0; id < sent_.size(); ++id) {
      const int seen = times[static_cast<std::int64_t>(id)];
      if (seen > 1 || (seen == 0 && sent_[id].acknowledged))
        return name_of(id) + " is there " + std::to_string(seen) + " times";
    }
    return "";
  }

  std::string name_of(std::size_t id) const {
    return "reading " + std::to_string(id) + " of boot " + std::to_string(sent_[id].boot);
  }

  // A series, in order of time.
  std::string compare(const char* sensor, std::map<std::int64_t, int>& times) {
    const auto series = catalog_->find("default", "board", sensor);
    if (!series.ok()) return "";
    const auto at = engine_->scan(series->id.namespace_id, {}, {});
    if (!at.ok()) return at.status().to_string();
    std::int64_t last = -1;
    for (; (*at)->valid(); (*at)->next()) {
      wire::ReadingKey key;
      wire::Value value;
      if (!wire::decode_reading_key((*at)->key(), key) || key.sensor != series->id.sensor) continue;
      if (!wire::decode_value((*at)->value(), value)) return "a value is none";
      const auto id = static_cast<std::size_t>(value.int64);
      if (id >= sent_.size() || sent_[id].sensor != sensor) return "a value that was never written";
      ++times[value.int64];
      if (wire::is_undated_time(key.time_ns)) return name_of(id) + " has no time";
      const std::int64_t late_ns = key.time_ns - sent_[id].true_ns;
      if (value.int64 <= last) {
        return name_of(id) + ", " + std::to_string(late_ns) + " ns late, comes behind " +
               name_of(static_cast<std::size_t>(last));
      }
      last = value.int64;
      if (late_ns < 0) return name_of(id) + " is dated before its time";
      if (sent_[id].boot == boot_ && late_ns > kBumpMaxNs)
        return name_of(id) + " is not at its time";
    }
    return (*at)->status().ok() ? "" : (*at)->status().to_string();
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  std::int64_t true_ns_ = ManualClock::kStartWallNs;
  std::unique_ptr<ManualClock> clock_;
  int boot_ = 0;
  SeededRandom random_;
  ManualExecutor executor_;
  EventListener listener_;
  Options options_;
  const PlantedDating planted_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::optional<erase::Fences> fences_;
  std::unique_ptr<ingest::UndatedPeriods> periods_;
  std::unique_ptr<ingest::IngestPipeline> pipeline_;
  std::unique_ptr<ingest::Redating> redating_;
  std::vector<Sent> sent_;
  std::uint64_t redated_ = 0;
};

}  // namespace

TEST_CASE("crash: what comes before the clock is right is there once, in order, at its time") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(300);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  std::size_t acknowledged = 0;
  std::uint64_t redated = 0;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    DatingLife life(seed, PlantedDating::Nothing);
    const std::string broken = life.run();
    CHECK_MESSAGE(broken.empty(), "seed " << seed << ": " << broken);
    acknowledged += life.acknowledged();
    redated += life.redated();
  }
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return;
  MESSAGE(acknowledged << " acknowledged, " << redated << " dated later");
  CHECK(acknowledged > 30 * lives);
  CHECK(redated > 10 * lives);
}

TEST_CASE("crash: the redating loses nothing wherever it is cut") {
  std::uint64_t cuts = 0;
  std::vector<std::optional<CutPolicy>> ends(std::begin(kDatingCuts), std::end(kDatingCuts));
  ends.push_back({});  // a kill
  for (std::size_t which = 0; which < ends.size(); ++which) {
    bool was_cut = true;
    // Every operation, until it comes to its end.
    for (std::uint64_t nth = 1 + which % share_step(); was_cut; nth += share_step()) {
      DatingLife life(nth, PlantedDating::Nothing);
      const std::string broken = life.run_cut(nth, ends[which], was_cut);
      CHECK_MESSAGE(broken.empty(), "operation " << nth << ", cut " << which << ": " << broken);
      cuts += was_cut ? 1 : 0;
    }
  }
  MESSAGE(cuts << " cuts");
  CHECK(cuts >= 3 * ends.size());
}

TEST_CASE("crash: what the redating may do wrong is found") {
  for (const PlantedDating planted :
       {PlantedDating::ByTheWall, PlantedDating::OneBoot, PlantedDating::RecordsLost}) {
    CAPTURE(static_cast<int>(planted));
    std::string found;
    std::uint64_t seed = 0;
    while (seed < 20 && found.empty()) found = DatingLife(++seed, planted).run();
    CHECK_FALSE(found.empty());
    MESSAGE("seed " << seed << ": " << found);
  }
}

}  // namespace edgecase::test
