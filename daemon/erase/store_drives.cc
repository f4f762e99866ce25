#include "erase/store_drives.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "wire/big_endian.h"

namespace edgecase::erase {
namespace {

using Json = nlohmann::json;

constexpr char kDriveRecord = 'O';
constexpr int kDriveRecordVersion = 1;

Bytes drive_key(std::uint64_t id) {
  Bytes key(1, kDriveRecord);
  wire::append_big_endian(id, key);
  return key;
}

std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

const char* level_name(ErasureLevel level) {
  switch (level) {
    case ErasureLevel::Physical: return "physical";
    case ErasureLevel::Cryptographic: return "cryptographic";
    case ErasureLevel::Logical: break;
  }
  return "logical";
}

const char* overwrites_name(Overwrites overwrites) {
  switch (overwrites) {
    case Overwrites::InPlace: return "in-place";
    case Overwrites::Elsewhere: return "elsewhere";
    case Overwrites::Unknown: break;
  }
  return "unknown";
}

std::string obstacle_of(const StoreDrives& drives) {
  std::string text;
  struct Drive {
    const char* name;
    const DriveFacts& facts;
  };
  for (const auto& [name, facts] :
       {Drive{"metadata", drives.metadata}, Drive{"values", drives.values}}) {
    if (facts.overwrites == Overwrites::InPlace) continue;
    text += (text.empty() ? "the " : "; the ") + std::string(name) + " drive: " + facts.why;
  }
  return text;
}

StoreDrives worse_of(const StoreDrives& one, const StoreDrives& other) {
  const auto worse = [](const DriveFacts& before, const DriveFacts& now) {
    return now.overwrites == Overwrites::InPlace ? before : now;
  };
  return {worse(one.metadata, other.metadata), worse(one.values, other.values)};
}

Result<std::unique_ptr<DriveWatch>> DriveWatch::open(Engine& engine, NamespaceId records,
                                                     Look look) {
  std::unique_ptr<DriveWatch> watch(new DriveWatch(engine, records, std::move(look)));
  const MutexLock lock(watch->mutex_);
  const Bytes first(1, kDriveRecord), behind(1, kDriveRecord + 1);
  EC_ASSIGN_OR_RETURN(const auto iterator, engine.scan(records, {first, behind}, {}));
  for (; iterator->valid(); iterator->next()) {
    const Json json = Json::parse(iterator->value(), nullptr, false);
    if (iterator->key().size() != drive_key(0).size() || !json.is_object())
      return corruption("what is remembered of a drive is malformed");
    if (json.value("version", Json()) != kDriveRecordVersion)
      return unsupported(
          "what is remembered of a drive was written by a newer version of EdgeCase");
    const Json why = json.value("why", Json());
    watch->bad_.emplace(wire::read_big_endian(iterator->key().substr(1)),
                        why.is_string() ? why.get<std::string>() : std::string());
  }
  EC_TRY(iterator->status());
  return watch;
}

void DriveWatch::judge(DriveFacts& facts) {
  const auto found = bad_.find(facts.id);
  if (facts.overwrites == Overwrites::InPlace && found != bad_.end()) {
    facts.overwrites = Overwrites::Elsewhere;
    facts.why =
        "it overwrites in place now, and may still hold what was overwritten when it did "
        "not: then " +
        found->second;
  }
  if (facts.overwrites != Overwrites::Elsewhere || facts.id == 0 || found != bad_.end()) return;
  if (bad_.size() >= kDrivesRememberedMax) return;
  WriteBatch batch;
  batch.put(records_, drive_key(facts.id),
            Json({{"version", kDriveRecordVersion},
                  {"file_system", facts.file_system},
                  {"why", facts.why}})
                .dump(-1, ' ', false, Json::error_handler_t::replace));
  // Where nothing can be written now, nothing new lies there either; the next look tries again.
  if (engine_.write(batch, Durability::Sync).ok()) bad_.emplace(facts.id, facts.why);
}

StoreDrives DriveWatch::look() {
  const MutexLock lock(mutex_);
  StoreDrives drives;
  if (look_) {
    drives = look_();
  } else {
    drives.metadata.overwrites = drives.values.overwrites = Overwrites::InPlace;
  }
  judge(drives.metadata);
  judge(drives.values);
  last_ = drives;
  looked_ns_ = steady_ns();
  return drives;
}

StoreDrives DriveWatch::last() {
  {
    const MutexLock lock(mutex_);
    if (looked_ns_ != 0 && steady_ns() - looked_ns_ < kDriveFactsKeptNs) return last_;
  }
  return look();
}

}  // namespace edgecase::erase
