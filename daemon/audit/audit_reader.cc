#include "audit/audit_reader.h"

#include <algorithm>
#include <utility>

namespace edgecase::audit {
namespace {

constexpr std::size_t kSelectorsMax = 1'024;  // that are remembered

}  // namespace

Result<std::unique_ptr<RecordCursor>> RecordCursor::open(AuditLog& log, ListRequest request) {
  EC_TRY(log.flush());
  std::unique_ptr<RecordCursor> cursor(new RecordCursor(log, std::move(request)));
  EC_TRY(cursor->find_stretches());
  return cursor;
}

RecordCursor::RecordCursor(AuditLog& log, ListRequest request)
    : request_(std::move(request)),
      pseudonym_(log.names().of_device(request_.namespace_name, request_.device)),
      owner_("owner " + log.names().of_text("owner", request_.owner)),
      engine_(log.engine()),
      records_(log.records()) {
  std::sort(request_.owned.begin(), request_.owned.end());
  if (!request_.owner.empty() || !request_.device.empty())
    wanted_ = [this](const Record& description) { return is_of_wanted(description); };
  read_.snapshot = engine_.snapshot();
  read_.fill_cache = false;
}

Status RecordCursor::find_stretches() {
  const KeyRange all{page_key(0), page_key(UINT64_MAX)};
  EC_ASSIGN_OR_RETURN(at_, engine_.scan(records_, all, read_));
  EC_TRY(at_->status());
  if (!at_->valid()) return ok();
  const std::uint64_t first_end = sequence_of(at_->key());
  const auto first_page = decode_page_head(first_end, at_->value());
  // One that is damaged is told of when it is read.
  const std::uint64_t first = first_page.ok() ? first_page->first : first_end;
  ReadOptions newest_first = read_;
  newest_first.direction = Direction::Reverse;
  EC_ASSIGN_OR_RETURN(const auto last, engine_.scan(records_, all, newest_first));
  EC_TRY(last->status());
  const std::uint64_t end = last->valid() ? sequence_of(last->key()) + 1 : first;

  std::vector<Stretch> stretches{{first, end}};
  EC_ASSIGN_OR_RETURN(const auto step,
                      engine_.scan(records_, {step_key(first + 1), step_key(end)}, read_));
  for (; step->valid(); step->next()) {
    const std::uint64_t begin = sequence_of(step->key());
    stretches.back().end = begin;
    stretches.push_back({begin, end});
  }
  EC_TRY(step->status());
  for (const Stretch& each : stretches) {
    Stretch narrowed = each;
    if (request_.from_ns) {
      EC_ASSIGN_OR_RETURN(narrowed.first, first_at(each, *request_.from_ns, Edge::Last));
    }
    if (request_.to_ns && *request_.to_ns < INT64_MAX - 2 * AuditLog::kClockStepNs) {
      EC_ASSIGN_OR_RETURN(
          narrowed.end, first_at(each, *request_.to_ns + 2 * AuditLog::kClockStepNs, Edge::First));
    }
    if (narrowed.first < narrowed.end) stretches_.push_back(narrowed);
  }
  if (!request_.descending) std::reverse(stretches_.begin(), stretches_.end());
  if (request_.descending) at_ = nullptr;
  if (request_.descending) {
    EC_ASSIGN_OR_RETURN(at_, engine_.scan(records_, all, newest_first));
  }
  if (!stretches_.empty()) seek(stretches_.back());
  return at_->status();
}

void RecordCursor::seek(const Stretch& stretch) {
  at_->seek(page_key(request_.descending ? stretch.end - 1 : stretch.first));
}

// Where the first page begins whose first (or last) record is not more than kClockStepNs before
// `time_ns`.
Result<std::uint64_t> RecordCursor::first_at(const Stretch& stretch, std::int64_t time_ns,
                                             Edge edge) {
  std::uint64_t low = stretch.first, high = stretch.end;
  // At the beginning of time nothing is before.
  const std::int64_t earliest_ns = std::max(time_ns, INT64_MIN + AuditLog::kClockStepNs);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    at_->seek(page_key(middle));
    EC_TRY(at_->status());
    // Where records are missing, the next ones answer.
    if (!at_->valid()) {
      high = middle;
      continue;
    }
    const std::uint64_t last = sequence_of(at_->key());
    EC_ASSIGN_OR_RETURN(const PageHead page, decode_page_head(last, at_->value()));
    EC_TRY(at_->status());
    const std::int64_t found_ns = edge == Edge::First ? page.first_ns : page.last_ns;
    if (found_ns < earliest_ns - AuditLog::kClockStepNs) {
      low = std::min(last + 1, high);
    } else {
      high = middle;
    }
  }
  return low;
}

