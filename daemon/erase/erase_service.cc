#include "erase/erase_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "catalog/tier_spaces.h"
#include "erase/erase_jobs.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::erase {

// What one erasure changes.
struct EraseService::Plan {
  Certificate certificate;
  ErasureRanges ranges;
  Fences::Planned fences;
  catalog::Erased emptied;  // series of which nothing is left
  std::optional<std::int64_t> fence_to_ns;
  bool may_be_durable = false;  // the certificate
};

namespace {

template <typename Number>
void add_amount(std::optional<Number>& sum, const std::optional<Number>& more) {
  sum = sum && more ? std::optional<Number>(*sum + *more) : std::nullopt;
}

void add(Amount& sum, const Amount& more) {
  add_amount(sum.readings, more.readings);
  add_amount(sum.bytes, more.bytes);
  if (more.first_ns && (!sum.first_ns || *more.first_ns < *sum.first_ns))
    sum.first_ns = more.first_ns;
  if (more.last_ns && (!sum.last_ns || *more.last_ns > *sum.last_ns)) sum.last_ns = more.last_ns;
}

Result<std::optional<std::int64_t>> time_at_end(Engine& engine, NamespaceId id,
                                                const KeyRange& range, Direction direction) {
  ReadOptions options;
  options.direction = direction;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine.scan(id, range, options));
  wire::ReadingKey key;
  if (!iterator->valid() || !wire::decode_reading_key(iterator->key(), key)) {
    EC_TRY(iterator->status());
    return std::optional<std::int64_t>();
  }
  return std::optional<std::int64_t>(key.time_ns);
}

// Tells the copies that readings which were dated later left under their undated time: nobody sees
// one, it waits for a merge, and goes with them. It lies before all that wait still.
Status tell_left_copies(Engine& engine, const catalog::Catalog& catalog, const EraseTarget& target,
                        const catalog::SpanTaker& take) {
  const auto periods = engine.find_namespace(wire::kUndatedNamespace);
  if (!periods.ok()) return ok();
  EC_ASSIGN_OR_RETURN(const RangeStats records, engine.range_stats(periods->id, {}, {}));
  if (records.entries == 0) return ok();
  for (const catalog::SeriesRow row : target.series) {
    const auto each = catalog.series_at(row);
    if (!each.ok()) continue;
    KeyRange keys = range_of_series(each->id, {wire::kUndatedFromNs, wire::kUndatedToNs});
    EC_ASSIGN_OR_RETURN(const auto first_ns,
                        time_at_end(engine, each->id.namespace_id, keys, Direction::Forward));
    if (first_ns == wire::kUndatedFromNs) continue;
    if (first_ns) keys = range_of_series(each->id, {wire::kUndatedFromNs, *first_ns});
    EC_TRY(take({each->id.namespace_id, std::move(keys.lower), std::move(keys.upper)}));
  }
  return ok();
}

// More than there ever were of one process, or nearly so.
constexpr std::uint64_t kNumbersPassedOver = 1u << 20;

Status too_much(const EraseTarget& target) {
  return invalid_argument(
      "this is too much to be erased at once: " + std::to_string(target.device_count()) +
      " devices and " + std::to_string(target.single_series.size()) + " series of others, where " +
      std::to_string(kFencesMax) +
      " are the most; erase it in parts, by the beginnings of their names");
}

}  // namespace

Result<std::unique_ptr<EraseService>> EraseService::open(const Parts& parts) {
  std::unique_ptr<EraseService> service(new EraseService(parts));
  EC_TRY(service->load());
  return service;
}

