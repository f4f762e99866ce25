#include "forward/summaries.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "auth/hashing.h"
#include "wire/json_text.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

using SummaryJson = nlohmann::json;

constexpr char kSummaryKind = 'Y', kPositionKind = 'P';
constexpr std::uint8_t kPositionVersion = 1;
constexpr std::size_t kSummaryHeadBytes = 1 + 4 + 4 + 8;

Bytes hour_key(const catalog::SeriesId& id, std::int64_t hour_ns) {
  Bytes key(1, kSummaryKind);
  append_number(id.namespace_id, key);
  append_number(id.device, key);
  append_number(static_cast<std::uint64_t>(hour_ns) ^ (std::uint64_t{1} << 63), key);
  return key;
}

Bytes whose_target(const std::string& name) {
  return Bytes(1, '\0') + name;
}

ReadOptions unread() {
  ReadOptions options;
  options.fill_cache = false;
  options.on_damage = [](const DamagedKeys&) {};
  return options;
}

KeyRange all_summaries() {
  return {Bytes(1, kSummaryKind), Bytes(1, kSummaryKind + 1)};
}

// Adds the lines of one series; how many.
Result<std::optional<std::uint64_t>> add_series(Engine& engine, const catalog::SeriesId& id,
                                                const HourWish& wish, auth::Sha256& hash) {
  ReadOptions options;
  options.fill_cache = false;
  options.large_value_bytes = Summaries::kLargeBytes;
  std::int64_t end_ns = 0;
  if (__builtin_add_overflow(wish.hour_ns, kSummedHourNs, &end_ns)) end_ns = INT64_MAX;
  const KeyRange keys = erase::range_of_series(id, {std::max(wish.hour_ns, wish.from_ns), end_ns});
  EC_ASSIGN_OR_RETURN(const auto at, engine.scan(id.namespace_id, keys, options));
  wire::ReadingFormatter lines(wire::ReadingFormat::Ndjson);
  std::uint64_t count = 0;
  std::string line;
  for (; at->valid(); at->next()) {
    wire::ReadingKey key;
    if (at->position() <= wish.after || !wire::decode_reading_key(at->key(), key) ||
        wire::is_undated_time(key.time_ns)) {
      continue;
    }
    if (at->position() > wish.upto) return std::optional<std::uint64_t>();
    if (wish.leaves_out) {
      EC_ASSIGN_OR_RETURN(const bool is_out,
                          wish.leaves_out(Place{id.namespace_id, Bytes(at->key())}));
      if (is_out) continue;
    }
    EC_ASSIGN_OR_RETURN(const auto large, at->large_value());
    if (large != nullptr && large->size_bytes() > wish.value_max_bytes) continue;
    line.clear();
    if (large != nullptr) {
      line = ",\"time\":\"" + wire::time_text(key.time_ns) +
             "\",\"bytes\":" + std::to_string(large->size_bytes()) + "}\n";
    } else {
      wire::Reading reading;
      const ByteView value = at->value();
      if (!at->valid()) break;
      if (!wire::decode_value(value, reading.value)) continue;
      reading.time_ns = key.time_ns;
      lines.reading(reading, line);
    }
    hash.add(std::string_view(line).substr(std::min(line.find(",\"time\":\""), line.size())));
    ++count;
  }
  EC_TRY(at->status());
  return std::optional(count);
}

Result<std::int64_t> hour_of(const SummaryJson& summary) {
  EC_ASSIGN_OR_RETURN(const std::int64_t hour_ns,
                      wire::parse_rfc3339_ns(summary.value("hour", "")));
  if (hour_ns % kSummedHourNs != 0) return invalid_argument("the hour of a summary is none");
  return hour_ns;
}

std::string as_text(const SummaryJson& document) {
  return document.dump(-1, ' ', false, SummaryJson::error_handler_t::replace);
}

// Its members have the kinds that they are to have.
constexpr std::array kTexts = {"store", "namespace", "device", "hour", "checksum"};
bool is_summary(const SummaryJson& document) {
  if (!document.is_object() || !document.contains("summary") ||
      !document["summary"].is_number_integer()) {
    return false;
  }
  return document.contains("readings") && document["readings"].is_number_unsigned() &&
         std::all_of(kTexts.begin(), kTexts.end(), [&](const char* name) {
           return document.contains(name) && document[name].is_string();
         });
}

}  // namespace

