// Groups of a plan: choosing what is read of them, from the outside in, and reading it; and those
// that a second thread works out meanwhile (SideGroups).

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "influxql/select_plan.h"

namespace edgecase::influxql {

// Whether a function takes it. A tag only where a statement in brackets gives it; and a number
// becomes neither a text nor a truth value, nor they each other.
Result<bool> SelectPlan::is_value(const Expr& name, const Column& column) const {
  if (column.is_tag) return has_inner_;
  if (column.kind != Cell::Kind::Text && column.kind != Cell::Kind::Bool) return true;
  EC_ASSIGN_OR_RETURN(const NameKind stored, stored_kind(name));
  return stored.is_tag || stored.kind == column.kind;
}

Result<FunctionPlan> SelectPlan::make_functions() const {
  Windows windows;
  windows.every_ns = choice_.every_ns;
  windows.offset_ns = choice_.offset_ns;
  windows.zone = zone();
  windows.span = span_;
  windows.is_descending = is_descending_;
  windows.fill = statement_->has_fill ? statement_->fill : Fill::Null;
  windows.has_fill = statement_->has_fill;
  windows.fill_number = statement_->fill_number;
  windows.fill_is_integer = statement_->fill_is_integer;
  windows.is_inherited = choice_.every_ns > 0 && grouping_.every_ns == 0;
  windows.limit = statement_->limit;
  windows.offset = statement_->offset;
  // What is null there, the statement around it leaves out anyway.
  if (is_inner_ && windows.fill == Fill::Null) {
    windows.fill = Fill::None;
    windows.has_fill = true;
  }
  return FunctionPlan::make(
      leaves_,
      [this](const Expr& name) -> Result<ColumnPlace> {
        const auto at = std::find(choice_.columns.begin(), choice_.columns.end(), column_of(name));
        if (at == choice_.columns.end()) return invalid_argument("no such name: " + name.text);
        EC_ASSIGN_OR_RETURN(const bool may_be_taken, is_value(name, *at));
        return ColumnPlace{static_cast<std::size_t>(at - choice_.columns.begin()),
                           at->is_tag ? Cell::Kind::Text : at->kind, at->is_tag, may_be_taken};
      },
      windows);
}

Status SelectPlan::choose() {
  Choice around;
  around.limit_tags = own_tags_;
  return choose(around);
}

Status SelectPlan::choose(const Choice& around) {
  choice_.is_descending = is_descending_;
  choice_.is_local = zone() != nullptr;
  std::set<std::string> tags(own_tags_.begin(), own_tags_.end());
  tags.insert(around.tags.begin(), around.tags.end());
  choice_.tags.assign(tags.begin(), tags.end());
  choice_.limit_tags = around.limit_tags;
  choice_.series_limit = around.series_limit + statement_->series_limit;
  choice_.series_offset = around.series_offset + statement_->series_offset;
  span_.narrow(around.span);
  if (!has_anything()) return ok();
  choice_.span = span_;
  if (has_functions_) {
    EC_TRY(check_windows());
    EC_ASSIGN_OR_RETURN(functions_, make_functions());
    choice_.span = functions_->span_to_read();
    choose_edge();
  }
  for (const auto& source : sources_) EC_TRY(source->choose(choice_));
  return group_units();
}

// first() reads no further than to the first value; last() the same from the other end.
void SelectPlan::choose_edge() {
  if (choice_.every_ns > 0 || has_inner_) return;
  const auto are_all = [&](std::string_view function) {
    return std::all_of(leaves_.begin(), leaves_.end(), [&](const Expr* leaf) {
      return leaf->kind == ExprKind::Call && leaf->text == function && leaf->operands.size() == 1;
    });
  };
  const bool asks_fields =
      std::any_of(choice_.columns.begin(), choice_.columns.end(),
                  [](const Column& column) { return column.is_condition && !column.is_tag; });
  are_edges_ =
      !asks_fields && functions_->takes_many(SIZE_MAX) && (are_all("first") || are_all("last"));
  if (are_edges_) {
    choice_.is_descending = leaves_.front()->text == "last";
    return;
  }
  const Expr* edge = nullptr;
  for (const Expr* leaf : leaves_) {
    if (leaf->kind == ExprKind::Name) continue;
    if (edge != nullptr || (leaf->text != "first" && leaf->text != "last")) return;
    edge = leaf;
  }
  if (edge == nullptr || edge->operands.size() != 1) return;
  const Column column = column_of(edge->operands.front());
  const auto at = std::find(choice_.columns.begin(), choice_.columns.end(), column);
  if (at == choice_.columns.end() || column.is_tag || column.kind == Cell::Kind::Null) return;
  edge_column_ = static_cast<std::size_t>(at - choice_.columns.begin());
  choice_.is_descending = edge->text == "last";
}

// Where nothing that is asked for is stored there are no rows, whatever else there is.
bool SelectPlan::has_anything() const {
  if (!has_functions_)
    return std::any_of(choice_.columns.begin(), choice_.columns.end(), [](const Column& column) {
      return !column.is_condition && (column.is_tag || column.kind != Cell::Kind::Null);
    });
  return !leaves_.empty();
}

Status SelectPlan::check_windows() const {
  if (choice_.every_ns == 0 || !span_.has_from() || !span_.has_to() || span_.from_ns > span_.to_ns)
    return ok();
  return query::check_limit(query::kWindowsLimit,
                            query::windows_between(span_.from_ns, span_.to_ns, choice_.every_ns),
                            account_.asking().limits.windows);
}

Status SelectPlan::group_units() {
  struct Keyed {
    std::string key;
    Ref ref;
  };
  std::vector<Keyed> keyed;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    for (std::size_t u = 0; u < sources_[s]->size(); ++u) {
      EC_ASSIGN_OR_RETURN(const UnitKey unit, sources_[s]->key(u));
      Keyed each{{}, {static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(u)}};
      append_key_part(unit.name, each.key);
      for (const std::string& tag : choice_.tags) append_key_part(tag_of(unit, tag), each.key);
      keyed.push_back(std::move(each));
    }
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i == 0 || keyed[i].key != keyed[i - 1].key)
      groups_.push_back({static_cast<std::uint32_t>(refs_.size()), 0});
    refs_.push_back(keyed[i].ref);
    ++groups_.back().count;
  }
  return ok();
}

