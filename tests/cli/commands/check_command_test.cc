#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "application.h"
#include "edgecase/engine.h"
#include "support/temp_directory.h"

namespace edgecase::cli {
namespace {

namespace fs = std::filesystem;

constexpr AddCommand kCommands[] = {add_check_command, add_inspect_command};

struct StoreOnDisk {
  StoreOnDisk() {
    options.metadata_directory = directory.path() + "/m";
    options.values_directory = directory.path() + "/v";
    const auto engine = open();
    const auto id = engine->create_namespace("plant", {});
    REQUIRE(id.ok());
    WriteBatch batch;
    batch.put(*id, "a", "1");
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    REQUIRE(engine->flush().ok());
  }

  std::unique_ptr<Engine> open() {
    auto engine = Engine::open(
        options, {posix_file_system(), system_clock(), system_random(), *executor, listener});
    REQUIRE(engine.ok());
    return std::move(engine).value();
  }
  std::string file(const std::string& in, const std::string& suffix) const {
    for (const auto& entry : fs::directory_iterator(in)) {
      if (entry.path().string().ends_with(suffix)) return entry.path().string();
    }
    FAIL("no file ends in " << suffix);
    return {};
  }
  int run(std::vector<std::string> words) const {
    words.insert(words.end(),
                 {"--metadata", options.metadata_directory, "--values", options.values_directory});
    return run_application(kCommands, std::move(words));
  }

  test::TempDirectory directory;
  Options options;
  EventListener listener;
  std::unique_ptr<Executor> executor = make_thread_executor();
};

void flip_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

TEST_CASE("check and inspect answer the exit codes of their help") {
  const StoreOnDisk store;
  const std::string values = store.file(store.options.values_directory, ".val");
  CHECK(store.run({"check"}) == 0);
  CHECK(store.run({"check", "--json"}) == 0);
  CHECK(store.run({"inspect", values}) == 0);
  CHECK(store.run({"inspect", "--json", "--summary", values}) == 0);
  CHECK(store.run({"inspect"}) == 2);
  CHECK(store.run({"inspect", values + "x"}) == 3);

  flip_byte(values, 101);
  CHECK(store.run({"check"}) == 7);
  CHECK(store.run({"check", "--json"}) == 7);
  CHECK(store.run({"inspect", values}) == 7);
  flip_byte(values, 101);
  CHECK(store.run({"check"}) == 0);
}

TEST_CASE("check does not touch an open store and repairs a closed one") {
  StoreOnDisk store;
  {
    const auto engine = store.open();
    CHECK(store.run({"check"}) == 1);
    CHECK(store.run({"check", "--repair"}) == 1);
  }
  fs::remove(store.file(store.options.metadata_directory + "/tables", ".meta"));
  CHECK(store.run({"check"}) == 7);
  CHECK(store.run({"check", "--repair"}) == 0);
  CHECK(store.run({"check"}) == 0);
  {
    const auto engine = store.open();
    const auto got = engine->get(1, "a", {});
    REQUIRE(got.ok());
    CHECK(*got == "1");
  }
  // What was in the only value table cannot be had again.
  fs::remove(store.file(store.options.values_directory, ".val"));
  CHECK(store.run({"check", "--repair"}) == 6);
  CHECK(store.run({"check"}) == 0);

  store.options.metadata_directory += "/none";
  store.options.values_directory += "/none";
  CHECK(store.run({"check"}) == 3);
}

}  // namespace
}  // namespace edgecase::cli
