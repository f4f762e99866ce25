// A repair without a whole manifest: what it keeps, and what it says it could not.
#include <functional>
#include <string>
#include <vector>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/expiring_store.h"
#include "log/log.h"

namespace edgecase::engine {
namespace {

using test::ExpiringStore;
using test::kHour;
using test::kSecond;
using test::kStartNs;
using test::RecordingObserver;

constexpr int kCount = 100;  // of each of two series

struct ManifestStore : ExpiringStore {
  ManifestStore() { fill_both("a1", "b1", kStartNs); }

  void fill_both(const std::string& one, const std::string& other, std::int64_t begin_ns) {
    fill(one, begin_ns, kCount);
    fill(other, begin_ns, kCount);
    REQUIRE(engine->flush().ok());
  }
  std::vector<std::string> files(const std::string& prefix) const {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : disk.durable_contents()) {
      if (path.starts_with(prefix)) paths.push_back(path);
    }
    return paths;
  }
  // Where the second copy ends, within the file.
  std::size_t manifest_end() const {
    const Bytes bytes = disk.contents(files("/m/store/MANIFEST").back());
    return bytes.find_last_not_of('\0') + 1;
  }
  void remove_all(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) REQUIRE(disk.remove_file(path).ok());
  }
  // The manifest says what it says now; what comes then cannot be read.
  void damage_manifest_from_here() {
    const std::size_t end = manifest_end();
    fill_both("c1", "d1", kStartNs + kHour);
    fill_both("e1", "f1", kStartNs + kHour);
    REQUIRE(manifest_end() > end + 80);
    close();
    const std::string path = files("/m/store/MANIFEST").back();
    disk.flip_bit(path, end + 40, 1);
    disk.flip_bit(path, end + 40 - begin_of_second_copy(disk.contents(path).size()), 1);
  }
  void lose_manifest() {
    close();
    remove_all(files("/m/store/MANIFEST"));
  }
  RecordingObserver repair(bool opens = false) {
    CHECK(open().ok() == opens);
    close();
    RecordingObserver observer;
    const auto repaired = repair_store(disk, options, observer);
    CAPTURE(repaired.status().to_string());
    REQUIRE(repaired.ok());
    RecordingObserver after;
    const auto report = check_store(disk, options, after);
    REQUIRE(report.ok());
    INFO(after.all());
    CHECK(report->problems == 0);
    const Status opened = open();
    CAPTURE(opened.to_string());
    REQUIRE(opened.ok());
    return observer;
  }
  std::size_t count_of(const std::string& part) {
    return scan({}, {part, part.substr(0, 1) + static_cast<char>(part[1] + 1)}).size();
  }
};

