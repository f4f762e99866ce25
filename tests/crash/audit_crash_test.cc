// The audit log on drives that lose their power: what was acknowledged strictly is told, what is
// told verifies, and nothing that was done is there without its record. The log works on the real
// engine over the simulated drives; one thread, so that a seed decides everything.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audit/audit_log.h"
#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

using audit::AuditLog;
using audit::Mode;

// What the daemon might do wrong: the harness must find it.
enum class Planted : unsigned char {
  Nothing,
  AcknowledgedUnsettled,  // the answer leaves before the record is durable
  LeftOut,                // a commit says that it took records along, and did not
  Unsynced,               // the log's drive is not asked to make anything durable
  DoneBeforeTold,         // a change is made before the record that it begins
};

constexpr int kStepsPerCrash = 60;
constexpr std::uint64_t kOperationsPerCrash = 400;
constexpr int kCrashes = 4;
constexpr CutPolicy kPolicies[] = {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                   CutPolicy::Any, CutPolicy::Torn};

// Stands between engine and log, and forgets every third commit's records.
class LeavingOut final : public CommitCompanion {
 public:
  explicit LeavingOut(AuditLog& log) : log_(log) {}
  void add_to(WriteBatch& batch) override {
    log_.add_to(batch);
    if (batch.count() == 0 || ++commits_ % 3 != 0) return;
    batch.clear();
    log_.committed(ok());
  }
  void committed(const Status& status) override { log_.committed(status); }

 private:
  AuditLog& log_;
  int commits_ = 0;
};

class AuditLife {
 public:
  AuditLife(std::uint64_t seed, Mode mode, Planted planted)
      : random_(seed), executor_(seed), mode_(mode), planted_(planted) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 16u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 8 * options_.wal_segment_bytes;
  }
  ~AuditLife() { close(); }

  // What was broken; empty: nothing.
  std::string run() {
    std::string broken = open();
    disk_.set_lying_sync("/m", planted_ == Planted::Unsynced);
    for (int crash = 0; broken.empty() && crash < kCrashes; ++crash) {
      disk_.stop_at(1 + random_.below(kOperationsPerCrash));
      for (int step = 0; step < kStepsPerCrash && !disk_.stopped(); ++step) take_step();
      end_process();
      disk_.stop_at(MemoryFileSystem::kNever);
      broken = open();
      if (broken.empty()) broken = compare();
    }
    return broken;
  }
  std::size_t acknowledged() const { return acknowledged_.size(); }
  std::size_t compared() const { return compared_; }

 private:
  std::string open() {
    auto engine = Engine::open(options_, {disk_, clock_, random_, executor_, listener_});
    if (!engine.ok()) return "the store does not open: " + engine.status().to_string();
    engine_ = std::move(engine).value();
    const auto found = engine_->find_namespace("data");
    const auto made =
        found.ok() ? Result<NamespaceId>(found->id) : engine_->create_namespace("data", {});
    if (!made.ok()) return made.status().to_string();
    data_ = *made;
    audit::AuditOptions options;
    options.mode = mode_;
    options.head_directory = options_.values_directory;
    options.runs_thread = false;
    auto log = AuditLog::open(options, {*engine_, disk_, clock_, random_});
    if (!log.ok()) return "the audit log does not open: " + log.status().to_string();
    log_ = std::move(log).value();
    if (planted_ != Planted::LeftOut) return "";
    leaving_out_ = std::make_unique<LeavingOut>(*log_);
    engine_->set_commit_companion(leaving_out_.get());
    return "";
  }

  void close() {
    if (engine_ != nullptr) engine_->set_commit_companion(nullptr);
    log_.reset();
    engine_.reset();
    executor_.drop_all();
  }

  // The drives do nothing any more: what the destructors would write does not arrive.
  void end_process() {
    if (!disk_.stopped()) disk_.stop_at(1);
    const std::uint64_t seed = random_.next();
    const bool power_goes = random_.below(4) != 0;
    close();
    if (power_goes) {
      disk_.power_cut(seed, kPolicies[random_.below(std::size(kPolicies))]);
    } else {
      disk_.kill_process(seed);
    }
    unsettled_.clear();
  }

  void take_step() {
    clock_.advance(300'000'000);
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: return store();
      case 3:
      case 4: return acknowledge(read());
      case 5: return erase();
      case 6: return static_cast<void>(executor_.run_one());
      default: return tick();
    }
  }

  static audit::Record record_of(const char* operation, const std::string& number) {
    audit::Record record;
    record.operation = operation;
    record.actor = "uid 1000";
    record.detail = number;
    return record;
  }

  // As the pipeline does.
  void store() {
    const std::string number = std::to_string(++last_number_);
    const auto ticket = log_->append(record_of("ingest", number));
    if (!ticket.ok()) return;
    WriteBatch batch;
    batch.put(data_, number, Bytes(100, 'v'));
    const Status written = engine_->write(batch, Durability::Sync);
    if (!written.ok()) return log_->amend(*ticket, record_of("ingest", number), written);
    if (planted_ != Planted::AcknowledgedUnsettled && !log_->settle(*ticket).ok()) return;
    acknowledge(number);
  }

  std::string read() {
    const std::string number = std::to_string(++last_number_);
    const auto ticket = log_->append(record_of("query", number));
    if (!ticket.ok()) return "";
    if (planted_ == Planted::AcknowledgedUnsettled) return number;
    return log_->settle(*ticket).ok() ? number : "";
  }

  // As the HTTP face does with a change: told before, and after.
  void erase() {
    const std::string number = std::to_string(++last_number_);
    audit::Record begun = record_of("erase", "e" + number);
    begun.outcome = audit::Outcome::Begun;
    WriteBatch batch;
    batch.remove_range(data_, "0", ":");
    batch.put(data_, "e" + number, "");
    if (planted_ == Planted::DoneBeforeTold && !engine_->write(batch, Durability::Sync).ok())
      return;
    if (!log_->note(std::move(begun)).ok()) return;
    if (!engine_->write(batch, Durability::Sync).ok()) return;
    if (log_->note(record_of("erase", number)).ok()) acknowledge(number);
  }

  void tick() {
    log_->tick();
    if (log_->state().queued > 0) return;
    acknowledged_.insert(unsettled_.begin(), unsettled_.end());
    unsettled_.clear();
  }

  void acknowledge(const std::string& number) {
    if (number.empty()) return;
    if (mode_ == Mode::Strict) {
      acknowledged_.insert(number);
    } else {
      unsettled_.push_back(number);  // until the queue was written
    }
  }

  std::string compare() {
    const auto verified = audit::verify(*log_);
    if (!verified.ok()) return "it can not be verified: " + verified.status().to_string();
    if (verified->fault_count > 0) return "it does not verify: " + verified->faults[0].what;
    std::set<std::string> told;
    const auto cursor = audit::RecordCursor::open(*log_, {});
    if (!cursor.ok()) return cursor.status().to_string();
    for (audit::Record record;;) {
      const auto more = (*cursor)->next(record);
      if (!more.ok()) return more.status().to_string();
      if (!*more) break;
      told.insert(record.detail);
    }
    compared_ += told.size();
    for (const std::string& number : acknowledged_) {
      if (!told.contains(number)) return "record " + number + " was acknowledged and is gone";
    }
    return mode_ == Mode::Strict ? compare_data(told) : "";
  }

  // What was done is told, acknowledged or not.
  std::string compare_data(const std::set<std::string>& told) {
    const auto at = engine_->scan(data_, {}, {});
    if (!at.ok()) return at.status().to_string();
    for (; (*at)->valid(); (*at)->next()) {
      const std::string number((*at)->key());
      if (!told.contains(number)) return number + " is stored, and no record tells of it";
    }
    return (*at)->status().ok() ? "" : (*at)->status().to_string();
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  ManualClock clock_;
  SeededRandom random_;
  ManualExecutor executor_;
  EventListener listener_;
  Options options_;
  const Mode mode_;
  const Planted planted_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<AuditLog> log_;
  std::unique_ptr<LeavingOut> leaving_out_;
  NamespaceId data_ = 0;
  int last_number_ = 0;
  std::set<std::string> acknowledged_;
  std::vector<std::string> unsettled_;
  std::size_t compared_ = 0;
};

}  // namespace