Result<std::optional<HourSum>> sum_hour(Engine& engine, std::vector<SummedSeries> series,
                                        const HourWish& wish) {
  std::sort(series.begin(), series.end(),
            [](const SummedSeries& a, const SummedSeries& b) { return a.sensor < b.sensor; });
  HourSum sum;
  auth::Sha256 all;
  for (const SummedSeries& each : series) {
    auth::Sha256 hash;
    EC_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> count,
                        add_series(engine, each.id, wish, hash));
    if (!count) return std::optional<HourSum>();
    if (*count == 0) continue;
    sum.readings += *count;
    sum.sensors.push_back(each.sensor);
    const std::string zero(1, '\0');
    all.add(each.sensor + zero + std::to_string(*count) + zero);
    all.add(auth::view_of(hash.finish()));
  }
  sum.checksum = auth::hex_text(auth::view_of(all.finish()));
  return std::optional(std::move(sum));
}

bool is_receipt(const SummaryJson& document) {
  return document.is_object() && document.contains("receipt") && document.contains("summary") &&
         is_summary(document["summary"]);
}

bool confirms(const SummaryJson& receipt) {
  if (!is_receipt(receipt)) return false;
  const SummaryJson& summary = receipt["summary"];
  return receipt.contains("checksum") && receipt["checksum"] == summary["checksum"] &&
         receipt.contains("readings") && receipt["readings"] == summary["readings"];
}

Result<SummaryJson> Summaries::signed_by_us(SummaryJson document) const {
  if (secret_ == nullptr) return unsupported("nothing is signed here");
  EC_ASSIGN_OR_RETURN(const Bytes secret, secret_());
  EC_ASSIGN_OR_RETURN(document[sign::kSignatureMember],
                      sign::signature_of(document, secret, random_));
  return document;
}

Result<SummaryJson> Summaries::summary(const std::string& store, const std::string& namespace_name,
                                       const std::string& device, std::int64_t hour_ns,
                                       const HourSum& sum) const {
  return signed_by_us({{"summary", kVersion},
                       {"store", store},
                       {"namespace", namespace_name},
                       {"device", device},
                       {"hour", wire::time_text(hour_ns)},
                       {"readings", sum.readings},
                       {"checksum", sum.checksum},
                       {"made", wire::time_text(clock_.wall_ns())}});
}

Result<SummaryJson> Summaries::receipt(const SummaryJson& summary,
                                       const std::vector<std::string>& sensors,
                                       std::string_view store, catalog::Origins origins) {
  if (!is_summary(summary)) return invalid_argument("a summary is not what its version says");
  if (summary["summary"] != kVersion)
    return unsupported("a summary is of a version that is not known here");
  EC_TRY(sign::check_signature(summary).status());
  if (summary["store"] != store) return invalid_argument("a summary is of another store");
  EC_ASSIGN_OR_RETURN(const std::int64_t hour_ns, hour_of(summary));
  const std::uint64_t revocations = engine_.revocations();
  const std::string namespace_name = summary["namespace"];
  const std::vector<std::string> names =
      catalog_.placed_names(namespace_name, summary["device"].get<std::string>(), origins);
  std::vector<SummedSeries> series;
  for (const std::string& name : names) {
    for (catalog::SeriesEntry& each :
         catalog_.select(namespace_name, wire::Selector{wire::escape_name(name), "*"})) {
      if (std::find(sensors.begin(), sensors.end(), each.sensor) != sensors.end())
        series.push_back({std::move(each.sensor), each.id});
    }
  }
  if (series.empty()) return not_found("nothing of this device came from this store");
  EC_ASSIGN_OR_RETURN(const std::optional<HourSum> sum,
                      sum_hour(engine_, series, {.hour_ns = hour_ns}));
  EC_ASSIGN_OR_RETURN(const SummaryJson made,
                      signed_by_us({{"receipt", kVersion},
                                    {"summary", summary},
                                    {"namespace", namespace_name},
                                    {"device", names.front()},
                                    {"readings", sum->readings},
                                    {"checksum", sum->checksum},
                                    {"made", wire::time_text(clock_.wall_ns())}}));
  Bytes whose(1, '\1');
  append_number(origins.front(), whose);
  EC_TRY(keep_as(whose, {{series.front().id, hour_ns, as_text(made)}}, revocations));
  return made;
}

