#include "forward/forwarding.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "forward/records.h"
#include "forward/series_names.h"

namespace edgecase::forward {
namespace {

bool is_same(config::ForwardSettings one, config::ForwardSettings other) {
  one.where.clear();
  other.where.clear();  // it may have moved in the file
  return one == other;
}

Status unknown_target(const std::string& name) {
  return not_found("no target is called " + name + "; to do: edgecase forward list");
}

}  // namespace

Status check_targets(const std::vector<config::ForwardSettings>& settings, std::size_t& number) {
  number = 0;
  for (const config::ForwardSettings& each : settings) {
    ++number;
    EC_ASSIGN_OR_RETURN(const config::ForwardTarget target, config::parse_forward(each));
    EC_TRY(check_target(each, target));
  }
  return ok();
}

TargetParts Forwarding::target_parts() {
  return {.engine = parts_.engine,
          .catalog = parts_.catalog,
          .clock = parts_.clock,
          .random = parts_.random,
          .logger = parts_.logger,
          .records = *records_,
          .erasures = *erasures_,
          .unsent = unsent_,
          .thinned = thinned_,
          .bounds = bounds_,
          .lineage = lineage_,
          .summaries = summaries_,
          .rules = parts_.rules,
          .bell = parts_.bell,
          .sent = parts_.sent};
}

Result<std::unique_ptr<Forwarding>> Forwarding::open(
    const ForwardingParts& parts, const std::vector<config::ForwardSettings>& all) {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<Records> records, Records::open(parts.engine));
  EC_ASSIGN_OR_RETURN(auto loaded, records->load());
  EC_ASSIGN_OR_RETURN(std::unique_ptr<Erasures> erasures,
                      Erasures::open(parts.engine, *records, parts.random, parts.clock));
  if (erasures->is_damaged())
    parts.logger.error("forward",
                       "erasures that targets were to be told of are lost to damage: erase there "
                       "what was erased here (edgecase erase --list)");
  std::unique_ptr<Forwarding> forwarding(
      new Forwarding(parts, std::move(records), std::move(erasures)));
  Forwarding& made = *forwarding;
  made.erasures_->tell(&made.unsent_, &made.summaries_);
  const MutexLock lock(made.mutex_);
  for (auto& [name, record] : loaded) made.resting_.emplace(name, std::move(record));
  std::map<std::string, FeedBounds::Positions> positions;
  for (const config::ForwardSettings& each : all) {
    const Status status = made.make(each, made.targets_);
    if (status.code() == StatusCode::InvalidArgument) return status;
    if (!status.ok()) {  // a full drive is no reason not to start
      parts.logger.error("forward",
                         "nothing goes to " + each.name + " until a reload: " + status.to_string());
      continue;
    }
    positions[each.name] = made.targets_[each.name]->positions();
  }
  for (auto& [name, record] : made.resting_) {
    if (record.is_at_rest || made.put_to_rest(name, record).ok()) continue;
    positions[name] = record.cursor.bounds();  // they hold on until it can be written
  }
  made.bounds_.set_all(std::move(positions));
  made.set_aside();
  made.tell_erasures();
  made.tell_unsent();
  // What is readable still has expired meanwhile: nobody reads it before the engine's time follows.
  const bool is_found = made.look();
  made.look(!is_found);
  return forwarding;
}

// Its place, where it has one; else a new one, which is kept at once: "now" is when it was first
// configured.
Result<Record> Forwarding::record_of(const config::ForwardSettings& settings) {
  EC_TRY(check_shape(settings));
  const auto found = resting_.find(settings.name);
  if (found != resting_.end()) {
    Record record = found->second;
    record.is_at_rest = false;
    return record;
  }
  EC_ASSIGN_OR_RETURN(const config::ForwardTarget target, config::parse_forward(settings));
  Record record;
  if (target.from == config::ForwardFrom::Now) {
    record.cursor = Cursor(bounds_.mark(settings.name));
    EC_TRY(records_->write_begin(settings.name, record.cursor.oldest()));
  }
  Shape shape{.every_ns = target.every_ns, .salt = {}};
  while (settings.pseudonyms && shape.salt.size() < kSaltBytes)
    append_number(parts_.random.next(), shape.salt);
  EC_TRY(records_->write_shape(settings.name, shape));
  EC_TRY(records_->write(settings.name, record));
  return record;
}