TEST_CASE("crash: the audit log verifies after every crash, and tells all that was acknowledged") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(200);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  for (const Mode mode : {Mode::Strict, Mode::Batched}) {
    std::size_t acknowledged = 0, compared = 0;
    for (std::uint64_t seed = first; seed < first + lives; ++seed) {
      AuditLife life(seed, mode, Planted::Nothing);
      const std::string broken = life.run();
      CHECK_MESSAGE(broken.empty(),
                    "seed " << seed << ", mode " << static_cast<int>(mode) << ": " << broken);
      acknowledged += life.acknowledged();
      compared += life.compared();
    }
    if (std::getenv("EDGECASE_TEST_SEED") != nullptr) continue;
    CHECK(acknowledged > 8 * lives);
    CHECK(compared > acknowledged);
  }
}

TEST_CASE("crash: what an audit log may do wrong is found") {
  struct Case {
    Planted planted;
    Mode mode;
    std::uint64_t seeds;  // by then
  };
  for (const Case& c :
       {Case{Planted::AcknowledgedUnsettled, Mode::Strict, 20},
        Case{Planted::LeftOut, Mode::Strict, 20}, Case{Planted::LeftOut, Mode::Batched, 20},
        Case{Planted::Unsynced, Mode::Strict, 20}, Case{Planted::Unsynced, Mode::Batched, 20},
        Case{Planted::DoneBeforeTold, Mode::Strict, 200}}) {
    CAPTURE(static_cast<int>(c.planted));
    CAPTURE(static_cast<int>(c.mode));
    std::string found;
    for (std::uint64_t seed = 1; seed <= c.seeds && found.empty(); ++seed) {
      found = AuditLife(seed, c.mode, c.planted).run();
    }
    CHECK_FALSE(found.empty());
    MESSAGE(found);
  }
}

}  // namespace edgecase::test
