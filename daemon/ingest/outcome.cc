#include "ingest/outcome.h"

#include <algorithm>
#include <bit>

#include "ingest/ingest_pipeline.h"

namespace edgecase::ingest {
namespace {

// A namespace that is dropped, or others that take the last room, at the very moment.
constexpr int kSiftRoundsMax = 3;

// 2^64 / golden ratio: spreads numbers that follow one another.
constexpr std::uint64_t kMixOdd = 0x9e3779b97f4a7c15;

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

void LossLedger::note(Loss loss, const wire::Reading& reading, std::int64_t now_ns,
                      std::uint64_t generation) {
  const auto at = static_cast<std::size_t>(loss);
  totals_[at].fetch_add(1, std::memory_order_relaxed);
  if (loss == Loss::Erased) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(generation_, generation) != generation) devices_.clear();
  std::pair<std::string, std::string> key(reading.namespace_name, reading.device);
  auto found = devices_.find(key);
  if (found == devices_.end()) {
    if (devices_.size() == kDevicesMax) {
      devices_.erase(std::min_element(
          devices_.begin(), devices_.end(),
          [](const auto& a, const auto& b) { return a.second.last_ns < b.second.last_ns; }));
    }
    Device device{key.first, key.second, {}, 0};
    found = devices_.emplace(std::move(key), std::move(device)).first;
  }
  ++found->second.counts[at];
  found->second.last_ns = now_ns;
}

std::vector<LossLedger::Device> LossLedger::devices(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(generation_, generation) != generation) devices_.clear();
  std::vector<Device> all;
  for (const auto& [key, device] : devices_) all.push_back(device);
  return all;
}

// --- what the pipeline counts, and what it leaves out ---

void IngestPipeline::lose(Loss loss, const wire::Reading& reading, Outcome& outcome) {
  ++outcome.of(loss);
  losses_.note(loss, reading, clock_.wall_ns(), catalog_.generation());
}

Status IngestPipeline::store_rest(const Incoming& incoming, const std::vector<bool>& is_left_out,
                                  Outcome& outcome, int round) {
  const std::vector<wire::Reading>& readings = incoming.readings;
  std::vector<wire::Reading> rest;
  std::vector<Author> authors;
  std::size_t next_author = 0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    for (;
         next_author < incoming.authors.size() && incoming.authors[next_author].first_reading <= i;
         ++next_author) {
      authors.push_back(incoming.authors[next_author]);
      authors.back().first_reading = rest.size();
    }
    if (!is_left_out[i]) rest.push_back(readings[i]);
  }
  if (!rest.empty())
    return store_fitting(
        {incoming.principal, rest, authors, incoming.records, incoming.pacing, incoming.slices},
        outcome, round);
  return incoming.records.empty() ? ok() : write_records(incoming.records);
}

// What can never be stored costs itself alone, where whoever asks tells of it. Once is enough,
// unless others take the last room meanwhile.
Status IngestPipeline::store_fitting(const Incoming& incoming, Outcome& outcome, int round) {
  Status status = store(incoming, outcome);
  const bool is_for_good =
      status.code() == StatusCode::LimitReached || status.code() == StatusCode::InvalidArgument;
  if (!is_for_good || !outcome.takes_parts || round == kSiftRoundsMax) return status;
  const std::vector<catalog::Refusal> refused = unfit(incoming.readings);
  if (refused.empty()) return status;
  std::vector<bool> is_refused(incoming.readings.size());
  for (const catalog::Refusal& each : refused) is_refused[each.reading] = true;
  EC_TRY(store_rest(incoming, is_refused, outcome, round + 1));
  for (const catalog::Refusal& each : refused) {
    const wire::Reading& reading = incoming.readings[each.reading];
    outcome.refuse(reading, each.why);
    note_refused(reading);
  }
  return ok();
}

void IngestPipeline::count_expired(std::span<const wire::Reading> readings,
                                   std::span<const catalog::SeriesId> ids,
                                   std::span<const std::int64_t> times, Outcome& outcome) {
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
  const catalog::SeriesId* last = nullptr;
  std::int64_t retention_ns = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!is_past(times[i], shortest_ns)) continue;
    if (last == nullptr || !(*last == ids[i])) {
      last = &ids[i];
      const wire::Reading& reading = readings[i];
      retention_ns = retention_->retention_ns({std::string(reading.namespace_name),
                                               std::string(reading.device),
                                               std::string(reading.sensor), ids[i]});
    }
    if (is_past(times[i], retention_ns)) lose(Loss::Expired, readings[i], outcome);
  }
}

// Of a batch, or a slice: a table of open addressing, half full at most, finds in one pass who has
// the same series and time as one before it. The same value twice is the same reading twice.
void IngestPipeline::count_replaced(std::span<const wire::Reading> readings,
                                    std::span<const catalog::SeriesId> ids,
                                    std::span<const std::int64_t> times,
                                    std::vector<std::uint32_t>& places, Outcome& outcome) {
  if (readings.size() < 2) return;
  const std::size_t size = std::bit_ceil(2 * readings.size());
  places.assign(size, 0);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    std::uint64_t hash = (std::uint64_t{ids[i].device} << 32 | ids[i].sensor) * kMixOdd;
    hash = (hash ^ static_cast<std::uint64_t>(times[i])) * kMixOdd;
    std::size_t at = (hash ^ hash >> 32) & (size - 1);
    for (; places[at] != 0; at = (at + 1) & (size - 1)) {
      const std::size_t before = places[at] - 1;
      if (times[before] != times[i] || !(ids[before] == ids[i])) continue;
      if (!(readings[before].value == readings[i].value))
        lose(Loss::Replaced, readings[before], outcome);
      break;
    }
    places[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace edgecase::ingest
