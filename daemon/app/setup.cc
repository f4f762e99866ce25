#include "app/daemon.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/configuration.h"
#include "config/settings.h"
#include "edgecase/machine.h"
#include "sign/signature.h"
#include "wire/authority.h"
#include "wire/contract.h"
#include "wire/json_text.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::app {
namespace {

audit::Mode mode_of(const std::string& text) {
  if (text == "off") return audit::Mode::Off;
  return text == "strict" ? audit::Mode::Strict : audit::Mode::Batched;
}

audit::Record record_of_daemon(const char* operation) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  return record;
}

}  // namespace

Result<std::unique_ptr<audit::AuditLog>> open_audit_log(const config::Settings& settings,
                                                        Engine& engine, Clock& clock,
                                                        observe::Logger& logger) {
  audit::AuditOptions options;
  options.mode = mode_of(settings.audit.mode);
  if (settings.audit.retention != "forever") {
    EC_ASSIGN_OR_RETURN(options.retention_ns, wire::parse_duration_ns(settings.audit.retention));
  }
  options.size_limit_bytes = settings.audit.size_limit_bytes;
  options.head_directory = settings.storage.values;
  options.spare_directory = settings.storage.metadata;
  EC_ASSIGN_OR_RETURN(std::unique_ptr<audit::AuditLog> log,
                      audit::AuditLog::open(options, {.engine = engine,
                                                      .file_system = posix_file_system(),
                                                      .clock = clock,
                                                      .random = system_random(),
                                                      .logger = &logger}));
  audit::Record started = record_of_daemon("daemon.start");
  started.detail = "version " + std::string(wire::version()) + ", audit " + settings.audit.mode;
  // A drive that takes no writes now holds up no start: the record waits.
  if (const Status noted = log->note(std::move(started)); !noted.ok()) {
    logger.warning("audit", noted.message());
  }
  return log;
}

void note_stop(audit::AuditLog& log) {
  // What can not be written now is logged by stop().
  static_cast<void>(log.append(record_of_daemon("daemon.stop")).ok());
  log.stop();
}

namespace {

constexpr std::uint64_t kBytesPerMiB = 1u << 20;

std::string text_of(const retention::EvictionStep& step) {
  return std::string(step.is_exact ? "" : "about ") + std::to_string(step.readings) +
         " readings from before " + wire::time_text(step.before_ns) + " (about " +
         std::to_string(step.value_bytes / kBytesPerMiB) + " MiB); " + step.drive + " had " +
         std::to_string(step.free_bytes / kBytesPerMiB) + " MiB free, less than " +
         std::to_string(step.watermark_bytes / kBytesPerMiB);
}

audit::Record record_of_step(const retention::EvictionStep& step, audit::Outcome outcome) {
  audit::Record record;
  record.operation = "evict";
  record.actor = "daemon";
  record.outcome = outcome;
  record.count = step.readings;
  record.reaches_more = true;  // of all devices
  record.detail = "before " + wire::time_text(step.before_ns);
  return record;
}

}  // namespace

void tell_tiers(const config::StorageSettings& storage, bool has_tiers, observe::Logger& logger) {
  if (storage.expiry == "exact" && has_tiers) {
    logger.warning("tiers",
                   "storage.expiry is exact, and rules have tiers: bytes of readings that "
                   "become windows go within minutes, not within a second");
  }
  if (storage.on_full == "thin-oldest" && !has_tiers) {
    logger.warning("tiers",
                   "storage.on-full is thin-oldest, and no rule of retention has tiers: full "
                   "drives refuse writes");
  }
}

tiers::TierEvents tier_events(observe::Logger& logger) {
  return {.left = [&logger](const std::string& problem) {
    logger.warning("tiers", "some readings do not become windows yet: " + problem);
  }};
}

