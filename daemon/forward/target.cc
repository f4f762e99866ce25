#include "forward/target.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/authority.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kNsPerDay = 86'400 * wire::kNanosecondsPerSecond;
constexpr std::int64_t kNamelessLookNs = 5'000'000;
constexpr const char* kComponent = "forward";

// Where it is not known, nothing is held back from verify().
CommitPosition began_behind(const Records& records, const std::string& name) {
  const auto position = records.begin(name);
  return position.ok() ? *position : 0;
}

// The last key of what a line stands for.
Bytes last_of(const Batch& batch, const Batch::Line& line) {
  wire::ReadingKey key = line.key;
  if (batch.window_ns > 0 &&
      __builtin_add_overflow(key.time_ns, batch.window_ns - 1, &key.time_ns)) {
    key.time_ns = INT64_MAX;
  }
  return wire::make_reading_key(key);
}

}  // namespace

Result<std::unique_ptr<Target>> Target::create(const TargetParts& parts,
                                               const config::ForwardSettings& settings,
                                               Record record) {
  EC_ASSIGN_OR_RETURN(const config::ForwardTarget target, config::parse_forward(settings));
  EC_ASSIGN_OR_RETURN(std::unique_ptr<HttpTarget> http,
                      HttpTarget::create(settings, target, parts.clock));
  EC_ASSIGN_OR_RETURN(const Shape shape, parts.records.shape(settings.name));
  return std::unique_ptr<Target>(
      new Target(parts, settings, target, shape, std::move(http), std::move(record)));
}

Target::Target(const TargetParts& parts, const config::ForwardSettings& settings,
               const config::ForwardTarget& target, const Shape& shape,
               std::unique_ptr<HttpTarget> http, Record record)
    : parts_(parts),
      settings_(settings),
      target_(target),
      settle_ns_(target.kind == config::ForwardKind::EdgeCase ? 0 : kSettleNs),
      is_local_(wire::is_loopback(target.host)),
      began_behind_(began_behind(parts.records, settings.name)),
      http_(std::move(http)),
      record_(std::move(record)),
      live_(record_.cursor),
      shown_(live_.oldest()),
      answered_upto_(shown_),
      answered_upto_ns_(parts.clock.boot_ns()),
      reader_(parts.engine, parts.catalog, settings, target, shape, parts.rules, &parts.thinned),
      courier_(*http_),
      thinned_({.engine = parts.engine,
                .catalog = parts.catalog,
                .thinned = parts.thinned,
                .rules = parts.rules,
                .every_ns = shape.every_ns,
                .keeps_names = target.kind == config::ForwardKind::EdgeCase},
               settings.name, settle_ns_),
      eraser_(*http_, settings, target, shape, &thinned_),
      summarizer_({.engine = parts.engine,
                   .catalog = parts.catalog,
                   .clock = parts.clock,
                   .logger = parts.logger,
                   .records = parts.records,
                   .summaries = parts.summaries,
                   .lineage = parts.lineage,
                   .rules = parts.rules},
                  settings, target, shape, began_behind_),
      pace_(parts.random, is_local_, target.budget_bytes_per_second),
      is_paused_(record_.is_paused) {
  if (record_.is_paused) state_ = TargetState::Paused;
  told_.name = settings.name;
  told_.to = settings.to;
  if (const auto kept = parts.records.refusals(settings.name, {}, kUndeliveredMax); kept.ok()) {
    kept_refusals_ = kept->size();
    const bool has_missing = std::any_of(kept->begin(), kept->end(), is_missing);
    if (has_missing) again_ = Again::Missing;
  }
  tell();
}

FeedBounds::Positions Target::positions() const {
  FeedBounds::Positions all = live_.bounds();
  all.push_back(began_behind_);
  for (const CommitPosition each : summarizer_.positions()) all.push_back(each);
  if (boundary_) all.push_back(*boundary_);
  if (round_upto_ != 0) all.push_back(round_.boundary);
  for (const Cursor* each : {&record_.cursor, settling_ ? &*settling_ : nullptr}) {
    if (each == nullptr) continue;
    const auto more = each->bounds();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void Target::publish_bounds() {
  published_at_ns_ = parts_.clock.boot_ns();
  parts_.bounds.set(settings_.name, positions());
}

void Target::start() {
  // Where it settles, its place is the kept one again: so are erasures.
  parts_.erasures.ask_again(settings_.name);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "forward");
}

void Target::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  http_->stop();
  parts_.bell.ring();
  if (thread_.joinable()) thread_.join();
}

bool Target::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Target::set_paused(bool paused, Again which) {
  {
    const MutexLock lock(mutex_);
    is_paused_ = paused;
    is_hurried_ = is_hurried_ || !paused;
    again_ = std::max(again_, which);
    changed_.notify_all();
  }
  parts_.bell.ring();
}

