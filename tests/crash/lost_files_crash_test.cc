// Files that are lost or damaged between two processes, drawn by a seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "edgecase/engine.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {
namespace {

constexpr std::uint64_t kLostKeys = 40;
constexpr int kLostSteps = 80;
constexpr int kLostProcesses = 4;

// Tells its key and its number, in every byte.
Bytes lost_value_of(const Bytes& key, std::uint64_t number) {
  Bytes value = key + '#' + std::to_string(number) + '#';
  const std::size_t size = number % 7 == 0 ? 700 + number % 300 : value.size() + number % 40;
  for (std::uint64_t i = 0; value.size() < size; ++i)
    value.push_back(static_cast<char>('a' + (number * 31 + i * 7) % 26));
  return value;
}

class Told final : public EventListener {
 public:
  void on_corruption(const Status&) override { ++told; }

  std::uint64_t told = 0;
};

// Files that are missing, cut or overwritten when a process opens the store, and sectors or whole
// segments of its log: the store opens, names each damage, answers damaged for what is lost, never
// an older version, and for everything else exactly what was written. Erasures are done all the
// same: nothing of what they took is on the drives, and nothing of it comes back.
class LostFilesLife {
 public:
  explicit LostFilesLife(std::uint64_t seed) : random_(seed), executor_(seed) {
    options_.metadata_directory = "/m/store";
    options_.values_directory = "/v/store";
    options_.memory_limit_bytes = 8u << 20;
    options_.memtable_bytes = 8u << 10;
    options_.wal_segment_bytes = 64u << 10;
    options_.wal_limit_bytes = 4 * options_.wal_segment_bytes;
    options_.coalesce_threshold_bytes = 512;
    options_.group_bytes = 1024;
    options_.removal = Removal::Overwrite;
    disk_.keep_freed();
    if (seed % 3 == 1) options_.encryption = MasterKeys{SecretKey{1}};
  }
  ~LostFilesLife() { close(); }

  std::string run() {
    std::string broken = open();
    if (broken.empty()) broken = work();
    for (int process = 1; broken.empty() && process < kLostProcesses; ++process) {
      close();
      log_is_hit_ = false;
      for (std::uint64_t left = 1 + random_.below(2); left > 0; --left) damage();
      broken = open();
      if (broken.empty()) broken = compare();
      if (broken.empty()) broken = work();
      if (broken.empty()) broken = compare();
    }
    if (!broken.empty()) broken += " (" + done_ + ")";
    return broken;
  }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t read() const { return read_; }

 private:
  std::string open() {
    auto opened = Engine::open(options_, {disk_, clock_, random_, executor_, listener_});
    if (!opened.ok()) return "the store does not open: " + opened.status().to_string();
    engine_ = *std::move(opened);
    const auto found = engine_->find_namespace("data");
    const auto made =
        found.ok() ? Result<NamespaceId>(found->id) : engine_->create_namespace("data", {});
    if (!made.ok()) return "no namespace: " + made.status().to_string();
    data_ = *made;
    return "";
  }
  void close() {
    engine_.reset();
    executor_.drop_all();
  }

  std::string work() {
    for (int step = 0; step < kLostSteps; ++step) {
      clock_.advance(300'000'000);
      executor_.advance(300'000'000);
      Status status;
      switch (random_.below(12)) {
        case 0: status = engine_->flush(); break;
        case 1:
          // What it comes to may be damaged: then it says so, and the rest is merged.
          if (random_.below(3) == 0) {
            status = engine_->compact({data_}, {});
            if (status.code() == StatusCode::Corruption) status = ok();
          }
          break;
        case 2: executor_.run_all(); break;
        case 3:
          if (random_.below(3) == 0) {
            if (const std::string broken = erase(); !broken.empty()) return broken;
            break;
          }
          status = write();
          break;
        default: status = write(); break;
      }
      if (!status.ok()) return "a damaged store does not work: " + status.to_string();
    }
    return "";
  }