retention::EvictionEvents eviction_events(audit::AuditLog& audit, observe::Logger& logger) {
  // On a full drive a record may have to wait: it does not hold up what makes room.
  const auto note = [&audit, &logger](audit::Record record) {
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "evict", noted.message());
  };
  retention::EvictionEvents events;
  events.begun = [note](const retention::EvictionStep& step) {
    note(record_of_step(step, audit::Outcome::Begun));
  };
  events.done = [note, &logger](const retention::EvictionStep& step, const Status& status) {
    note(record_of_step(step, audit::outcome_of(status)));
    if (status.ok()) {
      logger.notice("evict", "gave up " + text_of(step));
    } else {
      logger.log_keyed(observe::LogLevel::Warning, "evict", "failed",
                       "cannot give up " + text_of(step) + ": " + status.to_string());
    }
  };
  events.thinned = [note, &logger](const retention::Thinned& thinned, const std::string& drive) {
    audit::Record record;
    record.operation = "thin";
    record.actor = "daemon";
    record.outcome = audit::Outcome::Ok;
    record.count = thinned.readings;
    record.reaches_more = true;  // of all devices
    record.detail = "before " + wire::time_text(thinned.before_ns);
    note(std::move(record));
    logger.notice("evict", std::to_string(thinned.readings) + " readings from before " +
                               wire::time_text(thinned.before_ns) + " became " +
                               std::to_string(thinned.windows) + " windows (about " +
                               std::to_string(thinned.value_bytes / kBytesPerMiB) +
                               " MiB go), since " + drive + " is short of room" +
                               (thinned.left.empty() ? "" : "; not all: " + thinned.left));
  };
  events.blocked = [&logger](const std::string& why) {
    logger.warning("evict", "room is needed, and nothing is given up: " + why);
  };
  return events;
}

namespace {

audit::Record record_of_target(const char* operation, const std::string& name) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.reaches_more = true;  // of all devices
  record.detail = name;
  return record;
}

}  // namespace

Status check_forwarding(const config::Configuration& configuration) {
  std::size_t number = 0;
  const Status status = forward::check_targets(configuration.settings.forward, number);
  return status.ok() ? ok() : config::forward_error(configuration, number, status);
}

Result<std::unique_ptr<forward::Forwarding>> open_forwarding(forward::ForwardingParts parts,
                                                             const config::Settings& settings,
                                                             audit::AuditLog& audit,
                                                             sign::SigningKey& key) {
  const auto note = [&audit, &logger = parts.logger](audit::Record record) {
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "forward", noted.message());
  };
  parts.configured = [note](const std::string& name, const std::string& to) {
    note(record_of_target("forward.configure", to.empty() ? name + ": no more" : name + ": " + to));
  };
  parts.sent = [note](const std::string& name, std::uint64_t readings) {
    audit::Record record = record_of_target("forward.sent", name);
    record.count = readings;
    note(std::move(record));
  };
  parts.secret = [note, &key]() -> Result<Bytes> {
    EC_ASSIGN_OR_RETURN(sign::SigningKey::Secret secret, key.secret());
    if (secret.is_new) {
      EC_ASSIGN_OR_RETURN(const std::string made, sign::public_key_of(secret.bytes, key.random()));
      audit::Record record = record_of_target("report.key-made", "");
      record.detail = "fingerprint " + sign::fingerprint(made);
      note(std::move(record));
    }
    return std::move(secret.bytes);
  };
  return forward::Forwarding::open(parts, settings.forward);
}

namespace {

constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";
// The unit says it, since it hides that file.
constexpr const char* kBootIdVariable = "EDGECASE_BOOT_ID";

constexpr std::size_t kBootIdDigits = 32;

// With hyphens or without.
std::string hex_digits_of(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) == 0; });
  return digits;
}

std::string bounds_of(const ingest::UndatedPeriod& period) {
  return (period.is_estimate ? "estimated, not before " : "not before ") +
         wire::time_text(period.not_before_ns) + ", not after " +
         wire::time_text(period.not_after_ns);
}

}  // namespace

std::string this_boot_id(Random& random) {
  std::string text;
  if (const char* said = std::getenv(kBootIdVariable); said != nullptr) {
    text = said;
  } else {
    std::ifstream file(kBootIdFile);
    std::getline(file, text);
  }
  const std::string digits = hex_digits_of(text);
  if (digits.size() == kBootIdDigits) return digits;
  return "process-" + std::to_string(random.next());
}

ingest::RedatingEvents redating_events(audit::AuditLog& audit, observe::Logger& logger) {
  ingest::RedatingEvents events;
  events.done = [&audit, &logger](const ingest::RedatedPeriod& done) {
    const std::string bounds = bounds_of(done.period);
    audit::Record record;
    record.operation = "redate";
    record.actor = "daemon";
    record.count = done.readings;
    record.reaches_more = true;  // of all devices
    record.detail = bounds;
    if (const Status noted = audit.note(std::move(record)); !noted.ok())
      logger.log_keyed(observe::LogLevel::Warning, "audit", "redate", noted.message());
    std::string text =
        std::to_string(done.readings) +
        " readings that came while the clock was not trusted have their time: " + bounds;
    if (done.refused > 0)
      text += "; " + std::to_string(done.refused) + " more are gone: erased or evicted meanwhile";
    logger.notice("redate", text);
  };
  events.failed = [&logger](const Status& status) {
    logger.log_keyed(observe::LogLevel::Warning, "redate", "failed",
                     "readings without a time still wait for it: " + status.to_string());
  };
  return events;
}

