#include "ingest/outcome.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_set>

namespace edgecase::ingest {
namespace {

constexpr unsigned kBlockBits = 6;

std::size_t hash_of(const KeyedHash& hash, const catalog::SeriesId& id, std::uint32_t sensor,
                    std::int64_t time_ns) {
  const std::uint64_t series =
      hash(std::uint64_t{id.device} << 32 | sensor, std::uint64_t{id.namespace_id});
  return static_cast<std::size_t>(hash(series, static_cast<std::uint64_t>(time_ns)));
}

// Whether two readings are of one device, one time and one block of sensors.
bool is_of_one_piece(std::span<const catalog::SeriesId> ids, std::span<const std::int64_t> times,
                     std::size_t a, std::size_t b) {
  return ids[a].sensor >> kBlockBits == ids[b].sensor >> kBlockBits &&
         ids[a].device == ids[b].device && times[a] == times[b] &&
         ids[a].namespace_id == ids[b].namespace_id;
}

}  // namespace

void Outcome::refuse(const wire::Reading& reading, const Status& why) {
  ++of(Loss::Refused);
  if (why.code() == StatusCode::NotAllowed) ++out_of_scope;
  if (refused_code == StatusCode::Ok) refused_code = why.code();
  if (reasons.size() == kReasonsMax) return;
  std::string text = std::string(reading.device) + "/" + std::string(reading.sensor) + ": ";
  text += why.message();
  if (std::find(reasons.begin(), reasons.end(), text) == reasons.end())
    reasons.push_back(std::move(text));
}

// False: a piece has a sensor twice, and the rest is not cut.
bool ReplacedSearch::cut_pieces(std::span<const catalog::SeriesId> ids,
                                std::span<const std::int64_t> times) {
  pieces_.clear();
  std::size_t first = 0;
  std::uint64_t sensors = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (ids[i].sensor & ((1u << kBlockBits) - 1));
    if (!is_of_one_piece(ids, times, first, i)) {
      pieces_.push_back({static_cast<std::uint32_t>(first), sensors});
      first = i;
      sensors = 0;
    }
    if ((sensors & bit) != 0) return false;
    sensors |= bit;
  }
  pieces_.push_back({static_cast<std::uint32_t>(first), sensors});
  return true;
}

// Exact, and by pieces, which are fewer than readings where lines have several fields.
bool ReplacedSearch::is_anything_twice(std::span<const catalog::SeriesId> ids,
                                       std::span<const std::int64_t> times) {
  if (!cut_pieces(ids, times)) return true;
  const std::size_t size = std::bit_ceil(2 * pieces_.size());
  table_.assign(size, 0);
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    const auto [first, sensors] = pieces_[piece];
    std::size_t at = hash_of(hash_, ids[first], ids[first].sensor >> kBlockBits, times[first]);
    for (at &= size - 1; table_[at] != 0; at = (at + 1) & (size - 1)) {
      Piece& other = pieces_[table_[at] - 1];
      if (!is_of_one_piece(ids, times, first, other.first)) continue;
      if ((other.sensors & sensors) != 0) return true;
      other.sensors |= sensors;
      break;
    }
    if (table_[at] == 0) table_[at] = static_cast<std::uint32_t>(piece + 1);
  }
  return false;
}

std::span<const std::uint32_t> ReplacedSearch::find(std::span<const wire::Reading> readings,
                                                    std::span<const catalog::SeriesId> ids,
                                                    std::span<const std::int64_t> times) {
  found_.clear();
  if (readings.size() < 2 || !is_anything_twice(ids, times)) return found_;
  const std::size_t size = std::bit_ceil(2 * readings.size());
  table_.assign(size, 0);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    std::size_t at = hash_of(hash_, ids[i], ids[i].sensor, times[i]) & (size - 1);
    for (; table_[at] != 0; at = (at + 1) & (size - 1)) {
      const std::size_t before = table_[at] - 1;
      if (times[before] != times[i] || !(ids[before] == ids[i])) continue;
      if (!(readings[before].value == readings[i].value))
        found_.push_back(static_cast<std::uint32_t>(before));
      break;
    }
    table_[at] = static_cast<std::uint32_t>(i + 1);
  }
  return found_;
}