  Bytes draw_key() {
    return "a-key-of-some-length-" + std::to_string(100 + random_.below(kLostKeys));
  }

  Status write() {
    WriteBatch batch;
    const Bytes key = draw_key();
    const Bytes value = lost_value_of(key, ++last_number_);
    batch.put(data_, key, value);
    model_[key] = value;
    if (random_.below(4) == 0) {
      const Bytes other = draw_key();
      batch.remove(data_, other);
      model_[other] = std::nullopt;
    }
    return engine_->write(batch, random_.below(3) == 0 ? Durability::Sync : Durability::Async);
  }

  std::string erase() {
    const Bytes key = draw_key();
    WriteBatch batch;
    batch.erase_range(data_, key, key + '\0');
    if (const Status status = engine_->write(batch, Durability::Sync); !status.ok())
      return "an erasure is not written: " + status.to_string();
    if (const auto erased = engine_->erase(); !erased.ok())
      return "an erasure fails: " + erased.status().to_string();
    model_[key] = std::nullopt;
    erased_up_to_[key] = last_number_;
    if (const std::string path = disk_.find_bytes({key + '#'}); !path.empty())
      return path + " holds erased " + key;
    return "";
  }
  bool was_erased(const Bytes& key, const Bytes& value) const {
    const auto found = erased_up_to_.find(key);
    return found != erased_up_to_.end() &&
           std::stoull(value.substr(key.size() + 1)) <= found->second;
  }

  // One thing of one file.
  void damage() {
    std::vector<std::string> paths;
    for (const auto& [path, contents] : disk_.durable_contents()) {
      const bool is_state = path.find("MANIFEST") != std::string::npos ||
                            path.find("KEYS") != std::string::npos || path.ends_with("LOCK") ||
                            path.ends_with("RESERVE");
      if (!is_state && disk_.exists(path) && !contents.empty()) paths.push_back(path);
    }
    if (paths.empty()) return;
    const std::string path = paths[random_.below(paths.size())];
    Bytes contents = disk_.contents(path);
    const bool is_log = path.find("/wal/") != std::string::npos;
    // A file with a copy has one of both damaged at a time.
    const bool has_copy =
        path.find("CURRENT") != std::string::npos || path.find("IDENTITY") != std::string::npos;
    if (has_copy && !hit_.insert(path.substr(0, path.find('.'))).second) return;
    const std::uint64_t kind = is_log && random_.below(4) > 0 ? 3 : random_.below(is_log ? 1 : 4);
    done_ += path + " " + std::to_string(kind) + ", ";
    if (kind == 0) {
      log_is_hit_ = log_is_hit_ || is_log;
      // Its blocks are not the store's to wipe.
      disk_.set_contents(path, Bytes(contents.size(), '\0'));
      static_cast<void>(disk_.remove_file(path).ok());
      return;
    }
    if (kind == 1) contents.resize(random_.below(contents.size()));
    if (kind == 2) contents.assign(contents.size(), '\0');
    if (kind == 3) {
      const std::size_t used = contents.find_last_not_of('\0');
      const std::size_t sector = used == Bytes::npos ? 0 : random_.below(used / 512 + 1);
      // The head has one copy of both damaged at a time.
      if (is_log && sector < 2 && !hit_.insert(path + "head").second) return;
      const std::size_t begin = sector * 512;
      const std::size_t size = std::min<std::size_t>(512, contents.size() - begin);
      contents.replace(begin, size, Bytes(size, static_cast<char>(random_.below(2) * 0x5a)));
      log_is_hit_ = log_is_hit_ || is_log;
    }
    disk_.set_contents(path, contents);
  }

  bool is_named(const Bytes& key) const {
    for (const DamagedFile& file : engine_->damaged_files()) {
      if (file.more_lost_ranges > 0) return true;
      for (const LostRange& range : file.lost)
        if (range.namespace_id == data_ && range.first <= key &&
            (!range.last || key <= *range.last))
          return true;
    }
    return false;
  }
  bool log_is_named() const {
    const auto files = engine_->damaged_files();
    return std::any_of(files.begin(), files.end(),
                       [](const DamagedFile& file) { return file.layer == FileLayer::Log; });
  }

