#include <fcntl.h>
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "config/configuration.h"
#include "config/settings.h"
#include "support/temp_directory.h"

namespace edgecase::config {
namespace {

// As load_configuration(), from text.
Status load_text(const std::string& text, Configuration& configuration) {
  EC_TRY(apply_file(text, "edgecase.toml", configuration));
  return validate(configuration);
}

TEST_CASE("the contract's sample is accepted, but for what this version must refuse") {
  const std::string sample = R"([storage]
metadata = "/var/lib/edgecase"          # onboard NVMe: keys, filters, index, WAL, catalog, audit
values   = "/var/lib/edgecase/values"   # set it to the external SSD's mount
memory-limit = "64MiB"
wal-limit    = "256MiB"
retention    = "forever"                # default for devices without a rule
expiry       = "bounded"                # bytes of expired data gone within a stated bound
on-full      = "reject"                 # or "evict-oldest"
encryption-key-file = ""                # 32 bytes; set before first start

[http]
socket = "/run/edgecase/edgecase.sock"
listen = "127.0.0.1:8650"               # "" turns TCP off
tls-cert = ""                           # with tls-key: HTTPS
tls-key  = ""
allow-insecure = false

[mqtt]
broker = "mqtt://127.0.0.1:1883"        # mqtts:// for TLS; "" turns the client off
username = ""
password-file = ""
tls-ca = ""
listen = ""                             # "127.0.0.1:1884"

[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"

[[mqtt.rule]]
topic  = "zigbee2mqtt/{device}"
preset = "zigbee2mqtt"
retention = "30d"

[audit]
mode = "batched"                        # off | batched (1 s) | strict (durable before the answer)
)";
  Configuration configuration;
  const Status status = load_text(sample, configuration);
  REQUIRE_MESSAGE(status.ok(), status.message());
  REQUIRE(configuration.settings.mqtt.rules.size() == 2);
  CHECK(configuration.settings.mqtt.rules[0].topic == "sensors/{device}/{sensor}");
  CHECK(configuration.settings.mqtt.rules[1].preset == "zigbee2mqtt");
  CHECK(configuration.settings.mqtt.rules[1].retention == "30d");
  CHECK(configuration.settings.mqtt.rules[1].where == "edgecase.toml:28:1");
  CHECK(configuration.origin_of(rule_origin(2, "preset")).where == "edgecase.toml:30:10");
}

TEST_CASE("a rule takes every key of the contract") {
  Configuration configuration;
  const Status status = load_text(R"([[mqtt.rule]]
topic = "a/{device+}"
payload = "json"
sensor = "temp"
device = "/id"
time = "/ts"
time-format = "unix_ms"
namespace = "plant"
retention = "forever"
owner = "me"
purpose = ["heating", "billing"]
qos = 0
preset = "tasmota"
)",
                                  configuration);
  REQUIRE_MESSAGE(status.ok(), status.message());
  const MqttRuleSettings& rule = configuration.settings.mqtt.rules.at(0);
  CHECK(rule.topic == "a/{device+}");
  CHECK(rule.payload == "json");
  CHECK(rule.sensor == "temp");
  CHECK(rule.device == "/id");
  CHECK(rule.time == "/ts");
  CHECK(rule.time_format == "unix_ms");
  CHECK(rule.namespace_name == "plant");
  CHECK(rule.owner == "me");
  CHECK(rule.purpose == "heating,billing");
  CHECK(rule.qos == 0);
}

TEST_CASE("each mistake in a file is one line: where, key, what is wrong, what would be right") {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"[storage]\nvaleus = \"x\"\n",
                "edgecase.toml:2:1: storage.valeus: unknown key, did you mean storage.values?"},
           Case{"[storage]\n\n  colour = 1\n",
                "edgecase.toml:3:3: storage.colour: unknown key, see `edgecase config example`"},
           Case{"[storrage]\n",
                "edgecase.toml:1:2: storrage: unknown section, did you mean storage?"},
           Case{"top = 1\n",
                "edgecase.toml:1:1: top: unknown section, see `edgecase config example`"},
           Case{"http = 5\n", "edgecase.toml:1:1: http: is not a section, write [http]"},
           Case{"[storage]\nmemory-limit = \"big\"\n",
                "edgecase.toml:2:16: storage.memory-limit: \"big\" is not a size, use bytes or a "
                "unit, as in 64MiB"},
           Case{"[storage]\nmemory-limit = true\n",
                "edgecase.toml:2:1: storage.memory-limit: is true or false, use a size, as in "
                "\"64MiB\""},
           Case{
               "[storage]\nmemory-limit = 64.5\n",
               "edgecase.toml:2:1: storage.memory-limit: is a number with decimals, use a size, as "
               "in \"64MiB\""},
           Case{"[storage]\nmemory-limit = 1024\n",
                "edgecase.toml:2:16: storage.memory-limit: 1KiB is out of range, use 32MiB to "
                "64GiB"},
           Case{"[storage]\nvalues = 7\n",
                "edgecase.toml:2:1: storage.values: is a whole number, use text in quotes"},
           Case{"[storage]\nvalues = 1979-05-27\n",
                "edgecase.toml:2:1: storage.values: is a date or time, use text in quotes"},
           Case{"[storage.values]\nx = 1\n",
                "edgecase.toml:1:10: storage.values: is a table, use text in quotes"},
           Case{"[http]\nallow-insecure = \"true\"\n",
                "edgecase.toml:2:1: http.allow-insecure: is text, use true or false, without "
                "quotes"},
           Case{"[http]\nthreads = \"4\"\n",
                "edgecase.toml:2:1: http.threads: is text, use a whole number, without quotes"},
           Case{"[http]\nthreads = -4\n",
                "edgecase.toml:2:11: http.threads: \"-4\" is not a whole number, use digits alone, "
                "as in 100"},
           Case{"[mqtt]\nrule = 5\n",
                "edgecase.toml:2:8: mqtt.rule: is not a list of tables, write [[mqtt.rule]]"},
           Case{"[mqtt]\nrule = [5]\n",
                "edgecase.toml:2:9: mqtt.rule: is not a table, write [[mqtt.rule]]"},
           Case{"[[mqtt.rule]]\npayload = \"json\"\n",
                "edgecase.toml:1:1: mqtt.rule.topic: is missing, write topic = "
                "\"sensors/{device}/{sensor}\""},
           Case{"[[mqtt.rule]]\ntopic = \"a\"\npaylod = \"json\"\n",
                "edgecase.toml:3:1: mqtt.rule.paylod: unknown key, did you mean "
                "mqtt.rule.payload?"},
           Case{"[[mqtt.rule]]\ntopic = \"a\"\nqos = 2\n",
                "edgecase.toml:3:7: mqtt.rule.qos: is neither 0 nor 1, use 1 (QoS 2 costs more "
                "messages and keeps no more)"},
           Case{"[[mqtt.rule]]\ntopic = 1\n",
                "edgecase.toml:2:9: mqtt.rule.topic: is a whole number, use text in quotes"},
           Case{
               "[[mqtt.rule]]\ntopic = \"a\"\nretention = \"long\"\n",
               "edgecase.toml:3:13: mqtt.rule.retention: \"long\" is not a duration, use 30d, 12h, "
               "90m or forever"},
           Case{"[[mqtt.rule]]\ntopic = \"a\"\npurpose = [1]\n",
                "edgecase.toml:3:12: mqtt.rule.purpose: is not text, use \"heating\""},
           Case{"[influx]\nrules = 5\n",
                "edgecase.toml:2:1: influx.rules: unknown key, did you mean influx.rule?"},
           Case{"[influx]\nrule = 5\n",
                "edgecase.toml:2:8: influx.rule: is not a list of tables, write [[influx.rule]]"},
           Case{"[[influx.rule]]\nmeasurement = \"a\"\n",
                "edgecase.toml:1:1: influx.rule.device: is missing, write device = "
                "\"{station}\""},
           Case{"[[influx.rule]]\ndevise = \"a\"\n",
                "edgecase.toml:2:1: influx.rule.devise: unknown key, did you mean "
                "influx.rule.device?"},
           Case{"[[influx.rule]]\ndevice = 5\n",
                "edgecase.toml:2:10: influx.rule.device: is a whole number, use text in quotes"},
           Case{"[[influx.rule]]\ndevice = \"{a\"\n",
                "edgecase.toml:1:1: influx.rule.device: \"{a\": behind { stands the key of a tag, "
                "and then }"},
       }) {
    CAPTURE(c.text);
    Configuration configuration;
    const Status status = load_text(c.text, configuration);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message() == c.message);
  }
}