namespace {

// Before a certificate ends somebody has to hear of it.
constexpr std::int64_t kCertificateWarningNs = std::int64_t{14} * 24 * 3600 * 1'000'000'000;

}  // namespace

Status check_certificates(const config::Configuration& configuration) {
  const config::Settings& settings = configuration.settings;
  const std::pair<std::string_view, tls::TlsFiles> listeners[] = {
      {"http.tls-cert", tls_files(settings.http)}, {"mqtt.tls-cert", tls_files(settings.mqtt)}};
  for (const auto& [key, files] : listeners) {
    if (files.certificate.empty()) continue;
    const auto server = tls::TlsServer::load(files, nullptr);
    if (!server.ok()) return configuration.error(key, server.status().message());
  }
  return ok();
}

tls::TlsFiles tls_files(const config::HttpSettings& settings) {
  return {settings.tls_cert, settings.tls_key, settings.tls_client_ca, settings.tls_client_crl};
}

tls::TlsFiles tls_files(const config::MqttSettings& settings) {
  return {settings.tls_cert, settings.tls_key, settings.tls_client_ca, settings.tls_client_crl};
}

Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 const Clock& clock, observe::Logger& logger) {
  if (files.certificate.empty()) return ListenerTls{};
  const auto complain = [section, &logger](const std::string& what) {
    logger.log_keyed(observe::LogLevel::Warning, section, "tls",
                     "the files of " + section +
                         ".tls-cert have changed and cannot be used, the old ones stay: " + what);
  };
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<tls::TlsServer> server,
                      tls::TlsServer::load(files, complain));
  if (server->expires_ns() - system_clock().wall_ns() < kCertificateWarningNs) {
    std::string time;
    wire::append_time(server->expires_ns(), time);
    logger.warning(section, "the certificate in " + files.certificate + " holds until " + time);
  }
  return ListenerTls{{[server, &clock](net::Socket socket) {
                        const bool is_trusted = clock.trust() == ClockTrust::Trusted;
                        return server->accept(
                            std::move(socket), system_clock().boot_ns(),
                            is_trusted ? std::nullopt : std::optional(build_time_ns()));
                      },
                      tls::kTlsChannelBytes},
                     server};
}

void log_listeners(const config::HttpSettings& settings, std::uint16_t tcp_port,
                   observe::Logger& logger) {
  std::string where = settings.socket;
  if (!settings.listen.empty()) {
    if (!where.empty()) where += " and ";
    where += settings.listen.substr(0, settings.listen.rfind(':') + 1) + std::to_string(tcp_port);
    if (!settings.tls_cert.empty()) where += " (TLS)";
  }
  logger.info("http", "listening on " + (where.empty() ? "nothing" : where));
}

Status check_reach(const config::Configuration& configuration, const auth::TokenStore& tokens,
                   observe::Logger& logger) {
  const config::Settings& settings = configuration.settings;
  struct Listener {
    const char* key;
    const std::string& listen;
    bool has_tls;
  };
  for (const auto& [key, listen, has_tls] :
       {Listener{"http.listen", settings.http.listen, !settings.http.tls_cert.empty()},
        Listener{"mqtt.listen", settings.mqtt.listen, !settings.mqtt.tls_cert.empty()}}) {
    if (listen.empty()) continue;
    EC_ASSIGN_OR_RETURN(const config::ListenAddress address, config::parse_listen_address(listen));
    if (wire::is_loopback(address.host)) continue;
    if (!tokens.any() && !settings.http.allow_insecure) {
      return configuration.error(
          key, listen +
                   " is reachable from other machines, and there is no token yet: listen on "
                   "127.0.0.1 first and make one with edgecase token create, or set "
                   "http.allow-insecure = true");
    }
    if (has_tls && tokens.any()) continue;
    logger.warning("start",
                   std::string(key) + ": " + listen + " is reachable from other machines" +
                       (tokens.any() ? " without TLS: tokens and readings can be seen on the way"
                                     : ", and anybody may read and write until there is a token"));
  }
  return ok();
}

namespace {

bool same_rules(std::vector<config::MqttRuleSettings> one,
                std::vector<config::MqttRuleSettings> other) {
  // A rule may have moved to another line.
  for (auto* const rules : {&one, &other}) {
    for (config::MqttRuleSettings& rule : *rules) {
      rule.line = 0;
      rule.where.clear();
    }
  }
  return one == other;
}

bool same_line_rules(std::vector<wire::LineRule> one, std::vector<wire::LineRule> other) {
  for (auto* const rules : {&one, &other})
    for (wire::LineRule& rule : *rules) rule.line = 0;
  return one == other;
}

bool same_targets(std::vector<config::ForwardSettings> one,
                  std::vector<config::ForwardSettings> other) {
  for (auto* const targets : {&one, &other})
    for (config::ForwardSettings& target : *targets) target.where.clear();
  return one == other;
}

}  // namespace