void Target::resend() {
  {
    const MutexLock lock(mutex_);
    again_ = std::max(again_, Again::Missing);
  }
  parts_.bell.ring();
}

void Target::run() {
  today_ = parts_.clock.wall_ns() / kNsPerDay;
  revocations_ = parts_.engine.revocations();
  while (!is_stopping()) {
    const std::uint64_t rings = parts_.bell.rings();
    const Turn turn = work();
    if (settle_erasures()) keep_place(false);
    if (const Status kept = thinned_.keep(parts_.clock.boot_ns()); !kept.ok()) fail(kept);
    look_at_certificates();
    if (parts_.clock.boot_ns() - published_at_ns_ > kPublishNs) publish_bounds();
    tell_sent(false);
    note_unsent();
    tell();
    if (turn == Turn::Sent) continue;
    const std::int64_t rest_ns = rests_until_ns_ - parts_.clock.boot_ns();
    if (rest_ns > 0) {
      pause_for(std::min(rest_ns, kLookNs));
    } else if (parts_.bell.wait(rings, kLookNs)) {
      pause_for(pace_.gather_ns());
    }
  }
  note_unsent();
  keep_place(true);
  tell_sent(true);
}

void Target::pause_for(std::int64_t duration_ns) {
  MutexLock lock(mutex_);
  if (!stopping_ && !is_hurried_) changed_.wait_for(mutex_, duration_ns);
}

// What somebody said since the last turn; whether anything is to be sent now.
bool Target::take_orders() {
  bool is_paused = false, is_hurried = false;
  {
    const MutexLock lock(mutex_);
    is_paused = is_paused_;
    is_hurried = std::exchange(is_hurried_, false);
  }
  if (is_paused != record_.is_paused) {
    record_.is_paused = is_paused;
    static_cast<void>(keep(record_.cursor).ok());
  }
  if (is_hurried) {
    rests_until_ns_ = 0;
    pace_.hurry();
  }
  const std::int64_t now_ns = parts_.clock.boot_ns();
  if (is_paused) rest_until(now_ns + kLookNs, TargetState::Paused, "");
  if (const std::int64_t until_ns = pace_.budget_until_ns();
      now_ns < until_ns && rests_until_ns_ < until_ns) {
    rest_until(until_ns, TargetState::Sending, "");
  }
  return now_ns >= rests_until_ns_;
}

Target::Turn Target::work() {
  if (target_.every_ns > 0) note_window();
  if (const std::uint64_t count = parts_.engine.revocations(); count != revocations_) {
    revocations_ = count;
    reader_.forget();
    courier_.forget();
    refused_why_.clear();
  }
  if (http_->lost_connections() != lost_connections_) {
    lost_connections_ = http_->lost_connections();
    go_back();
  }
  if (!take_orders()) return Turn::Idle;
  if (const Status status = introduce(); !status.ok()) {
    fail(status);
    return Turn::Failed;
  }
  if (const auto order = parts_.erasures.next(settings_.name)) return send_erasure(*order);
  if (const auto lift = parts_.erasures.next_lift(settings_.name))
    return send_lift(lift->first, lift->second);
  if (again_now_ == Again::Nothing) {
    const MutexLock lock(mutex_);
    again_now_ = std::exchange(again_, Again::Nothing);
    if (again_now_ != Again::Nothing) show_later();
  }
  if (again_now_ != Again::Nothing) return send_again();
  if (has_summaries()) return send_summaries();
  const bool is_thinned = target_.every_ns > 0;
  const bool has_fresh =
      is_thinned ? has_windows() : parts_.engine.committed() > live_.fresh_after();
  if (has_later() && (!has_fresh || is_backlogs_turn_ || !settings_.fresh_first))
    return thinned_.has_work() && (live_.backlog().empty() || !was_thinned_) ? send_thinned()
                                                                             : send_backlog();
  if (has_fresh) return is_thinned ? send_windows() : send_fresh();
  if (has_rules()) return send_rules();
  note_current();
  return Turn::Idle;
}

Status Target::introduce() {
  if (is_introduced_ || target_.kind != config::ForwardKind::EdgeCase) return ok();
  EC_ASSIGN_OR_RETURN(std::string line, parts_.lineage.header(false));
  http_->set_origin(std::move(line));
  is_introduced_ = true;
  return ok();
}

void Target::note_current() {
  state_ = TargetState::Current;
  why_.clear();
}

// Errors end the turn.
Result<Batch> Target::read(BatchReader::Wish wish) {
  const std::int64_t now_ns = parts_.clock.boot_ns();
  wish.lines_max = pace_.lines_max();
  wish.skips_nameless = nameless_since_ns_ != 0 && now_ns - nameless_since_ns_ > kNamelessNs;
  Result<Batch> batch = reader_.read(wish);
  if (batch.status().code() == StatusCode::Busy) {
    if (nameless_since_ns_ == 0) nameless_since_ns_ = now_ns;
    rests_until_ns_ = now_ns + kNamelessLookNs;
    return batch;
  }
  if (!batch.ok()) {
    fail(batch.status());
    return batch;
  }
  nameless_since_ns_ = 0;
  return batch;
}