TEST_CASE("what is not TOML is told with its place") {
  for (const char* text : {"[storage\n", "x", "a = \"\xff\"\n", "[\x01]\n", "[|storage]\n",
                           "[http]\nlisten = \"a\"\nlisten = "
                           "\"b\"\n"}) {
    Configuration configuration;
    const Status status = load_text(text, configuration);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK_MESSAGE(status.message().starts_with("edgecase.toml:"), status.message());
    CHECK(status.message().find(": not TOML: ") != std::string::npos);
    CHECK(status.message().find('\n') == std::string::npos);
  }
}

TEST_CASE("a missing file is empty or an error, as asked") {
  Sources sources;
  sources.file = "/nonexistent/edgecase.toml";
  CHECK(load_configuration(sources).ok());
  sources.missing_file = MissingFile::IsError;
  const auto configuration = load_configuration(sources);
  CHECK(configuration.status().message() ==
        "/nonexistent/edgecase.toml:1:1: file: does not exist, start one with `edgecase config "
        "example`");
  sources.file = "/";
  CHECK(load_configuration(sources).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("a key that other programs have, or with a word more, leads to the one here") {
  struct Case {
    const char *prefix, *name, *meant;
  };
  for (const Case& c : {
           Case{"storage.", "metadata-dir", "storage.metadata"},
           Case{"storage.", "values_path", "storage.values"},
           Case{"storage.", "Memory", "storage.memory-limit"},
           Case{"storage.", "data_dir", "storage.values"},
           Case{"http.", "listen-address", "http.listen"},
           Case{"http.", "port", "http.listen"},
           Case{"http.", "client-ca", ""},
           Case{"mqtt.", "url", "mqtt.broker"},
           Case{"mqtt.", "broker-url", "mqtt.broker"},
           Case{"mqtt.", "topics", "mqtt.rule"},
           Case{"mqtt.", "password", "mqtt.password-file"},
           Case{"forward.", "url", "forward.to"},
           Case{"forward.", "token", "forward.token-file"},
           Case{"mqtt.rule.", "device-name", "mqtt.rule.device"},
           Case{"influx.rule.", "measurements", "influx.rule.measurement"},
           Case{"", "server", "http"},
           Case{"", "forwards", "forward"},
           Case{"", "kitchen", ""},
           Case{"storage.", "-", ""},
           Case{"storage.", "", ""},
       }) {
    CAPTURE(c.prefix);
    CAPTURE(c.name);
    CHECK(meant_key(c.prefix, c.name) == c.meant);
  }
  // What is proposed is there.
  for (const char* prefix : {"storage.", "http.", "mqtt."}) {
    for (const char* name : {"dir", "data", "port", "bind", "host", "url", "topic"}) {
      const std::string meant = meant_key(prefix, name);
      CAPTURE(meant);
      CHECK((meant.empty() || meant == "mqtt.rule" || find_setting(meant) != nullptr));
    }
  }
}

TEST_CASE("mistakes in the environment and in flags name their place") {
  Sources sources;
  sources.file = "";
  sources.environment = {{"EDGECASE_HTTP_THREADS", "x"}};
  CHECK(load_configuration(sources).status().message() ==
        "EDGECASE_HTTP_THREADS: http.threads: \"x\" is not a whole number, use digits alone, as in "
        "100");
  sources.environment = {{"EDGECASE_STORAGE_VALEUS", "x"}};
  CHECK(load_configuration(sources).status().message() ==
        "EDGECASE_STORAGE_VALEUS: unknown key, did you mean EDGECASE_STORAGE_VALUES?");
  sources.environment = {{"EDGECASE_STROAGE_VALUES", "x"}};
  CHECK(load_configuration(sources).status().message() ==
        "EDGECASE_STROAGE_VALUES: unknown key, did you mean EDGECASE_STORAGE_VALUES?");
  sources.environment = {
      {"EDGECASE_HOST", "x"},      {"EDGECASE_TOKEN", "y"},           {"EDGECASE_TLS_CA", "x"},
      {"EDGECASE_NAMESPACE", "y"}, {"EDGECASE_PURPOSE", "x"},         {"EDGECASE_TO_TOKEN", "y"},
      {"EDGECASE_BOOT_ID", "x"},   {"EDGECASE_SERVICE_PORT", "8650"}, {"HOME", "/"}};
  CHECK(load_configuration(sources).ok());
  sources.flags = {{"http.threads", "0"}};
  CHECK(load_configuration(sources).status().message() ==
        "--http.threads: http.threads: 0 is out of range, use 1 to 64");
  sources.flags = {{"http.port", "80"}};
  CHECK(load_configuration(sources).status().message() ==
        "--http.port: unknown key, did you mean --http.listen?");
}

TEST_CASE("without any rule the plain layout is the rule") {
  Sources sources;
  sources.file = "";
  const auto configuration = load_configuration(sources);
  REQUIRE(configuration.ok());
  REQUIRE(configuration->settings.mqtt.rules.size() == 1);
  CHECK(configuration->settings.mqtt.rules[0].topic == kDefaultTopic);
}

constexpr uid_t kOwn = 1000;
constexpr uid_t kService = 990;
constexpr uid_t kOther = 1001;

std::string judged(mode_t mode, uid_t owner, const Owners& owners) {
  struct stat facts {};
  facts.st_mode = mode;
  facts.st_uid = owner;
  return check_file_rights("a.toml", facts, owners).message();
}

TEST_CASE("a file of root's, of one's own or of the service's is believed, its group may write") {
  const Owners owners{.own = kOwn, .service = kService};
  for (const uid_t owner : {uid_t{0}, kOwn, kService}) {
    for (const mode_t mode : {0600u, 0640u, 0644u, 0664u, 0660u, 0444u}) {
      CAPTURE(owner);
      CAPTURE(mode);
      CHECK(judged(S_IFREG | mode, owner, owners).empty());
    }
  }
}

TEST_CASE("a file that everybody may write is refused, whosever it is") {
  const Owners owners{.own = kOwn, .service = kService};
  for (const uid_t owner : {uid_t{0}, kOwn, kService, kOther}) {
    for (const mode_t mode : {0666u, 0646u, 0602u, 0777u}) {
      CAPTURE(owner);
      CAPTURE(mode);
      CHECK(judged(S_IFREG | mode, owner, owners) ==
            "a.toml:1:1: file: everybody on this machine may change it; to do: see what it says, "
            "then chmod o-w a.toml");
    }
  }
  CHECK_FALSE(judged(S_IFIFO | 0666, 0, owners).empty());
}

TEST_CASE("a file of somebody else's is refused") {
  const std::string message =
      "a.toml:1:1: file: belongs to the user with the number 1001, neither to root nor to the "
      "daemon's user; to do: chown root a.toml";
  CHECK(judged(S_IFREG | 0600, kOther, {.own = kOwn, .service = kService}) == message);
  CHECK(judged(S_IFREG | 0644, kOther, {.own = 0, .service = {}}) == message);
  // No service user is not user 0, or whoever it may be.
  CHECK(judged(S_IFREG | 0644, kService, {.own = kOwn, .service = {}}).find(" 990,") !=
        std::string::npos);
}

TEST_CASE("what is no file of a directory is not judged") {
  CHECK(judged(S_IFCHR | 0666, 0, {.own = kOwn, .service = {}}).empty());
  CHECK(judged(S_IFIFO | 0600, kOwn, {.own = kOwn, .service = {}}).empty());
}

TEST_CASE("the rights of the file that is read count") {
  test::TempDirectory directory;
  Sources sources;
  sources.file = directory / "edgecase.toml";
  test::write_file(sources.file, "[http]\nthreads = 3\n");
  for (const mode_t mode : {0600u, 0644u, 0664u}) {
    CAPTURE(mode);
    REQUIRE(chmod(sources.file.c_str(), mode) == 0);
    const auto loaded = load_configuration(sources);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    CHECK(loaded->settings.http.threads == 3);
  }
  REQUIRE(chmod(sources.file.c_str(), 0646) == 0);
  CHECK(load_configuration(sources).status().code() == StatusCode::InvalidArgument);
  // What a link leads to is what counts.
  REQUIRE(symlink(sources.file.c_str(), (directory / "link").c_str()) == 0);
  sources.file = directory / "link";
  CHECK_FALSE(load_configuration(sources).ok());
  sources.file = "/dev/null";
  CHECK(load_configuration(sources).ok());
}

TEST_CASE("a file that was given to somebody else is not read") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root gives files away");
    return;
  }
  test::TempDirectory directory;
  Sources sources;
  sources.file = directory / "edgecase.toml";
  test::write_file(sources.file, "[http]\nthreads = 3\n");
  REQUIRE(chown(sources.file.c_str(), 54321, 0) == 0);
  const Status status = load_configuration(sources).status();
  CHECK(status.message().find("number 54321") != std::string::npos);
}

}  // namespace

