#include "app/daemon.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/serve.h"
#include "app/store_faults.h"
#include "auth/token_store.h"
#include "catalog/catalog.h"
#include "config/configuration.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "erase/erase_jobs.h"
#include "erase/erase_service.h"
#include "http/http_server.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/redating.h"
#include "mqtt/listener/mqtt_listener.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/payload_decoder.h"
#include "mqtt/topic_rule.h"
#include "observe/logger.h"
#include "query/query_service.h"
#include "retention/retention_service.h"
#include "tiers/tier_maker.h"
#include "tls/tls_ends.h"
#include "wire/time_text.h"

namespace edgecase::app {
namespace {

Options engine_options(const config::Settings& settings) {
  Options options;
  options.metadata_directory = settings.storage.metadata;
  options.values_directory = settings.storage.values;
  options.open_without_values = true;
  options.feeds = true;
  options.wal_limit_bytes = settings.storage.wal_limit_bytes;
  options.memory_limit_bytes = share_memory(settings).engine_bytes;
  options.expiry = settings.storage.expiry == "exact" ? ExpiryMode::Exact : ExpiryMode::Bounded;
  // What was erased or has expired is not to be found in freed blocks either.
  options.removal = Removal::Overwrite;
  options.erasure_reserve_bytes = settings.storage.reserve_bytes;
  options.group_span_ns = 3'600'000'000'000;  // windows are mostly of hours and of days
  // Where the oldest go, room is made before it is short.
  if (settings.storage.on_full != "evict-oldest")
    options.keep_free_bytes = settings.storage.keep_free_bytes;
  // The configuration's check has taken it for a duration.
  if (settings.storage.scrub != "forever")
    options.scrub_interval_ns = wire::parse_duration_ns(settings.storage.scrub).value();
  // At least two segments fit into the smallest limit.
  options.wal_segment_bytes = std::min(options.wal_segment_bytes, options.wal_limit_bytes / 4);
  return options;
}

erase::DriveWatch::Look look_at(const config::Settings& settings) {
  return [metadata = settings.storage.metadata, values = settings.storage.values] {
    return erase::StoreDrives{posix_file_system().drive_facts(metadata),
                              posix_file_system().drive_facts(values)};
  };
}

// Before anybody relies on what a certificate of erasure will say.
void tell_drives(const erase::EraseService& erase, observe::Logger& logger) {
  const erase::StoreDrives drives = erase.drives().look();
  if (drives.overwrite_in_place()) {
    logger.info("start", "erasures are physical: both drives overwrite in place (" +
                             drives.metadata.file_system + ", " + drives.values.file_system + ")");
    return;
  }
  logger.warning("start", erase::warning_of(erase.reach(drives, true)));
}

// A wrong or missing key is told with the setting that is to be changed.
Result<std::unique_ptr<Engine>> open_engine(const config::Configuration& configuration,
                                            const Environment& environment,
                                            observe::Logger& logger) {
  constexpr const char* kKeyFile = "storage.encryption-key-file";
  const config::StorageSettings& storage = configuration.settings.storage;
  Options options = engine_options(configuration.settings);
  EC_ASSIGN_OR_RETURN(options.encryption, config::load_master_keys(configuration));
  auto opened = Engine::open(options, environment);
  // What the system refused is about the rights of a file, not about the key.
  if (opened.status().code() == StatusCode::NotAllowed && opened.status().system_error() == 0)
    return configuration.error(kKeyFile, opened.status().message());
  if (!opened.ok() || !options.encryption) return opened;
  logger.info("start", has_aes_instructions()
                           ? "encrypted at rest (AES-256-GCM, by the processor's instructions)"
                           : "encrypted at rest (AES-256-GCM in software, and slower for it: this "
                             "processor has no instructions for it)");
  for (const std::string& drive : {storage.metadata, storage.values}) {
    if (!config::on_one_file_system(storage.encryption_key_file, drive)) continue;
    logger.warning("start", std::string(kKeyFile) + ": " + storage.encryption_key_file +
                                " lies on the drive that it protects: who has the drive has the "
                                "key");
    break;
  }
  return opened;
}

config::Settings with_memory_shares(config::Settings settings) {
  const MemoryShares shares = share_memory(settings);
  settings.http.in_flight_limit_bytes = shares.in_flight_bytes;
  settings.http.body_limit_bytes = std::min(settings.http.body_limit_bytes, shares.in_flight_bytes);
  settings.mqtt.in_flight_limit_bytes = shares.mqtt_in_flight_bytes;
  return settings;
}

}  // namespace

// Members are destroyed from the last to the first.
struct Daemon::State {
  State(const config::Settings& given, observe::Logger& log, observe::Metrics& numbers)
      : settings(with_memory_shares(given)),
        logger(log),
        metrics(numbers),
        loaded(given),
        rule_settings(std::make_shared<const Rules>(given.mqtt.rules)),
        events(log, numbers) {}