Target::Turn Target::send_fresh() {
  const CommitPosition upto = parts_.bounds.mark(settings_.name);
  // What was committed after an erasure may lie before the mark.
  if (has_erasure()) return Turn::Sent;
  Result<Batch> batch = read({.after = live_.fresh_after(), .upto = upto});
  if (!batch.ok()) return Turn::Failed;
  if (!send(*batch)) return Turn::Failed;
  if (batch->is_whole) {
    live_.fresh_done(upto);
  } else {
    live_.fresh_part(upto, std::move(batch->last));
  }
  publish_bounds();
  // Where more is new than goes at once, what is new stays first.
  is_backlogs_turn_ = batch->is_whole;
  if (has_later()) return Turn::Sent;
  note_current();
  return Turn::Idle;
}

// The oldest first.
Target::Turn Target::send_backlog() {
  const Backlog range = live_.backlog().front();
  Result<Batch> batch = read({.after = range.after, .upto = range.upto, .behind = range.done_to});
  if (!batch.ok()) return Turn::Failed;
  if (!send(*batch)) return Turn::Failed;
  if (batch->is_whole) {
    live_.backlog_done(0);
  } else {
    live_.backlog_part(0, std::move(batch->last));
  }
  publish_bounds();
  is_backlogs_turn_ = was_thinned_ = false;
  return Turn::Sent;
}

// Whether all of it may be sent still: nothing of it was erased since it was read.
bool Target::still_holds(const Batch& batch) {
  if (parts_.engine.revocations() == batch.revocations) return true;
  courier_.forget();
  for (std::size_t begin = 0; begin < batch.lines.size();) {
    std::size_t end = begin + 1;
    while (end < batch.lines.size() &&
           batch.lines[end].namespace_id == batch.lines[begin].namespace_id) {
      ++end;
    }
    if (parts_.engine.is_revoked(batch.lines[begin].namespace_id, place_of(batch.lines[begin]).key,
                                 last_of(batch, batch.lines[end - 1]), batch.revocations)) {
      return false;
    }
    begin = end;
  }
  return true;
}

std::optional<Delivery> Target::send(const Batch& batch, Refusals refusals) {
  record_.totals.unfit += batch.unfit;
  if (batch.unfit > 0) is_unkept_ = true;
  const UnsentCounts unsent_before = record_.totals.unsent;
  if (add(batch.unsent, record_.totals)) is_unkept_ = true;
  if (batch.lines.empty()) return Delivery{};
  state_ = TargetState::Sending;
  const std::uint64_t bytes_before = http_->sent_bytes();
  const std::int64_t begun_ns = parts_.clock.boot_ns();
  const Delivery delivery = courier_.deliver(batch, [&] { return still_holds(batch); });
  const std::uint64_t bytes = http_->sent_bytes() - bytes_before;
  const std::int64_t now_ns = parts_.clock.boot_ns();
  pace_.sent(now_ns, now_ns - begun_ns, bytes);
  record_.totals.bytes += bytes;
  is_unkept_ = is_unsettled_ = true;
  ++requests_;
  if (delivery.last.verdict != Verdict::Taken) {
    record_.totals.unfit -= batch.unfit;  // it is read again
    record_.totals.unsent = unsent_before;
    ++failed_requests_;
    fail(delivery.last, delivery.refuses_all);
    return std::nullopt;
  }
  if (!delivery.refused.empty()) refused_why_ = delivery.refused_why;
  if (refusals == Refusals::AreNew) {
    if (const Status status = set_aside(batch, delivery); !status.ok()) {
      fail(status);
      return std::nullopt;
    }
  }
  if (!carry_rules(batch)) return std::nullopt;  // the batch goes again, which changes nothing
  note_known(delivery);
  pace_.taken(now_ns - begun_ns);
  rests_until_ns_ = 0;
  answered_ns_ = parts_.clock.wall_ns();
  why_.clear();
  record_.totals.readings += delivery.taken;
  record_.totals.not_kept += delivery.not_kept;
  sent_today_ += delivery.taken;
  return delivery;
}