Status Summaries::keep(const std::string& target, const std::vector<Kept>& some,
                       std::uint64_t revocations) {
  return keep_as(whose_target(target), some, revocations);
}

Status Summaries::keep_as(const Bytes& whose, const std::vector<Kept>& some,
                          std::uint64_t revocations) {
  if (some.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const NamespaceId id, records_.made_id());
  const auto is_gone = [&](const Kept& each) {
    const auto key_at = [&each](std::uint32_t sensor, std::int64_t time_ns) {
      return wire::make_reading_key({each.id.device, sensor, time_ns});
    };
    return engine_.is_revoked(each.id.namespace_id, key_at(0, INT64_MIN),
                              key_at(UINT32_MAX, INT64_MAX), revocations);
  };
  const MutexLock lock(mutex_);
  WriteBatch batch;
  std::vector<const Kept*> written;
  for (const Kept& each : some) {
    if (engine_.revocations() != revocations && is_gone(each)) continue;
    batch.put(id, hour_key(each.id, each.hour_ns) + whose, each.text);
    written.push_back(&each);
  }
  if (written.empty()) return ok();
  EC_TRY(engine_.write(batch, Durability::Sync));
  if (engine_.revocations() != revocations) {
    WriteBatch gone;  // an erasure came in between, and has not seen these
    for (const Kept* each : written) {
      const Bytes key = hour_key(each->id, each->hour_ns) + whose;
      if (is_gone(*each) && gone.range_deletes() < kRangeDeletesPerBatchMax)
        gone.erase_range(id, key, key + '\0');
    }
    if (gone.count() > 0) EC_TRY(engine_.write(gone, Durability::Sync));
  }
  return make_room(written.size());
}

Status Summaries::make_room(std::size_t written) {
  const NamespaceId id = records_.id();
  // Some may have been there before: near the limit they are counted.
  if (!count_ || *count_ + written > kKeptMax) {
    EC_ASSIGN_OR_RETURN(const RangeStats stats, engine_.range_stats(id, all_summaries(), unread()));
    count_ = static_cast<std::size_t>(stats.entries);
  } else {
    *count_ += written;
  }
  if (*count_ <= kKeptMax) return ok();
  std::vector<std::pair<Bytes, Bytes>> keys;  // hour, key
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(id, all_summaries(), unread()));
  for (; at->valid(); at->next()) {
    if (at->key().size() > kSummaryHeadBytes)
      keys.emplace_back(Bytes(at->key().substr(kSummaryHeadBytes - 8, 8)), Bytes(at->key()));
  }
  EC_TRY(at->status());
  const std::size_t many = std::min(keys.size(), kKeptMax / 8);
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(many), keys.end());
  WriteBatch batch;
  for (std::size_t i = 0; i < many; ++i) batch.remove(id, keys[i].second);
  count_ = keys.size() - many;
  return engine_.write(batch, Durability::Async);
}

Status Summaries::keep_position(const std::string& target, CommitPosition position) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, records_.made_id());
  Bytes value;
  append_number(kPositionVersion, value);
  append_number(position, value);
  WriteBatch batch;
  batch.put(id, Bytes(1, kPositionKind) + target, value);
  return engine_.write(batch, Durability::Sync);
}

Result<CommitPosition> Summaries::position(const std::string& target) const {
  if (records_.id() == 0) return CommitPosition{0};
  const auto value = engine_.get(records_.id(), Bytes(1, kPositionKind) + target, unread());
  if (value.status().code() == StatusCode::NotFound) return CommitPosition{0};
  EC_TRY(value.status());
  ByteView bytes = *value;
  std::uint8_t version = 0;
  CommitPosition position = 0;
  // Where it is of a newer version, or not what was written: all of it again.
  if (!take_number(bytes, version) || version != kPositionVersion || !take_number(bytes, position))
    return CommitPosition{0};
  return position;
}

