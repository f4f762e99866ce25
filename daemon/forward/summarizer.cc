#include "forward/summarizer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "forward/courier.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

CommitPosition summed_before(const Summaries& summaries, const std::string& name) {
  const auto position = summaries.position(name);
  return position.ok() ? *position : 0;
}

std::string dumped(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string unconfirmed(nlohmann::json summary, const std::string& why) {
  return dumped({{"summary", std::move(summary)}, {"why", why}});
}

}  // namespace

Summarizer::Summarizer(const Parts& parts, const config::ForwardSettings& settings,
                       const config::ForwardTarget& target, const Shape& shape,
                       CommitPosition began_behind)
    : parts_(parts),
      name_(settings.name),
      namespace_(settings.namespace_name),
      is_wanted_(target.kind == config::ForwardKind::EdgeCase && shape.every_ns == 0 &&
                 parts.summaries.can_sign()),
      from_ns_(target.from == config::ForwardFrom::Time ? target.from_ns : INT64_MIN),
      watched_{settings.name, target.selections},
      pseudonyms_(shape.salt),
      hours_(parts.engine, kSummedHourNs, parts.rules),
      began_behind_(began_behind),
      began_ns_(parts.clock.boot_ns()),
      summed_(is_wanted_ ? summed_before(parts.summaries, settings.name) : 0) {}

bool Summarizer::is_due(CommitPosition sent) {
  if (!is_wanted_) return false;
  if (upto_ != 0) return parts_.clock.boot_ns() >= rests_until_ns_;
  const std::int64_t now_ns = parts_.clock.wall_ns();
  const std::int64_t hour_ns = window_begin_ns(now_ns, kSummedHourNs);
  // At a start there may be hours from before.
  const bool is_over = hour_ns_ == INT64_MIN
                           ? parts_.clock.boot_ns() - began_ns_ >= kAfterStartNs
                           : hour_ns != hour_ns_ && now_ns - hour_ns > kAfterHourNs;
  if (!is_over || sent == 0) return false;
  hour_ns_ = hour_ns;
  if (sent <= summed_) return false;
  upto_ = sent;
  row_ = 0;
  rests_until_ns_ = 0;
  return true;
}

void Summarizer::rest(const Status& status) {
  rests_until_ns_ = parts_.clock.boot_ns() + kAgainNs;
  parts_.logger.log_keyed(observe::LogLevel::Warning, "forward", "summaries " + name_,
                          "summaries of hours wait for " + name_ + ": " + status.to_string());
}

void Summarizer::turn(HttpTarget& target) {
  const std::int64_t until_ns = parts_.clock.boot_ns() + kTurnNs;
  const std::uint64_t revocations = parts_.engine.revocations();
  const std::uint32_t first = row_;
  std::vector<Waiting> some;
  for (; row_ < parts_.catalog.device_rows() && some.size() < kAtOnce; ++row_) {
    if (parts_.clock.boot_ns() > until_ns && row_ != first) break;
    const auto device = parts_.catalog.device_at(row_);
    if (!device.ok() || device->namespace_name.starts_with('_')) continue;
    if (const Status added = add_device(*device, some); !added.ok()) return rest(added);
  }
  if (const Status sent = send(target, some, revocations); !sent.ok()) {
    row_ = first;
    if (sent.code() != StatusCode::Unsupported) return rest(sent);
    upto_ = 0;  // in the next hour
    return;
  }
  if (row_ < parts_.catalog.device_rows()) return;
  if (const Status kept = parts_.summaries.keep_position(name_, upto_); !kept.ok())
    return rest(kept);
  summed_ = std::exchange(upto_, 0);
}

