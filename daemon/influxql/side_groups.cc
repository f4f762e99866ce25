#include "influxql/side_groups.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <utility>

#include "influxql/select_plan.h"

namespace edgecase::influxql {
namespace {

// Rows that wait for the answer to come to them: about a megabyte.
constexpr std::size_t kWaitingRowsMax = 32u << 10;

struct Piece {
  std::size_t place = 0;
  bool is_last = false;  // of its group
  Status status;
  UnitKey key;
  NumberRows rows;
  query::GivenReadings given;
  query::LeftOut left_out;
  query::TierNote tiers;
  std::uint64_t points = 0;
};

// The turn of the second thread, until it is told to stop.
class SideTurn final : public Patience {
 public:
  explicit SideTurn(std::unique_ptr<Patience> turn) : turn_(std::move(turn)) {}
  Status go_on() override {
    if (is_stopped_.load(std::memory_order_relaxed))
      return {StatusCode::Cancelled, "nobody wants it any more"};
    return turn_->go_on();
  }
  void rest() override { turn_->rest(); }
  void resume() override { turn_->resume(); }
  void stop() { is_stopped_.store(true, std::memory_order_relaxed); }
  // Nobody is asked any more: whose turn it is may be gone soon.
  void give_back() { turn_.reset(); }

 private:
  std::unique_ptr<Patience> turn_;
  std::atomic<bool> is_stopped_{false};
};

}  // namespace

struct SideGroups::State {
  State(query::QueryService& of_service, const Asking& of_asking, std::unique_ptr<Patience> of_turn)
      : service(of_service), asking(of_asking), turn(std::move(of_turn)) {
    reach.patience = &turn;
    asking.reach = &reach;
  }

  void run(std::unique_ptr<SelectStatement> statement, std::size_t groups);
  // The next one of this thread. One is left in between: who answers would wait for each otherwise.
  std::optional<std::size_t> begin_next(std::size_t groups) EC_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (next_place < unbegun) next_place = std::min(unbegun + 1, groups - 1);
    if (next_place < unbegun || next_place >= groups) return std::nullopt;
    begun.push_back(next_place);
    next_place += 2;
    return begun.back();
  }
  Status make(SelectPlan& plan, ReadingAccount& account, std::size_t place);
  // Waits where too many are there. Cancelled: it was stopped.
  Status push(Piece piece, ReadingAccount& account) EC_EXCLUDES(mutex);
  // Waits for the next piece. False: it has ended, and that was all.
  bool pop(Piece& piece, Patience* patience) EC_EXCLUDES(mutex);
  void end() EC_EXCLUDES(mutex) {
    turn.give_back();
    const MutexLock lock(mutex);
    has_ended = true;
    changed.notify_all();
  }

  query::QueryService& service;
  Asking asking;
  query::Reach reach;
  SideTurn turn;
  Mutex mutex;
  CondVar changed;
  std::deque<Piece> pieces EC_GUARDED_BY(mutex);
  std::size_t rows_waiting EC_GUARDED_BY(mutex) = 0;
  bool is_stopped EC_GUARDED_BY(mutex) = false;
  bool has_ended EC_GUARDED_BY(mutex) = false;
  std::deque<std::size_t> begun EC_GUARDED_BY(mutex);
  std::size_t next_place EC_GUARDED_BY(mutex) = 0;
  std::size_t unbegun EC_GUARDED_BY(mutex) = 0;  // where who answers has not come to
};

void SideGroups::State::run(std::unique_ptr<SelectStatement> statement, std::size_t groups) {
  ReadingAccount account(service, asking);
  auto plan = SelectPlan::make(account, std::move(statement), {});
  // What fails here, the thread that answers finds out by itself.
  if (!plan.ok() || !(*plan)->choose().ok() || (*plan)->size() != groups) return;
  while (const auto place = begin_next(groups)) {
    const Status made = make(**plan, account, *place);
    if (made.ok()) continue;
    Piece failed;
    failed.place = *place;
    failed.status = made;
    static_cast<void>(push(std::move(failed), account));
    return;
  }
}