Status Forwarding::check_shape(const config::ForwardSettings& settings) const {
  if (!targets_.contains(settings.name) && !resting_.contains(settings.name)) return ok();
  EC_ASSIGN_OR_RETURN(const config::ForwardTarget target, config::parse_forward(settings));
  EC_ASSIGN_OR_RETURN(const Shape shape, records_->shape(settings.name));
  const char* const key = shape.every_ns != target.every_ns           ? "every"
                          : shape.salt.empty() == settings.pseudonyms ? "pseudonyms"
                                                                      : nullptr;
  if (key == nullptr) return ok();
  return invalid_argument(std::string(key) + ": " + settings.name +
                          " has readings in another shape; to do: give the target another name, or "
                          "leave it out and forget it first (edgecase forward forget)");
}

Status Forwarding::make(const config::ForwardSettings& settings, Targets& into) {
  EC_ASSIGN_OR_RETURN(Record record, record_of(settings));
  const bool was_at_rest = resting_.contains(settings.name) && resting_[settings.name].is_at_rest;
  if (was_at_rest) EC_TRY(records_->write(settings.name, record));
  EC_ASSIGN_OR_RETURN(auto target, Target::create(target_parts(), settings, std::move(record)));
  into[settings.name] = std::move(target);
  resting_.erase(settings.name);
  return ok();
}

Status Forwarding::put_to_rest(const std::string& name, Record record) {
  record.is_at_rest = true;
  record.cursor = record.cursor.collapsed();
  // No bound of merges stays: what was never to go is not told from what went any more.
  EC_ASSIGN_OR_RETURN(const CommitPosition begin, records_->begin(name));
  if (begin != 0) EC_TRY(records_->write_begin(name, record.cursor.oldest()));
  EC_TRY(records_->write(name, record));
  resting_[name] = std::move(record);
  return ok();
}

void Forwarding::set_aside() {
  const std::uint64_t bytes = targets_.size() * Target::kMemoryBytes;
  if (bytes != set_aside_bytes_) parts_.engine.set_aside(set_aside_bytes_, bytes);
  set_aside_bytes_ = bytes;
}

// Whose readings went where may be erased there.
void Forwarding::tell_erasures() {
  std::vector<WatchedTarget> watched;
  for (const auto& [name, target] : targets_) {
    auto parsed = config::parse_forward(target->settings());
    if (parsed.ok()) watched.push_back({name, std::move(parsed->selections)});
  }
  for (const auto& [name, record] : resting_) watched.push_back({name, std::nullopt});
  erasures_->set_targets(std::move(watched));
}

void Forwarding::tell_unsent() {
  std::vector<Unsent::Watch> all;
  for (const auto& [name, target] : targets_) {
    auto parsed = config::parse_forward(target->settings());
    if (!parsed.ok()) continue;
    all.push_back(
        {.target = {name, std::move(parsed->selections)},
         .keep_ns = parsed->keep_ns,
         .from_ns = parsed->from == config::ForwardFrom::Time ? parsed->from_ns : INT64_MIN,
         .cursor = target->status().cursor,
         .expired_until_ns = target->status().totals.expired_until_ns,
         .kept = target->status().kept});
  }
  for (const auto& [name, record] : resting_) {
    all.push_back({.target = {name, std::nullopt},
                   .cursor = record.cursor,
                   .expired_until_ns = record.totals.expired_until_ns});
  }
  unsent_.set_targets(std::move(all));
}

bool Forwarding::look(bool finds) {
  const Status looked = unsent_.look(finds);
  if (looked.ok() || looked.code() == StatusCode::Cancelled) return looked.ok();
  parts_.logger.log_keyed(
      observe::LogLevel::Warning, "forward", "unsent",
      "what waits for targets may go before it is sent, uncounted: " + looked.to_string());
  return false;
}

