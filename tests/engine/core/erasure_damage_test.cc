// Erasures where files are damaged or missing: nothing of what was erased is left on either drive,
// erasures of other ranges are not held up, and what was not erased is there or says that it is
// damaged.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

constexpr int kDevices = 3;
constexpr int kReadings = 280;  // of a device
constexpr std::size_t kWordBytes = 24;

enum class Hit { Missing, Zeros, FirstSector, MiddleSector, LastSector };

struct DamageCase {
  const char* name;
  bool of_values;  // else of metadata tables
  Hit hit;
  bool all;  // of those files; else one of them
};

constexpr DamageCase kDamageCases[] = {
    {"metadata missing", false, Hit::Missing, true},
    {"one of the metadata tables missing", false, Hit::Missing, false},
    {"metadata head", false, Hit::FirstSector, true},
    {"metadata block", false, Hit::MiddleSector, true},
    {"metadata tail", false, Hit::LastSector, true},
    {"values missing", true, Hit::Missing, true},
    {"one of the value files missing", true, Hit::Missing, false},
    {"values zeroed", true, Hit::Zeros, false},
    {"values head", true, Hit::FirstSector, true},
    {"values item", true, Hit::MiddleSector, true},
    {"values tail", true, Hit::LastSector, true},
};

std::string reading_key(int device, int reading) {
  const std::string number = std::to_string(1000 + reading);
  return "device" + std::to_string(device) + "/" + number;
}