Status SideGroups::State::make(SelectPlan& plan, ReadingAccount& account, std::size_t place) {
  const std::size_t group = plan.is_descending() ? plan.size() - 1 - place : place;
  EC_ASSIGN_OR_RETURN(const UnitKey key, plan.key(group));
  account.begin_group();
  EC_ASSIGN_OR_RETURN(std::unique_ptr<PointSource> rows, plan.open(group));
  NumberRows ahead;
  std::uint64_t points = account.points() + account.groups();
  EC_ASSIGN_OR_RETURN(bool has_more, rows->next_many(ahead));
  do {
    EC_TRY(turn.go_on());
    Piece piece;
    piece.place = place;
    piece.key = key;
    std::swap(piece.rows, ahead);
    if (has_more) {
      EC_ASSIGN_OR_RETURN(has_more, rows->next_many(ahead));
    }
    if (account.is_damaged() && !plan.tells_lacks()) return account.left_out().status();
    const std::uint64_t all = account.points() + account.groups();
    piece.points = all - std::exchange(points, all);
    if (!has_more) {
      rows.reset();
      account.begin_group();
      piece.is_last = true;
      piece.left_out = account.left_out();
      piece.tiers = account.tiers();
    }
    piece.given = account.take_given();
    EC_TRY(push(std::move(piece), account));
  } while (has_more);
  return ok();
}

Status SideGroups::State::push(Piece piece, ReadingAccount& account) {
  MutexLock lock(mutex);
  if (rows_waiting > kWaitingRowsMax && !is_stopped) {
    lock.unlock();
    account.let_go();
    turn.rest();
    lock.lock();
    while (rows_waiting > kWaitingRowsMax && !is_stopped) changed.wait(mutex);
    lock.unlock();
    turn.resume();
    lock.lock();
  }
  if (is_stopped) return {StatusCode::Cancelled, "nobody wants it any more"};
  rows_waiting += piece.rows.size();
  pieces.push_back(std::move(piece));
  // A thread that wakes up under the lock waits once more.
  lock.unlock();
  changed.notify_all();
  return ok();
}

bool SideGroups::State::pop(Piece& piece, Patience* patience) {
  MutexLock lock(mutex);
  if (pieces.empty() && !has_ended) {
    lock.unlock();
    if (patience != nullptr) patience->rest();
    lock.lock();
    while (pieces.empty() && !has_ended) changed.wait(mutex);
    lock.unlock();
    if (patience != nullptr) patience->resume();
    lock.lock();
  }
  if (pieces.empty()) return false;
  piece = std::move(pieces.front());
  pieces.pop_front();
  const bool was_full = rows_waiting > kWaitingRowsMax;
  rows_waiting -= piece.rows.size();
  lock.unlock();
  if (was_full) changed.notify_all();
  return true;
}

std::unique_ptr<SideGroups> SideGroups::start(query::QueryService& service, const Asking& asking,
                                              std::unique_ptr<SelectStatement> statement,
                                              std::size_t first, std::size_t groups) {
  std::unique_ptr<Patience> turn = asking.reach->second_turn();
  if (turn == nullptr) return nullptr;
  auto state = std::make_shared<State>(service, asking, std::move(turn));
  {
    const MutexLock lock(state->mutex);
    state->next_place = state->unbegun = first;
  }
  // A function that can be copied holds it.
  auto held = std::make_shared<std::unique_ptr<SelectStatement>>(std::move(statement));
  const bool is_started = service.side_thread().try_start([state, held, groups] {
    state->run(std::move(*held), groups);
    state->end();
  });
  if (!is_started) return nullptr;
  return std::unique_ptr<SideGroups>(new SideGroups(std::move(state), first));
}

SideGroups::~SideGroups() {
  state_->turn.stop();
  MutexLock lock(state_->mutex);
  state_->is_stopped = true;
  state_->changed.notify_all();
  while (!state_->has_ended) state_->changed.wait(state_->mutex);
}

bool SideGroups::has_begun(std::size_t place) {
  if (place < first_) return false;
  const MutexLock lock(state_->mutex);
  state_->unbegun = place + 1;
  std::deque<std::size_t>& begun = state_->begun;
  while (!begun.empty() && begun.front() < place) begun.pop_front();
  return !begun.empty() && begun.front() == place;
}

Result<SideGroups::Taken> SideGroups::next(std::size_t place, const UnitKey& key,
                                           ReadingAccount& account, query::GivenReadings& given,
                                           NumberRows& rows) {
  if (ended_ == place) return Taken::End;
  Piece piece;
  do {
    if (!state_->pop(piece, account.asking().reach->patience)) return Taken::NotMade;
    EC_TRY(piece.status);
  } while (piece.place < place);  // nobody wanted the rest of that group
  // Series came or went since the answer's own plan was made: that plan holds.
  if (piece.place != place || piece.key.name != key.name || piece.key.tags != key.tags)
    return Taken::NotMade;
  given = piece.given;
  EC_TRY(account.add(piece.given, piece.left_out, piece.tiers, piece.points));
  if (piece.is_last) ended_ = place;
  if (piece.rows.empty()) return Taken::End;
  std::swap(rows, piece.rows);
  return Taken::Rows;
}

}  // namespace edgecase::influxql