Result<UnitKey> SelectPlan::key(std::size_t group) const {
  const Ref& ref = refs_[groups_[group].first];
  EC_ASSIGN_OR_RETURN(const UnitKey unit, sources_[ref.source]->key(ref.unit));
  UnitKey key;
  key.name = unit.name;
  for (const std::string& tag : choice_.tags)
    key.tags.emplace_back(tag, std::string(tag_of(unit, tag)));
  return key;
}

bool SelectPlan::gives_number_rows() const {
  return functions_ && functions_->gives_number_rows() &&
         std::all_of(shape_.fields.begin(), shape_.fields.end(), [](const Formula& field) {
           return field.gives_numbers([](std::size_t) { return true; });
         });
}

// Null: its functions need its points.
Result<std::unique_ptr<WindowFeed>> SelectPlan::open_feed(std::size_t group) {
  std::unique_ptr<WindowFeed> feed;
  const auto refs = std::span(refs_).subspan(groups_[group].first, groups_[group].count);
  const bool has_parts =
      functions_ && !edge_column_ && std::all_of(refs.begin(), refs.end(), [&](const Ref& ref) {
        return sources_[ref.source]->has_parts();
      });
  if (!has_parts || !functions_->takes_many(1)) return feed;
  std::vector<FeedPart> parts;
  for (const Ref& ref : refs) EC_TRY(sources_[ref.source]->add_parts(ref.unit, parts));
  for (const FeedPart& part : parts) {
    if (are_edges_) part.reader->expect_edge();
  }
  if (!functions_->takes_many(parts.size())) return feed;
  tells_lacks_ = !is_inner_ && functions_->tells_lacks();
  feed = std::make_unique<WindowFeed>(std::move(parts), choice_.is_descending, tells_lacks_);
  return feed;
}

Result<std::unique_ptr<PointSource>> SelectPlan::open(std::size_t group) {
  tells_lacks_ = false;
  EC_ASSIGN_OR_RETURN(std::unique_ptr<WindowFeed> feed, open_feed(group));
  if (feed != nullptr)
    return make_rows(functions_->open(std::move(feed), account_.spending()), shape_);
  const std::size_t count = groups_[group].count;
  const PointFeed::Open open_unit = [this, first = groups_[group].first](std::size_t unit) {
    const Ref& ref = refs_[first + unit];
    return sources_[ref.source]->open(ref.unit);
  };
  if (functions_ && !edge_column_ && functions_->takes_many(count))
    return make_rows(functions_->open(count, open_unit, account_.spending()), shape_);
  std::vector<std::unique_ptr<PointSource>> units;
  for (std::size_t i = 0; i < count; ++i) {
    EC_ASSIGN_OR_RETURN(std::unique_ptr<PointSource> unit, open_unit(i));
    units.push_back(std::move(unit));
  }
  std::unique_ptr<PointSource> points = merge_points(std::move(units), choice_.is_descending);
  if (edge_column_)
    points = edge_points(std::move(points), *edge_column_, choice_.is_descending != is_descending_);
  if (functions_) points = functions_->open(std::move(points), account_.spending());
  return make_rows(std::move(points), shape_);
}

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