// A value of bytes that nothing makes smaller, and that tell its key.
Bytes reading_value(int device, int reading, int version = 0) {
  SeededRandom random(static_cast<std::uint64_t>(device * 100'000 + reading * 10 + version));
  Bytes value;
  while (value.size() < 4 * kWordBytes) {
    const std::uint64_t drawn = random.next();
    value.append(reinterpret_cast<const char*>(&drawn), sizeof drawn);
  }
  return value;
}

std::uint64_t head_of(const Bytes& bytes, std::size_t at) {
  std::uint64_t head = 0;
  std::memcpy(&head, bytes.data() + at, sizeof head);
  return head;
}

class DamagedStore : public EngineFixture {
 public:
  DamagedStore(const DamageCase& damage, bool encrypted, bool compacted) : damage_(damage) {
    options.values_directory = "/v/store";
    options.group_bytes = 1024;
    options.coalesce_threshold_bytes = 512;
    options.removal = Removal::Overwrite;
    if (encrypted) options.encryption = MasterKeys{SecretKey{1}};
    REQUIRE(open().ok());
    id = make_namespace("default");
    // Four tables, each of all devices.
    for (int part = 0; part < 4; ++part) {
      for (int device = 0; device < kDevices; ++device)
        for (int i = part; i < kReadings; i += 4)
          REQUIRE(
              put(id, reading_key(device, i), reading_value(device, i), Durability::Async).ok());
      REQUIRE(engine->flush().ok());
      if (compacted && part == 1) REQUIRE(engine->compact({id}, {}).ok());
    }
    if (compacted) REQUIRE(engine->compact({id}, {}).ok());
    executor.run_all();
    close();
    hit();
    REQUIRE(open().ok());
  }

  Result<ErasureReport> erase(int device, int from, int to) {
    WriteBatch batch;
    batch.erase_range(id, reading_key(device, from), reading_key(device, to));
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    for (int i = from; i < to; ++i) gone_.insert({device, i});
    return engine->erase();
  }

  void check_gone() {
    CHECK(engine->stats().erasure.pending_ranges == 0);
    // Two words of each value that is gone, by their first bytes: one pass finds them all.
    std::unordered_map<std::uint64_t, std::pair<int, int>> heads;
    std::vector<bool> begins(1u << 16);
    for (const auto& [device, i] : gone_) {
      const Bytes value = reading_value(device, i);
      heads.emplace(head_of(value, 0), std::pair(device, i));
      heads.emplace(head_of(value, 2 * kWordBytes), std::pair(device, i));
    }
    for (const auto& [head, reading] : heads) begins[head & 0xffff] = true;
    for (const auto& [path, contents] : disk.durable_contents()) {
      if (!disk.exists(path)) continue;
      for (std::size_t at = 0; at + sizeof(std::uint64_t) <= contents.size(); ++at) {
        const std::uint64_t head = head_of(contents, at);
        if (!begins[head & 0xffff]) {
          // Two zeros begin none: log files are full of them.
          if (head == 0) at += sizeof head - 2;
          continue;
        }
        const auto found = heads.find(head);
        if (found == heads.end()) continue;
        FAIL(path << " holds " << reading_key(found->second.first, found->second.second));
      }
    }
  }

  // Answers how many cannot be read.
  int check_rest() {
    int damaged = 0;
    for (int device = 0; device < kDevices; ++device) {
      for (int i = 0; i < kReadings; ++i) {
        const auto got = engine->get(id, reading_key(device, i), {});
        CAPTURE(reading_key(device, i));
        if (gone_.contains({device, i})) {
          REQUIRE_FALSE(got.ok());
          continue;
        }
        if (got.ok()) {
          REQUIRE(*got == reading_value(device, i));
        } else {
          REQUIRE(got.status().code() == StatusCode::Corruption);
          ++damaged;
        }
      }
    }
    return damaged;
  }

  NamespaceId id = 0;

 private:
  void hit() {
    bool first = true;
    for (const auto& [path, whole] : disk.durable_contents()) {
      const bool is_values = path.ends_with(".val");
      const bool is_meta = path.ends_with(".meta");
      if (!disk.exists(path) || (damage_.of_values ? !is_values : !is_meta)) continue;
      if (!std::exchange(first, false) && !damage_.all) continue;
      if (damage_.hit == Hit::Missing) {
        REQUIRE(disk.remove_file(path).ok());
        continue;
      }
      Bytes contents = disk.contents(path);
      const std::size_t size = contents.size();
      std::size_t begin = 0, bytes = std::min<std::size_t>(512, size);
      if (damage_.hit == Hit::Zeros) bytes = size;
      if (damage_.hit == Hit::MiddleSector) begin = size / 2 / 512 * 512;
      if (damage_.hit == Hit::LastSector) begin = (size - 1) / 512 * 512;
      bytes = std::min(bytes, size - begin);
      contents.replace(begin, bytes, Bytes(bytes, damage_.hit == Hit::Zeros ? '\0' : '\x5a'));
      disk.set_contents(path, contents);
    }
  }

  const DamageCase damage_;
  std::set<std::pair<int, int>> gone_;
};

void for_each_damage(const std::function<void(DamagedStore&)>& body) {
  for (const DamageCase& damage : kDamageCases) {
    for (const int kind : {0, 1, 2}) {
      const bool encrypted = kind == 2, compacted = kind > 0;
      CAPTURE(damage.name);
      CAPTURE(encrypted);
      CAPTURE(compacted);
      DamagedStore store(damage, encrypted, compacted);
      body(store);
    }
  }
}

void check_erased(const Result<ErasureReport>& erased) {
  INFO(erased.status().to_string());
  CHECK(erased.ok());
}

}  // namespace

TEST_CASE("an erasure ends where files are damaged: of all of a range, and of a part") {
  for_each_damage([](DamagedStore& store) {
    check_erased(store.erase(1, 30, 70));
    store.check_gone();
    const int damaged = store.check_rest();
    check_erased(store.erase(1, 0, kReadings));
    CHECK(store.check_rest() <= damaged);
    store.reopen();
    store.check_gone();
    CHECK(store.check_rest() <= damaged);
  });
}

TEST_CASE("damage holds up no erasure of other ranges, in either order, after a restart") {
  for_each_damage([](DamagedStore& store) {
    const int damaged = store.check_rest();
    check_erased(store.erase(0, 0, 50));
    check_erased(store.erase(2, 200, kReadings));
    store.check_gone();
    CHECK(store.check_rest() <= damaged);
    store.reopen();
    check_erased(store.erase(1, 10, 20));
    check_erased(store.erase(2, 0, kReadings));
    store.check_gone();
    CHECK(store.check_rest() <= damaged);
    CHECK(store.put(store.id, "after", "works").ok());
    CHECK(store.engine->flush().ok());
    store.reopen();
    CHECK(store.get(store.id, "after") == "works");
    for (int device = 0; device < kDevices; ++device)
      check_erased(store.erase(device, 0, kReadings));
    store.check_gone();
    CHECK(store.check_rest() == 0);
  });
}

}  // namespace edgecase::test
