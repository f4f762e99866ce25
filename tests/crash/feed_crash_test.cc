// A change feed on drives that lose their power: a reader with a cursor of ranges, as a forwarder
// has, brings what was committed to a target. Whatever crashes, merges, erasures and expiry do, all
// that is current in the end is there, nothing that is erased arrives, nothing older overwrites
// what is newer, and nothing that was answered for comes again. One thread: a seed decides all.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

// What engine and reader might do wrong: the harness must find it.
enum class PlantedFeed : unsigned char {
  Nothing,
  SentLooksNew,       // merges raise what was sent over the cursor
  UnsentIsRaised,     // merges raise what waits in a gap into what was sent
  CursorTooEarly,     // it moves before the target has answered
  CursorNotDurable,   // it counts before it is
  BacklogOverwrites,  // backlog is read through an older snapshot than the newest batch
  SendsErased,        // what was erased since a batch was read is sent with it
};

constexpr int kFeedCrashes = 4;
constexpr int kFeedSteps = 120;
constexpr std::uint64_t kFeedOperations = 2'500;
constexpr std::uint64_t kSeries = 4;
constexpr std::size_t kGapsMax = 8;
constexpr std::int64_t kMinuteNs = 60'000'000'000;
constexpr std::int64_t kKeptMinutes = 200;
constexpr CutPolicy kFeedCuts[] = {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                   CutPolicy::Any, CutPolicy::Torn};
constexpr ByteView kCursorKey = "cursor";

void append_number(Bytes& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(number >> shift));
}

std::uint64_t number_in(ByteView bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(0, 8))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Positions (after, through] that are not at the target yet but for keys up to `resume`.
struct Gap {
  CommitPosition after = 0;
  CommitPosition through = 0;
  Bytes resume;
};

struct Cursor {
  std::vector<Gap> gaps;
  CommitPosition open = 0;  // the last range: (open, now]

  Bytes encoded() const {
    Bytes out;
    append_number(out, open);
    for (const Gap& gap : gaps) {
      append_number(out, gap.after);
      append_number(out, gap.through);
      append_number(out, gap.resume.size());
      out += gap.resume;
    }
    return out;
  }
  static Cursor decoded(ByteView in) {
    Cursor cursor;
    cursor.open = number_in(in);
    for (in.remove_prefix(8); !in.empty();) {
      Gap gap{number_in(in), number_in(in.substr(8)), {}};
      const std::size_t size = number_in(in.substr(16));
      gap.resume = in.substr(24, size);
      in.remove_prefix(24 + size);
      cursor.gaps.push_back(std::move(gap));
    }
    return cursor;
  }
};

struct Entry {
  Bytes key;
  std::uint64_t number = 0;  // of the value: later ones have larger ones
};

