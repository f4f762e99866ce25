#include "http/lanes.h"

#include <poll.h>

#include <utility>

#include "edgecase/machine.h"
#include "http/router.h"

namespace edgecase::http {
namespace {

// Others get their turn, and the client is looked at, as often.
constexpr std::int64_t kTurnNs = 5'000'000;
// Time for a client that has ended its side to be sent something; then it has left.
constexpr std::int64_t kEndedNs = 60'000'000;

}  // namespace

Lane lane_of(const RequestHead& head) {
  if (const Route* const route = find_route(head.method, head.path)) return route->lane;
  const bool is_read = head.method == "GET" || head.method == "HEAD" || head.method == "OPTIONS";
  return is_read ? Lane::Reads : Lane::Changes;
}

void ReadSlots::take() {
  const MutexLock lock(mutex_);
  if (free_ > 0 && waiters_.empty()) {
    --free_;
    return;
  }
  const auto own = waiters_.emplace(waiters_.end());
  while (!own->is_called) called_.wait(mutex_);
  waiters_.erase(own);
}

bool ReadSlots::try_take() {
  const MutexLock lock(mutex_);
  if (free_ == 0 || !waiters_.empty()) return false;
  --free_;
  return true;
}

void ReadSlots::give_back() {
  {
    const MutexLock lock(mutex_);
    for (Waiter& waiter : waiters_) {
      if (waiter.is_called) continue;
      waiter.is_called = true;  // the slot is handed on
      called_.notify_all();
      return;
    }
    ++free_;
  }
}

bool ReadSlots::is_wanted() const {
  const MutexLock lock(mutex_);
  return !waiters_.empty() && !waiters_.back().is_called;
}

std::size_t ReadSlots::waiting() const {
  const MutexLock lock(mutex_);
  return waiters_.size();
}

ReadTurn::ReadTurn(ReadSlots& slots, std::function<bool()> has_left)
    : slots_(slots), has_left_(std::move(has_left)) {
  slots_.take();
  looked_ns_ = system_clock().boot_ns();
}

ReadTurn::ReadTurn(ReadSlots& slots) : slots_(slots), looked_ns_(system_clock().boot_ns()) {}

std::unique_ptr<ReadTurn> ReadTurn::second(ReadSlots& slots) {
  if (!slots.try_take()) return nullptr;
  return std::unique_ptr<ReadTurn>(new ReadTurn(slots));
}

ReadTurn::~ReadTurn() {
  if (has_slot_) slots_.give_back();
}

Status ReadTurn::go_on() {
  if (system_clock().boot_ns() - looked_ns_ < kTurnNs) return ok();
  if (has_left_ && has_left_()) return {StatusCode::Cancelled, "the client has left"};
  if (has_slot_ && slots_.is_wanted()) {
    rest();
    resume();
  }
  looked_ns_ = system_clock().boot_ns();
  return ok();
}

void ReadTurn::rest() {
  if (!std::exchange(has_slot_, false)) return;
  slots_.give_back();
}

void ReadTurn::resume() {
  if (std::exchange(has_slot_, true)) return;
  slots_.take();
}

bool LeavingClient::has_left() {
  pollfd asked{descriptor_, POLLRDHUP, 0};
  if (poll(&asked, 1, 0) <= 0) return false;
  if ((asked.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return true;
  if ((asked.revents & POLLRDHUP) == 0) return false;
  const std::int64_t now_ns = system_clock().boot_ns();
  // Had it left, what was sent would have come back as an error by now.
  const bool was_sent = std::exchange(sent_before_, sent_bytes_) != sent_bytes_;
  if (ended_ns_ == 0 || was_sent) ended_ns_ = now_ns;
  return now_ns - ended_ns_ > kEndedNs;
}

RunningQuery::~RunningQuery() {
  table_.end(*this);
}

Status RunningQuery::go_on() {
  if (is_killed_.load(std::memory_order_relaxed)) return cancelled("query killed");
  return behind_ == nullptr ? ok() : behind_->go_on();
}

void RunningQuery::rest() {
  if (behind_ != nullptr) behind_->rest();
}

void RunningQuery::resume() {
  if (behind_ != nullptr) behind_->resume();
}

std::shared_ptr<RunningQuery> RunningQueries::begin(std::string_view text,
                                                    std::string_view database,
                                                    const auth::Principal& asker, Patience* behind,
                                                    std::int64_t now_ns) {
  std::shared_ptr<RunningQuery> query(new RunningQuery(*this, behind));
  query->text_ = text.substr(0, kTextMaxBytes);
  query->database_ = database;
  query->asker_ = asker.name;
  query->begun_ns_ = now_ns;
  const MutexLock lock(mutex_);
  query->id_ = ++last_id_;
  running_.push_back(query.get());
  return query;
}

std::vector<RunningQueries::Told> RunningQueries::tell(const auth::Principal& asker,
                                                       std::int64_t now_ns) const {
  const bool is_administrator = auth::authorize_administration(asker).ok();
  std::vector<Told> told;
  const MutexLock lock(mutex_);
  for (const RunningQuery* query : running_) {
    if (!is_administrator && query->asker_ != asker.name) continue;
    told.push_back({query->id_, query->text_, query->database_, now_ns - query->begun_ns_,
                    query->is_killed_.load(std::memory_order_relaxed)});
  }
  return told;
}

Status RunningQueries::kill(std::int64_t id, const auth::Principal& asker) {
  const bool is_administrator = auth::authorize_administration(asker).ok();
  const MutexLock lock(mutex_);
  for (RunningQuery* query : running_) {
    if (static_cast<std::int64_t>(query->id_) != id) continue;
    if (!is_administrator && query->asker_ != asker.name) break;
    query->is_killed_.store(true, std::memory_order_relaxed);
    return ok();
  }
  return not_found("no such query id: " + std::to_string(id));
}

void RunningQueries::end(const RunningQuery& query) {
  const MutexLock lock(mutex_);
  std::erase(running_, &query);
}

}  // namespace edgecase::http
