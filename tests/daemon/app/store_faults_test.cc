#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "app/serve.h"
#include "app/store_faults.h"
#include "audit/audit_log.h"
#include "audit/page.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "support/temp_directory.h"

namespace edgecase::app {
namespace {

namespace fs = std::filesystem;

// A store with a log of a few pages, closed again.
struct AuditedStore {
  AuditedStore() {
    options.metadata_directory = directory / "m";
    options.values_directory = directory / "v";
    const auto executor = make_thread_executor();
    EventListener listener;
    const auto engine = Engine::open(
        options, {posix_file_system(), system_clock(), system_random(), *executor, listener});
    REQUIRE(engine.ok());
    const audit::AuditOptions how{.mode = audit::Mode::Strict,
                                  .head_directory = options.values_directory};
    const auto log = audit::AuditLog::open(
        how, {**engine, posix_file_system(), system_clock(), system_random()});
    REQUIRE(log.ok());
    for (int i = 0; i < 3; ++i) {
      audit::Record record;
      record.operation = "query";
      record.actor = "test";
      REQUIRE((*log)->note(record).ok());
    }
    head = {(*log)->state().sequence, (*log)->state().hash, 0};
  }
  std::vector<std::string> faults() const {
    const auto found = audit_faults(posix_file_system(), options);
    REQUIRE_MESSAGE(found.ok(), found.status().to_string());
    return *found;
  }
  std::string head_path() const { return options.values_directory + "/" + audit::kHeadFileName; }
  void write_head(const audit::Mark& mark) const {
    REQUIRE(audit::write_head_file(posix_file_system(), options.values_directory, mark).ok());
  }

