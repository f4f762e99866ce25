#include "forward/erasures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "auth/hashing.h"
#include "erase/erase_service.h"
#include "forward/records.h"
#include "forward/summaries.h"

namespace edgecase::forward {
namespace {

using Json = nlohmann::json;

constexpr int kErasureVersion = 2, kVersionWithoutNumbers = 1;
constexpr std::uint8_t kDeviceFlag = 1, kOfDeviceFlag = 2, kGoneFlag = 4, kNumbersFlag = 8;
constexpr ErasureStep kSteps[] = {ErasureStep::Waiting, ErasureStep::Requested,
                                  ErasureStep::Confirmed, ErasureStep::NotProvable,
                                  ErasureStep::NotPossible};

Bytes chunk_key(std::uint64_t number, std::uint32_t chunk) {
  Bytes key = key_of(kNames, number);
  append_number(chunk, key);
  return key;
}

void append_text(std::string_view text, Bytes& out) {
  append_number(static_cast<std::uint32_t>(text.size()), out);
  out += text;
}

bool take_text(ByteView& bytes, std::string& text) {
  std::uint32_t size = 0;
  if (!take_number(bytes, size) || size > bytes.size()) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

void append_name(const ErasedName& name, Bytes& out) {
  append_number(static_cast<std::uint8_t>(
                    (name.is_device ? kDeviceFlag : 0) | (name.is_of_device ? kOfDeviceFlag : 0) |
                    (name.is_gone ? kGoneFlag : 0) | (name.id.sensor != 0 ? kNumbersFlag : 0)),
                out);
  for (const std::string* each : {&name.namespace_name, &name.device, &name.sensor, &name.identity})
    append_text(*each, out);
  if (name.id.sensor == 0) return;
  append_number(name.id.namespace_id, out);
  append_number(name.id.device, out);
  append_number(name.id.sensor, out);
}

Result<std::vector<ErasedName>> decode_names(ByteView bytes) {
  std::vector<ErasedName> names;
  while (!bytes.empty()) {
    ErasedName& name = names.emplace_back();
    std::uint8_t flags = 0;
    if (!take_number(bytes, flags) || !take_text(bytes, name.namespace_name) ||
        !take_text(bytes, name.device) || !take_text(bytes, name.sensor) ||
        !take_text(bytes, name.identity)) {
      return corruption("the names of an erasure are cut");
    }
    if ((flags & kNumbersFlag) != 0 &&
        (!take_number(bytes, name.id.namespace_id) || !take_number(bytes, name.id.device) ||
         !take_number(bytes, name.id.sensor))) {
      return corruption("the names of an erasure are cut");
    }
    name.is_device = (flags & kDeviceFlag) != 0;
    name.is_of_device = (flags & kOfDeviceFlag) != 0;
    name.is_gone = (flags & kGoneFlag) != 0;
  }
  return names;
}

}  // namespace

const char* step_name(ErasureStep step) {
  switch (step) {
    case ErasureStep::Waiting: return "waiting";
    case ErasureStep::Requested: return "requested";
    case ErasureStep::Confirmed: return "confirmed";
    case ErasureStep::NotProvable: return "not provable";
    case ErasureStep::NotPossible: break;
  }
  return "not possible";
}

bool WatchedTarget::takes(const std::string& namespace_name, const std::string& device,
                          const std::string& sensor) const {
  return !selections || std::any_of(selections->begin(), selections->end(), [&](const auto& each) {
    return (each.namespace_name == "*" || each.namespace_name == namespace_name) &&
           each.selector.matches(device, sensor);
  });
}

bool WatchedTarget::takes_device(const std::string& namespace_name,
                                 const std::string& device) const {
  return !selections || std::any_of(selections->begin(), selections->end(), [&](const auto& each) {
    return (each.namespace_name == "*" || each.namespace_name == namespace_name) &&
           each.selector.sensor == "*" && wire::glob_matches(each.selector.device, device);
  });
}

bool WatchedTarget::may_take_device(const std::string& namespace_name,
                                    const std::string& device) const {
  return !selections || std::any_of(selections->begin(), selections->end(), [&](const auto& each) {
    return (each.namespace_name == "*" || each.namespace_name == namespace_name) &&
           wire::glob_matches(each.selector.device, device);
  });
}

// Writes names ahead, a chunk after another. One erasure.
class Erasures::ChunkWriter {
 public:
  ChunkWriter(Engine& engine, NamespaceId id, std::uint64_t number, const Bytes& key)
      : engine_(engine), id_(id), number_(number), key_(key) {}

