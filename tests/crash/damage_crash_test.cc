// Drives that do what none should: their syncs lie, or bits change in what they hold. What was
// acknowledged may be lost then. Not even then is anything read that was never written, does a call
// answer what it is not documented to, or is there a store that a repair does not bring back.
#include <doctest/doctest.h>

#include <charconv>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/store_check.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

enum class Wrong : unsigned char { LyingSync, BitRot };

constexpr std::uint64_t kDamagedKeys = 40;
constexpr int kStepsPerProcess = 80;
constexpr int kProcesses = 3;
constexpr CutPolicy kDamagingCuts[] = {CutPolicy::None, CutPolicy::Prefix, CutPolicy::Sectors,
                                       CutPolicy::Torn, CutPolicy::Any};

class Findings final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& finding) override {
    if (finding.kind == CheckFinding::Kind::Problem) problems.push_back(finding.message);
  }
  void on_progress(std::uint64_t, std::uint64_t) override {}
  bool stop() override { return false; }

  std::vector<std::string> problems;
};

// Tells its key and its number, in every byte.
Bytes value_of(const Bytes& key, std::uint64_t number) {
  Bytes value = key + '#' + std::to_string(number) + '#';
  const std::size_t size = number % 7 == 0 ? 700 + number % 300 : value.size() + number % 40;
  for (std::uint64_t i = 0; value.size() < size; ++i)
    value.push_back(static_cast<char>('a' + (number * 31 + i * 7) % 26));
  return value;
}