// Its hours of which something is new, each as a whole.
Status Summarizer::add_device(const catalog::DeviceEntry& device, std::vector<Waiting>& some) {
  const std::uint64_t revocations = parts_.engine.revocations();
  const std::int64_t now_ns = parts_.clock.wall_ns();
  const std::int64_t oldest_ns =
      std::max(window_begin_ns(now_ns - kBackNs, kSummedHourNs), from_ns_);
  std::vector<SummedSeries> series;
  std::set<std::int64_t> hours;
  std::int64_t whole_from_ns = INT64_MIN;
  std::string name_there;
  for (const catalog::SeriesEntry& each : parts_.catalog.select(
           device.namespace_name, wire::Selector{wire::escape_name(device.device), "*"})) {
    if (!watched_.takes(each.namespace_name, each.device, each.sensor)) continue;
    const catalog::SeriesEntry there = pseudonyms_.of(each);
    name_there = there.device;
    series.push_back({there.sensor, each.id});
    retention::Leaving why = retention::Leaving::Expired;
    whole_from_ns = std::max(whole_from_ns, hours_.whole_from_ns(each.id, why));
    ReadOptions options;
    options.fill_cache = false;
    options.newer_than = std::max(summed_, began_behind_);
    const KeyRange keys = erase::range_of_series(each.id, {oldest_ns, now_ns + kAheadNs});
    EC_ASSIGN_OR_RETURN(const auto at, parts_.engine.scan(each.id.namespace_id, keys, options));
    for (; at->valid(); at->next()) {
      wire::ReadingKey key;
      if (at->position() <= upto_ && wire::decode_reading_key(at->key(), key))
        hours.insert(window_begin_ns(key.time_ns, kSummedHourNs));
    }
    EC_TRY(at->status());
  }
  if (hours.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const std::string store, parts_.lineage.store());
  for (const std::int64_t hour_ns : hours) {
    if (hour_ns < whole_from_ns) continue;
    EC_ASSIGN_OR_RETURN(const std::optional<HourSum> sum,
                        sum_hour(parts_.engine, series,
                                 {.hour_ns = hour_ns,
                                  .after = began_behind_,
                                  .upto = upto_,
                                  .from_ns = from_ns_,
                                  .value_max_bytes = Batch::kValueMaxBytes,
                                  .leaves_out = [&](const Place& place) {
                                    return parts_.records.is_refused(name_, place);
                                  }}));
    if (!sum || sum->readings == 0) continue;
    EC_ASSIGN_OR_RETURN(
        nlohmann::json summary,
        parts_.summaries.summary(store, namespace_.empty() ? device.namespace_name : namespace_,
                                 name_there, hour_ns, *sum));
    Summaries::Kept kept{series.front().id, hour_ns, {}};
    if (sum->sensors.size() <= Summaries::kSensorsMax) {
      some.push_back({std::move(kept), std::move(summary), sum->sensors});
      continue;
    }
    // No target takes so many: what is signed here alone says why.
    kept.text = unconfirmed(std::move(summary),
                            std::to_string(sum->sensors.size()) + " sensors, more than the " +
                                std::to_string(Summaries::kSensorsMax) +
                                " that a target sums up; to do: edgecase forward verify");
    EC_TRY(parts_.summaries.keep(name_, {std::move(kept)}, revocations));
  }
  return ok();
}

// Unsupported: the target does not know summaries.
Status Summarizer::send(HttpTarget& target, std::vector<Waiting>& some, std::uint64_t revocations) {
  for (std::size_t begin = 0; begin < some.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, some.size());
    std::string lines;
    for (std::size_t i = begin; i < end; ++i) {
      const nlohmann::json line{{"summary", some[i].summary}, {"sensors", some[i].sensors}};
      lines += dumped(line) + "\n";
    }
    if (parts_.engine.revocations() != revocations) return busy("something was erased meanwhile");
    HttpAnswer http;
    const Answer answer = target.put_summaries(lines, http);
    if (answer.verdict != Verdict::Taken) return unavailable(answer.why);
    if (http.status == 403) return not_allowed("the token may not write there");
    const auto json = nlohmann::json::parse(http.body, nullptr, false);
    const bool is_answer = http.status == 200 && json.is_object() && json.contains("receipts") &&
                           json["receipts"].is_array() && json["receipts"].size() == end - begin;
    if (!is_answer) return unsupported("it does not know summaries");
    std::vector<Summaries::Kept> kept;
    for (std::size_t i = begin; i < end; ++i) {
      const nlohmann::json& receipt = json["receipts"][i - begin];
      Summaries::Kept& each = kept.emplace_back(std::move(some[i].kept));
      const bool is_good = is_receipt(receipt) && receipt["summary"] == some[i].summary &&
                           sign::check_signature(receipt).ok();
      const bool says_why =
          receipt.is_object() && receipt.contains("error") && receipt["error"].is_string();
      each.text = is_good ? dumped(receipt)
                          : unconfirmed(std::move(some[i].summary),
                                        says_why ? receipt["error"].get<std::string>()
                                                 : "the target's signature is none");
    }
    EC_TRY(parts_.summaries.keep(name_, kept, revocations));
  }
  return ok();
}

}  // namespace edgecase::forward