  Status add(const ErasedName& name) {
    append_name(name, text_);
    if (++count_ < kNamesPerChunk && text_.size() < kChunkBytes) return ok();
    return end();
  }
  // Errors: the engine's.
  Status end() {
    if (count_ == 0) return ok();
    WriteBatch batch;
    batch.put(id_, chunk_key(number_, chunks_), auth::seal(key_, chunks_, text_));
    batch.set_makes_room();
    EC_TRY(engine_.write(batch, Durability::Async));
    ++chunks_;
    count_ = 0;
    text_.clear();
    return ok();
  }
  std::uint32_t chunks() const { return chunks_; }

 private:
  Engine& engine_;
  const NamespaceId id_;
  const std::uint64_t number_;
  const Bytes& key_;
  Bytes text_;
  std::size_t count_ = 0;
  std::uint32_t chunks_ = 0;
};

// Names of an erasure, for those of the targets that may hold them.
class Erasures::Planning {
 public:
  Planning(const std::vector<WatchedTarget>& targets, ChunkWriter& writer)
      : targets_(targets), writer_(writer), is_concerned_(targets.size(), false) {}

  Status add_device(std::string of_namespace, std::string device) {
    ErasedName name{.is_device = true};
    name.namespace_name = std::move(of_namespace);
    name.device = std::move(device);
    return add(name);
  }
  Status add_series(const catalog::SeriesEntry& series, bool is_of_device) {
    const auto identity = catalog::identity_of(series);
    return add({.is_of_device = is_of_device,
                .namespace_name = series.namespace_name,
                .device = series.device,
                .sensor = series.sensor,
                .identity = identity.ok() ? wire::encode_identity(*identity) : Bytes(),
                .id = series.id});
  }
  Status add_gone(const erase::GoneName& name) {
    return add({.is_device = name.sensor.empty(),
                .is_gone = true,
                .namespace_name = name.namespace_name,
                .device = name.device,
                .sensor = name.sensor});
  }
  // Targets that may hold some of them.
  std::vector<TargetErasure> waiting() const {
    std::vector<TargetErasure> waiting;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      if (is_concerned_[i]) waiting.push_back({.target = targets_[i].name});
    }
    return waiting;
  }

 private:
  Status add(const ErasedName& name) {
    bool is_any = false;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const WatchedTarget& one = targets_[i];
      const bool takes = name.is_device ? one.may_take_device(name.namespace_name, name.device)
                                        : one.takes(name.namespace_name, name.device, name.sensor);
      if (takes) is_any = is_concerned_[i] = true;
    }
    return is_any ? writer_.add(name) : ok();
  }

  const std::vector<WatchedTarget>& targets_;
  ChunkWriter& writer_;
  std::vector<bool> is_concerned_;
};