SettingChanges changes_of(const config::Settings& before, const config::Settings& after) {
  SettingChanges changes;
  const auto add = [](std::string& keys, std::string_view key) {
    keys.append(keys.empty() ? "" : ", ").append(key);
  };
  // On or off is another matter than another one.
  const bool has_source = !before.mqtt.broker.empty() && !after.mqtt.broker.empty();
  const bool has_http_tls = !before.http.tls_cert.empty() && !after.http.tls_cert.empty();
  const bool has_mqtt_tls = !before.mqtt.tls_cert.empty() && !after.mqtt.tls_cert.empty();
  struct Live {
    std::string_view key;
    bool is_live;
    bool is_of_source;
  };
  const Live live[] = {{"mqtt.broker", has_source, true},
                       {"mqtt.username", true, true},
                       {"mqtt.password-file", true, true},
                       {"mqtt.tls-ca", true, true},
                       {"mqtt.client-id", true, true},
                       {"http.names", true, false},
                       {"http.proxies", true, false},
                       {"http.tls-cert", has_http_tls, false},
                       {"http.tls-key", has_http_tls, false},
                       {"mqtt.tls-cert", has_mqtt_tls, false},
                       {"mqtt.tls-key", has_mqtt_tls, false},
                       {"http.tls-client-ca", has_http_tls, false},
                       {"http.tls-client-crl", has_http_tls, false},
                       {"mqtt.tls-client-ca", has_mqtt_tls, false},
                       {"mqtt.tls-client-crl", has_mqtt_tls, false},
                       {"limits.query-points", true, false},
                       {"limits.query-series", true, false},
                       {"limits.query-windows", true, false}};
  for (const config::Setting& setting : config::settings_table()) {
    if (config::value_text(setting, before) == config::value_text(setting, after)) continue;
    const auto* const found = std::find_if(std::begin(live), std::end(live), [&](const Live& each) {
      return each.key == setting.key && each.is_live;
    });
    if (found == std::end(live)) {
      add(changes.at_restart, setting.key);
      continue;
    }
    add(changes.now, setting.key);
    changes.of_source = changes.of_source || found->is_of_source;
  }
  changes.of_rules = !same_rules(before.mqtt.rules, after.mqtt.rules);
  if (changes.of_rules) add(changes.now, "mqtt.rule");
  changes.of_source = changes.of_source || changes.of_rules;
  if (!same_targets(before.forward, after.forward)) add(changes.now, "forward");
  if (!same_line_rules(before.influx.rules, after.influx.rules)) add(changes.now, "influx.rule");
  return changes;
}

void ExpiryWatch::look(const ExpiryStats& stats) {
  const ExpiryWait wait = stats.rules > 0 ? stats.wait : ExpiryWait::None;  // nothing expires
  if (std::exchange(wait_, wait) != wait) {
    switch (wait) {
      case ExpiryWait::None: logger_.notice("expiry", "goes by the clock again"); break;
      case ExpiryWait::Untrusted:
        logger_.warning("expiry", "nothing expires: the clock is not trusted");
        break;
      case ExpiryWait::Jump:
        logger_.warning("expiry",
                        "the clock is over an hour ahead of the time that has passed: it is "
                        "followed when a time server confirms it, or after an hour");
        break;
    }
  }
  const std::uint64_t before_bytes = std::exchange(held_bytes_, stats.held_bytes);
  if ((before_bytes > 0) == (held_bytes_ > 0)) return;
  if (held_bytes_ > 0) {
    logger_.error("expiry", "the clock leapt, and " + std::to_string(held_bytes_) +
                                " bytes have expired by it at once: they are hidden and kept, for "
                                "a day or until a time server confirms the clock; set it right if "
                                "it is wrong");
    note("expiry.held", held_bytes_);
  } else {
    logger_.notice("expiry", "nothing is kept any more of what a leap of the clock let expire");
    note("expiry.released", before_bytes);
  }
}

void ExpiryWatch::note(const char* operation, std::uint64_t bytes) {
  audit::Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.detail = std::to_string(bytes) + " bytes";
  if (const Status noted = audit_.append(std::move(record)).status(); !noted.ok())
    logger_.log_keyed(observe::LogLevel::Warning, "audit", operation, noted.message());
}

}  // namespace edgecase::app
