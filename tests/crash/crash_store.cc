#include "crash/crash_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "auth/authorize.h"
#include "edgecase/store_check.h"
#include "wire/reading.h"

namespace edgecase::test {
namespace {

constexpr const char* kRoots[] = {"", "/m", "/v"};
constexpr std::int64_t kFarAheadNs = 7'200'000'000'000;

Bytes end_of(const Change& range) {
  return range.key_end < kKeysPerPlace ? engine_key(range.place, range.key_end) : Bytes();
}

}  // namespace

class CrashStore::Listener final : public EventListener {
 public:
  explicit Listener(CrashCounters& counters) : counters_(counters) {}
  void on_recovered(const RecoveryEvent& event) override {
    ++counters_.opened;
    counters_.replayed += event.wal_records;
    if (event.torn_tail) ++counters_.torn_tails;
    counters_.dropped_segments += event.dropped_segments;
  }
  void on_flushed(const FlushEvent&) override { ++counters_.flushes; }
  void on_corruption(const Status&) override { ++counters_.damages; }

 private:
  CrashCounters& counters_;
};

bool is_encrypted(const Plan& plan) {
  return plan.seed % 3 == 1;
}

// With one byte all series are of one scope, so that those that expire are gathered apart from the
// others.
std::uint32_t timed_scope_bytes(const Plan& plan) {
  return plan.seed / 2 % 2 == 1 ? 1 : place_options(kTimedPlace).scope_bytes;
}

ExpiryMode expiry_mode(const Plan& plan) {
  const bool exact = plan.seed % 2 == 1 && has_step(plan, StepKind::Retain);
  return exact ? ExpiryMode::Exact : ExpiryMode::Bounded;
}

CrashStore::CrashStore(const Plan& plan, const WrapDrives& wrap)
    : timed_scope_bytes_(timed_scope_bytes(plan)),
      random_(plan.seed),
      executor_(plan.seed),
      listener_(std::make_unique<Listener>(counters_)) {
  if (wrap) wrapped_ = wrap(disk_);
  options_.metadata_directory = "/m/store";
  options_.values_directory = "/v/store";
  options_.memory_limit_bytes = 8u << 20;
  options_.memtable_bytes = plan.memtable_bytes;
  options_.wal_segment_bytes = (plan.wal_segments > kWalSegmentsFewMax ? 8u : 64u) << 10;
  options_.wal_limit_bytes = plan.wal_segments * options_.wal_segment_bytes;
  options_.coalesce_threshold_bytes = kThresholdBytes;
  options_.group_bytes = 1024;
  options_.erasure_wait_ms = 0;
  if (is_encrypted(plan)) {
    options_.encryption = MasterKeys{SecretKey{1}};
    disk_.watch_sealing();
  }
  options_.expiry = expiry_mode(plan);
  if (!has_step(plan, StepKind::Erase) && !has_step(plan, StepKind::Retain)) return;
  options_.removal = Removal::Overwrite;
  disk_.keep_freed();
}

CrashStore::~CrashStore() {
  close();
}

Status CrashStore::open() {
  FileSystem& drives = wrapped_ != nullptr ? *wrapped_ : disk_;
  EC_ASSIGN_OR_RETURN(engine_,
                      Engine::open(options_, {drives, clock_, random_, executor_, *listener_}));
  auto opened = catalog::Catalog::open(*engine_, {});
  if (!opened.ok()) {
    close();
    return opened.status();
  }
  catalog_ = std::move(opened).value();
  pipeline_ = std::make_unique<ingest::IngestPipeline>(*engine_, *catalog_, clock_);
  return ok();
}

void CrashStore::close() {
  if (engine_ != nullptr) count();
  pipeline_.reset();
  catalog_.reset();
  engine_.reset();
  executor_.drop_all();
}

void CrashStore::count() {
  const CompactionStats stats = engine_->stats().compaction;
  counters_.merges += stats.merges;
  counters_.relocations += stats.relocations;
  counters_.dropped_deletes += stats.dropped_deletes;
  counters_.removed_files += stats.removed_files;
  counters_.erasures += engine_->stats().erasure.erasures;
  counters_.drops += engine_->stats().expiry.drops;
  counters_.purges += engine_->stats().expiry.purges;
}

void CrashStore::ail(const Step& step) {
  const auto& with = step.arguments;
  switch (step.kind) {
    case StepKind::Fail:
      disk_.fail_nth(static_cast<Operation>(with[0]), std::max<std::uint64_t>(with[1], 1),
                     static_cast<int>(with[2]), with[3] != 0 ? FaultMode::Sticky : FaultMode::Once,
                     kRoots[with[4] % 3]);
      break;
    case StepKind::Full: {
      const std::string root = kRoots[1 + with[0] % 2];
      disk_.set_capacity(root, disk_.used_bytes(root) + with[1]);
      break;
    }
    case StepKind::ReadOnly: disk_.set_read_only(kRoots[1 + with[0] % 2], true); break;
    case StepKind::Unplug: disk_.set_gone("/v", true); break;
    default: disk_.stop_at(std::max<std::uint64_t>(with[0], 1)); break;
  }
}

void CrashStore::cure() {
  disk_.stop_at(MemoryFileSystem::kNever);
  disk_.clear_faults();
  disk_.set_gone("/v", false);
  for (const char* root : {"/m", "/v"}) {
    disk_.set_capacity(root, 0);
    disk_.set_read_only(root, false);
  }
}

void CrashStore::rot_manifest(std::uint64_t seed) {
  const Bytes current = disk_.contents("/m/store/CURRENT");
  const std::string path = "/m/store/" + current.substr(0, current.find('\n'));
  if (current.empty() || !disk_.exists(path)) return;
  constexpr std::size_t kHeadBytes = 4096;
  constexpr std::size_t kAreaBytes = 2048;  // begins in the first records, or with the head
  SeededRandom random(seed);
  Bytes bytes = disk_.contents(path);
  const std::size_t begin = random.next() % 2 * (bytes.size() / 2);
  const std::size_t at =
      random.next() % 4 == 0 ? begin : begin + kHeadBytes + random.next() % kAreaBytes;
  const std::size_t end = at + 1 + random.next() % kAreaBytes;
  for (std::size_t i = at; i < end; ++i) bytes[i] = static_cast<char>(random.next());
  disk_.set_contents(path, bytes);
  ++counters_.rotten_manifests;
}

Status CrashStore::rest(std::int64_t seconds) {
  // Where bytes go within a second, looks are four in one.
  const std::int64_t parts = options_.expiry == ExpiryMode::Exact ? 4 : 1;
  for (seconds *= parts; seconds > 0; --seconds) {
    pass(kRestedSecondNs / parts);
    std::size_t tasks = 0;
    while (executor_.run_one()) {
      if (++tasks > kTasksMax) return corruption("background work does not come to an end");
    }
  }
  return ok();
}

void CrashStore::pass(std::int64_t ns) {
  clock_.advance(ns);
  executor_.advance(ns);
  true_ns_ += ns;
  // A clock that was set far ahead is not followed for an hour, which no life lasts.
  if (clock_.trust() == ClockTrust::Trusted)
    trusted_ns_ = std::max(trusted_ns_, true_ns_ - clock_behind_ns_);
}

void CrashStore::set_clock(std::uint64_t setting, std::int64_t seconds) {
  clock_behind_ns_ = 0;
  clock_.set_trust(ClockTrust::Trusted);
  clock_.set_wall_ns(true_ns_);
  pass(0);
  // The engine knows what was right before it is told something else.
  if (is_open()) static_cast<void>(engine_->expiry_now_ns());
  switch (setting % 4) {
    case 1: clock_.set_trust(ClockTrust::Untrusted); break;
    case 2: clock_.set_wall_ns(true_ns_ + kFarAheadNs); break;
    case 3:
      clock_behind_ns_ = seconds * 1'000'000'000;
      clock_.set_wall_ns(true_ns_ - clock_behind_ns_);
      break;
    default: break;
  }
}

NamespaceId CrashStore::find_place(std::size_t place) const {
  const auto found = engine_->find_namespace(place_name(place));
  return found.ok() ? found->id : 0;
}

Status CrashStore::create_place(std::size_t place) {
  if (is_site(place)) return catalog_->ensure_namespace(place_name(place)).status();
  NamespaceOptions options = place_options(place);
  if (place == kTimedPlace) options.scope_bytes = timed_scope_bytes_;
  return engine_->create_namespace(place_name(place), options).status();
}

Status CrashStore::drop_place(std::size_t place) {
  if (is_site(place)) return catalog_->drop_namespace(place_name(place));
  return engine_->drop_namespace(find_place(place));
}

Status CrashStore::write(const Changes& changes, Durability durability) {
  WriteBatch batch;
  for (const Change& change : changes) {
    const NamespaceId id = find_place(change.place);
    const Bytes key = engine_key(change.place, change.key);
    switch (change.kind) {
      case Change::Kind::Put: batch.put(id, key, value_bytes(change.place, change.value)); break;
      case Change::Kind::Remove: batch.remove(id, key); break;
      case Change::Kind::RemoveRange: batch.remove_range(id, key, end_of(change)); break;
      case Change::Kind::EraseRange: batch.erase_range(id, key, end_of(change)); break;
    }
  }
  return engine_->write(batch, durability);
}

Status CrashStore::ingest(const Changes& changes) {
  const auth::Principal principal{auth::PrincipalKind::LocalSocket, "harness"};
  wire::ReadingBatch batch;
  for (const Change& change : changes) {
    std::string store;
    wire::Value value = site_value(change.value, store);
    if (value.type == wire::ValueType::Text) value.text = batch.keep(store);
    batch.readings.push_back({place_name(change.place), site_device(change.key),
                              site_sensor(change.key), site_time_ns(change.key), value});
  }
  EC_ASSIGN_OR_RETURN(const auto authorized, auth::authorize_write(principal, batch));
  return pipeline_->ingest(authorized);
}

Status CrashStore::forget(std::size_t place, std::size_t key) {
  EC_ASSIGN_OR_RETURN(const catalog::SeriesEntry series,
                      catalog_->find(place_name(place), site_device(key), site_sensor(key)));
  const std::int64_t time_ns = site_time_ns(key);
  return pipeline_->times().forget(series.id, std::span(&time_ns, 1));
}

Status CrashStore::add_entry(std::size_t place, std::size_t key, ByteView value, State& state) {
  const auto number = parse_value(place, value);
  if (!number)
    return corruption("a value that was never written, in " + std::string(place_name(place)) + "/" +
                      std::to_string(key));
  ValueNumber& known = state.places[place][key];
  if (known != 0) return corruption("a key comes twice, in " + std::string(place_name(place)));
  known = *number;
  return ok();
}

Status CrashStore::read_place(std::size_t place, Direction direction,
                              const std::shared_ptr<const Snapshot>& snapshot, State& state) {
  state.places[place].fill(0);
  ReadOptions options;
  options.snapshot = snapshot;
  options.direction = direction;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_->scan(find_place(place), {}, options));
  return is_site(place) ? read_site(place, *iterator, state) : read_rest(place, *iterator, state);
}