std::string Erasures::encode(const Entry& entry) {
  const ErasureOrder& order = entry.order;
  Json targets = Json::array();
  for (const TargetErasure& each : entry.targets) {
    targets.push_back({{"name", each.target},
                       {"step", step_name(each.step)},
                       {"why", each.why},
                       {"certificates", each.certificates},
                       {"answered", each.answered_ns}});
    if (each.lifts) targets.back()["lifts"] = true;
  }
  Json json = {{"version", kErasureVersion},
               {"asked", order.asked_ns},
               {"all", order.has_all_times},
               {"from", order.range.from_ns},
               {"copies", order.fence == erase::FenceKind::Copies},
               {"chunks", order.chunks},
               {"targets", std::move(targets)}};
  if (order.range.to_ns) json["to"] = *order.range.to_ns;
  if (order.fence_to_ns) json["fence_to"] = *order.fence_to_ns;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Erasures::Entry> Erasures::decode(std::uint64_t number, ByteView value) {
  // A field that is missing or of another kind is what the library throws at.
  try {
    const Json json = Json::parse(value);
    if (json.at("version") < kVersionWithoutNumbers || json.at("version") > kErasureVersion)
      return unsupported("an erasure that travels was written by a newer version of EdgeCase");
    Entry entry;
    ErasureOrder& order = entry.order;
    order.number = number;
    order.asked_ns = json.at("asked");
    order.has_all_times = json.at("all");
    order.range.from_ns = json.at("from");
    order.fence = json.at("copies") ? erase::FenceKind::Copies : erase::FenceKind::Lasting;
    order.chunks = json.at("chunks");
    if (json.contains("to")) order.range.to_ns = json.at("to").get<std::int64_t>();
    if (json.contains("fence_to")) order.fence_to_ns = json.at("fence_to").get<std::int64_t>();
    for (const Json& each : json.at("targets")) {
      TargetErasure& target = entry.targets.emplace_back();
      target.target = each.at("name");
      const std::string step = each.at("step");
      const auto* const found =
          std::find_if(std::begin(kSteps), std::end(kSteps),
                       [&step](ErasureStep one) { return step == step_name(one); });
      if (found == std::end(kSteps)) return corruption("an erasure that travels is malformed");
      target.step = *found;
      target.why = each.at("why");
      target.certificates = each.at("certificates").get<std::vector<std::uint64_t>>();
      target.answered_ns = each.at("answered");
      target.lifts = each.contains("lifts") && each.at("lifts").get<bool>();
    }
    return entry;
  } catch (const Json::exception&) {
    return corruption("an erasure that travels is malformed");
  }
}

Result<std::unique_ptr<Erasures>> Erasures::open(Engine& engine, Records& records, Random& random,
                                                 Clock& clock) {
  std::unique_ptr<Erasures> erasures(new Erasures(engine, records, random, clock));
  EC_TRY(erasures->load());
  return erasures;
}

Status Erasures::load() {
  const NamespaceId id = records_.id();
  if (id == 0) return ok();
  std::set<std::uint64_t> known;
  const catalog::KeySpan orders = catalog::span_of_prefix(id, Bytes(1, kOrders));
  // Damage does not stop a start.
  ReadOptions options = uncached();
  options.on_damage = [this](const DamagedKeys&) { is_damaged_ = true; };
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(id, {orders.lower, orders.upper}, options));
  const MutexLock lock(mutex_);
  for (; each->valid(); each->next()) {
    const std::uint64_t number = wire::read_big_endian(each->key().substr(1));
    Result<Entry> decoded = decode(number, each->value());
    known.insert(number);
    if (decoded.status().code() == StatusCode::Corruption) {
      is_damaged_ = true;
      continue;
    }
    EC_ASSIGN_OR_RETURN(Entry entry, std::move(decoded));
    if (!is_open(entry.targets)) continue;
    for (TargetErasure& target : entry.targets)
      if (may_be_forgotten(target)) target.step = ErasureStep::Waiting;
    open_.emplace(number, std::move(entry));
  }
  EC_TRY(each->status());
  // Written ahead of erasures that came to nothing.
  WriteBatch batch;
  const catalog::KeySpan names = catalog::span_of_prefix(id, Bytes(1, kNames));
  EC_ASSIGN_OR_RETURN(const auto name, engine_.scan(id, {names.lower, names.upper}, options));
  for (; name->valid() && batch.range_deletes() < kRangeDeletesPerBatchMax; name->next()) {
    const std::uint64_t number = wire::read_big_endian(name->key().substr(1));
    if (known.insert(number).second) erase_all(id, key_of(kNames, number), batch);
  }
  EC_TRY(name->status());
  return batch.count() == 0 ? ok() : engine_.write(batch, Durability::Async);
}

void Erasures::set_targets(std::vector<WatchedTarget> targets) {
  const MutexLock lock(mutex_);
  targets_ = std::move(targets);
}

std::vector<std::string> Erasures::takers(const std::vector<catalog::SeriesEntry>& series,
                                          bool is_all) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const WatchedTarget& target : targets_) {
    const bool takes = !is_all || std::any_of(series.begin(), series.end(), [&](const auto& each) {
      return target.takes(each.namespace_name, each.device, each.sensor);
    });
    if (takes) names.push_back(target.name);
  }
  return names;
}

bool Erasures::may_hold(const std::string& namespace_name, const std::string& device,
                        const std::string& sensor) const {
  const MutexLock lock(mutex_);
  return std::any_of(targets_.begin(), targets_.end(), [&](const WatchedTarget& each) {
    return sensor.empty() ? each.may_take_device(namespace_name, device)
                          : each.takes(namespace_name, device, sensor);
  });
}

Status Erasures::tell_kept(const catalog::Catalog& catalog, const erase::EraseTarget& target,
                           erase::TimeRange range, const catalog::SpanTaker& take) const {
  return summaries_ == nullptr ? ok() : summaries_->tell_erased(catalog, target, range, take);
}