// Nobody else looks after what goes where a target is not configured.
void Forwarding::watch() {
  MutexLock lock(mutex_);
  while (is_running_) {
    lock.unlock();
    look();
    lock.lock();
    for (auto& [name, record] : resting_)
      if (unsent_.take(name, record.totals)) static_cast<void>(records_->write(name, record).ok());
    const CondVar::Deadline deadline = CondVar::deadline_in(unsent_.look_again_in_ns());
    while (is_running_ && changed_.wait_until(mutex_, deadline)) {
    }
  }
}

void Forwarding::start() {
  const MutexLock lock(mutex_);
  is_running_ = true;
  watch_ = std::thread([this] { watch(); });
  pthread_setname_np(watch_.native_handle(), "unsent");
  for (auto& [name, target] : targets_) {
    if (parts_.configured) parts_.configured(name, target->settings().to);
    target->start();
  }
}

void Forwarding::stop() {
  unsent_.stop();
  {
    const MutexLock lock(mutex_);
    is_running_ = false;
    changed_.notify_all();
    for (auto& [name, target] : targets_) target->stop();
  }
  if (watch_.joinable()) watch_.join();
}

Status Forwarding::reload(const std::vector<config::ForwardSettings>& all) {
  std::size_t number = 0;
  EC_TRY(check_targets(all, number));
  const MutexLock lock(mutex_);
  for (const config::ForwardSettings& each : all) EC_TRY(check_shape(each));
  const auto wanted = [&all](const std::string& name) {
    return std::find_if(all.begin(), all.end(),
                        [&name](const auto& each) { return each.name == name; });
  };
  std::vector<std::string> changed;
  for (auto& [name, target] : targets_) {
    const auto found = wanted(name);
    if (found == all.end() || !is_same(*found, target->settings())) changed.push_back(name);
  }
  for (const std::string& name : changed) {
    targets_[name]->stop();
    resting_[name] = targets_[name]->record();
    targets_.erase(name);
  }
  Status failed;
  for (const config::ForwardSettings& each : all) {
    if (targets_.contains(each.name)) continue;
    if (Status status = make(each, targets_); !status.ok()) {
      failed = std::move(status);
      continue;
    }
    Target& target = *targets_[each.name];
    bounds_.set(each.name, target.positions());
    if (parts_.configured) parts_.configured(each.name, each.to);
    target.start();
  }
  for (const std::string& name : changed) {
    if (targets_.contains(name)) continue;
    if (parts_.configured) parts_.configured(name, "");
    // Until its place is one range, merges respect the old ones.
    if (Status status = put_to_rest(name, resting_[name]); status.ok()) {
      bounds_.drop(name);
    } else {
      failed = std::move(status);
    }
  }
  set_aside();
  tell_erasures();
  tell_unsent();
  return failed;
}

std::vector<TargetStatus> Forwarding::list() const {
  const MutexLock lock(mutex_);
  std::map<std::string, TargetStatus> all;
  for (const auto& [name, target] : targets_) {
    all[name] = target->status();
    all[name].erasures = erasures_->waiting(name);
  }
  for (const auto& [name, record] : resting_) {
    TargetStatus& status = all[name];
    status.name = name;
    status.state = TargetState::AtRest;
    status.totals = record.totals;
    status.cursor = record.cursor;
    if (const auto sent = thinned_.sent_readings(name); sent.ok())
      status.thinned_sent = sent->value_or(0);
    status.erasures = erasures_->waiting(name);
  }
  for (auto& [name, status] : all) status.oldest_ns = unsent_.oldest_ns(name);
  std::vector<TargetStatus> list;
  for (auto& [name, status] : all) list.push_back(std::move(status));
  return list;
}

Result<std::shared_ptr<Target>> Forwarding::find(const std::string& name) const {
  const MutexLock lock(mutex_);
  if (const auto found = targets_.find(name); found != targets_.end()) return found->second;
  if (!resting_.contains(name)) return unknown_target(name);
  return not_found(name + " is not configured, its place alone is kept");
}

Result<std::uint64_t> Forwarding::waiting(const std::string& name) const {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Target> target, find(name));
  return target->waiting();
}

Status Forwarding::pause(const std::string& name) {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Target> target, find(name));
  target->pause();
  return ok();
}

Status Forwarding::resume(const std::string& name, bool undelivered) {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Target> target, find(name));
  target->resume(undelivered);
  return ok();
}