void LossLedger::join_others(const Device& device) {
  for (std::size_t i = 0; i < kLosses; ++i) others_[i] += device.counts[i];
}

void LossLedger::forget_names(std::uint64_t generation) {
  if (std::exchange(generation_, generation) == generation) return;
  for (const auto& [key, device] : devices_) join_others(device);
  devices_.clear();
}

void LossLedger::note(Loss loss, const wire::Reading& reading, std::int64_t now_ns,
                      std::uint64_t generation) {
  const auto at = static_cast<std::size_t>(loss);
  totals_[at].fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  forget_names(generation);
  if (loss == Loss::Erased) {
    ++others_[at];
    return;
  }
  std::pair<std::string, std::string> key(reading.namespace_name, reading.device);
  auto found = devices_.find(key);
  if (found == devices_.end()) {
    if (devices_.size() == kDevicesMax) {
      const auto oldest = std::min_element(
          devices_.begin(), devices_.end(),
          [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; });
      join_others(oldest->second);
      devices_.erase(oldest);
    }
    Device device{key.first, key.second, {}, 0};
    found = devices_.emplace(std::move(key), std::move(device)).first;
  }
  ++found->second.counts[at];
  found->second.last_ns = now_ns;
}

LossLedger::Told LossLedger::tell(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  forget_names(generation);
  Told told;
  for (const auto& [key, device] : devices_) told.devices.push_back(device);
  told.others = others_;
  return told;
}

std::optional<LossRecords::Due> LossRecords::note(std::uint64_t pseudonym, Loss cause,
                                                  std::uint64_t readings, std::int64_t now_ns) {
  const auto is_told = [now_ns](const Entry& entry) {
    return entry.told_ns && now_ns - *entry.told_ns < kSpacingNs;
  };
  const MutexLock lock(mutex_);
  auto found = devices_.find(pseudonym);
  if (found == devices_.end() && devices_.size() == kDevicesMax) {
    std::erase_if(devices_, [&](const auto& each) {
      return std::none_of(each.second.begin(), each.second.end(), is_told);
    });
  }
  const bool has_own = found != devices_.end() || devices_.size() < kDevicesMax;
  if (found == devices_.end() && has_own) found = devices_.try_emplace(pseudonym).first;
  Causes& causes = has_own ? found->second : others_;
  Entry& entry = causes[static_cast<std::size_t>(cause)];
  entry.untold += readings;
  if (is_told(entry)) return std::nullopt;
  entry.told_ns = now_ns;
  Due due;
  if (has_own) due.pseudonym = pseudonym;
  due.readings = std::exchange(entry.untold, 0);
  return due;
}

void Losses::append_lost(std::span<const wire::Reading> readings,
                         std::span<const catalog::SeriesId> ids,
                         std::span<const std::int64_t> times, ReplacedSearch& search,
                         std::vector<LostReading>& lost) const {
  const std::span<const std::uint32_t> replaced = search.find(readings, ids, times);
  for (const std::uint32_t place : replaced) lost.push_back({&readings[place], Loss::Replaced});
  const std::int64_t shortest_ns =
      retention_ == nullptr ? kRetentionForever : retention_->shortest_ns();
  if (shortest_ns == kRetentionForever) return;
  // INT64_MIN while no time is known, and rules may be as long as time.
  const std::int64_t now_ns = engine_.expiry_now_ns();
  // Nearly all are younger than anything that expires.
  const auto is_past = [now_ns](std::int64_t time_ns, std::int64_t retention_ns) {
    std::int64_t oldest_ns = 0;
    return retention_ns != kRetentionForever &&
           !__builtin_sub_overflow(now_ns, retention_ns, &oldest_ns) && time_ns < oldest_ns;
  };
  const std::unordered_set<std::uint32_t> counted(replaced.begin(), replaced.end());
  const catalog::SeriesId* last = nullptr;
  std::int64_t retention_ns = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!is_past(times[i], shortest_ns)) continue;
    const wire::Reading& reading = readings[i];
    if (last == nullptr || !(*last == ids[i])) {
      last = &ids[i];
      retention_ns =
          retention_->expiry_ns({std::string(reading.namespace_name), std::string(reading.device),
                                 std::string(reading.sensor), *last});
    }
    if (is_past(times[i], retention_ns) && !counted.contains(static_cast<std::uint32_t>(i)))
      lost.push_back({&reading, Loss::Expired});
  }
}