Status Erasures::plan(const erase::PassedErasure& erasure, const catalog::Catalog& catalog,
                      const erase::EraseTarget& target, WriteBatch& batch) {
  std::vector<WatchedTarget> targets;
  {
    const MutexLock lock(mutex_);
    targets = targets_;
    planned_.reset();
  }
  if (targets.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const NamespaceId id, records_.made_id());
  const Bytes key = auth::make_seal_key(random_);
  ChunkWriter writer(engine_, id, erasure.number, key);
  Planning planning(targets, writer);
  if (erasure.has_all_times) {
    for (const catalog::DeviceName& each : target.only_said)
      EC_TRY(planning.add_device(each.namespace_name, each.device));
    for (const erase::EraseTarget::Device& each : target.devices) {
      const auto device = catalog.device_at(each.row);
      if (device.ok()) EC_TRY(planning.add_device(device->namespace_name, device->device));
    }
  }
  for (const catalog::SeriesRow row : target.series) {
    const auto series = catalog.series_at(row);
    if (!series.ok()) continue;
    if (unsent_ != nullptr)
      unsent_->count_leaving(retention::Leaving::Erased, *series, erasure.range.from_ns,
                             erasure.range.to_ns.value_or(INT64_MAX), 1);
    const erase::EraseTarget::Device first{series->id.namespace_id, series->id.device, 0};
    const auto at = std::lower_bound(target.devices.begin(), target.devices.end(), first);
    const bool is_of_device = erasure.has_all_times && at != target.devices.end() &&
                              at->namespace_id == first.namespace_id && at->id == first.id;
    EC_TRY(planning.add_series(*series, is_of_device));
  }
  for (const erase::GoneName& each : target.gone) EC_TRY(planning.add_gone(each));
  EC_TRY(writer.end());
  if (writer.chunks() == 0) return ok();
  Entry entry{.order = {.number = erasure.number,
                        .asked_ns = erasure.asked_ns,
                        .has_all_times = erasure.has_all_times,
                        .range = erasure.range,
                        .fence = erasure.fence,
                        .fence_to_ns = erasure.fence_to_ns,
                        .chunks = writer.chunks()},
              .targets = planning.waiting()};
  batch.put(id, key_of(kKeys, erasure.number), key);
  batch.put(id, key_of(kOrders, erasure.number), encode(entry));
  const MutexLock lock(mutex_);
  // It goes with the certificate of that number.
  if (erasure.number > erase::kCertificatesMax) {
    const std::uint64_t oldest = erasure.number - erase::kCertificatesMax;
    if (!open_.contains(oldest)) batch.remove(id, key_of(kOrders, oldest));
  }
  planned_ = std::move(entry);
  return ok();
}

void Erasures::planned(std::uint64_t number) {
  const MutexLock lock(mutex_);
  if (planned_ && planned_->order.number == number) open_[number] = *std::move(planned_);
  planned_.reset();
}

std::optional<ErasureOrder> Erasures::next(const std::string& target) const {
  const MutexLock lock(mutex_);
  for (const auto& [number, entry] : open_) {
    const auto at = find_target(entry.targets, target);
    if (at != entry.targets.end() && at->step == ErasureStep::Waiting) return entry.order;
  }
  return std::nullopt;
}

std::optional<std::pair<std::uint64_t, TargetErasure>> Erasures::pending_there(
    const std::string& target) const {
  const MutexLock lock(mutex_);
  for (const auto& [number, entry] : open_) {
    const auto at = find_target(entry.targets, target);
    if (at != entry.targets.end() && at->step == ErasureStep::Requested &&
        !at->certificates.empty()) {
      return std::pair(number, *at);
    }
  }
  return std::nullopt;
}

Result<std::vector<ErasedName>> Erasures::names(const ErasureOrder& order,
                                                std::uint32_t chunk) const {
  const NamespaceId id = records_.id();
  EC_ASSIGN_OR_RETURN(const Bytes key, engine_.get(id, key_of(kKeys, order.number), uncached()));
  EC_ASSIGN_OR_RETURN(const Bytes sealed,
                      engine_.get(id, chunk_key(order.number, chunk), uncached()));
  EC_ASSIGN_OR_RETURN(const Bytes text, auth::open_sealed(key, chunk, sealed));
  return decode_names(text);
}

}  // namespace edgecase::forward