  edgecase::test::TempDirectory directory;
  Options options;
  audit::Mark head;
};

}  // namespace

TEST_CASE("check: the audit log's head on either drive must be one that the log has reached") {
  struct Case {
    const char* name;
    std::function<void(AuditedStore&)> damage;
    const char* says;  // null: nothing
  };
  for (const Case& c :
       {Case{"whole", [](AuditedStore&) {}, nullptr},
        Case{"an older head",
             [](AuditedStore& s) {
               s.write_head({0, {}, 0});
             },
             nullptr},
        Case{"a byte differs",
             [](AuditedStore& s) {
               std::fstream file(s.head_path(), std::ios::in | std::ios::out);
               file.seekp(30);
               file.put('!');
             },
             "is not what was written"},
        Case{"missing", [](AuditedStore& s) { fs::remove(s.head_path()); }, "is missing"},
        Case{"empty", [](AuditedStore& s) { std::ofstream(s.head_path(), std::ios::trunc); },
             "is not what was written"},
        Case{"of a longer log",
             [](AuditedStore& s) {
               s.head.sequence += 5;
               s.write_head(s.head);
             },
             "the end of the log is missing"},
        Case{"of another log",
             [](AuditedStore& s) {
               s.head.hash[0] = static_cast<decltype(s.head.hash)::value_type>(s.head.hash[0] ^ 1);
               s.write_head(s.head);
             },
             "is not the one that AUDIT-HEAD beside the values names"}}) {
    CAPTURE(c.name);
    AuditedStore store;
    c.damage(store);
    const std::vector<std::string> faults = store.faults();
    if (c.says == nullptr) {
      CHECK(faults.empty());
      continue;
    }
    REQUIRE(faults.size() == 1);
    CAPTURE(faults.front());
    CHECK(faults.front().find(c.says) != std::string::npos);
  }
}

TEST_CASE("check: a store without an audit log has no faults of one") {
  edgecase::test::TempDirectory directory;
  Options options;
  options.metadata_directory = directory / "m";
  options.values_directory = directory / "v";
  {
    const auto executor = make_thread_executor();
    EventListener listener;
    REQUIRE(Engine::open(options, {posix_file_system(), system_clock(), system_random(), *executor,
                                   listener})
                .ok());
  }
  const auto faults = audit_faults(posix_file_system(), options);
  REQUIRE(faults.ok());
  CHECK(faults->empty());
}

namespace {

TEST_CASE("what went wrong is told with what helps, unless the message says that itself") {
  CHECK(with_remedy(Status(StatusCode::OutOfSpace, "/d: full"))
            .ends_with("/d: full; to do: free space on that drive"));
  CHECK(with_remedy(Status(StatusCode::Unsupported, "/d: newer"))
            .ends_with(
                "; to do: install the version of EdgeCase that wrote the store, or a later one"));
  const Status says_it(StatusCode::InvalidArgument, "key: run chmod");
  CHECK(with_remedy(says_it) == says_it.to_string());
}

TEST_CASE("of the drives the one is named that takes no writes, the metadata drive first") {
  Stats stats;
  CHECK(drive_trouble(stats) == "");
  stats.values.degraded = Status(StatusCode::Unavailable, "/v: is the drive mounted?");
  const std::string values = drive_trouble(stats);
  CHECK(values.starts_with("the values drive takes no writes: "));
  CHECK(values.ends_with("/v: is the drive mounted?; to do: mount it, or correct storage.values"));
  stats.metadata.degraded = Status(StatusCode::OutOfSpace, "/m: full");
  CHECK(drive_trouble(stats).starts_with("the metadata drive takes no writes: "));
  CHECK(drive_trouble(stats).ends_with("/m: full; to do: free space on that drive"));
}

namespace fs = std::filesystem;

struct Place {
  Place() {
    std::string name = (fs::temp_directory_path() / "edgecase-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Place() { fs::remove_all(path); }
  config::Configuration with(const fs::path& metadata, const fs::path& values) const {
    config::Configuration configuration;
    configuration.settings.storage.metadata = metadata.string();
    configuration.settings.storage.values = values.string();
    configuration.origins["storage.values"] = {config::OriginKind::File, "e.toml:3:1"};
    return configuration;
  }
  fs::path path;
};

TEST_CASE("directories are made where their parent exists") {
  Place place;
  const auto configuration = place.with(place.path / "m", place.path / "m" / "v");
  CHECK(prepare_directories(configuration).ok());
  struct stat status {};
  REQUIRE(stat((place.path / "m" / "v").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777 & ~kDirectoryMode) == 0);
  CHECK(prepare_directories(configuration).ok());  // and found again
}

TEST_CASE("what is wrong with a directory is told where it was set") {
  Place place;
  std::ofstream(place.path / "file") << "x";
  fs::create_directory(place.path / "m");
  fs::create_symlink(place.path / "m", place.path / "link");
  struct Case {
    fs::path values;
    const char* message;
  };
  for (const Case& c : {
           Case{place.path / "a" / "b", "its parent does not exist"},
           Case{place.path / "file", "is no directory, use one"},
           Case{place.path / "file" / "x", "cannot be made"},
           Case{place.path / "link", "are the same directory, use two"},
       }) {
    CAPTURE(c.values.string());
    const Status status = prepare_directories(place.with(place.path / "m", c.values));
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().starts_with("e.toml:3:1: storage.values: "));
    CHECK_MESSAGE(status.message().find(c.message) != std::string::npos, status.message());
  }
}

TEST_CASE("a directory that cannot be written is refused") {
  if (geteuid() == 0) {
    MESSAGE("skipped: nothing is unwritable for root");
    return;
  }
  Place place;
  fs::create_directory(place.path / "v");
  fs::permissions(place.path / "v", fs::perms::owner_read | fs::perms::owner_exec);
  const Status status = prepare_directories(place.with(place.path / "m", place.path / "v"));
  CHECK(status.message().find("cannot be written") != std::string::npos);
}

TEST_CASE("memory is shared out within the limit") {
  for (const char* listen : {"", "127.0.0.1:0"}) {
    for (const std::uint64_t limit : {32u << 20, 64u << 20, 1u << 30}) {
      config::Settings settings;
      settings.storage.memory_limit_bytes = limit;
      settings.mqtt.listen = listen;
      const MemoryShares shares = share_memory(settings);
      CHECK(shares.engine_bytes >= limit / 8 * 5);
      CHECK(shares.in_flight_bytes <= settings.http.in_flight_limit_bytes);
      CHECK(shares.mqtt_in_flight_bytes <= settings.mqtt.in_flight_limit_bytes);
      const std::uint64_t mqtt = settings.mqtt.listen.empty() ? 0 : 2 * shares.mqtt_in_flight_bytes;
      CHECK(shares.engine_bytes + shares.in_flight_bytes + mqtt <= limit);
    }
  }
  CHECK(share_memory({}).engine_bytes == 40u << 20);
  CHECK(share_memory({}).in_flight_bytes == 24u << 20);
  CHECK(share_memory({}).catalog_bytes == 16u << 20);
}

TEST_CASE("a rule that makes no sense names its place") {
  config::Configuration configuration;
  config::MqttRuleSettings rule;
  rule.topic = "a/{nonsense}";
  rule.where = "e.toml:7:1";
  configuration.settings.mqtt.rules = {rule};
  const Status status = check_parts(configuration);
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK_MESSAGE(status.message().starts_with("e.toml:7:1: mqtt.rule: topic: "), status.message());

  configuration.origins[config::rule_origin(1, "topic")] = {config::OriginKind::File, "e.toml:8:9"};
  CHECK(check_parts(configuration).message().starts_with("e.toml:8:9: mqtt.rule.topic: level "));

  configuration.settings.mqtt.rules[0].topic = "a/+";
  CHECK(check_parts(configuration).message().starts_with("e.toml:7:1: mqtt.rule: no device: "));
}

}  // namespace
}  // namespace edgecase::app