void Losses::account(const auth::Principal& principal, std::span<const wire::Reading> written,
                     std::span<const LostReading> lost, Outcome& outcome) {
  if (lost.empty()) return;
  for (const LostReading& each : lost) {
    ++outcome.of(each.loss);
    ledger_.note(each.loss, *each.reading, clock_.wall_ns(), catalog_.generation());
  }
  if (audit_ != nullptr) record(principal, written, lost);
}

// The audit log tells of devices of which nothing at all was kept. A full queue is counted there.
void Losses::record(const auth::Principal& principal, std::span<const wire::Reading> written,
                    std::span<const LostReading> lost) {
  struct Sums {
    std::size_t kept = 0;
    LossLedger::Counts lost{};
  };
  const auto key_of = [](const wire::Reading& reading) {
    return std::pair(std::string_view(reading.namespace_name), std::string_view(reading.device));
  };
  std::map<std::pair<std::string_view, std::string_view>, Sums> devices;
  std::unordered_set<const wire::Reading*> gone;
  for (const LostReading& each : lost) {
    ++devices[key_of(*each.reading)].lost[static_cast<std::size_t>(each.loss)];
    gone.insert(each.reading);
  }
  for (const wire::Reading& reading : written) {
    const auto found = devices.find(key_of(reading));
    if (found != devices.end() && !gone.contains(&reading)) ++found->second.kept;
  }
  for (const auto& [key, sums] : devices) {
    if (sums.kept > 0) continue;
    const std::uint64_t pseudonym = audit_->names().of_device(key.first, key.second);
    for (std::size_t i = 0; i < kLosses; ++i) {
      if (sums.lost[i] == 0) continue;
      const auto due =
          records_.note(pseudonym, static_cast<Loss>(i), sums.lost[i], clock_.boot_ns());
      if (!due) continue;
      audit::Record told = audit::record_of(kOperation, principal);
      told.outcome = audit::Outcome::Failed;
      told.detail = kLossNames[i];
      told.count = due->readings;
      told.reaches_more = !due->pseudonym.has_value();
      if (due->pseudonym) {
        told.namespace_name = key.first;
        told.targets = {{*due->pseudonym, due->readings}};
      }
      static_cast<void>(audit_->append(std::move(told)).ok());
    }
  }
}

namespace {

constexpr std::size_t kIndexMin = 64;

}  // namespace

void StoredDevices::add(audit::AuditLog& log, std::span<const wire::Reading> readings,
                        std::span<const catalog::SeriesId> ids, std::span<const Author> authors) {
  std::size_t next_author = 0, author = 0;
  for (std::size_t i = 0; i < ids.size();) {
    while (next_author < authors.size() && authors[next_author].first_reading <= i)
      author = author_of(authors[next_author++]);
    const std::size_t limit = next_author < authors.size()
                                  ? std::min(authors[next_author].first_reading, ids.size())
                                  : ids.size();
    const std::size_t first = i++;
    while (i < limit && ids[i].device == ids[first].device &&
           ids[i].namespace_id == ids[first].namespace_id)
      ++i;
    device_of(log, author, readings[first], ids[first]).target.count += i - first;
  }
}

std::size_t StoredDevices::author_of(const Author& author) {
  const auto [at, is_new] = author_numbers_.try_emplace(author.name, authors_.size() + 1);
  if (is_new) authors_.push_back(author);
  return at->second;
}