Result<Forwarding::Verified> Forwarding::verify(const std::string& name, VerifyRequest request) {
  EC_ASSIGN_OR_RETURN(const std::shared_ptr<Target> target, find(name));
  EC_ASSIGN_OR_RETURN(const config::ForwardTarget parsed,
                      config::parse_forward(target->settings()));
  EC_ASSIGN_OR_RETURN(std::unique_ptr<HttpTarget> made,
                      HttpTarget::create(target->settings(), parsed, parts_.clock));
  if (parsed.kind == config::ForwardKind::EdgeCase) {
    EC_ASSIGN_OR_RETURN(std::string line, lineage_.header(false));
    made->set_origin(std::move(line));
  }
  const std::shared_ptr<HttpTarget> http = std::move(made);
  {
    const MutexLock lock(mutex_);
    if (verifies_no_more_) return unavailable("the daemon stops");
    if (verifying_ != nullptr) return busy("a target is being verified, one at a time is");
    verifying_ = http;
  }
  const auto run = [&]() -> Result<Verified> {
    EC_ASSIGN_OR_RETURN(request.after, records_->begin(name));
    const TargetStatus status = target->status();
    request.upto = status.cursor.oldest();
    request.shown = status.shown;
    request.wait = [this](std::int64_t duration_ns) {
      const CondVar::Deadline deadline = CondVar::deadline_in(duration_ns);
      const MutexLock lock(mutex_);
      while (!verifies_no_more_ && changed_.wait_until(mutex_, deadline)) {
      }
      return !verifies_no_more_;
    };
    request.is_refused = [&](const Place& place) { return records_->is_refused(name, place); };
    EC_ASSIGN_OR_RETURN(const Shape shape, records_->shape(name));
    Verifier verifier(parts_.engine, parts_.catalog, parts_.clock, *http, target->settings(),
                      parsed, shape, parts_.rules, &thinned_);
    Verified verified;
    EC_ASSIGN_OR_RETURN(verified.page, verifier.page(request));
    EC_ASSIGN_OR_RETURN(const std::size_t kept, records_->count_refusals(name));
    std::vector<Refusal> again = verified.page.again;
    again.resize(std::min(again.size(), kUndeliveredMax - std::min(kept, kUndeliveredMax)));
    if (again.empty()) return verified;
    EC_TRY(records_->add_refusals(name, again));
    verified.sent_again = again.size();
    target->resend();
    return verified;
  };
  Result<Verified> result = run();
  const MutexLock lock(mutex_);
  verifying_.reset();
  return result;
}

void Forwarding::end_verifying() {
  const MutexLock lock(mutex_);
  verifies_no_more_ = true;
  changed_.notify_all();
  if (verifying_ != nullptr) verifying_->stop();
}

Status Forwarding::forget(const std::string& name) {
  const MutexLock lock(mutex_);
  if (targets_.contains(name))
    return invalid_argument(name +
                            " is configured; to do: take it out of the configuration, "
                            "reload, then forget it");
  if (!resting_.contains(name)) return unknown_target(name);
  EC_TRY(erasures_->forget(name));
  EC_TRY(summaries_.forget(name));
  EC_TRY(thinned_.forget(name));
  EC_TRY(records_->forget(name));
  resting_.erase(name);
  bounds_.drop(name);
  tell_erasures();
  tell_unsent();
  return ok();
}

Result<std::vector<UndeliveredReading>> Forwarding::undelivered(const std::string& name,
                                                                std::size_t most) const {
  {
    const MutexLock lock(mutex_);
    if (!targets_.contains(name) && !resting_.contains(name)) return unknown_target(name);
  }
  EC_ASSIGN_OR_RETURN(const std::vector<Refusal> refusals, records_->refusals(name, {}, most));
  SeriesNames names(parts_.catalog, {});
  std::vector<UndeliveredReading> readings;
  for (const Refusal& each : refusals) {
    wire::ReadingKey key;
    if (!wire::decode_reading_key(each.place.key, key)) continue;
    const auto* series = names.find({each.place.namespace_id, key.device, key.sensor});
    if (series == nullptr) continue;  // erased since
    readings.push_back({series->entry, key.time_ns, each.at_ns, each.status});
  }
  return readings;
}

}  // namespace edgecase::forward