// Whether a record concerns the owner. Nobody knows whether a glob reached a device that is erased.
bool RecordCursor::is_of_owner(const Record& description) {
  if (description.detail.find(owner_) != std::string::npos) return true;
  const auto is_owned = [this](const Target& target) {
    return std::binary_search(request_.owned.begin(), request_.owned.end(), target.pseudonym);
  };
  if (std::any_of(description.targets.begin(), description.targets.end(), is_owned)) return true;
  if (!description.reaches_more || !request_.any_owned) return false;
  if (may_reach_owned_.size() >= kSelectorsMax) may_reach_owned_.clear();
  const auto [known, is_new] =
      may_reach_owned_.try_emplace(description.namespace_name + '\0' + description.selector, false);
  if (is_new) {
    known->second =
        request_.any_owned([&](std::string_view namespace_name, std::string_view device) {
          return may_reach(description, namespace_name, device);
        });
  }
  return known->second;
}

bool RecordCursor::is_of_wanted(const Record& description) {
  if (!request_.owner.empty() && !is_of_owner(description)) return false;
  return request_.device.empty() ||
         concerns(description, pseudonym_, request_.namespace_name, request_.device);
}

bool RecordCursor::is_in_time(const Record& record) const {
  return (!request_.from_ns || record.time_ns >= *request_.from_ns) &&
         (!request_.to_ns || record.time_ns < *request_.to_ns);
}

void RecordCursor::let_go() {
  if (at_ == nullptr || !at_->status().ok() ||
      read_.snapshot->revocations() == engine_.revocations())
    return;
  resting_at_ = at_->valid() ? Bytes(at_->key()) : Bytes();
  at_.reset();
  read_.snapshot.reset();
}

Status RecordCursor::come_back() {
  read_.snapshot = engine_.snapshot();
  ReadOptions options = read_;
  if (request_.descending) options.direction = Direction::Reverse;
  EC_ASSIGN_OR_RETURN(at_, engine_.scan(records_, {page_key(0), page_key(UINT64_MAX)}, options));
  if (!resting_at_.empty()) {
    at_->seek(resting_at_);
    return at_->status();
  }
  stretches_.pop_back();
  if (!stretches_.empty()) seek(stretches_.back());
  return at_->status();
}

// Into page_. False: the end.
Result<bool> RecordCursor::next_page() {
  let_go();
  while (!stretches_.empty()) {
    if (at_ == nullptr) {
      EC_TRY(come_back());
      continue;
    }
    EC_TRY(at_->status());
    const Stretch& now = stretches_.back();
    if (at_->valid()) {
      const std::uint64_t last = sequence_of(at_->key());
      const Bytes value(at_->value());
      EC_TRY(at_->status());
      EC_ASSIGN_OR_RETURN(Page page, decode_page(last, value, wanted_));
      if (page.head.first < now.end && last >= now.first) {
        page_ = std::move(page.records);
        if (!request_.descending) std::reverse(page_.begin(), page_.end());
        at_->next();
        return true;
      }
    }
    stretches_.pop_back();
    if (!stretches_.empty()) seek(stretches_.back());
  }
  return false;
}

Result<bool> RecordCursor::next(Record& record) {
  while (listed_ < request_.limit) {
    while (page_.empty()) {
      EC_ASSIGN_OR_RETURN(const bool more, next_page());
      if (!more) return false;
    }
    record = std::move(page_.back());
    page_.pop_back();
    if (!is_in_time(record)) continue;
    ++listed_;
    return true;
  }
  return false;
}

std::string cut_detail(const Mark& anchor) {
  return "kept from record " + std::to_string(anchor.sequence) + ", the one before was " +
         auth::hex_text(auth::view_of(anchor.hash));
}

}  // namespace edgecase::audit