Status EraseService::load() {
  if (const auto found = parts_.engine.find_namespace(kErasuresNamespace); found.ok()) {
    records_ = found->id;
  } else {
    EC_ASSIGN_OR_RETURN(records_, parts_.engine.create_namespace(
                                      kErasuresNamespace, {.placement = Placement::Metadata}));
  }
  EC_ASSIGN_OR_RETURN(Pseudonyms pseudonyms, Pseudonyms::load(parts_.engine, parts_.random));
  fences_ = std::make_unique<Fences>(records_, std::move(pseudonyms));
  EC_ASSIGN_OR_RETURN(drives_, DriveWatch::open(parts_.engine, records_, parts_.look));
  const MutexLock erasing(erase_mutex_);
  bool is_damaged = false;
  ReadOptions options;
  options.on_damage = [&is_damaged](const DamagedKeys&) { is_damaged = true; };
  EC_ASSIGN_OR_RETURN(const auto iterator, parts_.engine.scan(records_, {"C", "G"}, options));
  bool is_first = true;
  for (; iterator->valid(); iterator->next()) {
    if (iterator->key().front() == kCertificateRecord) {
      EC_ASSIGN_OR_RETURN(const Certificate certificate, decode_certificate(iterator->value()));
      if (std::exchange(is_first, false)) oldest_number_ = certificate.number;
      next_number_ = certificate.number + 1;
      if (certificate.state == ErasureState::Pending) add_pending(certificate, 0);
      index(certificate);
    } else {
      const Bytes fence_key(iterator->key());
      EC_TRY(fences_->load(fence_key, iterator->value()));
    }
  }
  // Numbers of certificates that are lost are not given again.
  if (is_damaged) next_number_ += kNumbersPassedOver;
  if (is_first) oldest_number_ = next_number_;
  tell_memory();
  return iterator->status();
}

// What cannot be read, since a drive is away or damaged, stays unknown: it can be erased all the
// same.
Amount EraseService::amount_of(const catalog::SeriesEntry& entry, TimeRange range) {
  const KeyRange keys = range_of_series(entry.id, range);
  const NamespaceId id = entry.id.namespace_id;
  Amount amount;
  const auto stats = parts_.engine.range_stats(id, keys, {});
  if (!stats.ok()) return amount;
  amount.readings = stats->entries;
  amount.bytes = stats->stored_bytes;
  const auto first = time_at_end(parts_.engine, id, keys, Direction::Forward);
  const auto last = time_at_end(parts_.engine, id, keys, Direction::Reverse);
  if (first.ok()) amount.first_ns = *first;
  if (last.ok()) amount.last_ns = *last;
  return amount;
}

// The same of what its tiers keep of the range.
std::uint64_t EraseService::windows_of(const catalog::SeriesEntry& entry, TimeRange range) {
  std::uint64_t windows = 0;
  if (parts_.retention.marks().find(entry.id).before_ns == INT64_MIN) return windows;
  for (const catalog::TierSpace& tier :
       catalog::tier_spaces_of(parts_.engine, entry.id.namespace_id)) {
    const catalog::SeriesId counts =
        catalog::tier_series(tier.id, entry.id, catalog::TierColumn::Count);
    const KeyRange keys = range_of_series(counts, whole_windows(range, tier.every_ns));
    const auto stats = parts_.engine.range_stats(tier.id, keys, {});
    if (stats.ok()) windows += stats->entries;
  }
  return windows;
}

Result<EraseTarget> EraseService::resolve(const auth::Principal& principal,
                                          const EraseRequest& request) const {
  const auto is_elsewhere = [this](const GoneName& name) {
    return relay_ != nullptr && relay_->may_hold(name.namespace_name, name.device, name.sensor);
  };
  return resolve_target(parts_.catalog, parts_.devices, principal, request, is_elsewhere);
}

Result<ErasePreview> EraseService::preview(const auth::Principal& principal,
                                           const EraseRequest& request) {
  EC_ASSIGN_OR_RETURN(const EraseTarget target, resolve(principal, request));
  ErasePreview preview;
  if (request.has_all_times()) preview.devices = target.device_count();
  preview.series = target.series.size();
  preview.is_everything = target.is_everything;
  preview.left = target.left;
  preview.takes_whole_devices = request.has_all_times() && target.single_series.empty();
  preview.amount.readings = 0;
  preview.amount.bytes = 0;
  for (const catalog::SeriesRow row : target.series) {
    const auto entry = parts_.catalog.series_at(row);
    if (!entry.ok()) continue;  // it has gone meanwhile
    const Amount amount = amount_of(*entry, request.range());
    add(preview.amount, amount);
    preview.windows += windows_of(*entry, request.range());
    if (preview.matched.size() < kPreviewSeriesMax) preview.matched.push_back({*entry, amount});
  }
  preview.cuts_windows = preview.windows > 0 && !request.has_all_times();
  return preview;
}