  using Rules = std::vector<config::MqttRuleSettings>;
  const config::Settings settings;
  observe::Logger& logger;
  observe::Metrics& metrics;
  config::Settings loaded;  // as the configuration was read last
  // Held while reload() replaces what others look at.
  mutable Mutex reload_mutex;
  std::shared_ptr<const Rules> rule_settings EC_GUARDED_BY(reload_mutex);
  std::shared_ptr<tls::TlsServer> http_tls, mqtt_tls;  // null: plain
  StoreClock clock{system_clock()};
  forward::HeldClock engine_clock{system_clock()};
  observe::EngineEvents events;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<audit::AuditLog> audit;
  std::unique_ptr<ExpiryWatch> expiry_watch;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<erase::EraseService> erase;
  std::unique_ptr<tiers::TierMaker> tiers;
  std::unique_ptr<retention::Eviction> eviction;
  std::unique_ptr<auth::TokenStore> tokens;
  std::unique_ptr<auth::Authenticator> authenticator;
  std::unique_ptr<ingest::UndatedPeriods> undated;
  ingest::CommitBell bell;
  std::unique_ptr<ingest::IngestPipeline> ingest;
  std::unique_ptr<ingest::Redating> redating;
  std::unique_ptr<query::QueryService> query;
  std::unique_ptr<sign::SigningKey> signing_key;
  std::unique_ptr<mqtt::RejectedMessages> rejected;
  std::unique_ptr<mqtt::DeviceNames> device_names;                     // null: no messages come
  std::unique_ptr<mqtt::MqttSource> mqtt EC_GUARDED_BY(reload_mutex);  // null: turned off
  std::vector<mqtt::TopicRule> rules;                                  // the listener's
  std::unique_ptr<mqtt::MqttListener> mqtt_listener;                   // null: turned off
  std::unique_ptr<erase::EraseWorker> erase_worker;
  std::unique_ptr<ingest::Origins> origins;
  std::unique_ptr<forward::Forwarding> forwarding;
  std::unique_ptr<http::HttpServer> http;