  std::string compare() {
    // What the log has lost nobody can tell: then anything that was written for the key counts, and
    // what is there is what counts from then on.
    const bool lost_log = log_is_hit_ && log_is_named();
    std::map<Bytes, std::optional<Bytes>> seen;
    for (auto& [key, value] : model_) {
      const std::uint64_t told_before = listener_.told;
      const auto got = engine_->get(data_, key, {});
      if (got.ok() || got.status().code() == StatusCode::NotFound) {
        ++read_;
        const std::optional<Bytes> now = got.ok() ? std::optional<Bytes>(*got) : std::nullopt;
        if (now != value && !lost_log)
          return key + " reads as " + (now ? now->substr(0, 40) : Bytes("nothing")) + ", not as " +
                 (value ? value->substr(0, 40) : Bytes("nothing"));
        if (now && now->substr(0, key.size() + 1) != key + "#") return key + " has another's value";
        if (now && was_erased(key, *now)) return key + " comes back: " + now->substr(0, 40);
        value = now;
        continue;
      }
      ++lost_;
      if (got.status().code() != StatusCode::Corruption)
        return key + ": " + got.status().to_string();
      // What was damaged in its place is found when somebody comes to it.
      if (!is_named(key) && listener_.told == told_before)
        return key + " is damaged, and nobody names it";
    }
    log_is_hit_ = false;
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      const std::string broken = scan(direction);
      if (!broken.empty()) return broken;
    }
    return "";
  }

  std::string scan(Direction direction) {
    std::vector<DamagedKeys> damage;
    ReadOptions options;
    options.direction = direction;
    options.on_damage = [&](const DamagedKeys& keys) { damage.push_back(keys); };
    const auto at = engine_->scan(data_, {}, options);
    if (!at.ok()) return "a scan fails: " + at.status().to_string();
    std::map<Bytes, Bytes> seen;
    for (; (*at)->valid(); (*at)->next()) {
      const Bytes key((*at)->key());
      if (!seen.emplace(key, Bytes((*at)->value())).second) return "a scan shows " + key + " twice";
    }
    if (!(*at)->status().ok()) return "a scan ends: " + (*at)->status().to_string();
    for (const auto& [of, value] : model_) {
      const Bytes& key = of;  // which a lambda may take
      const auto found = seen.find(key);
      const std::optional<Bytes> now =
          found == seen.end() ? std::nullopt : std::optional<Bytes>(found->second);
      if (now == value) continue;
      const bool is_told = std::any_of(damage.begin(), damage.end(), [&](const DamagedKeys& each) {
        return each.first <= key && (!each.last || key <= *each.last);
      });
      if (now || !is_told) return "a scan shows " + (now ? *now : "nothing of " + key);
    }
    return "";
  }

  MemoryFileSystem disk_{{"/m", "/v"}};
  ManualClock clock_;
  SeededRandom random_;
  ManualExecutor executor_;
  Told listener_;
  Options options_;
  std::unique_ptr<Engine> engine_;
  NamespaceId data_ = 0;
  std::map<Bytes, std::optional<Bytes>> model_;
  std::map<Bytes, std::uint64_t> erased_up_to_;  // by key: the last number before an erasure
  std::set<std::string> hit_;
  std::string done_;
  bool log_is_hit_ = false;
  std::uint64_t last_number_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace

TEST_CASE("crash: a store with files missing at open names what is lost and is whole besides") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(150, 8);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  std::uint64_t read = 0, lost = 0;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    LostFilesLife life(seed);
    const std::string broken = life.run();
    CHECK_MESSAGE(broken.empty(), "seed " << seed << ": " << broken);
    read += life.read();
    lost += life.lost();
  }
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return;
  MESSAGE(read << " keys read, " << lost << " of them lost");
  CHECK(read > 50 * lives);
  CHECK(lost > lives / 4);
}

}  // namespace edgecase::test