// A fence ends with the moment of erasure, by the latest time the store knows of: what is measured
// later is new. A device whose clock is ahead gets a bit more; where ours is not trusted nobody can
// tell which is wrong, and everything that was erased stays out, as of copies it always does.
std::optional<std::int64_t> EraseService::fence_end_ns(
    FenceKind kind, std::optional<std::int64_t> newest_ns) const {
  const std::int64_t now_ns = std::max(parts_.clock.wall_ns(), parts_.engine.expiry_now_ns());
  // What has no time yet says nothing of the clock of who sent it.
  if (!newest_ns || *newest_ns < now_ns || wire::is_undated_time(*newest_ns)) return now_ns;
  const bool is_cut = kind == FenceKind::Lasting && parts_.clock.trust() == ClockTrust::Trusted;
  const std::int64_t last_ns =
      is_cut ? std::min(*newest_ns, now_ns + kFenceAheadMaxNs - 1) : *newest_ns;
  return last_ns == INT64_MAX ? std::nullopt : std::optional(last_ns + 1);
}

Status EraseService::plan_fences(const EraseRequest& request, const catalog::Erased& names,
                                 std::optional<std::int64_t> newest_ns, Plan& plan) const {
  const std::optional<std::int64_t> end_ns =
      request.fence_to_ns ? request.fence_to_ns : fence_end_ns(request.fence, newest_ns);
  plan.fence_to_ns = end_ns;
  TimeRange range = request.range();
  if (end_ns) range.to_ns = std::min(range.to_ns.value_or(*end_ns), *end_ns);
  if (range.to_ns && range.from_ns >= *range.to_ns) return ok();
  const Pseudonyms& pseudonyms = fences_->pseudonyms();
  const FencedRange fenced{range, plan.certificate.number,
                           std::max(parts_.clock.wall_ns(), parts_.engine.expiry_now_ns()),
                           request.fence};
  for (const catalog::DeviceEntry& each : names.devices) {
    const Pseudonym pseudonym = pseudonyms.of_device(each.namespace_name, each.device);
    EC_ASSIGN_OR_RETURN(Fence fence, fences_->with(pseudonym, fenced));
    if (each.origin != catalog::kNoOrigin) fence.owner = each.origin;
    plan.fences.emplace_back(pseudonym, std::move(fence));
  }
  for (const catalog::SeriesEntry& each : names.series) {
    const Pseudonym pseudonym = pseudonyms.of_series(each.namespace_name, each.device, each.sensor);
    EC_ASSIGN_OR_RETURN(Fence fence, fences_->with(pseudonym, fenced));
    plan.fences.emplace_back(pseudonym, std::move(fence));
  }
  std::sort(plan.fences.begin(), plan.fences.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return ok();
}

// Series that have no reading outside the range; one that cannot be looked through has some. A
// device that has no other goes, too, unless something is said of it or a rule names it: that was
// not asked for, and holds for what may come.
catalog::Erased EraseService::emptied(const EraseTarget& target, TimeRange range) const {
  catalog::Erased names;
  const auto is_empty = [this](const catalog::SeriesId& id, TimeRange times) {
    const auto first =
        time_at_end(parts_.engine, id.namespace_id, range_of_series(id, times), Direction::Forward);
    return first.ok() && !*first;
  };
  for (const catalog::SeriesRow row : target.series) {
    auto entry = parts_.catalog.series_at(row);
    if (!entry.ok()) continue;
    // What is thinned has windows, and keeps its name.
    const bool has_none =
        parts_.retention.marks().find(entry->id).before_ns == INT64_MIN &&
        (range.from_ns == INT64_MIN || is_empty(entry->id, {INT64_MIN, range.from_ns})) &&
        (!range.to_ns || is_empty(entry->id, {*range.to_ns, std::nullopt}));
    if (has_none) names.series.push_back(*std::move(entry));
  }
  sort_series(names);
  const std::vector<retention::Rule> rules = parts_.retention.rules();
  const auto may_go = [&](const catalog::SeriesEntry& of, std::size_t series) {
    const std::string glob = wire::escape_name(of.device);
    if (parts_.catalog.select_rows(of.namespace_name, {glob, "*"}).size() != series) return false;
    const auto said = parts_.devices.metadata({of.namespace_name, of.device});
    return said.ok() && said->empty() &&
           std::none_of(rules.begin(), rules.end(), [&glob](const retention::Rule& rule) {
             return rule.selector.device == glob;
           });
  };
  std::vector<catalog::SeriesEntry> rest;
  for (auto first = names.series.begin(); first != names.series.end();) {
    const auto end = std::find_if(first, names.series.end(), [&](const auto& each) {
      return each.id.namespace_id != first->id.namespace_id || each.id.device != first->id.device;
    });
    if (may_go(*first, static_cast<std::size_t>(end - first))) {
      names.devices.push_back(
          {first->namespace_name, first->device, first->id.namespace_id, first->id.device});
    } else {
      rest.insert(rest.end(), std::make_move_iterator(first), std::make_move_iterator(end));
    }
    first = end;
  }
  names.series = std::move(rest);
  return names;
}

void EraseService::describe(const EraseRequest& request, const catalog::Erased& names,
                            Certificate& certificate) const {
  const Pseudonyms& pseudonyms = fences_->pseudonyms();
  const auto text = [](const Pseudonym& each) { return auth::hex_text(auth::view_of(each)); };
  certificate.from_ns = request.from_ns;
  certificate.to_ns = request.to_ns;
  certificate.with_names = request.has_all_times();
  certificate.devices = names.devices.size();
  for (const catalog::DeviceEntry& each : names.devices) {
    if (certificate.device_pseudonyms.size() == kPseudonymsMax) break;
    certificate.device_pseudonyms.push_back(
        text(pseudonyms.of_device(each.namespace_name, each.device)));
  }
  for (const catalog::SeriesEntry& each : names.series) {
    if (certificate.series_pseudonyms.size() == kPseudonymsMax) break;
    certificate.series_pseudonyms.push_back(
        text(pseudonyms.of_series(each.namespace_name, each.device, each.sensor)));
  }
  if (!request.devices.owner.empty())
    certificate.owner_pseudonym = text(pseudonyms.of_owner(request.devices.owner));
}

void EraseService::append_certificate(const Certificate& certificate, WriteBatch& batch) const {
  batch.put(records_, certificate_key(certificate.number), encode_certificate(certificate));
}

// The oldest certificates, as far as there are too many.
void EraseService::give_way(WriteBatch& batch) {
  const MutexLock lock(mutex_);
  while (next_number_ - oldest_number_ > kCertificatesMax && !pending_.contains(oldest_number_))
    batch.remove(records_, certificate_key(oldest_number_++));
}

void EraseService::add_pending(const Certificate& certificate, std::uint64_t ranges) {
  const MutexLock lock(mutex_);
  pending_[certificate.number] = {certificate.with_names, ranges,
                                  certificate.with_names && certificate.devices > 0};
  obstacle_ = ok();
  changed_.notify_all();
}

// Indexes a certificate; those that gave way are indexed no more.
void EraseService::index(const Certificate& certificate) {
  const MutexLock lock(mutex_);
  index_.remove_below(oldest_number_);
  index_.add(certificate);
}

void EraseService::tell_memory() {
  std::uint64_t bytes = fences_->memory_bytes();
  {
    const MutexLock lock(mutex_);
    bytes += index_.memory_bytes();
  }
  set_aside_.tell(bytes);
}

Result<Certificate> EraseService::erase(const auth::Principal& principal,
                                        const EraseRequest& request, Everything everything,
                                        std::vector<wire::LeftSelector>* left) {
  const std::int64_t asked_ns = parts_.clock.wall_ns();
  // Counting takes long and is done while readings go on coming.
  EC_ASSIGN_OR_RETURN(const ErasePreview counted, preview(principal, request));
  if (counted.is_everything && everything == Everything::Refused) {
    return invalid_argument("this would erase all " + std::to_string(counted.series) +
                            " series there are; if that is meant, say yes=true");
  }
  if (left != nullptr) *left = counted.left;
  const MutexLock erasing(erase_mutex_);
  {
    const MutexLock lock(mutex_);
    if (pending_.size() >= kPendingMax)
      return busy(std::to_string(kPendingMax) + " erasures wait for their bytes to go, the most");
  }
  Plan plan{{}, {parts_.engine, records_, next_number_}, {}, {}, std::nullopt, false};
  plan.certificate.number = next_number_;
  plan.certificate.asked_ns = asked_ns;
  plan.certificate.asked_by = principal.name;
  plan.certificate.readings = counted.amount.readings;
  plan.certificate.bytes = counted.amount.bytes;
  plan.certificate.windows = counted.windows;
  const Fences::Closed closed = fences_->close();
  EC_ASSIGN_OR_RETURN(const EraseTarget target, resolve(principal, request));
  if (target.device_count() + target.single_series.size() > kFencesMax) return too_much(target);
  const catalog::Erased names = names_of(parts_.catalog, target);
  describe(request, names, plan.certificate);
  plan.certificate.series = target.series.size();
  EC_TRY(plan_fences(request, names, counted.amount.last_ns, plan));
  if (request.find && !request.has_all_times()) {
    plan.emptied = emptied(target, request.range());
    plan.certificate.with_names = !plan.emptied.series.empty() || !plan.emptied.devices.empty();
  }
  auto made = make_invisible(request, target, names, plan);
  if (!made.ok()) {
    if (plan.may_be_durable || !plan.ranges.abandon().ok()) ++next_number_;
  } else if (observer_) {
    observer_();
  }
  return made;
}

// The certificate in one batch with everything, but for ranges that are more than one may hold:
// these are written ahead. Then what is in memory follows.
Result<Certificate> EraseService::make_invisible(const EraseRequest& request,
                                                 const EraseTarget& target,
                                                 const catalog::Erased& names, Plan& plan) {
  const catalog::Erased& erased = request.has_all_times() ? names : plan.emptied;
  const auto take = [&plan](catalog::KeySpan span) { return plan.ranges.add(std::move(span)); };
  Certificate& certificate = plan.certificate;
  WriteBatch batch;
  EC_TRY(tell_readings(parts_.catalog, target, request.range(), take));
  EC_TRY(tell_windows(parts_.engine, parts_.catalog, parts_.retention.marks(), target,
                      request.range(), take));
  if (relay_ != nullptr) EC_TRY(relay_->tell_kept(parts_.catalog, target, request.range(), take));
  if (!request.has_all_times())
    EC_TRY(tell_left_copies(parts_.engine, parts_.catalog, target, take));
  EC_TRY(parts_.catalog.plan_erasure(erased, take, batch));
  // Until all is durable and forgotten, what is said of devices and the rules change no more.
  const MutexLock said_lock(parts_.devices.change_lock());
  EC_TRY(parts_.devices.plan_erasure(erased, take));
  const MutexLock rules_lock(parts_.retention.change_lock());
  EC_ASSIGN_OR_RETURN(const std::vector<retention::Rule> rules,
                      parts_.retention.plan_erasure(erased, take));
  std::vector<catalog::KeySpan> mentions = find_mentions(parts_.engine, parts_.catalog, erased);
  certificate.rules = rules.size();
  certificate.messages = mentions.size();
  for (catalog::KeySpan& span : mentions) EC_TRY(take(std::move(span)));
  const std::vector<ViewMention> views = find_views(parts_.engine, erased);
  // Ranges that are written ahead come behind the batch, and would take what it puts.
  const bool keeps_views = plan.ranges.count() + views.size() < kRangesPerJob;
  for (const ViewMention& view : views)
    EC_TRY(take(view.key.empty() ? catalog::span_of_prefix(view.namespace_id, {})
                                 : catalog::span_of_key(view.namespace_id, view.key)));
  certificate.invisible_ns = parts_.clock.wall_ns();

  plan.ranges.append_to(batch);
  for (const ViewMention& view : views)
    if (keeps_views && !view.value.empty()) batch.put(view.namespace_id, view.key, view.value);
  for (const auto& [pseudonym, fence] : plan.fences) fences_->append_put(pseudonym, fence, batch);
  const std::vector<Pseudonym> gone = fences_->giving_way(plan.fences);
  for (const Pseudonym& pseudonym : gone) fences_->append_remove(pseudonym, batch);
  append_certificate(certificate, batch);
  give_way(batch);
  if (relay_ != nullptr) {
    const PassedErasure passed{.number = certificate.number,
                               .asked_ns = certificate.asked_ns,
                               .has_all_times = request.has_all_times(),
                               .range = request.range(),
                               .fence = request.fence,
                               .fence_to_ns = plan.fence_to_ns};
    EC_TRY(relay_->plan(passed, parts_.catalog, target, batch));
  }
  if (batch.size_bytes() > kBatchSizeMaxBytes) return too_much(target);
  plan.may_be_durable = true;
  const Status written = parts_.engine.write(batch, Durability::Sync);
  if (!written.ok()) parts_.devices.forget_recent();
  EC_TRY(written);
  ++next_number_;
  if (relay_ != nullptr) relay_->planned(certificate.number);
  for (const Pseudonym& pseudonym : gone) fences_->remove(pseudonym);
  for (auto& [pseudonym, fence] : plan.fences) fences_->set(pseudonym, std::move(fence));
  parts_.catalog.forget(erased);
  parts_.devices.forget(erased);
  add_pending(certificate, plan.ranges.count());
  index(certificate);
  tell_memory();
  // Neither undoes what is durable: a start, or the next drain(), brings both in line.
  if (!erased.devices.empty() || !erased.series.empty())
    static_cast<void>(parts_.retention.forget(erased, rules).ok());
  static_cast<void>(run_jobs(parts_.engine, records_).ok());
  return certificate;
}

Result<std::size_t> EraseService::lift(std::uint64_t number) {
  constexpr std::size_t kFencesPerBatch = 10'000;
  const MutexLock erasing(erase_mutex_);
  const Fences::Planned planned = fences_->without(number);
  if (planned.empty()) return not_found("there is no fence of erasure " + std::to_string(number));
  if (relay_ != nullptr) EC_TRY(relay_->lift(number));
  for (std::size_t begin = 0; begin < planned.size(); begin += kFencesPerBatch) {
    const std::size_t end = std::min(begin + kFencesPerBatch, planned.size());
    WriteBatch batch;
    for (std::size_t i = begin; i < end; ++i) {
      const auto& [pseudonym, rest] = planned[i];
      if (rest.ranges.empty()) {
        fences_->append_remove(pseudonym, batch);
      } else {
        fences_->append_put(pseudonym, rest, batch);
      }
    }
    EC_TRY(parts_.engine.write(batch, Durability::Sync));
    for (std::size_t i = begin; i < end; ++i) {
      const auto& [pseudonym, rest] = planned[i];
      if (rest.ranges.empty()) {
        fences_->remove(pseudonym);
      } else {
        fences_->set(pseudonym, rest);
      }
    }
  }
  tell_memory();
  return planned.size();
}

}  // namespace edgecase::erase