  // Stays while reload() is not called, which the same thread does.
  mqtt::MqttSource* client() const EC_EXCLUDES(reload_mutex) {
    const MutexLock lock(reload_mutex);
    return mqtt.get();
  }
};

Daemon::Daemon(std::unique_ptr<State> state) : state_(std::move(state)) {}

Daemon::~Daemon() {
  state_->erase->end_waiting();
  state_->forwarding->end_verifying();
  state_->tiers->stop();
  state_->eviction->stop();
  state_->redating->stop();
  state_->http.reset();
  if (state_->mqtt_listener) state_->mqtt_listener->stop();
  if (state_->mqtt) state_->mqtt->stop();
  state_->forwarding->stop();
  note_stop(*state_->audit);
}

std::string Daemon::mqtt_status_json(const State& state) {
  const MutexLock lock(state.reload_mutex);
  std::string json = state.mqtt ? mqtt::status_json(state.mqtt->status())
                                : std::string(R"({"broker":"","connected":false})");
  if (!state.mqtt_listener) return json;
  json.pop_back();
  return json + ",\"listener\":" + mqtt::status_json(state.mqtt_listener->status()) + "}";
}

Status Daemon::start_mqtt_listener(State& state, observe::Logger& logger) {
  const config::MqttSettings& settings = state.settings.mqtt;
  if (settings.listen.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const config::ListenAddress address,
                      config::parse_listen_address(settings.listen));
  EC_ASSIGN_OR_RETURN(state.rules, mqtt::compile_rules(settings.rules));
  mqtt::ListenerOptions options;
  options.host = address.host;
  options.port = address.port;
  options.connections = settings.connections;
  options.connections_per_address = settings.connections_per_address;
  options.in_flight_limit_bytes = settings.in_flight_limit_bytes;
  options.grant_subscriptions = settings.subscriptions == "grant";
  options.packet_bytes_per_second_min = state.settings.limits.sender_rate_bytes;
  EC_ASSIGN_OR_RETURN(ListenerTls tls,
                      listener_tls("mqtt", tls_files(settings), state.clock, logger));
  state.mqtt_tls = tls.server;
  EC_ASSIGN_OR_RETURN(state.mqtt_listener, mqtt::MqttListener::start(
                                               options, {.engine = *state.engine,
                                                         .random = system_random(),
                                                         .rules = state.rules,
                                                         .limits = state.settings.limits,
                                                         .pipeline = *state.ingest,
                                                         .rejected = *state.rejected,
                                                         .clock = state.clock,
                                                         .logger = &logger,
                                                         .channels = std::move(tls.channels),
                                                         .authenticator = state.authenticator.get(),
                                                         .names = state.device_names.get()}));
  logger.info("mqtt", "taking messages at " + state.mqtt_listener->status().address +
                          (settings.tls_cert.empty() ? "" : " (TLS)"));
  return ok();
}

void Daemon::make_tiers(State& state) {
  tell_tiers(state.settings.storage, state.retention->has_tiers(), state.logger);
  tiers::TierEvents events = tier_events(state.logger);
  events.made = [&state](const auto& s, auto w) { state.ingest->feed().publish_windows(s, w); };
  state.tiers = std::make_unique<tiers::TierMaker>(*state.engine, *state.catalog, *state.retention,
                                                   state.erase->fences(), std::move(events));
}

void Daemon::make_eviction(State& state) {
  const config::StorageSettings& storage = state.settings.storage;
  const bool is_thinning = storage.on_full == "thin-oldest";
  state.eviction = std::make_unique<retention::Eviction>(
      retention::EvictionParts{.engine = *state.engine,
                               .catalog = *state.catalog,
                               .file_system = posix_file_system(),
                               .clock = state.clock,
                               .metadata_directory = storage.metadata,
                               .values_directory = storage.values,
                               .thinning = is_thinning ? state.tiers.get() : nullptr,
                               .keep_free_bytes = is_thinning ? storage.keep_free_bytes : 0,
                               .events = eviction_events(*state.audit, state.logger)});
  state.ingest->refuse_evicted(state.eviction.get());
}

Status Daemon::make_redating(State& state) {
  EC_ASSIGN_OR_RETURN(state.undated,
                      ingest::UndatedPeriods::open(*state.engine, state.clock, system_random(),
                                                   this_boot_id(system_random())));
  state.ingest->date_later(state.undated.get());
  state.redating = std::make_unique<ingest::Redating>(
      ingest::RedatingParts{.engine = *state.engine,
                            .catalog = *state.catalog,
                            .clock = state.clock,
                            .fences = state.erase->fences(),
                            .periods = *state.undated,
                            .eviction = state.eviction.get(),
                            .events = redating_events(*state.audit, state.logger)});
  state.redating->start();
  return ok();
}

Status Daemon::open_store(State& state, const config::Configuration& configuration) {
  const config::LimitSettings& limits = state.settings.limits;
  state.executor = make_thread_executor();
  const Environment environment{posix_file_system(), state.engine_clock, system_random(),
                                *state.executor, state.events};
  EC_ASSIGN_OR_RETURN(state.engine, open_engine(configuration, environment, state.logger));
  state.clock.follow(*state.engine);
  // Where nothing was ever forwarded nothing waits.
  const bool is_forwarding = !state.settings.forward.empty() ||
                             state.engine->find_namespace(forward::kForwardNamespace).ok();
  if (!is_forwarding) state.engine_clock.follow_always();
  EC_ASSIGN_OR_RETURN(state.audit,
                      open_audit_log(state.settings, *state.engine, state.clock, state.logger));
  state.expiry_watch = std::make_unique<ExpiryWatch>(state.logger, *state.audit);
  EC_TRY(erase::resume_jobs(*state.engine));
  const std::uint64_t catalog_bytes = share_memory(configuration.settings).catalog_bytes;
  EC_ASSIGN_OR_RETURN(state.catalog,
                      catalog::Catalog::open(*state.engine, {.namespaces = limits.namespaces,
                                                             .devices = limits.devices,
                                                             .series = limits.series,
                                                             .memory_bytes = catalog_bytes}));
  tell_recovered(*state.catalog, state.logger);
  tell_damage(*state.engine, *state.catalog, state.logger);
  EC_ASSIGN_OR_RETURN(state.devices, catalog::DeviceIndex::open(
                                         *state.engine, {.devices = limits.devices,
                                                         .memory_bytes = catalog_bytes / 2}));
  EC_ASSIGN_OR_RETURN(wire::Keeping by_default,
                      wire::parse_keeping(state.settings.storage.retention));
  EC_ASSIGN_OR_RETURN(state.retention, retention::RetentionService::open(
                                           *state.engine, *state.catalog, std::move(by_default)));
  EC_ASSIGN_OR_RETURN(state.erase, erase::EraseService::open({.engine = *state.engine,
                                                              .catalog = *state.catalog,
                                                              .devices = *state.devices,
                                                              .retention = *state.retention,
                                                              .clock = state.clock,
                                                              .random = system_random(),
                                                              .look = look_at(state.settings)}));
  tell_drives(*state.erase, state.logger);
  return ok();
}

Status Daemon::make_services(State& state, const config::Configuration& configuration) {
  const config::LimitSettings& limits = state.settings.limits;
  EC_ASSIGN_OR_RETURN(state.tokens,
                      auth::TokenStore::open(*state.engine, state.clock, system_random()));
  state.authenticator = std::make_unique<auth::Authenticator>(*state.tokens, state.clock,
                                                              state.settings.http.allow_insecure
                                                                  ? auth::InsecureAccess::Allowed
                                                                  : auth::InsecureAccess::Refused);
  EC_TRY(check_reach(configuration, *state.tokens, state.logger));
  state.ingest = std::make_unique<ingest::IngestPipeline>(
      *state.engine, *state.catalog, state.clock, state.retention.get(), state.devices.get(),
      state.audit.get(), &state.erase->fences(),
      ingest::DeviceRateLimits{limits.device_rate, limits.device_burst, limits.devices});
  const auto ahead_ns = wire::parse_duration_ns(limits.time_ahead);
  state.ingest->times().limit_ahead(ahead_ns.ok() ? *ahead_ns : INT64_MAX);  // "forever"
  state.ingest->ring(&state.bell);
  make_tiers(state);
  make_eviction(state);
  EC_TRY(make_redating(state));
  state.query =
      std::make_unique<query::QueryService>(*state.engine, *state.catalog, state.devices.get());
  state.query->know_rules(*state.retention);
  EC_ASSIGN_OR_RETURN(state.rejected,
                      mqtt::RejectedMessages::open(*state.engine, *state.catalog, *state.ingest,
                                                   limits.rejected_messages));
  const config::MqttSettings& mqtt = state.settings.mqtt;
  if (!mqtt.broker.empty() || !mqtt.listen.empty()) {
    EC_ASSIGN_OR_RETURN(state.device_names,
                        mqtt::DeviceNames::open(*state.engine, system_random()));
  }
  EC_ASSIGN_OR_RETURN(std::unique_ptr<mqtt::MqttSource> source, make_source(state, mqtt));
  const MutexLock lock(state.reload_mutex);
  state.mqtt = std::move(source);
  return ok();
}

Status Daemon::start_forwarding(State& state) {
  state.signing_key = std::make_unique<sign::SigningKey>(*state.engine, system_random());
  EC_ASSIGN_OR_RETURN(state.forwarding,
                      open_forwarding({.engine = *state.engine,
                                       .catalog = *state.catalog,
                                       .clock = state.clock,
                                       .random = system_random(),
                                       .logger = state.logger,
                                       .bell = state.bell,
                                       .rules = state.retention.get(),
                                       .held = &state.engine_clock},
                                      state.settings, *state.audit, *state.signing_key));
  state.erase->pass_on_by(&state.forwarding->erasures());
  // Not before it is known what waits.
  state.eviction->spare(&state.forwarding->unsent());
  if (state.settings.storage.on_full != "reject") state.eviction->start();
  state.tiers->spare(&state.forwarding->unsent());
  state.tiers->start();
  return ok();
}

Result<std::unique_ptr<Daemon>> Daemon::start(const config::Configuration& configuration,
                                              observe::Logger& logger, observe::Metrics& metrics) {
  auto owned = std::make_unique<State>(configuration.settings, logger, metrics);
  State& state = *owned;
  EC_TRY(open_store(state, configuration));
  EC_TRY(make_services(state, configuration));
  mqtt::MqttSource* const client = state.client();
  if (client != nullptr) mqtt::register_metrics(*client, metrics);
  EC_TRY(start_forwarding(state));
  const config::HttpSettings& http = state.settings.http;
  EC_ASSIGN_OR_RETURN(ListenerTls tls, listener_tls("http", tls_files(http), state.clock, logger));
  state.http_tls = tls.server;
  http::HttpServerParts parts{.settings = state.settings,
                              .engine = *state.engine,
                              .file_system = posix_file_system(),
                              .clock = state.clock,
                              .catalog = *state.catalog,
                              .devices = *state.devices,
                              .ingest = *state.ingest,
                              .query = *state.query,
                              .retention = *state.retention,
                              .erase = *state.erase,
                              .authenticator = *state.authenticator,
                              .metrics = metrics,
                              .logger = logger};
  parts.tcp_channels = std::move(tls.channels);
  parts.signing_key = state.signing_key.get();
  parts.audit = state.audit.get();
  parts.eviction = state.eviction.get();
  parts.redating = state.redating.get();
  parts.tiers = state.tiers.get();
  parts.windows = std::make_shared<tiers::WindowIntake>(
      tiers::WindowIntake::Parts{*state.engine, *state.catalog, state.clock, *state.retention,
                                 state.erase->fences(), state.eviction.get(), state.audit.get()});
  parts.forwarding = state.forwarding.get();
  EC_ASSIGN_OR_RETURN(state.origins, ingest::Origins::open(*state.engine, state.clock));
  parts.origins = state.origins.get();
  parts.give_memory_back = give_free_memory_back;
  EC_TRY(start_mqtt_listener(state, logger));
  if (state.mqtt_listener) mqtt::register_metrics(*state.mqtt_listener, metrics);
  if (client != nullptr || state.mqtt_listener) {
    parts.mqtt_status_json = [&state] { return mqtt_status_json(state); };
  }
  parts.mqtt_test = [&state](std::string_view topic, std::string_view payload) {
    std::shared_ptr<const State::Rules> rules;
    {
      const MutexLock lock(state.reload_mutex);
      rules = state.rule_settings;
    }
    return mqtt::mqtt_test_json(*rules, state.settings.limits, state.ingest.get(), topic, payload);
  };
  state.erase_worker = std::make_unique<erase::EraseWorker>(*state.erase, logger);
  EC_ASSIGN_OR_RETURN(state.http, http::HttpServer::start(std::move(parts)));
  log_listeners(state.settings.http, state.http->tcp_port(), logger);
  state.forwarding->start();
  // Last: a message that waits at the broker comes at once.
  if (client != nullptr) client->start();
  return std::unique_ptr<Daemon>(new Daemon(std::move(owned)));
}

Result<std::unique_ptr<mqtt::MqttSource>> Daemon::make_source(
    State& state, const config::MqttSettings& settings) {
  return mqtt::MqttSource::create(settings, state.settings.limits,
                                  {.engine = *state.engine,
                                   .pipeline = *state.ingest,
                                   .rejected = *state.rejected,
                                   .clock = state.clock,
                                   .random = system_random(),
                                   .logger = &state.logger,
                                   .names = state.device_names.get()});
}

Status Daemon::reload(const config::Configuration& fresh) {
  State& state = *state_;
  const config::MqttSettings& client = fresh.settings.mqtt;
  const SettingChanges changes = changes_of(state.loaded, fresh.settings);
  // All that may fail comes before anything changes.
  EC_ASSIGN_OR_RETURN(std::vector<mqtt::TopicRule> rules, mqtt::compile_rules(client.rules));
  mqtt::MqttSource* const running = state.client();
  std::unique_ptr<mqtt::MqttSource> source;
  if (changes.of_source && running != nullptr) {
    EC_ASSIGN_OR_RETURN(source, make_source(state, client));
  }
  EC_TRY(state.http->reload(fresh.settings));
  if (state.http_tls) EC_TRY(state.http_tls->change(tls_files(fresh.settings.http)));
  if (state.mqtt_tls) EC_TRY(state.mqtt_tls->change(tls_files(client)));
  {
    const MutexLock lock(state.reload_mutex);
    state.rule_settings = std::make_shared<const State::Rules>(client.rules);
  }
  if (changes.of_rules && state.mqtt_listener) state.mqtt_listener->set_rules(std::move(rules));
  if (source) {
    // One client of a name at a time. What it had not acknowledged the broker sends again.
    running->stop();
    mqtt::MqttSource* const next = source.get();
    mqtt::register_metrics(*next, state.metrics);  // in place of the old one's
    {
      const MutexLock lock(state.reload_mutex);
      std::swap(state.mqtt, source);
    }
    source.reset();
    next->start();
  }
  // What its files are was looked at before; of what fails here the log tells, and it is as before.
  if (const Status status = state.forwarding->reload(fresh.settings.forward); !status.ok())
    state.logger.error("forward", "not all targets are as configured: " + status.to_string());
  state.loaded = fresh.settings;
  state.logger.info("start", "configuration read again" +
                                 (changes.now.empty() ? "" : "; changed: " + changes.now));
  if (!changes.at_restart.empty())
    state.logger.warning("start",
                         "changed, but holds after a restart alone: " + changes.at_restart);
  return ok();
}

std::string Daemon::check_alive() {
  const Stats stats = state_->engine->stats();
  state_->expiry_watch->look(stats.expiry);
  const ingest::IngestPipeline::Counters counters = state_->ingest->counters();
  std::string line = drive_trouble(stats);  // the first that is to be seen
  if (!line.empty()) line += "; ";
  line += std::to_string(counters.readings) + " readings taken, " +
          std::to_string(state_->catalog->series_count()) + " series";
  if (const mqtt::MqttSource* const client = state_->client(); client != nullptr) {
    line += client->status().connected ? ", broker connected" : ", broker away";
  }
  if (state_->mqtt_listener) {
    line += ", " + std::to_string(state_->mqtt_listener->status().connections) + " MQTT clients";
  }
  return line;
}

}  // namespace edgecase::app