class FeedLife {
 public:
  FeedLife(std::uint64_t seed, PlantedFeed planted)
      : random_(seed),
        between_(seed),
        erases_between_(seed % 2 == 1),
        executor_(seed),
        planted_(planted) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 16u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 8 * options_.wal_segment_bytes;
    options_.group_bytes = 512;
    options_.feeds = planted != PlantedFeed::SentLooksNew;
  }
  ~FeedLife() {
    held_.reset();
    engine_.reset();
    executor_.drop_all();
  }

  // What was broken; empty: nothing.
  std::string run() {
    open();
    for (int crash = 0; broken_.empty() && crash < kFeedCrashes; ++crash) {
      disk_.stop_at(1 + random_.below(kFeedOperations));
      for (int step = 0; step < kFeedSteps && !disk_.stopped() && broken_.empty(); ++step)
        take_step();
      if (!broken_.empty()) break;
      end_process();
      open();
    }
    if (broken_.empty()) finish();
    return broken_;
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t backlog_sent() const { return backlog_sent_; }

 private:
  void fail(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }
  // The machine may have stopped.
  bool worked(const Status& status) {
    if (!status.ok() && !disk_.stopped()) fail(status.to_string());
    return status.ok();
  }

  void open() {
    auto engine = Engine::open(options_, {disk_, clock_, random_, executor_, listener_});
    if (!engine.ok()) return fail("the store does not open: " + engine.status().to_string());
    engine_ = std::move(engine).value();
    NamespaceOptions series;
    series.codec = GroupCodec::Series;
    series.scope_bytes = 4;
    readings_ = ensure("readings", series);
    cursors_ = ensure("cursors", {Placement::Metadata, GroupCodec::Plain, 0});
    if (!broken_.empty()) return;
    worked(engine_->set_retention({{readings_, {}, kKeptMinutes * kMinuteNs}}));
    cursor_ = {};
    if (auto kept = engine_->get(cursors_, kCursorKey, {}); kept.ok())
      cursor_ = Cursor::decoded(*kept);
    durable_ = cursor_;
    answered_ = settled_;
    tell_bounds();
  }

  NamespaceId ensure(std::string_view name, const NamespaceOptions& options) {
    if (const auto found = engine_->find_namespace(name); found.ok()) return found->id;
    const auto made = engine_->create_namespace(name, options);
    if (!made.ok()) fail(made.status().to_string());
    return made.ok() ? *made : 0;
  }

  void end_process() {
    held_.reset();
    if (random_.below(4) != 0) {
      if (!disk_.stopped()) disk_.stop_at(1);
      engine_.reset();
      disk_.power_cut(random_.next(), kFeedCuts[random_.below(std::size(kFeedCuts))]);
    } else {
      disk_.kill_process(random_.next());
      engine_.reset();
    }
    executor_.drop_all();
  }

  void take_step() {
    const std::uint64_t what = random_.below(40);
    if (what < 14) return write();
    if (what == 14) return erase_some(held_ == nullptr);
    if (what < 17) return static_cast<void>(worked(engine_->flush()));
    if (what < 19) return static_cast<void>(worked(engine_->compact({readings_}, {})));
    if (what == 19) return clock_.advance(static_cast<std::int64_t>(random_.below(3)) * kMinuteNs);
    if (what < 22) return static_cast<void>(executor_.run_one());
    if (what < 30) return serve_fresh();
    if (what < 36) return serve_backlog();
    if (what < 38) return save_cursor();
    go_absent();
  }

  static Bytes key(std::uint64_t series, std::int64_t minute) {
    constexpr std::uint64_t kSignBit = 1ULL << 63;
    const std::int64_t time_ns = ManualClock::kStartWallNs + minute * kMinuteNs;
    Bytes made = "dev" + std::to_string(series) + "chan";
    append_number(made, static_cast<std::uint64_t>(time_ns) ^ kSignBit);
    return made;
  }

  void write() {
    WriteBatch batch;
    const std::uint64_t count = 1 + random_.below(40);
    std::map<Bytes, std::uint64_t> put;
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool is_late = random_.below(4) == 0;
      const auto minute = is_late ? static_cast<std::int64_t>(random_.below(120)) - 100
                                  : static_cast<std::int64_t>(minute_++ % 2000) / 8;
      const Bytes written = key(random_.below(kSeries), minute);
      if (random_.below(16) == 0) {
        batch.remove(readings_, written);
        continue;
      }
      Bytes value(1, kIntegerTag);
      append_number(value, ++numbers_);
      batch.put(readings_, written, value);
    }
    const auto durability = random_.below(2) == 0 ? Durability::Sync : Durability::Async;
    worked(engine_->write(batch, durability));
  }

  // `is_free`: nobody holds a view, which bytes would wait for.
  void erase_some(bool is_free) {
    WriteBatch batch;
    const std::uint64_t series = random_.below(kSeries);
    const auto from = static_cast<std::int64_t>(random_.below(120)) - 100;
    const Bytes lower = key(series, from);
    const Bytes upper = key(series, from + static_cast<std::int64_t>(random_.below(20)) + 1);
    batch.erase_range(readings_, lower, upper);
    const std::uint64_t before = numbers_;
    if (!worked(engine_->write(batch, Durability::Sync))) return;
    erased_.push_back({{lower, upper}, before});
    if (is_free && random_.below(2) == 0) worked(engine_->erase().status());
  }

  // --- the reader ---

  std::vector<CommitPosition> bounds_of(const Cursor& cursor) const {
    std::vector<CommitPosition> bounds{cursor.open};
    for (const Gap& gap : cursor.gaps) {
      bounds.push_back(gap.after);
      bounds.push_back(gap.through);
    }
    return bounds;
  }

  void tell_bounds() {
    if (planted_ == PlantedFeed::SentLooksNew) return;
    std::vector<CommitPosition> bounds = bounds_of(cursor_);
    for (const CommitPosition bound : bounds_of(durable_)) bounds.push_back(bound);
    if (planted_ == PlantedFeed::UnsentIsRaised) bounds = {engine_->committed()};
    worked(engine_->set_feed_bounds(bounds));
  }

  void save_cursor() {
    WriteBatch batch;
    batch.put(cursors_, kCursorKey, cursor_.encoded());
    const bool lies = planted_ == PlantedFeed::CursorNotDurable;
    const Cursor saved = cursor_;
    if (!worked(engine_->write(batch, lies ? Durability::Async : Durability::Sync))) return;
    durable_ = saved;
    settled_ = answered_;
    tell_bounds();
  }

  // What is read is durable here before it is sent.
  bool make_durable() {
    WriteBatch batch;
    batch.put(cursors_, "sync", "");
    return worked(engine_->write(batch, Durability::Sync));
  }

  struct Batch {
    std::vector<Entry> entries;
    std::uint64_t revocations = 0;  // before it was read
    bool is_all = false;
  };

  // Behind `resume`, newer than `after`; of at most `most` entries. False: it cannot be read.
  bool read_batch(const Gap& range, std::shared_ptr<const Snapshot> snapshot, std::size_t most,
                  Batch& batch) {
    batch.revocations = engine_->revocations();
    ReadOptions read;
    read.snapshot = std::move(snapshot);
    read.newer_than = range.after;
    Bytes lower = range.resume;
    if (!lower.empty()) lower.push_back('\0');
    auto scan = engine_->scan(readings_, {lower, {}}, read);
    if (!worked(scan.status())) return false;
    for (; (*scan)->valid() && batch.entries.size() < most; (*scan)->next()) {
      if ((*scan)->position() > range.through) continue;
      const ByteView value = (*scan)->value();
      if (!(*scan)->valid()) break;
      batch.entries.push_back({Bytes((*scan)->key()), number_in(value.substr(1))});
    }
    batch.is_all = !(*scan)->valid();
    return worked((*scan)->status());
  }

  // Whether the target has answered for all of it. It goes in requests; the link may break in the
  // middle, and somebody may erase between two of them.
  bool send(const Batch& batch) {
    constexpr std::size_t kRequest = 16;
    const std::vector<Entry>& entries = batch.entries;
    const bool breaks = random_.below(6) == 0;
    const std::size_t arrive = breaks ? random_.below(entries.size() + 1) : entries.size();
    for (std::size_t i = 0; i < arrive; ++i) {
      if (i % kRequest == 0 && erases_between_ && between_.below(8) == 0) erase_some(false);
      if (i % kRequest == 0 && !still_holds(batch)) return false;
      arrives(entries[i]);
    }
    if (breaks) return false;
    for (const Entry& entry : entries) answered_.insert(entry.number);
    return true;
  }
  bool still_holds(const Batch& batch) const {
    return planted_ == PlantedFeed::SendsErased ||
           !engine_->is_revoked(readings_, batch.entries.front().key, batch.entries.back().key,
                                batch.revocations);
  }

  void arrives(const Entry& entry) {
    ++sent_;
    const std::string name = "value " + std::to_string(entry.number);
    std::uint64_t& there = target_[entry.key];
    if (there > entry.number) fail(name + " overwrites " + std::to_string(there));
    there = entry.number;
    // What is raised by that bug may come again, too; but what it loses is to be found.
    const bool counts = planted_ != PlantedFeed::UnsentIsRaised;
    if (counts && answered_.contains(entry.number))
      fail(name + " was answered for and comes again");
    for (const auto& [range, before] : erased_) {
      if (entry.key >= range.first && entry.key < range.second && entry.number <= before)
        fail(name + " was erased and arrives");
    }
  }

  void serve_fresh() {
    const auto snapshot = engine_->snapshot();
    if (!make_durable()) return;
    const CommitPosition through = snapshot->committed();
    Batch batch;
    if (!read_batch({cursor_.open, through, {}}, snapshot, SIZE_MAX, batch)) return;
    if (planted_ == PlantedFeed::CursorTooEarly) cursor_.open = through;
    if (send(batch)) cursor_.open = through;
  }

  // The oldest gap, a part of it.
  void serve_backlog() {
    if (cursor_.gaps.empty()) return;
    const bool is_old = planted_ == PlantedFeed::BacklogOverwrites && held_ != nullptr;
    const auto snapshot = is_old ? held_ : engine_->snapshot();
    if (!make_durable()) return;
    Gap& gap = cursor_.gaps.front();
    Batch batch;
    if (!read_batch(gap, snapshot, 1 + random_.below(200), batch) || !send(batch)) return;
    backlog_sent_ += batch.entries.size();
    if (!batch.entries.empty()) gap.resume = batch.entries.back().key;
    if (batch.is_all) cursor_.gaps.erase(cursor_.gaps.begin());
  }

  // The target was away: what came meanwhile waits behind what comes now.
  void go_absent() {
    if (cursor_.gaps.size() == kGapsMax) return;
    const CommitPosition through = engine_->committed();
    if (through == cursor_.open) return;
    cursor_.gaps.push_back({cursor_.open, through, {}});
    if (planted_ == PlantedFeed::BacklogOverwrites) held_ = engine_->snapshot();
    cursor_.open = through;
    tell_bounds();
  }

  // Everything is sent, and what is current is there; then nothing is new any more.
  void finish() {
    drain();
    if (!broken_.empty()) return;
    auto scan = engine_->scan(readings_, {}, {});
    if (!worked(scan.status())) return;
    for (; (*scan)->valid(); (*scan)->next()) {
      const std::uint64_t number = number_in((*scan)->value().substr(1));
      const auto there = target_.find((*scan)->key());
      if (there == target_.end() || there->second != number)
        return fail("value " + std::to_string(number) + " is not at the target");
    }
    save_cursor();
    worked(engine_->flush());
    worked(engine_->compact({readings_}, {}));
    drain();
  }

  void drain() {
    for (int i = 0; i < 1000 && broken_.empty() && !cursor_.gaps.empty(); ++i) serve_backlog();
    CommitPosition before = 0;
    do {
      before = cursor_.open;
      serve_fresh();
    } while (broken_.empty() && cursor_.open == before);
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  ManualClock clock_;
  SeededRandom random_;
  SeededRandom between_;       // requests of a batch; by itself, so that the rest stays as it is
  const bool erases_between_;  // in every second life
  ManualExecutor executor_;
  EventListener listener_;
  Options options_;
  const PlantedFeed planted_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Snapshot> held_;
  NamespaceId readings_ = 0;
  NamespaceId cursors_ = 0;
  std::int64_t minute_ = 0;
  std::uint64_t numbers_ = 0;
  std::vector<std::pair<std::pair<Bytes, Bytes>, std::uint64_t>> erased_;  // and numbers until then
  Cursor cursor_;
  Cursor durable_;
  std::set<std::uint64_t> answered_;
  std::set<std::uint64_t> settled_;  // of them, those that the durable cursor says
  std::map<Bytes, std::uint64_t, std::less<>> target_;
  std::uint64_t sent_ = 0;
  std::uint64_t backlog_sent_ = 0;
  std::string broken_;
};

}  // namespace

