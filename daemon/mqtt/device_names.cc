#include "mqtt/device_names.h"

#include <utility>

namespace edgecase::mqtt {

Result<NamespaceId> open_record_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kMqttNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  return engine.create_namespace(kMqttNamespace, options);
}

namespace {

constexpr char kNameRecordKind = 'D';
constexpr char kNameRecordVersion = 1;
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kHashDigits = 12;

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes.substr(0, kNumberBytes)) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

std::uint64_t number_of(const auth::Pseudonym& pseudonym) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    number = number << 8 | static_cast<unsigned char>(pseudonym[i]);
  }
  return number;
}

std::string record_part(char first, std::uint64_t number) {
  std::string bytes(1, first);
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string hash_text(std::uint64_t number) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "~";
  for (std::size_t i = 0; i < kHashDigits; ++i) text += kHex[number >> (60 - 4 * i) & 15];
  return text;
}

}  // namespace

Result<std::unique_ptr<DeviceNames>> DeviceNames::open(Engine& engine, Random& random) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, open_record_namespace(engine));
  EC_ASSIGN_OR_RETURN(auth::Pseudonyms pseudonyms, auth::Pseudonyms::load(engine, random));
  std::unique_ptr<DeviceNames> names(new DeviceNames(engine, id, std::move(pseudonyms)));
  EC_TRY(names->load());
  return names;
}

Status DeviceNames::load() {
  KeyRange range;
  range.lower = Bytes(1, kNameRecordKind);
  range.upper = Bytes(1, kNameRecordKind + 1);
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each, engine_.scan(namespace_id_, range, {}));
  const MutexLock lock(mutex_);
  for (; each->valid() && levels_of_.size() < kNamesMax; each->next()) {
    const std::string_view key = each->key(), value = each->value();
    // What cannot be read is as if nobody had the name yet.
    if (key.size() != 1 + kNumberBytes || value.size() != 1 + kNumberBytes) continue;
    if (value[0] == kNameRecordVersion)
      levels_of_[number_of(key.substr(1))] = number_of(value.substr(1));
  }
  return each->status();
}

DeviceNames::Named DeviceNames::name_of(std::string_view namespace_name, std::string_view wanted,
                                        std::string_view levels) {
  const std::uint64_t name = number_of(pseudonyms_.of_text("mqtt device", namespace_name, wanted));
  const std::uint64_t of_levels =
      number_of(pseudonyms_.of_text("mqtt device levels", namespace_name, levels));
  Named named;
  named.name = wanted;
  const MutexLock lock(mutex_);
  const auto found = levels_of_.find(name);
  if (found != levels_of_.end()) {
    if (found->second != of_levels) named.name += hash_text(of_levels);
    return named;
  }
  if (levels_of_.size() == kNamesMax) return named;
  named.is_new = true;
  named.name_number = name;
  named.levels_number = of_levels;
  named.key = record_part(kNameRecordKind, name);
  named.value = record_part(kNameRecordVersion, of_levels);
  return named;
}

void DeviceNames::keep(const Named& named) {
  if (!named.is_new) return;
  const MutexLock lock(mutex_);
  levels_of_.emplace(named.name_number, named.levels_number);
}

}  // namespace edgecase::mqtt
