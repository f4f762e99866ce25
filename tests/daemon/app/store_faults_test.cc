#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "app/store_faults.h"
#include "audit/audit_log.h"
#include "audit/head_file.h"
#include "edgecase/engine.h"
#include "edgecase/random.h"
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

}  // namespace edgecase::app
