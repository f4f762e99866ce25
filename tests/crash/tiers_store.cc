#include "crash/tiers_store.h"

#include <vector>

#include "crash/crash_store.h"

namespace edgecase::test {
const auth::Principal& somebody() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  return principal;
}

TierStore::TierStore(std::uint64_t seed, bool is_encrypted) : random(seed), executor(seed) {
  options.metadata_directory = "/m/store";
  options.values_directory = "/v/store";
  options.memory_limit_bytes = 8u << 20;
  options.memtable_bytes = std::uint64_t{4096} << seed % 5;
  options.wal_segment_bytes = 64u << 10;
  options.wal_limit_bytes = 8 * options.wal_segment_bytes;
  options.group_span_ns = 600 * kTierSecondNs;  // some windows are whole groups
  options.erasure_wait_ms = 0;
  options.removal = Removal::Overwrite;
  if (is_encrypted) options.encryption = MasterKeys{SecretKey{1}};
}

Status TierStore::open() {
  EC_ASSIGN_OR_RETURN(engine, Engine::open(options, {disk, clock, random, executor, listener}));
  EC_ASSIGN_OR_RETURN(catalog, catalog::Catalog::open(*engine, {}));
  EC_ASSIGN_OR_RETURN(devices, catalog::DeviceIndex::open(*engine));
  EC_ASSIGN_OR_RETURN(retention,
                      retention::RetentionService::open(*engine, *catalog, kRetentionForever));
  EC_ASSIGN_OR_RETURN(erase, erase::EraseService::open({*engine, *catalog, *devices, *retention,
                                                        clock, random, erase::DriveWatch::Look()}));
  pipeline = std::make_unique<ingest::IngestPipeline>(*engine, *catalog, clock, retention.get(),
                                                      devices.get(), nullptr, &erase->fences());
  query = std::make_unique<query::QueryService>(*engine, *catalog, devices.get());
  query->read_tiers(&retention->marks());
  maker = std::make_unique<tiers::TierMaker>(*engine, *catalog, *retention, erase->fences());
  return ok();
}

void TierStore::close() {
  if (maker != nullptr) windows += maker->status().windows;
  maker.reset();
  query.reset();
  pipeline.reset();
  erase.reset();
  retention.reset();
  devices.reset();
  catalog.reset();
  engine.reset();
  executor.drop_all();
}

void TierStore::cure() {
  disk.stop_at(MemoryFileSystem::kNever);
  disk.clear_faults();
  disk.set_gone("/v", false);
}

void TierStore::pass(std::int64_t ns) {
  clock.advance(ns);
  executor.advance(ns);
}

std::string TierStore::rest(int seconds) {
  for (; seconds > 0; --seconds) {
    pass(kTierSecondNs + kTierSecondNs / 10);
    std::size_t tasks = 0;
    while (executor.run_one()) {
      if (++tasks > kTasksMax) return "background work does not come to an end";
    }
  }
  return "";
}

Status TierStore::compact() {
  std::vector<NamespaceId> ids;
  for (const NamespaceInfo& info : engine->namespaces()) ids.push_back(info.id);
  return engine->compact(ids, {});
}

Result<TierStore::Rows> TierStore::ask(const char* sensor, std::int64_t every_ns,
                                       std::optional<wire::Aggregate> aggregate) {
  wire::QueryRequest request;
  request.selection = wire::parse_selector(std::string("board/") + sensor).value();
  request.every_ns = every_ns;
  request.aggregate = aggregate;
  Rows rows;
  EC_ASSIGN_OR_RETURN(const auto cursor, query->query(somebody(), request));
  wire::Reading reading;
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, cursor->next(reading));
    if (!more) return rows;
    if (reading.value.type != wire::ValueType::Int64)
      return corruption("an answer is no whole number");
    if (!rows.emplace(reading.time_ns.value_or(INT64_MIN), reading.value.int64).second)
      return corruption("a row is there twice");
  }
}

retention::TierMark TierStore::mark(const char* sensor) const {
  const auto series = catalog->find("default", "board", sensor);
  return series.ok() ? retention->marks().find(series->id) : retention::TierMark();
}

std::string TierStore::check() {
  FirstProblem problem;
  const Status checked = check_store(disk, options, problem).status();
  if (checked.ok() && problem.message().empty()) return "";
  return "the drives are not in order: " + checked.to_string() + " " + problem.message();
}

}  // namespace edgecase::test
