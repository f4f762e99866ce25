#include "influxql/units.h"

#include <algorithm>
#include <span>
#include <utility>

namespace edgecase::influxql {
namespace {

int rank_of(const NameKind& kind) {
  if (kind.is_tag) return 5;
  switch (kind.kind) {
    case Cell::Kind::Float: return 1;
    case Cell::Kind::Integer: return 2;
    case Cell::Kind::Text: return 3;
    case Cell::Kind::Bool: return 4;
    default: return 6;
  }
}

}  // namespace

void NameKind::merge(const NameKind& other) {
  if (rank_of(other) < rank_of(*this)) *this = other;
}

std::string_view tag_of(const UnitKey& key, std::string_view tag) {
  const auto at =
      std::lower_bound(key.tags.begin(), key.tags.end(), tag,
                       [](const auto& each, std::string_view b) { return each.first < b; });
  return at != key.tags.end() && at->first == tag ? std::string_view(at->second)
                                                  : std::string_view();
}

void append_key_part(std::string_view part, std::string& key) {
  for (const char c : part) {
    key += c;
    if (c == '\0') key += '\xff';
  }
  key += '\0';
  key += '\1';
}

void set_tags(const Choice& choice, const UnitKey& key, std::vector<Cell>& cells) {
  cells.resize(choice.columns.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Column& column = choice.columns[i];
    cells[i].kind = Cell::Kind::Null;
    if (!column.is_tag) continue;
    cells[i].text = column.is_condition && column.name == "_name" ? std::string_view(key.name)
                                                                  : tag_of(key, column.name);
    if (column.is_condition || !cells[i].text.empty()) cells[i].kind = Cell::Kind::Text;
  }
}

bool may_hold(const Choice& choice, const UnitKey& key) {
  if (!choice.where) return true;
  std::vector<Cell> cells;
  set_tags(choice, key, cells);
  std::vector<char> known(cells.size());
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = choice.columns[i].is_tag ? 1 : 0;
  return choice.where->may_hold(cells, known);
}

bool joins_part(const std::vector<Column>& columns, std::size_t column, std::size_t first,
                std::vector<FeedPart>& parts) {
  const Column& asked = columns[column];
  if (!asked.is_condition) return false;
  for (std::size_t i = first; i < parts.size(); ++i) {
    const Column& read = columns[parts[i].column];
    if (read.is_condition || read.kind != asked.kind || read.name != asked.name) continue;
    parts[i].condition = column;
    return true;
  }
  return false;
}

WindowFeed::WindowFeed(std::vector<FeedPart> parts, bool is_descending, bool tells_lacks)
    : parts_(std::move(parts)), is_lacking_(parts_.size()), is_descending_(is_descending) {
  for (const FeedPart& part : parts_) part.reader->begin_feed(tells_lacks);
}

bool WindowFeed::comes_later(const Next& a, const Next& b) const {
  if (a.time_ns == b.time_ns) return a.part > b.part;
  return is_descending_ ? a.time_ns < b.time_ns : a.time_ns > b.time_ns;
}

Status WindowFeed::push(std::size_t part) {
  EC_ASSIGN_OR_RETURN(const auto time_ns, parts_[part].reader->next_time());
  if (!is_lacking_[part] && parts_[part].reader->has_lacks()) {
    is_lacking_[part] = true;
    lacking_.push_back(part);
  }
  if (!time_ns) {
    if (takes_turns_ && !is_lacking_[part]) parts_[part].reader.reset();
    return ok();
  }
  heap_.push_back({*time_ns, part});
  std::push_heap(heap_.begin(), heap_.end(),
                 [this](const Next& a, const Next& b) { return comes_later(a, b); });
  return ok();
}

void WindowFeed::take_turns() {
  takes_turns_ = parts_.size() > SeriesReader::kOpenScansMax;
  for (std::size_t i = 0; i < parts_.size() && takes_turns_; ++i) parts_[i].reader->wait_for_turn();
}

// Unless one has something still.
Status WindowFeed::push_next() {
  while (heap_.empty() && turn_ < parts_.size()) {
    EC_TRY(parts_[turn_].reader->begin());
    EC_TRY(push(turn_++));
  }
  return ok();
}

Result<std::optional<std::int64_t>> WindowFeed::next_time() {
  if (!std::exchange(is_begun_, true)) {
    if (takes_turns_) {
      EC_TRY(push_next());
    } else {
      for (std::size_t i = 0; i < parts_.size(); ++i) EC_TRY(push(i));
    }
  }
  std::optional<std::int64_t> next;
  if (!heap_.empty()) next = heap_.front().time_ns;
  for (const std::size_t part : lacking_) {
    const auto lack = parts_[part].reader->next_lack(told_ns_);
    if (lack && (!next || (is_descending_ ? *lack > *next : *lack < *next))) next = lack;
  }
  return next;
}

bool WindowFeed::lacks(const Window& window, std::size_t column) const {
  return std::any_of(lacking_.begin(), lacking_.end(), [&](std::size_t part) {
    return parts_[part].column == column && parts_[part].reader->lacks(window);
  });
}

void WindowFeed::end(const Window& window) {
  told_ns_ = is_descending_ ? window.from_ns : window.end_ns - 1;
}

std::optional<std::size_t> WindowFeed::next_column(const Window& window) const {
  if (heap_.empty() || !window.contains(heap_.front().time_ns)) return std::nullopt;
  return parts_[heap_.front().part].column;
}

Status WindowFeed::feed(const Window& window, ValueTaker& taker) {
  std::pop_heap(heap_.begin(), heap_.end(),
                [this](const Next& a, const Next& b) { return comes_later(a, b); });
  const std::size_t part = heap_.back().part;
  heap_.pop_back();
  EC_TRY(parts_[part].reader->feed(window, taker));
  EC_TRY(push(part));
  return takes_turns_ ? push_next() : ok();
}

wire::Numbers WindowFeed::held_numbers() const {
  if (parts_.size() != 1 || heap_.empty() || !lacking_.empty()) return {};
  return parts_.front().reader->held_numbers();
}

Status WindowFeed::step_over(const wire::Numbers& taken) {
  heap_.clear();
  EC_TRY(parts_.front().reader->step_over(taken));
  return push(0);
}

std::span<const WindowSums::Window> WindowFeed::held_sums() const {
  if (parts_.size() != 1 || heap_.empty() || !lacking_.empty()) return {};
  return parts_.front().reader->held_sums();
}

Status WindowFeed::step_over(std::span<const WindowSums::Window> taken) {
  heap_.clear();
  EC_TRY(parts_.front().reader->step_over(taken));
  return push(0);
}

bool PointFeed::comes_later(const Unit& a, const Unit& b) const {
  if (a.time_ns == b.time_ns) return a.place > b.place;
  return is_descending_ ? a.time_ns < b.time_ns : a.time_ns > b.time_ns;
}

// Unless nothing is left of it.
Status PointFeed::push(std::unique_ptr<Unit> unit) {
  if (unit->next == unit->many.size()) {
    unit->next = 0;
    unit->many.clear();
    EC_ASSIGN_OR_RETURN(const bool has_many, unit->points->next_many(unit->many));
    if (!has_many) {
      unit->many.clear();
      EC_ASSIGN_OR_RETURN(const bool has_point, unit->points->next(unit->point));
      if (!has_point) return ok();
    }
  }
  unit->time_ns = unit->many.empty() ? unit->point.time_ns : unit->many.times_ns[unit->next];
  heap_.push_back(std::move(unit));
  std::push_heap(heap_.begin(), heap_.end(),
                 [this](const auto& a, const auto& b) { return comes_later(*a, *b); });
  return ok();
}

Result<std::optional<std::int64_t>> PointFeed::next_time() {
  while (opened_ < units_ && (is_cut_ || heap_.empty())) {
    auto unit = std::make_unique<Unit>();
    unit->place = opened_;
    EC_ASSIGN_OR_RETURN(unit->points, open_(opened_++));
    unit->points->expect_all();
    EC_TRY(push(std::move(unit)));
  }
  if (heap_.empty()) return std::optional<std::int64_t>();
  return std::optional(heap_.front()->time_ns);
}

Status PointFeed::feed(const Window& window, Taker& taker) {
  std::pop_heap(heap_.begin(), heap_.end(),
                [this](const auto& a, const auto& b) { return comes_later(*a, *b); });
  std::unique_ptr<Unit> unit = std::move(heap_.back());
  heap_.pop_back();
  if (unit->many.empty()) {
    EC_TRY(taker.take(unit->point));
    return push(std::move(unit));
  }
  const std::size_t begin = unit->next;
  const auto left = std::span<const std::int64_t>(unit->many.times_ns).subspan(begin);
  unit->next += wire::Numbers{left, {}, true}.count_within(window.from_ns, window.end_ns - 1);
  EC_TRY(taker.take(unit->many, begin, unit->next));
  return push(std::move(unit));
}

}  // namespace edgecase::influxql