// Durable before the place moves past them.
Status Target::set_aside(const Batch& batch, const Delivery& delivery) {
  if (delivery.refused.empty()) return ok();
  std::vector<Refusal> refusals;
  for (const auto& [line, status] : delivery.refused) {
    if (kept_refusals_ + refusals.size() == kUndeliveredMax) break;
    refusals.push_back(
        {place_of(batch.lines[line]), static_cast<std::uint16_t>(status), parts_.clock.wall_ns()});
  }
  EC_TRY(parts_.records.add_refusals(settings_.name, refusals));
  kept_refusals_ += refusals.size();
  record_.totals.undelivered += delivery.refused.size();
  parts_.logger.log_keyed(
      observe::LogLevel::Warning, kComponent, "refused " + settings_.name,
      settings_.name + " refuses readings (" + std::to_string(delivery.refused.front().second) +
          "), the others go on; to do: edgecase forward status " + settings_.name);
  return ok();
}

void Target::fail(const Answer& answer, bool refuses_all) {
  if (answer.verdict == Verdict::Taken || answer.verdict == Verdict::Stopped) return;
  const std::int64_t until_ns = parts_.clock.boot_ns() + pace_.rest_ns(answer);
  std::string why = answer.why;
  switch (answer.verdict) {
    case Verdict::Stale: rests_until_ns_ = until_ns; return;
    case Verdict::Denied: rest_until(until_ns, TargetState::Denied, why); break;
    case Verdict::Refused:
    case Verdict::Wrong: rest_until(until_ns, TargetState::Wrong, why); break;
    case Verdict::Away: go_back(); [[fallthrough]];
    default: rest_until(until_ns, TargetState::Waiting, why); break;
  }
  // What it says of a line may name whose it is: that is for the status alone.
  if (refuses_all)
    why = "it refuses whatever is sent (" + std::to_string(answer.status) +
          "); to do: look at forward.to and forward.database";
  parts_.logger.log_keyed(observe::LogLevel::Warning, kComponent, settings_.name,
                          "nothing goes to " + settings_.name + ", it waits here: " + why);
}

void Target::fail(const Status& status) {
  rest_until(parts_.clock.boot_ns() + kLookNs, TargetState::Failing, status.message());
  parts_.logger.log_keyed(observe::LogLevel::Warning, kComponent, settings_.name,
                          "nothing goes to " + settings_.name + ": " + status.to_string());
}

// What was answered and may not have been synced there goes again.
void Target::go_back() {
  if (settle_ns_ == 0) return;
  thinned_.go_back();
  if (!settling_erasures_.empty()) parts_.erasures.ask_again(settings_.name);
  settling_erasures_.clear();
  if (live_ == record_.cursor) return;
  live_ = record_.cursor;
  show_later();
  settling_.reset();
  forget_round();
  publish_bounds();
}

void Target::rest_until(std::int64_t boot_ns, TargetState state, std::string why) {
  rests_until_ns_ = boot_ns;
  state_ = state;
  why_ = std::move(why);
}

void Target::keep_place(bool is_last) {
  const std::int64_t now_ns = parts_.clock.boot_ns();
  const bool moved = live_ != record_.cursor;
  if (settle_ns_ == 0) {
    const std::int64_t every_ns = is_unkept_ ? kKeepEveryNs : kKeepIdleNs;
    const bool is_due = is_last || now_ns - kept_at_ns_ >= every_ns;
    if (is_due && (moved || is_unkept_)) static_cast<void>(keep(live_).ok());
    return;
  }
  if (settling_ && now_ns - settling_since_ns_ >= settle_ns_) {
    if (keep(*settling_).ok()) settling_.reset();
    publish_bounds();
    return;
  }
  if (!settling_ && moved && (is_unsettled_ || now_ns - kept_at_ns_ >= kKeepIdleNs)) {
    settling_ = live_;
    settling_since_ns_ = now_ns;
    is_unsettled_ = false;
    publish_bounds();
  }
  if (is_last && is_unkept_) static_cast<void>(keep(record_.cursor).ok());
}

Status Target::keep(const Cursor& cursor) {
  kept_at_ns_ = parts_.clock.boot_ns();
  Record next = record_;
  next.cursor = cursor;
  if (const Status status = parts_.records.write(settings_.name, next); !status.ok()) {
    parts_.logger.log_keyed(
        observe::LogLevel::Warning, kComponent, "place " + settings_.name,
        "the place of " + settings_.name +
            " is not kept, after a restart readings go there twice: " + status.to_string());
    return status;
  }
  record_ = std::move(next);
  is_unkept_ = false;
  publish_bounds();
  return ok();
}

// Durable at once: it will not be counted again.
void Target::note_unsent() {
  parts_.unsent.set_cursor(settings_.name, live_, settled());
  if (parts_.unsent.take(settings_.name, record_.totals))
    static_cast<void>(keep(record_.cursor).ok());
}

void Target::tell_sent(bool is_last) {
  const std::int64_t day = parts_.clock.wall_ns() / kNsPerDay;
  if (day == today_ && !is_last) return;
  today_ = day;
  if (sent_today_ > 0 && parts_.sent) parts_.sent(settings_.name, sent_today_);
  sent_today_ = 0;
}

}  // namespace edgecase::forward
