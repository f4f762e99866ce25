#include "erase/erase_service.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "wire/reading.h"

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

namespace {

using Json = nlohmann::json;

constexpr int kCertificateVersion = 1;

template <typename Number>
std::optional<Number> optional_number(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::nullopt;
  return found->get<Number>();
}

std::optional<ErasureLevel> level_of_name(const std::string& name) {
  for (const ErasureLevel level :
       {ErasureLevel::Logical, ErasureLevel::Cryptographic, ErasureLevel::Physical})
    if (name == level_name(level)) return level;
  return std::nullopt;
}

}  // namespace

std::string encode_certificate(const Certificate& certificate) {
  Json json = {{"version", kCertificateVersion},
               {"number", certificate.number},
               {"done", certificate.state == ErasureState::Done},
               {"asked", certificate.asked_ns},
               {"invisible", certificate.invisible_ns},
               {"gone", certificate.gone_ns},
               {"by", certificate.asked_by},
               {"with_names", certificate.with_names},
               {"devices", certificate.devices},
               {"series", certificate.series},
               {"rules", certificate.rules},
               {"messages", certificate.messages},
               {"device_pseudonyms", certificate.device_pseudonyms},
               {"series_pseudonyms", certificate.series_pseudonyms},
               {"owner_pseudonym", certificate.owner_pseudonym},
               {"removed_files", certificate.removed_files},
               {"overwritten_bytes", certificate.overwritten_bytes},
               {"rewritten_bytes", certificate.rewritten_bytes}};
  if (certificate.windows != 0) json["windows"] = certificate.windows;
  if (certificate.destroyed_keys != 0) json["destroyed_keys"] = certificate.destroyed_keys;
  if (certificate.level) json["level"] = level_name(*certificate.level);
  if (!certificate.level_why.empty()) json["level_why"] = certificate.level_why;
  if (certificate.from_ns) json["from"] = *certificate.from_ns;
  if (certificate.to_ns) json["to"] = *certificate.to_ns;
  if (certificate.readings) json["readings"] = *certificate.readings;
  if (certificate.bytes) json["bytes"] = *certificate.bytes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Certificate> decode_certificate(ByteView record) {
  // A field that is missing or of another kind is what the library throws at.
  try {
    const Json json = Json::parse(record);
    if (json.at("version") != kCertificateVersion)
      return unsupported("a certificate of erasure was written by a newer version of EdgeCase");
    Certificate certificate;
    certificate.number = json.at("number");
    certificate.state = json.at("done") ? ErasureState::Done : ErasureState::Pending;
    certificate.asked_ns = json.at("asked");
    certificate.invisible_ns = json.at("invisible");
    certificate.gone_ns = json.at("gone");
    certificate.asked_by = json.at("by");
    certificate.with_names = json.at("with_names");
    certificate.devices = json.at("devices");
    certificate.series = json.at("series");
    certificate.rules = json.at("rules");
    certificate.messages = json.at("messages");
    certificate.device_pseudonyms = json.at("device_pseudonyms");
    certificate.series_pseudonyms = json.at("series_pseudonyms");
    certificate.owner_pseudonym = json.at("owner_pseudonym");
    certificate.removed_files = json.at("removed_files");
    certificate.overwritten_bytes = json.at("overwritten_bytes");
    certificate.rewritten_bytes = json.at("rewritten_bytes");
    certificate.windows = json.value("windows", std::uint64_t{0});
    certificate.destroyed_keys = json.value("destroyed_keys", std::uint64_t{0});
    if (const auto level = json.find("level"); level != json.end()) {
      certificate.level = level_of_name(*level);
      if (!certificate.level) return corruption("a certificate of erasure has an unknown level");
    }
    certificate.level_why = json.value("level_why", std::string());
    certificate.from_ns = optional_number<std::int64_t>(json, "from");
    certificate.to_ns = optional_number<std::int64_t>(json, "to");
    certificate.readings = optional_number<std::uint64_t>(json, "readings");
    certificate.bytes = optional_number<std::uint64_t>(json, "bytes");
    return certificate;
  } catch (const Json::exception&) {
    return corruption("a certificate of erasure is malformed");
  }
}

// As many hexadecimal digits as it has room for.
CertificateIndex::Tag CertificateIndex::tag_of(std::string_view pseudonym) {
  Tag tag = 0;
  for (const char digit : pseudonym.substr(0, 2 * sizeof(Tag))) {
    const auto value = static_cast<Tag>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    tag = tag << 4 | (value & 15);
  }
  return tag;
}

bool CertificateIndex::may_name(const Entry& entry, std::string_view pseudonym) {
  if (pseudonym.empty() || entry.count > kTagsMax) return true;
  const auto end = entry.tags.begin() + entry.count;
  return std::find(entry.tags.begin(), end, tag_of(pseudonym)) != end;
}

void CertificateIndex::add(const Certificate& certificate) {
  Entry entry;
  entry.number = certificate.number;
  const auto note = [&entry](std::string_view pseudonym) {
    if (entry.count < kTagsMax) entry.tags[entry.count] = tag_of(pseudonym);
    ++entry.count;
  };
  for (const std::string& each : certificate.device_pseudonyms) note(each);
  if (!certificate.owner_pseudonym.empty()) note(certificate.owner_pseudonym);
  entries_.push_back(entry);
}

void CertificateIndex::remove_below(std::uint64_t number) {
  while (!entries_.empty() && entries_.front().number < number) entries_.pop_front();
}

std::optional<std::uint64_t> CertificateIndex::newest_below(std::uint64_t before,
                                                            std::string_view device,
                                                            std::string_view owner) const {
  auto at = std::lower_bound(
      entries_.begin(), entries_.end(), before,
      [](const Entry& entry, std::uint64_t number) { return entry.number < number; });
  while (at != entries_.begin()) {
    --at;
    if (may_name(*at, device) && may_name(*at, owner)) return at->number;
  }
  return std::nullopt;
}

}  // namespace edgecase::erase