StoredDevices::Device& StoredDevices::device_of(audit::AuditLog& log, std::size_t author,
                                                const wire::Reading& reading,
                                                const catalog::SeriesId& id) {
  const auto make = [&]() -> Device& {
    if (namespace_name(id.namespace_id).empty())
      namespaces_.push_back({id.namespace_id, std::string(reading.namespace_name)});
    const std::uint64_t pseudonym =
        log.device_pseudonym(id.namespace_id, id.device, reading.namespace_name, reading.device);
    return devices_.emplace_back(Device{author, id.namespace_id, id.device, {pseudonym, 0}});
  };
  // Messages of many authors are few of each device: drafts() puts these together.
  if (author != 0) return make();
  if (2 * (indexed_ + 1) > index_.size()) make_index_larger();
  std::uint32_t& place = place_of(id.namespace_id, id.device);
  if (place != 0) return devices_[place - 1];
  Device& made = make();
  ++indexed_;
  place = static_cast<std::uint32_t>(devices_.size());
  return made;
}

std::uint32_t& StoredDevices::place_of(NamespaceId namespace_id, std::uint32_t id) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t key = std::uint64_t{namespace_id} << 32 | id;
  for (std::size_t at = key * kOdd >> 32;; ++at) {
    std::uint32_t& place = index_[at % index_.size()];
    if (place == 0) return place;
    const Device& device = devices_[place - 1];
    if (device.id == id && device.namespace_id == namespace_id) return place;
  }
}

void StoredDevices::make_index_larger() {
  index_.assign(std::max(kIndexMin, 2 * index_.size()), 0);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].author != 0) continue;
    place_of(devices_[i].namespace_id, devices_[i].id) = static_cast<std::uint32_t>(i + 1);
  }
}

std::string_view StoredDevices::namespace_name(NamespaceId id) const {
  const auto found = std::find_if(namespaces_.begin(), namespaces_.end(),
                                  [id](const Namespace& each) { return each.id == id; });
  return found == namespaces_.end() ? std::string_view() : found->name;
}

std::vector<audit::Draft> StoredDevices::drafts(const auth::Principal& principal) const {
  std::vector<const Device*> devices;
  devices.reserve(devices_.size());
  for (const Device& device : devices_) devices.push_back(&device);
  const auto is_before = [](const Device* a, const Device* b) { return a->place() < b->place(); };
  if (!std::is_sorted(devices.begin(), devices.end(), is_before))
    std::sort(devices.begin(), devices.end(), is_before);
  std::vector<audit::Draft> drafts;
  std::vector<audit::Target> targets;
  const auto finish = [&](const Device& of) {
    audit::Stored stored{kOperation, principal.name, {}, namespace_name(of.namespace_id)};
    if (of.author > 0) {
      stored.actor = authors_[of.author - 1].name;
      stored.token = authors_[of.author - 1].token;
    } else if (principal.grant != nullptr) {
      stored.token = principal.grant->token_id;
    }
    drafts.push_back(audit::draft_of(stored, targets));
    targets.clear();
  };
  const Device* last = nullptr;
  for (const Device* const device : devices) {
    if (last != nullptr && last->place() == device->place()) {
      targets.back().count += device->target.count;
      continue;
    }
    const bool is_other = last != nullptr && (last->author != device->author ||
                                              last->namespace_id != device->namespace_id ||
                                              targets.size() == audit::kTargetsMax);
    if (is_other) finish(*last);
    last = device;
    targets.push_back(device->target);
  }
  if (last != nullptr) finish(*last);
  return drafts;
}

void StoredDevices::clear() {
  // What one large commit needed is not looked through for each small one.
  if (index_.size() > kIndexMin && 8 * indexed_ < index_.size()) index_.resize(kIndexMin);
  std::fill(index_.begin(), index_.end(), 0);
  indexed_ = 0;
  devices_.clear();
  namespaces_.clear();
  authors_.clear();
  author_numbers_.clear();
}

}  // namespace edgecase::ingest