bool tells(const RecordingObserver& observer, const std::string& words) {
  for (const std::string& loss : observer.losses) {
    if (loss.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("repair_store keeps gone what the readable part of a manifest says is gone") {
  struct Case {
    const char* what;
    std::function<void(ManifestStore&)> make;  // of a1 and b1, half of each at most
  };
  const Case cases[] = {
      {"evicted",
       [](ManifestStore& s) {
         const NamespaceId ids[] = {s.id};
         REQUIRE(s.engine->evict(ids, kStartNs + kCount / 2 * kSecond).ok());
       }},
      {"expired by a rule that holds",
       [](ManifestStore& s) {
         s.set("", 2 * kHour);
         s.clock.advance(2 * kHour + kCount / 2 * kSecond);
         s.set("z", kHour);  // the manifest says when
       }},
      {"expired by a rule that was changed",
       [](ManifestStore& s) {
         s.set("a1", 2 * kHour);
         s.set("b1", 2 * kHour);
         s.clock.advance(2 * kHour + kCount / 2 * kSecond);
         s.set("a1", 1000 * kHour);
         s.set("b1", std::nullopt);
       }},
      {"erased, and pending",
       [](ManifestStore& s) {
         WriteBatch batch;
         for (const char* part : {"a1", "b1"})
           batch.erase_range(s.id, test::key_at(part, kStartNs),
                             test::key_at(part, kStartNs + kCount / 2 * kSecond));
         REQUIRE(s.engine->write(batch, Durability::Sync).ok());
         REQUIRE(s.engine->flush().ok());
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    ManifestStore store;
    const std::size_t all = store.count_of("a1");
    c.make(store);
    const std::size_t left = store.count_of("a1");
    REQUIRE(left < all);
    REQUIRE(left > 0);
    store.damage_manifest_from_here();
    const RecordingObserver observer = store.repair();
    CAPTURE(observer.all());
    CHECK(store.count_of("a1") == left);
    CHECK(store.count_of("b1") == left);
    CHECK(store.count_of("f1") == kCount);
    CHECK(tells(observer, "may have come back"));
    store.executor.run_all();
    CHECK(store.count_of("b1") == left);
    store.reopen();
    CHECK(store.count_of("a1") == left);
  }
}

TEST_CASE("repair_store lets no rule of a damaged manifest delete anything") {
  ManifestStore store;
  store.set("", 2 * kHour);
  store.damage_manifest_from_here();
  store.repair();
  CHECK(store.engine->retention_rules().empty());
  store.clock.advance(1000 * kHour);
  store.executor.run_all();
  CHECK(store.count_of("a1") == kCount);
}

TEST_CASE("repair_store says what may have come back where no manifest is left") {
  ManifestStore store;
  const NamespaceId ids[] = {store.id};
  REQUIRE(store.engine->evict(ids, kStartNs + kCount / 2 * kSecond).ok());
  store.lose_manifest();
  const RecordingObserver observer = store.repair();
  CHECK(tells(observer, "no manifest is left"));
  CHECK(tells(observer, "may have come back"));
  CHECK_FALSE(tells(observer, "the log is lost"));
}

TEST_CASE("repair_store says that what lay on the metadata drive alone is lost") {
  for (const bool had_names : {true, false}) {
    CAPTURE(had_names);
    ManifestStore store;
    if (had_names) {
      const NamespaceId names =
          store.make_namespace("names", {Placement::Metadata, GroupCodec::Plain, 0});
      REQUIRE(store.put(names, "1", "kitchen").ok());
      REQUIRE(store.engine->flush().ok());
    }
    store.close();
    store.remove_all(store.files("/m/store/"));
    const RecordingObserver observer = store.repair();
    CHECK(tells(observer, "the names of devices and sensors"));
    CHECK(tells(observer, "the log is lost"));
    CHECK(store.count_of("a1") == kCount);
  }
  // Where it had no values of its own, and something says so, nothing of the kind is told.
  ManifestStore store;
  store.damage_manifest_from_here();
  CHECK_FALSE(tells(store.repair(), "the names of devices and sensors"));
}

TEST_CASE("repair_store says that the log is lost, also with a whole manifest") {
  ManifestStore store;
  store.fill("a1", kStartNs + kHour, 1);
  store.close();
  store.remove_all(store.files("/m/store/wal/"));
  const RecordingObserver observer = store.repair(true);
  CHECK(tells(observer, "the log is lost"));
  CHECK(store.count_of("a1") == kCount);
}

TEST_CASE("repair_store takes a manifest that stands alone for the one that CURRENT named") {
  ManifestStore store;
  const NamespaceId ids[] = {store.id};
  REQUIRE(store.engine->evict(ids, kStartNs + kCount / 2 * kSecond).ok());
  store.close();
  store.remove_all({"/m/store/CURRENT", "/m/store/CURRENT.copy"});
  const RecordingObserver observer = store.repair();
  CAPTURE(observer.all());
  CHECK(observer.losses.empty());
  CHECK(store.count_of("a1") == kCount / 2);
}

TEST_CASE("repair_store brings no dropped namespace back that it can tell of") {
  const auto fill = [](ManifestStore& store, NamespaceId id, const std::string& value) {
    REQUIRE(store.put(id, test::key_at("a1", kStartNs), value).ok());
    REQUIRE(store.engine->flush().ok());
  };
  for (const bool readable : {true, false}) {
    CAPTURE(readable);
    ManifestStore store;
    const NamespaceOptions options{Placement::Values, GroupCodec::Series, 1};
    const NamespaceId first = store.make_namespace("doomed", options);
    fill(store, first, "old");
    std::vector<std::pair<std::string, Bytes>> kept;  // as if it had not been unlinked yet
    for (const std::string& path : store.files("/v/store/")) {
      if (path.ends_with(".val")) kept.emplace_back(path, store.disk.contents(path));
    }
    REQUIRE(store.engine->drop_namespace(first).ok());
    const NamespaceId second = store.make_namespace("doomed", options);
    fill(store, second, "new");
    store.executor.run_all();
    if (readable) {
      store.damage_manifest_from_here();
    } else {
      store.lose_manifest();
    }
    for (const auto& [path, bytes] : kept) {
      if (!store.disk.exists(path)) store.disk.set_contents(path, bytes);
    }
    const RecordingObserver observer = store.repair();
    CAPTURE(observer.all());
    const auto found = store.engine->find_namespace("doomed");
    REQUIRE(found.ok());
    CHECK(found->id == second);
    CHECK(store.get(second, test::key_at("a1", kStartNs)) == "new");
    CHECK(store.engine->scan(first, {}, {}).status().code() == StatusCode::NotFound);
    CHECK(store.make_namespace("another", options) > second);
  }
}

TEST_CASE("repair_store without a manifest loses nothing of a flush that was cut short") {
  const NamespaceOptions options{Placement::Values, GroupCodec::Series, 1};
  for (std::uint64_t operation = 1;; ++operation) {
    CAPTURE(operation);
    ManifestStore store;
    const NamespaceId other = store.make_namespace("other", options);
    const Bytes key = test::key_at("a1", kStartNs);
    REQUIRE(store.put(other, key, "first").ok());
    REQUIRE(store.put(store.id, test::key_at("z1", kStartNs), "first").ok());
    REQUIRE(store.engine->flush().ok());
    REQUIRE(store.put(other, key, "second").ok());
    REQUIRE(store.put(other, test::key_at("b1", kStartNs), "new").ok());
    REQUIRE(store.put(store.id, test::key_at("z1", kStartNs), "second").ok());
    WriteBatch batch;
    batch.remove(store.id, test::key_at("a1", kStartNs));
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    store.disk.stop_at(operation);
    const bool flushed = store.engine->flush().ok();
    store.close();
    store.disk.power_cut(operation, test::CutPolicy::Any);
    store.remove_all(store.files("/m/store/MANIFEST"));
    const RecordingObserver observer = store.repair();
    CAPTURE(observer.all());
    CHECK(store.get(other, key) == "second");
    CHECK(store.get(other, test::key_at("b1", kStartNs)) == "new");
    CHECK(store.get(store.id, test::key_at("z1", kStartNs)) == "second");
    CHECK(store.count_of("a1") == kCount - 1);
    CHECK(store.count_of("b1") == kCount);
    REQUIRE(store.put(other, key, "third").ok());
    store.executor.run_all();
    store.reopen();
    CHECK(store.get(other, key) == "third");
    CHECK(store.get(store.id, test::key_at("z1", kStartNs)) == "second");
    if (flushed) break;
  }
}

}  // namespace edgecase::engine