class DamagedLife {
 public:
  DamagedLife(std::uint64_t seed, Wrong wrong) : random_(seed), executor_(seed), wrong_(wrong) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 8u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 4 * options_.wal_segment_bytes;
    options_.coalesce_threshold_bytes = 512;
    options_.group_bytes = 1024;
    if (seed % 3 == 1) options_.encryption = MasterKeys{SecretKey{1}};
  }
  ~DamagedLife() { close(); }

  // What was broken; empty: nothing.
  std::string run() {
    std::string broken = live();
    for (int process = 1; broken.empty() && process < kProcesses; ++process) {
      broken = open_damaged();
      if (broken.empty()) broken = is_open() ? live() : repair();
    }
    return broken;
  }
  std::uint64_t read() const { return read_; }
  std::uint64_t damaged() const { return damaged_; }
  std::uint64_t repaired() const { return repaired_; }

 private:
  bool is_open() const { return engine_ != nullptr; }

  Status open() {
    EC_ASSIGN_OR_RETURN(engine_,
                        Engine::open(options_, {disk_, clock_, random_, executor_, listener_}));
    const auto found = engine_->find_namespace("data");
    const auto made =
        found.ok() ? Result<NamespaceId>(found->id) : engine_->create_namespace("data", {});
    if (!made.ok()) {
      close();
      return made.status();
    }
    data_ = *made;
    return ok();
  }

  void close() {
    engine_.reset();
    executor_.drop_all();
  }

  // A process works, until its power goes or somebody ends it.
  std::string live() {
    if (!is_open()) {
      const Status opened = open();
      if (!opened.ok()) return "a sound store does not open: " + opened.to_string();
    }
    const std::uint64_t lies_from = random_.below(kStepsPerProcess);
    std::string broken;
    for (std::uint64_t step = 0; broken.empty() && step < kStepsPerProcess; ++step) {
      if (wrong_ == Wrong::LyingSync && step == lies_from) set_lying(true);
      if (wrong_ == Wrong::BitRot && random_.below(kStepsPerProcess) == 0) rot();
      broken = take_step();
    }
    if (random_.below(4) != 0) disk_.stop_at(1);
    close();
    disk_.stop_at(MemoryFileSystem::kNever);
    set_lying(false);
    disk_.power_cut(random_.next(), kDamagingCuts[random_.below(std::size(kDamagingCuts))]);
    if (wrong_ == Wrong::BitRot) rot();
    return broken;
  }

  void set_lying(bool lying) {
    const std::uint64_t which = lying ? random_.below(3) : 2;
    if (which != 1) disk_.set_lying_sync("/m", lying);
    if (which != 0) disk_.set_lying_sync("/v", lying);
  }

  // A few bits, in files drawn at random.
  void rot() {
    const auto files = disk_.durable_contents();
    for (std::uint64_t left = 1 + random_.below(4); left > 0 && !files.empty(); --left) {
      auto file = files.begin();
      std::advance(file, static_cast<std::ptrdiff_t>(random_.below(files.size())));
      if (file->second.empty() || !disk_.exists(file->first)) continue;
      const std::uint64_t byte = random_.below(file->second.size());
      disk_.flip_bit(file->first, byte, static_cast<int>(random_.below(8)));
    }
  }

  std::string take_step() {
    clock_.advance(300'000'000);
    executor_.advance(300'000'000);
    const Bytes key = draw_key();
    switch (random_.below(12)) {
      case 0: return judge(engine_->flush());
      case 1: return random_.below(4) == 0 ? judge(engine_->compact({data_}, {})) : "";
      case 2: return random_.below(3) == 0 ? judge(engine_->erase().status()) : erase(key);
      case 3: return compare();
      case 4: executor_.run_all(); return "";
      default: return write(key);
    }
  }

  Bytes draw_key() { return "key" + std::to_string(100 + random_.below(kDamagedKeys)); }

  std::string write(const Bytes& key) {
    WriteBatch batch;
    batch.put(data_, key, value_of(key, ++last_number_));
    if (random_.below(4) == 0) batch.remove(data_, draw_key());
    const auto durability = random_.below(3) == 0 ? Durability::Sync : Durability::Async;
    return judge(engine_->write(batch, durability));
  }

  std::string erase(const Bytes& key) {
    WriteBatch batch;
    batch.erase_range(data_, key, key + '\xff');
    return judge(engine_->write(batch, Durability::Sync));
  }

  // What a drive may do is no failure of ours, as long as it is called what it is.
  std::string judge(const Status& status) {
    switch (status.code()) {
      case StatusCode::Ok:
      case StatusCode::NotFound:
      case StatusCode::Busy: return "";
      case StatusCode::Corruption:
      case StatusCode::IoError:
      case StatusCode::Unavailable: ++damaged_; return "";
      // The store's ring of keys never reached the drive.
      case StatusCode::NotAllowed:
        if (options_.encryption) return "";
        [[fallthrough]];
      default: return "answered " + status.to_string();
    }
  }

  std::string judge_value(ByteView key, ByteView value) {
    ++read_;
    std::uint64_t number = 0;
    const std::size_t mark = value.find('#');
    if (mark != ByteView::npos)
      std::from_chars(value.data() + mark + 1, value.data() + value.size(), number);
    if (number != 0 && number <= last_number_ && value == value_of(Bytes(key), number)) return "";
    return Bytes(key) + " reads as " + Bytes(value.substr(0, 60)) + ", which was never written";
  }

  // All that can be read is something that was written. `sound`: and all of it can be read.
  std::string compare(bool sound = false) {
    for (std::uint64_t i = 0; i < kDamagedKeys; ++i) {
      const Bytes key = "key" + std::to_string(100 + i);
      const auto got = engine_->get(data_, key, {});
      if (sound && !got.ok() && got.status().code() != StatusCode::NotFound)
        return "after the repair " + got.status().to_string();
      const std::string broken = got.ok() ? judge_value(key, *got) : judge(got.status());
      if (!broken.empty()) return broken;
    }
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      ReadOptions options;
      options.direction = direction;
      auto at = engine_->scan(data_, {}, options);
      if (!at.ok() && sound) return "after the repair " + at.status().to_string();
      if (!at.ok()) return judge(at.status());
      for (; (*at)->valid(); (*at)->next()) {
        const ByteView value = (*at)->value();
        if (!(*at)->valid()) break;
        const std::string broken = judge_value((*at)->key(), value);
        if (!broken.empty()) return broken;
      }
      if (sound && !(*at)->status().ok()) return "after the repair " + (*at)->status().to_string();
      if (const std::string broken = judge((*at)->status()); !broken.empty()) return broken;
    }
    return "";
  }

  // It opens, or says why not; a store that shows any damage is repaired.
  std::string open_damaged() {
    const Status opened = open();
    std::string broken = judge(opened);
    const std::uint64_t before = damaged_;
    if (is_open() && broken.empty()) broken = compare();
    if (!broken.empty() || !is_open()) return broken;
    close();
    Findings findings;
    const auto checked = check_store(disk_, options_, findings);
    if (!checked.ok()) return judge(checked.status());
    if (damaged_ > before && findings.problems.empty()) return "a check finds no damage";
    if (!findings.problems.empty()) return "";
    const Status again = open();
    return again.ok() ? "" : "a store that a check finds sound does not open: " + again.to_string();
  }

  std::string repair() {
    Findings findings;
    const auto repaired = repair_store(disk_, options_, findings);
    // Without the drives' identities, or the keys, there is nothing to go by.
    if (!repaired.ok()) return judge(repaired.status());
    ++repaired_;
    const Status opened = open();
    if (!opened.ok()) return "a repaired store does not open: " + opened.to_string();
    const std::string broken = compare(true);
    close();
    if (!broken.empty()) return broken;
    Findings after;
    const auto checked = check_store(disk_, options_, after);
    if (!checked.ok()) return "a repaired store cannot be checked: " + checked.status().to_string();
    return after.problems.empty() ? live() : "after the repair: " + after.problems.front();
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  ManualClock clock_;
  SeededRandom random_;
  ManualExecutor executor_;
  EventListener listener_;
  Options options_;
  const Wrong wrong_;
  std::unique_ptr<Engine> engine_;
  NamespaceId data_ = 0;
  std::uint64_t last_number_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t damaged_ = 0;
  std::uint64_t repaired_ = 0;
};

}  // namespace

TEST_CASE("crash: on drives that lie or rot nothing is read that was never written") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(200, 8);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  for (const Wrong wrong : {Wrong::LyingSync, Wrong::BitRot}) {
    std::uint64_t read = 0, damaged = 0, repaired = 0;
    for (std::uint64_t seed = first; seed < first + lives; ++seed) {
      DamagedLife life(seed, wrong);
      const std::string broken = life.run();
      CHECK_MESSAGE(broken.empty(),
                    "seed " << seed << ", wrong " << static_cast<int>(wrong) << ": " << broken);
      read += life.read();
      damaged += life.damaged();
      repaired += life.repaired();
    }
    if (std::getenv("EDGECASE_TEST_SEED") != nullptr) continue;
    MESSAGE(read << " values read, " << damaged << " calls that met damage, " << repaired
                 << " repairs");
    CHECK(read > 100 * lives);
    CHECK(damaged > lives / 4);
    CHECK(repaired > lives / 4);
  }
}

}  // namespace edgecase::test