TEST_CASE("crash: a feed brings all that is current to its target, and nothing again") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(80);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  std::uint64_t sent = 0;
  std::uint64_t backlog = 0;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    FeedLife life(seed, PlantedFeed::Nothing);
    const std::string broken = life.run();
    CHECK_MESSAGE(broken.empty(), "seed " << seed << ": " << broken);
    sent += life.sent();
    backlog += life.backlog_sent();
  }
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return;
  MESSAGE(sent << " sent, of them " << backlog << " of backlog");
  CHECK(sent > 200 * lives);
  CHECK(backlog > 20 * lives);
}

TEST_CASE("crash: what a feed may do wrong is found") {
  for (const PlantedFeed planted :
       {PlantedFeed::SentLooksNew, PlantedFeed::UnsentIsRaised, PlantedFeed::CursorTooEarly,
        PlantedFeed::CursorNotDurable, PlantedFeed::BacklogOverwrites, PlantedFeed::SendsErased}) {
    CAPTURE(static_cast<int>(planted));
    std::string found;
    std::uint64_t seed = 0;
    while (seed < 60 && found.empty()) found = FeedLife(++seed, planted).run();
    CHECK_FALSE(found.empty());
    MESSAGE("seed " << seed << ": " << found);
  }
}

}  // namespace edgecase::test