namespace {

Configuration defaults() {
  Sources sources;
  sources.file = "";
  return load_configuration(sources).value();
}

TEST_CASE("the example loads as the defaults") {
  Configuration configuration;
  const Status status = apply_file(example_text(), "example.toml", configuration);
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (const Setting& setting : settings_table()) {
    CHECK(value_text(setting, configuration.settings) == value_text(setting, Settings()));
    CHECK(configuration.origin_of(setting.key).kind == OriginKind::File);
  }
  REQUIRE(configuration.settings.mqtt.rules.size() == 1);
  CHECK(configuration.settings.mqtt.rules[0].topic == defaults().settings.mqtt.rules[0].topic);
}

TEST_CASE("what is shown says where it is from and loads as the same") {
  Configuration configuration;
  REQUIRE(apply_file("[storage]\nvalues = \"/mnt/s \\\"s\\u0001d\\\\\"\n[[mqtt.rule]]\ntopic = "
                     "\"a/{device}\"\nqos = 0\n[[influx.rule]]\nmeasurement = \"w_*\"\ndevice = "
                     "\"{a}-{b}\"\n[[influx.rule]]\ndevice = \"{c}\"\n",
                     "e.toml", configuration)
              .ok());
  const std::string text = effective_text(configuration);
  CHECK(text.find("values = \"/mnt/s \\\"s\\u0001d\\\\\"") != std::string::npos);
  CHECK(text.find("# e.toml:2:1\n") != std::string::npos);
  CHECK(text.starts_with("[storage]\nmetadata = \"/var/lib/edgecase\" "));
  CHECK(text.find("  # default\n") != std::string::npos);

  Configuration again;
  const Status status = apply_file(text, "again.toml", again);
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(again.settings.storage.values == configuration.settings.storage.values);
  REQUIRE(again.settings.mqtt.rules.size() == 1);
  CHECK(again.settings.mqtt.rules[0].qos == 0);
  REQUIRE(again.settings.influx.rules.size() == 2);
  CHECK(again.settings.influx.rules[0].measurement == "w_*");
  CHECK(again.settings.influx.rules[0].device == "{a}-{b}");
  CHECK(again.settings.influx.rules[1].measurement == "*");
  CHECK(text.find("# e.toml:9:1\n") != std::string::npos);
  const auto document = nlohmann::json::parse(effective_json(configuration));
  CHECK(document["influx_rules"][1]["device"] == "{c}");
  CHECK(document["influx_rules"][1]["where"] == "e.toml:9:1");
}

TEST_CASE("the JSON has every key with its source") {
  const auto document = nlohmann::json::parse(effective_json(defaults()));
  CHECK(document["settings"].size() == settings_table().size());
  CHECK(document["settings"][0]["key"] == "storage.metadata");
  CHECK(document["settings"][0]["value"] == "/var/lib/edgecase");
  CHECK(document["settings"][0]["source"] == "default");
  CHECK(document["settings"][0]["environment"] == "EDGECASE_STORAGE_METADATA");
  CHECK(document["settings"][0]["flag"] == "--storage.metadata");
  CHECK(document["rules"][0]["topic"] == kDefaultTopic);
}

}  // namespace
}  // namespace edgecase::config