Status CrashStore::read_rest(std::size_t place, Iterator& iterator, State& state) {
  for (; iterator.valid(); iterator.next()) {
    const ByteView value = iterator.value();
    if (!iterator.valid()) break;
    const auto key = parse_engine_key(place, iterator.key());
    if (!key) return corruption("a key that was never written");
    EC_TRY(add_entry(place, *key, value, state));
  }
  return iterator.status();
}

Status CrashStore::read_site(std::size_t place, Iterator& iterator, State& state) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, catalog::SeriesEntry> series;
  for (catalog::SeriesEntry& entry : catalog_->select(place_name(place), {}))
    series.emplace(std::make_pair(entry.id.device, entry.id.sensor), std::move(entry));
  for (; iterator.valid(); iterator.next()) {
    const ByteView value = iterator.value();
    if (!iterator.valid()) break;
    wire::ReadingKey key;
    if (!wire::decode_reading_key(iterator.key(), key)) return corruption("no reading's key");
    const auto found = series.find({key.device, key.sensor});
    if (found == series.end()) return corruption("a reading of a series the catalog lacks");
    const auto number = find_site_key(found->second.device, found->second.sensor, key.time_ns);
    if (!number) return corruption("a reading that was never written");
    EC_TRY(add_entry(place, *number, value, state));
  }
  return iterator.status();
}

Result<ValueNumber> CrashStore::get(std::size_t place, std::size_t key) {
  EC_ASSIGN_OR_RETURN(const Bytes value,
                      engine_->get(find_place(place), engine_key(place, key), {}));
  State state;
  EC_TRY(add_entry(place, key, value, state));
  return state.places[place][key];
}

Status CrashStore::check() {
  FirstProblem observer;
  EC_TRY(check_store(disk_, options_, observer).status());
  return observer.message().empty() ? ok() : corruption("check: " + observer.message());
}

}  // namespace edgecase::test
