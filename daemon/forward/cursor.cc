#include "forward/cursor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "forward/records.h"

namespace edgecase::forward {
namespace {

Status bad_cursor() {
  return corruption("a target's place is not what was written");
}

// Both as one range: what lies between goes again.
Backlog joined(Backlog one, const Backlog& next) {
  one.upto = next.upto;
  if (one.done_to && next.done_to) {
    one.done_to = std::min(*one.done_to, *next.done_to);
  } else {
    one.done_to.reset();
  }
  return one;
}

}  // namespace

void Cursor::fresh_part(CommitPosition upto, std::optional<Place> done_to) {
  backlog_.push_back({fresh_after_, upto, std::move(done_to)});
  fresh_after_ = upto;
  if (backlog_.size() <= kBacklogMax) return;
  // The two with the least between them.
  std::size_t nearest = 0;
  const auto gap = [this](std::size_t i) { return backlog_[i + 1].after - backlog_[i].upto; };
  for (std::size_t i = 1; i + 1 < backlog_.size(); ++i)
    if (gap(i) < gap(nearest)) nearest = i;
  backlog_[nearest] = joined(std::move(backlog_[nearest]), backlog_[nearest + 1]);
  backlog_.erase(backlog_.begin() + static_cast<std::ptrdiff_t>(nearest) + 1);
}

void Cursor::backlog_done(std::size_t index) {
  backlog_.erase(backlog_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::vector<CommitPosition> Cursor::bounds() const {
  std::vector<CommitPosition> all;
  for (const Backlog& each : backlog_) all.insert(all.end(), {each.after, each.upto});
  all.push_back(fresh_after_);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void Cursor::append_to(Bytes& out) const {
  append_number(fresh_after_, out);
  append_number(static_cast<std::uint8_t>(backlog_.size()), out);
  for (const Backlog& each : backlog_) {
    append_number(each.after, out);
    append_number(each.upto, out);
    append_number(each.done_to ? each.done_to->namespace_id : NamespaceId{0}, out);
    const ByteView key = each.done_to ? ByteView(each.done_to->key) : ByteView();
    append_number(static_cast<std::uint16_t>(key.size()), out);
    out.append(key);
  }
}

Result<Cursor> Cursor::take(ByteView& bytes) {
  Cursor cursor;
  std::uint8_t count = 0;
  if (!take_number(bytes, cursor.fresh_after_) || !take_number(bytes, count) ||
      count > kBacklogMax) {
    return bad_cursor();
  }
  CommitPosition last = 0;
  for (std::uint8_t i = 0; i < count; ++i) {
    Backlog each;
    Place place;
    std::uint16_t key_bytes = 0;
    if (!take_number(bytes, each.after) || !take_number(bytes, each.upto) ||
        !take_number(bytes, place.namespace_id) || !take_number(bytes, key_bytes) ||
        bytes.size() < key_bytes || each.after < last || each.upto < each.after) {
      return bad_cursor();
    }
    place.key = bytes.substr(0, key_bytes);
    bytes.remove_prefix(key_bytes);
    if (place.namespace_id != 0) each.done_to = std::move(place);
    last = each.upto;
    cursor.backlog_.push_back(std::move(each));
  }
  if (cursor.fresh_after_ < last) return bad_cursor();
  return cursor;
}

}  // namespace edgecase::forward
