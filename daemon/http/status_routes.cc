// Routes for the daemon's state: /api/v1/status, /healthz, /readyz, /metrics, and
// /api/v1/mqtt/test.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "edgecase/machine.h"
#include "http/http_routes.h"
#include "http/request_head.h"
#include "wire/contract.h"
#include "wire/json_text.h"

namespace edgecase::http {
namespace {

using wire::Json;

constexpr double kNsPerSecond = 1e9;

// Memory that is really held, from the kernel's page count; 0 when it does not tell.
std::uint64_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long total = 0, resident = 0;
  const bool read = std::fscanf(file, "%llu %llu", &total, &resident) == 2;
  std::fclose(file);
  return read ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

// Why writes would be refused now; Ok when they would not.
Status readiness(const Stats& stats) {
  if (!stats.metadata.degraded.ok()) return stats.metadata.degraded;
  // Without the values drive memory and log take writes until they are full.
  return stats.refused;
}

Json drive(HttpContext& context, const std::string& path, const LayerStats& layer,
           const DriveFacts& facts) {
  Json json = {{"path", path}};
  const auto space = context.parts.file_system.space(path);
  json["total_bytes"] = space.ok() ? Json(space->total_bytes) : Json(nullptr);
  json["free_bytes"] = space.ok() ? Json(space->free_bytes) : Json(nullptr);
  json["file_system"] = facts.file_system.empty() ? Json(nullptr) : Json(facts.file_system);
  json["overwrites"] = erase::overwrites_name(facts.overwrites);
  json["overwrites_why"] = facts.why.empty() ? Json(nullptr) : Json(facts.why);
  json["files"] = layer.files;
  json["live_bytes"] = layer.live_bytes;
  json["bytes_written"] = layer.bytes_written;
  json["bytes_read"] = layer.bytes_read;
  const bool healthy = layer.degraded.ok() && space.ok();
  const Status& reason = layer.degraded.ok() ? space.status() : layer.degraded;
  json["degraded"] = healthy ? Json(nullptr) : Json(reason.to_string());
  json["degraded_since"] =
      layer.degraded.ok() ? Json(nullptr) : Json(wire::time_text(layer.degraded_since_ns));
  return json;
}

// Members of the engine's counters and the names they have in the status and, with the prefix
// edgecase_compaction_ or edgecase_expiry_, among the metrics.
struct CompactionNumber {
  const char* name;
  const char* metric;
  observe::MetricKind kind;
  const char* help;
  std::uint64_t CompactionStats::*member;
};
constexpr auto kCounter = observe::MetricKind::Counter;
constexpr auto kGauge = observe::MetricKind::Gauge;
constexpr CompactionNumber kCompactionNumbers[] = {
    {"merges", "merges_total", kCounter, "Merges of metadata records alone.",
     &CompactionStats::merges},
    {"relocations", "relocations_total", kCounter, "Merges that wrote values again.",
     &CompactionStats::relocations},
    {"failures", "failures_total", kCounter, "Merges that failed; each is tried again.",
     &CompactionStats::failures},
    {"carried_items", "carried_items_total", kCounter, "Items carried by reference.",
     &CompactionStats::carried_items},
    {"rewritten_items", "rewritten_items_total", kCounter, "Groups read and written again.",
     &CompactionStats::rewritten_items},
    {"copied_items", "copied_items_total", kCounter, "Items moved byte for byte.",
     &CompactionStats::copied_items},
    {"dropped_items", "dropped_items_total", kCounter, "Items dropped unread.",
     &CompactionStats::dropped_items},
    {"superseded_entries", "superseded_entries_total", kCounter, "Entries dropped from groups.",
     &CompactionStats::superseded_entries},
    {"value_bytes", "value_bytes_total", kCounter, "Written to the values drive by merges.",
     &CompactionStats::value_bytes},
    {"metadata_bytes", "metadata_bytes_total", kCounter, "Written to the metadata drive by merges.",
     &CompactionStats::metadata_bytes},
    {"removed_files", "removed_files_total", kCounter, "Files that merges and drops left behind.",
     &CompactionStats::removed_files},
    {"level0_tables", "level0_tables", kGauge, "Tables as flushes wrote them.",
     &CompactionStats::level0_tables},
    {"runs", "runs", kGauge, "Sorted runs of all namespaces.", &CompactionStats::runs},
    {"runs_max", "runs_max", kGauge, "Sorted runs that one key may be looked for in.",
     &CompactionStats::runs_max},
    {"garbage_bytes", "garbage_bytes", kGauge, "Known to be dead in value files.",
     &CompactionStats::garbage_bytes},
    {"range_deletes", "range_deletes", kGauge, "Range deletes that wait for merges.",
     &CompactionStats::range_deletes},
};
struct ExpiryNumber {
  const char* name;
  const char* metric;
  observe::MetricKind kind;
  const char* help;
  std::uint64_t ExpiryStats::*member;
};
constexpr ExpiryNumber kExpiryNumbers[] = {
    {"rules", "rules", kGauge, "Retention rules of the engine, one a scope.", &ExpiryStats::rules},
    {"dropped_files", "dropped_files_total", kCounter, "Value files whose readings had expired.",
     &ExpiryStats::dropped_files},
    {"dropped_bytes", "dropped_bytes_total", kCounter, "Bytes of these files.",
     &ExpiryStats::dropped_bytes},
    {"drops", "drops_total", kCounter, "Edits that dropped files unread.", &ExpiryStats::drops},
    {"purges", "purges_total", kCounter, "Merges for expiry or a changed rule.",
     &ExpiryStats::purges},
    {"waiting_bytes", "waiting_bytes", kGauge, "In value files that should be gone by now.",
     &ExpiryStats::waiting_bytes},
    {"waits", "waits", kGauge, "1 while readings do not expire by the clock.", &ExpiryStats::waits},
    {"held_bytes", "held_bytes", kGauge,
     "Of value files that a leap of the clock hides, and that are kept for a day.",
     &ExpiryStats::held_bytes},
};

struct ReadNumber {
  const char* name;
  const char* metric;
  const char* help;
  std::uint64_t ReadStats::*member;
};
constexpr ReadNumber kReadNumbers[] = {
    {"gets", "gets_total", "Lookups of one key.", &ReadStats::gets},
    {"memtable_hits", "memtable_hits_total", "Lookups answered by what is in memory.",
     &ReadStats::memtable_hits},
    {"level0_skips", "level0_skips_total", "Tables of level 0 that their NSTable ruled out.",
     &ReadStats::level0_skips},
    {"filter_probes", "filter_probes_total", "Filters asked.", &ReadStats::filter_probes},
    {"filter_negatives", "filter_negatives_total", "Filters that ended a lookup in a table.",
     &ReadStats::filter_negatives},
    {"metadata_block_loads", "metadata_block_loads_total",
     "Blocks of records and filters read from the drive.", &ReadStats::metadata_block_loads},
    {"value_reads", "value_reads_total", "Reads of the values drive.", &ReadStats::value_reads},
    {"cache_hits", "cache_hits_total", "What the table cache had.", &ReadStats::cache_hits},
    {"cache_misses", "cache_misses_total", "What it had not.", &ReadStats::cache_misses},
};

Json reads(const ReadStats& stats) {
  Json json = Json::object();
  for (const ReadNumber& each : kReadNumbers) json[each.name] = stats.*each.member;
  json["level_hits"] = stats.level_hits;
  return json;
}

// Bytes written to both drives a byte handed in, since the start; bytes of value files a byte of
// them that is alive. 1 where there is nothing yet.
Json amplification(const Stats& stats) {
  const auto ratio = [](std::uint64_t of, std::uint64_t to) {
    return to == 0 ? 1.0 : static_cast<double>(of) / static_cast<double>(to);
  };
  const std::uint64_t held = stats.values.live_bytes;
  return {{"write", ratio(stats.metadata.bytes_written + stats.values.bytes_written,
                          stats.user_bytes_written)},
          {"space", ratio(held, held - std::min(held, stats.compaction.garbage_bytes))}};
}

Json compaction(const CompactionStats& stats) {
  Json json = Json::object();
  for (const CompactionNumber& each : kCompactionNumbers) json[each.name] = stats.*each.member;
  return json;
}

Json expiry(const HttpContext& context, const ExpiryStats& stats) {
  const config::StorageSettings& storage = context.parts.settings.storage;
  Json json = {{"mode", storage.expiry}, {"default", storage.retention}};
  for (const ExpiryNumber& each : kExpiryNumbers) json[each.name] = stats.*each.member;
  // As they were set. The engine has one a scope, and none for what tiers keep.
  json["rules"] = context.parts.retention.rules().size();
  json["oldest"] =
      stats.oldest_ns == INT64_MAX ? Json(nullptr) : Json(wire::time_text(stats.oldest_ns));
  json["next"] = stats.next_ns == INT64_MAX ? Json(nullptr) : Json(wire::time_text(stats.next_ns));
  return json;
}

// `expiry_waits`: why readings do not expire by the clock; `held_bytes`: of readings that a leap of
// the clock hides and does not remove yet.
Json clock(const HttpServerParts& parts, const ExpiryStats& stats) {
  const auto seconds_since = [&](std::int64_t since_boot_ns) {
    return static_cast<double>(parts.clock.boot_ns() - since_boot_ns) / kNsPerSecond;
  };
  Json json = {{"now", wire::time_text(parts.clock.wall_ns())},
               {"trusted", parts.clock.trust() == ClockTrust::Trusted},
               {"synchronised", parts.clock.synchronised()}};
  json["expiry_time"] =
      stats.now_ns == INT64_MIN ? Json(nullptr) : Json(wire::time_text(stats.now_ns));
  const bool waits = stats.wait != ExpiryWait::None;
  json["expiry_waits"] = nullptr;
  if (waits) json["expiry_waits"] = stats.wait == ExpiryWait::Jump ? "jump" : "untrusted";
  json["expiry_waits_seconds"] = waits ? Json(seconds_since(stats.wait_since_boot_ns)) : Json();
  json["held_bytes"] = stats.held_bytes;
  json["held_seconds"] =
      stats.held_bytes > 0 ? Json(seconds_since(stats.held_since_boot_ns)) : Json();
  return json;
}

Json mqtt_status(const HttpContext& context) {
  if (!context.parts.mqtt_status_json) return nullptr;
  Json json = Json::parse(context.parts.mqtt_status_json(), nullptr, false);
  return json.is_discarded() ? Json(nullptr) : json;
}

// What limits.device-rate does. Null: nothing, for it is 0.
Json device_limit(const ingest::DeviceRates& rates) {
  if (!rates.is_on()) return nullptr;
  return {{"readings_per_second", rates.limits().per_second},
          {"burst", rates.limits().burst},
          {"refused", rates.refused()},
          {"waits", rates.waits()}};
}

Json rates(HttpContext& context, const auth::Principal& principal, std::int64_t boot_ns) {
  const auto counters = context.parts.ingest.counters();
  context.rates.sample(boot_ns, counters);
  const RateMeter::Rate rate = context.rates.rate(boot_ns, counters);
  return {{"readings_per_second", rate.readings_per_second},
          {"batches_per_second", rate.batches_per_second},
          {"window_seconds", rate.window_seconds},
          {"readings", counters.readings},
          {"batches", counters.batches},
          {"failed_batches", counters.failed_batches},
          {"not_stored", losses_json(context, principal)},
          {"device_limit", device_limit(context.parts.ingest.rates())}};
}

Json status_json(HttpContext& context, const Call& call) {
  const HttpServerParts& parts = context.parts;
  const config::Settings& settings = parts.settings;
  const Stats stats = parts.engine.stats();
  const std::int64_t boot_ns = parts.clock.boot_ns();
  const Status ready = readiness(stats);
  Json json = {{"version", wire::version()}};
  json["uptime_seconds"] = static_cast<double>(boot_ns - context.started_boot_ns) / kNsPerSecond;
  json["ready"] = ready.ok();
  json["reason"] = ready.ok() ? Json(nullptr) : Json(ready.to_string());
  json["clock"] = clock(parts, stats.expiry);
  json["clock"]["undated"] = undated_status(context);
  const erase::StoreDrives drives = parts.erase.drives().last();
  json["drives"] = {
      {"metadata", drive(context, settings.storage.metadata, stats.metadata, drives.metadata)},
      {"values", drive(context, settings.storage.values, stats.values, drives.values)}};
  const erase::Reach reach = parts.erase.reach(drives, true);
  json["erasure"] = {{"level", erase::level_name(reach.level)},
                     {"level_why", reach.why.empty() ? Json(nullptr) : Json(reach.why)}};
  json["rates"] = rates(context, call.principal(), boot_ns);
  json["wal"] = {{"bytes", stats.wal_bytes},
                 {"limit_bytes", settings.storage.wal_limit_bytes},
                 {"syncs", stats.wal_syncs},
                 {"commit_groups", stats.commit_groups}};
  json["amplification"] = amplification(stats);
  json["compaction"] = compaction(stats.compaction);
  json["reads"] = reads(stats.reads);
  json["expiry"] = expiry(context, stats.expiry);
  json["eviction"] = eviction_status(context);
  json["tiers"] = tiers_status(context);
  json["scrub"] = scrub_status(context, stats.scrub);
  json["encryption"] = {{"at_rest", stats.encryption.is_on},
                        {"scope_keys", stats.encryption.scope_keys},
                        {"destroyed_keys", stats.encryption.destroyed_keys},
                        {"aes_instructions", has_aes_instructions()}};
  json["memory"] = {{"resident_bytes", resident_bytes()},
                    {"kept_memtable_bytes", stats.kept_memtable_bytes},
                    {"catalog_bytes", parts.catalog.memory_bytes()},
                    {"limit_bytes", settings.storage.memory_limit_bytes},
                    {"memtable_bytes", stats.memtable_bytes},
                    {"cache_bytes", stats.cache_bytes}};
  json["catalog"] = {{"namespaces", parts.catalog.namespaces().size()},
                     {"devices", parts.catalog.device_count()},
                     {"series", parts.catalog.series_count()}};
  json["http"] = {{"acknowledged_means", "2xx: durable on the drive"},
                  {"connections", context.connections ? context.connections() : 0},
                  {"in_flight_bytes", context.in_flight_bytes ? context.in_flight_bytes() : 0}};
  json["mqtt"] = mqtt_status(context);
  json["forward"] = forward_status(context);
  json["audit"] = Json::parse(audit_status_json(context));
  return json;
}

// Numbers that the parts count themselves, as /metrics shows them.

struct EngineNumber {
  observe::MetricKind kind;
  const char* name;
  const char* help;
  std::uint64_t Stats::*member;
};
constexpr EngineNumber kEngineNumbers[] = {
    {observe::MetricKind::Gauge, "edgecase_engine_wal_bytes", "WAL not yet covered by a flush.",
     &Stats::wal_bytes},
    {observe::MetricKind::Gauge, "edgecase_engine_memtable_bytes", "Recent writes held in memory.",
     &Stats::memtable_bytes},
    {observe::MetricKind::Gauge, "edgecase_engine_cache_bytes", "Table cache.",
     &Stats::cache_bytes},
    {observe::MetricKind::Counter, "edgecase_engine_wal_syncs_total", "Syncs of the WAL.",
     &Stats::wal_syncs},
    {observe::MetricKind::Counter, "edgecase_engine_commit_groups_total",
     "Groups of batches that shared one sync.", &Stats::commit_groups},
    {observe::MetricKind::Counter, "edgecase_engine_flushes_total", "Memtables written out.",
     &Stats::flushes},
    {observe::MetricKind::Counter, "edgecase_engine_user_bytes_total", "Keys and values handed in.",
     &Stats::user_bytes_written},
};

using Ask = std::function<double()>;

void gauge(HttpContext& context, const char* name, const char* help, Ask ask) {
  context.parts.metrics.callback(observe::MetricKind::Gauge, name, help, {}, std::move(ask));
}

void register_engine_numbers(HttpContext& context) {
  observe::Metrics& metrics = context.parts.metrics;
  const auto add = [&](observe::MetricKind kind, const std::string& name, const char* help,
                       const observe::Labels& labels, auto number) {
    metrics.callback(kind, name, help, labels, [&context, number] {
      return static_cast<double>(number(context.parts.engine.stats()));
    });
  };
  using observe::MetricKind;
  for (const EngineNumber& each : kEngineNumbers)
    add(each.kind, each.name, each.help, {},
        [member = each.member](const Stats& stats) { return stats.*member; });
  for (const ReadNumber& each : kReadNumbers)
    add(MetricKind::Counter, std::string("edgecase_reads_") + each.metric, each.help, {},
        [member = each.member](const Stats& stats) { return stats.reads.*member; });
  for (std::size_t level = 0; level < ReadStats::kLevels; ++level)
    add(MetricKind::Counter, "edgecase_reads_level_hits_total",
        "Lookups answered by a table of the level.", {{"level", std::to_string(level)}},
        [level](const Stats& stats) { return stats.reads.level_hits[level]; });
  for (const CompactionNumber& each : kCompactionNumbers)
    add(each.kind, std::string("edgecase_compaction_") + each.metric, each.help, {},
        [member = each.member](const Stats& stats) { return stats.compaction.*member; });
  for (const ExpiryNumber& each : kExpiryNumbers)
    add(each.kind, std::string("edgecase_expiry_") + each.metric, each.help, {},
        [member = each.member](const Stats& stats) { return stats.expiry.*member; });
  add(MetricKind::Gauge, "edgecase_expiry_oldest_seconds",
      "Unix time of the oldest reading in a value file; 0 when there is none.", {},
      [](const Stats& stats) {
        const std::int64_t oldest_ns = stats.expiry.oldest_ns;
        return oldest_ns == INT64_MAX ? 0.0 : static_cast<double>(oldest_ns) / kNsPerSecond;
      });
  gauge(context, "edgecase_ready", "1 when writes are taken.",
        [&context] { return readiness(context.parts.engine.stats()).ok() ? 1.0 : 0.0; });
}

void register_drives(HttpContext& context) {
  for (const bool of_values : {false, true}) {
    context.parts.metrics.callback(
        observe::MetricKind::Gauge, "edgecase_drive_overwrites_in_place",
        "1 while what is overwritten on the drive is gone from it; 0 where it may stay.",
        {{"drive", of_values ? "values" : "metadata"}}, [&context, of_values] {
          const erase::StoreDrives drives = context.parts.erase.drives().last();
          const DriveFacts& facts = of_values ? drives.values : drives.metadata;
          return facts.overwrites == Overwrites::InPlace ? 1.0 : 0.0;
        });
  }
}

void register_ingest_numbers(HttpContext& context) {
  observe::Metrics& metrics = context.parts.metrics;
  const auto count = [&](const char* name, const char* help, const observe::Labels& labels,
                         Ask ask) {
    metrics.callback(observe::MetricKind::Counter, name, help, labels, std::move(ask));
  };
  using Counters = ingest::IngestPipeline::Counters;
  const auto pipeline = [&](const char* name, const char* help, std::uint64_t Counters::*member) {
    count(name, help, {}, [&context, member] {
      return static_cast<double>(context.parts.ingest.counters().*member);
    });
  };
  pipeline("edgecase_ingest_readings_total", "Readings stored.", &Counters::readings);
  pipeline("edgecase_ingest_batches_total", "Batches stored.", &Counters::batches);
  pipeline("edgecase_ingest_failed_batches_total", "Batches refused or failed.",
           &Counters::failed_batches);
  for (std::size_t i = 0; i < ingest::kLosses; ++i)
    count("edgecase_ingest_not_stored_total",
          "Readings that are not there as they were sent, by cause.",
          {{"cause", std::string(ingest::kLossNames[i])}}, [&context, i] {
            return static_cast<double>(
                context.parts.ingest.losses().total(static_cast<ingest::Loss>(i)));
          });
  count("edgecase_ingest_device_rate_refused_total",
        "Batches refused, since a device was over limits.device-rate.", {},
        [&context] { return static_cast<double>(context.parts.ingest.rates().refused()); });
  count("edgecase_ingest_device_rate_waits_total",
        "Groups of messages whose bringers were made to wait for the same reason.", {},
        [&context] { return static_cast<double>(context.parts.ingest.rates().waits()); });
}

void register_metrics(HttpContext& context) {
  register_engine_numbers(context);
  register_drives(context);
  register_ingest_numbers(context);
  gauge(context, "edgecase_catalog_series", "Series known.",
        [&context] { return static_cast<double>(context.parts.catalog.series_count()); });
  gauge(context, "edgecase_catalog_devices", "Devices known.",
        [&context] { return static_cast<double>(context.parts.catalog.device_count()); });
  gauge(context, "edgecase_http_connections", "Connections open.",
        [&context] { return static_cast<double>(context.connections()); });
  gauge(context, "edgecase_http_in_flight_bytes", "Request bodies held in memory.",
        [&context] { return static_cast<double>(context.in_flight_bytes()); });
  gauge(context, "edgecase_process_resident_bytes", "Memory of the process.",
        [] { return static_cast<double>(resident_bytes()); });
}

}  // namespace

void get_readyz(HttpContext& context, Call& call) {
  const Status status = readiness(context.parts.engine.stats());
  if (status.ok()) return call.answer_text(200, "text/plain; charset=utf-8", "ready\n");
  call.answer_json(503, error_body(call.request.path, status));
}

// As Influx 1.8 and 2 answer. Like theirs it tells that somebody is there who answers; whether
// writes are taken stands beside it, and is what /ready is about.
void get_influx_health(HttpContext& context, Call& call) {
  name_influx_version(call);
  const Status writes = readiness(context.parts.engine.stats());
  const std::string message = writes.ok()
                                  ? "ready for queries and writes"
                                  : "ready for queries, takes no writes: " + writes.message();
  Json json = {{"name", "influxdb"}, {"message", message}, {"status", "pass"}};
  json["checks"] = Json::array(
      {{{"name", "writes"}, {"status", writes.ok() ? "pass" : "fail"}, {"message", message}}});
  json["version"] = kInfluxVersion;
  json["commit"] = "";
  call.answer_json(200, wire::dump(json));
}

void get_influx_ready(HttpContext& context, Call& call) {
  name_influx_version(call);
  const Status writes = readiness(context.parts.engine.stats());
  if (!writes.ok()) return call.answer_json(503, error_body(call.request.path, writes));
  const std::int64_t up_ns = context.parts.clock.boot_ns() - context.started_boot_ns;
  const Json json = {{"status", "ready"},
                     {"started", wire::time_text(context.parts.clock.wall_ns() - up_ns)},
                     {"up", std::to_string(up_ns / wire::kNanosecondsPerSecond) + "s"}};
  call.answer_json(200, wire::dump(json));
}

void post_mqtt_test(HttpContext& context, Call& call) {
  if (!context.parts.mqtt_test) return call.answer_error(unsupported("there is no MQTT side here"));
  if (call.parameter("topic").empty()) {
    return call.answer_error(invalid_argument("the parameter topic is missing"));
  }
  auto answer = context.parts.mqtt_test(call.parameter("topic"), call.body());
  if (!answer.ok()) return call.answer_error(answer.status());
  call.answer_json(200, std::move(answer).value());
}

void get_status(HttpContext& context, Call& call) {
  if (const Status status = auth::authorize_status(call.principal()); !status.ok()) {
    return call.answer_error(status);
  }
  call.answer_json(200, wire::dump(status_json(context, call)));
}

void get_metrics(HttpContext& context, Call& call) {
  if (const Status status = auth::authorize_status(call.principal()); !status.ok()) {
    return call.answer_error(status);
  }
  call.answer_text(200, "text/plain; version=0.0.4; charset=utf-8",
                   context.parts.metrics.render() + forward_metrics(context) +
                       loss_metrics(context, call.principal()));
}

void get_healthz(HttpContext& /*context*/, Call& call) {
  call.answer_text(200, "text/plain; charset=utf-8", "ok\n");
}

void register_status_metrics(HttpContext& context) {
  register_metrics(context);
  register_drive_metrics(context.parts.metrics,
                         [&context] { return context.parts.engine.stats(); });
  register_eviction_metrics(context);
  register_scrub_metrics(context);
  register_undated_metrics(context);
}

}  // namespace edgecase::http