Status Summaries::forget(const std::string& target) {
  const NamespaceId id = records_.id();
  if (id == 0) return ok();
  const Bytes whose = whose_target(target);
  const MutexLock lock(mutex_);
  WriteBatch batch;
  batch.remove(id, Bytes(1, kPositionKind) + target);
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(id, all_summaries(), unread()));
  for (; at->valid(); at->next()) {
    if (at->key().substr(std::min(kSummaryHeadBytes, at->key().size())) == whose)
      batch.remove(id, at->key());
  }
  EC_TRY(at->status());
  count_.reset();
  return engine_.write(batch, Durability::Sync);
}

Status Summaries::forget_namespace(NamespaceId namespace_id) {
  const NamespaceId id = records_.id();
  if (id == 0) return ok();
  const auto prefix = [](std::uint64_t number) {
    Bytes key(1, kSummaryKind);
    append_number(static_cast<std::uint32_t>(number), key);
    return key;
  };
  const Bytes upper = namespace_id == UINT32_MAX ? Bytes(1, kSummaryKind + 1)
                                                 : prefix(std::uint64_t{namespace_id} + 1);
  WriteBatch batch;
  batch.erase_range(id, prefix(namespace_id), upper);
  const MutexLock lock(mutex_);
  count_.reset();
  return engine_.write(batch, Durability::Sync);
}

Result<Summaries::Page> Summaries::list(const std::string& target,
                                        const std::string& behind) const {
  Page page;
  const NamespaceId id = records_.id();
  if (id == 0) return page;
  KeyRange range = all_summaries();
  if (!behind.empty()) {
    Bytes key;
    for (std::size_t i = 0; i + 1 < behind.size(); i += 2) {
      unsigned byte = 0;
      const char* const from = behind.data() + i;
      if (const auto read = std::from_chars(from, from + 2, byte, 16); read.ptr != from + 2)
        return invalid_argument("behind is not what a page before answered as next");
      key += static_cast<char>(byte);
    }
    range.lower = std::max(range.lower, key + '\0');
  }
  const Bytes whose = target.empty() ? Bytes(1, '\1') : whose_target(target);
  EC_ASSIGN_OR_RETURN(const auto at, engine_.scan(id, range, unread()));
  Bytes last;
  for (; at->valid(); at->next()) {
    const ByteView rest = at->key().substr(std::min(kSummaryHeadBytes, at->key().size()));
    if (target.empty() ? !rest.starts_with(whose) : rest != whose) continue;
    if (page.documents.size() == kPageMax) {
      page.next = auth::hex_text(last);
      break;
    }
    last = at->key();
    SummaryJson document = SummaryJson::parse(at->value(), nullptr, false);
    if (document.is_object()) page.documents.push_back(std::move(document));
  }
  EC_TRY(at->status());
  return page;
}

Status Summaries::tell_erased(const catalog::Catalog& catalog, const erase::EraseTarget& target,
                              erase::TimeRange range, const catalog::SpanTaker& take) const {
  const NamespaceId id = records_.id();
  if (id == 0) return ok();
  std::set<std::pair<NamespaceId, std::uint32_t>> devices;
  for (const erase::EraseTarget::Device& each : target.devices)
    devices.emplace(each.namespace_id, each.id);
  for (const catalog::SeriesRow row : target.series) {
    if (const auto series = catalog.series_at(row); series.ok())
      devices.emplace(series->id.namespace_id, series->id.device);
  }
  const erase::TimeRange hours = erase::whole_windows(range, kSummedHourNs);
  for (const auto& [namespace_id, number] : devices) {
    const catalog::SeriesId device{namespace_id, number, 0};
    const Bytes upper =
        hours.to_ns ? hour_key(device, *hours.to_ns) : hour_key(device, INT64_MAX) + '\xff';
    EC_TRY(take(catalog::KeySpan{id, hour_key(device, hours.from_ns), upper}));
  }
  return ok();
}

}  // namespace edgecase::forward
