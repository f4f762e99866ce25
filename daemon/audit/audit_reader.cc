#include "audit/audit_log.h"

#include <algorithm>
#include <utility>

#include "audit/page.h"

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

namespace {

struct Claim {
  const char* of;
  Mark mark;
};

class Walk {
 public:
  Walk(AuditLog& log, std::vector<Claim> claims) : log_(log), claims_(std::move(claims)) {
    read_.snapshot = log.engine().snapshot();
    read_.fill_cache = false;
  }

  Result<Verification> run() {
    EC_TRY(begin());
    EC_ASSIGN_OR_RETURN(
        auto at, log_.engine().scan(log_.records(), {page_key(0), page_key(UINT64_MAX)}, read_));
    while (at->valid()) {
      const std::uint64_t sequence = sequence_of(at->key());
      const Bytes value(at->value());
      EC_TRY(at->status());
      look_at(sequence, value);
      if (read_.snapshot->revocations() == log_.engine().revocations()) {
        at->next();
        continue;
      }
      // The files of before are not kept from an erasure: records are not changed.
      at.reset();
      read_.snapshot = log_.engine().snapshot();
      EC_ASSIGN_OR_RETURN(
          at, log_.engine().scan(log_.records(), {page_key(sequence + 1), page_key(UINT64_MAX)},
                                 read_));
    }
    EC_TRY(at->status());
    end();
    return std::move(found_);
  }

 private:
  void fault(std::uint64_t sequence, std::string what) {
    ++found_.fault_count;
    if (found_.faults.size() < Verification::kFaultsMax) {
      found_.faults.push_back({sequence, std::move(what)});
    }
  }

  Status begin() {
    found_.first = 1;
    for (const char* key : {kAnchorKey, kHeadKey}) {
      const auto value = log_.engine().get(log_.records(), key, read_);
      if (value.status().code() == StatusCode::NotFound) continue;
      if (!value.ok()) return value.status();
      const auto mark = decode_mark(*value);
      const bool is_anchor = std::string_view(key) == kAnchorKey;
      if (!mark.ok()) {
        fault(is_anchor ? 1 : 0, mark.status().message());
      } else if (is_anchor) {
        found_.first = mark->sequence;
        previous_ = mark->hash;
        anchor_detail_ = cut_detail(*mark);
      } else {
        claims_.push_back({"the checkpoint", *mark});
      }
    }
    found_.last = found_.first - 1;
    return ok();
  }

  void look_at(std::uint64_t last, ByteView value) {
    const auto page = decode_page(last, value);
    const std::uint64_t expected = found_.last + 1;
    // Where a page can not be read, what it should hold is what was expected up to its number.
    const std::uint64_t first = page.ok() ? page->head.first : std::min(expected, last);
    if (first > expected) {
      fault(expected, first > expected + 1 ? "records " + std::to_string(expected) + " to " +
                                                 std::to_string(first - 1) + " are missing"
                                           : "record " + std::to_string(expected) + " is missing");
    }
    if (page.ok()) {
      look_at(*page, value, first <= expected);
      previous_ = page->head.hash;
    } else {
      fault(first, page.status().message());
    }
    found_.records += last - first + 1;
    found_.last = last;
  }

  void look_at(const Page& page, ByteView value, bool follows) {
    const PageHead& head = page.head;
    const bool is_next = head.first == found_.last + 1;
    if (follows && (!is_next || chain_hash(previous_, head.last, body_of(value)) != head.hash)) {
      fault(head.first, words_for(head) + " changed, or moved");
    }
    for (const Claim& claim : claims_) {
      const std::uint64_t claimed = claim.mark.sequence;
      if (claimed < head.first || claimed > head.last) continue;
      if (claimed == head.last && claim.mark.hash == head.hash) continue;
      fault(claimed,
            "record " + std::to_string(claimed) + " is not the one that " + claim.of + " names");
    }
    for (const Record& record : page.records) {
      if (record.operation == kMismatchOperation) fault(record.sequence, record.detail);
      if (record.operation == kCutOperation && record.detail == anchor_detail_) cut_told_ = true;
    }
  }

  static std::string words_for(const PageHead& head) {
    if (head.first == head.last) return "record " + std::to_string(head.first) + " was";
    return "records " + std::to_string(head.first) + " to " + std::to_string(head.last) + " were";
  }

  void end() {
    found_.head = previous_;
    if (!anchor_detail_.empty() && !cut_told_) {
      fault(found_.first, "records before " + std::to_string(found_.first) +
                              " are gone, and no record tells of that cut");
    }
    std::uint64_t reach = found_.last;
    for (const Claim& claim : claims_) {
      if (claim.mark.sequence <= reach) continue;
      reach = claim.mark.sequence;
      fault(found_.last + 1, std::string("the end is missing: ") + claim.of + " names record " +
                                 std::to_string(reach) + ", the last one is " +
                                 std::to_string(found_.last));
    }
    std::stable_sort(found_.faults.begin(), found_.faults.end(),
                     [](const Fault& a, const Fault& b) { return a.sequence < b.sequence; });
  }

  AuditLog& log_;
  std::vector<Claim> claims_;
  ReadOptions read_;
  Verification found_;
  auth::Digest previous_{};
  std::string anchor_detail_;
  bool cut_told_ = false;
};

}  // namespace

Result<Verification> verify(AuditLog& log, const std::optional<Mark>& told) {
  std::vector<Claim> claims;
  std::vector<Fault> of_files;
  // Before the snapshot: what they name must be in it.
  const auto file = read_head_file(log.file_system(), log.head_directory());
  const Status away = log.engine().stats().values.degraded;
  std::string unchecked;
  const AuditLog::State state = log.state();
  if (state.sequence > 0) claims.push_back({"the daemon", {state.sequence, state.hash, 0}});
  if (!away.ok() && (!file.ok() || !*file)) {
    unchecked = std::string(kHeadFileName) +
                " could not be compared, the values drive is away: " + away.message();
  } else if (!file.ok()) {
    of_files.push_back({state.sequence, file.status().message()});
  } else if (*file) {
    claims.push_back({kHeadFileName, **file});
  } else if (state.sequence > 0) {
    of_files.push_back({state.sequence, std::string(kHeadFileName) + " is missing"});
  }
  if (told && told->sequence >= state.first) {
    claims.push_back({"the head that is asked about", *told});
  } else if (told) {
    if (!unchecked.empty()) unchecked += "; ";
    unchecked += "record " + std::to_string(told->sequence) + " is not kept any more, the log " +
                 "begins with record " + std::to_string(state.first);
  }
  EC_TRY(log.flush());
  EC_ASSIGN_OR_RETURN(Verification found, Walk(log, std::move(claims)).run());
  found.unchecked = std::move(unchecked);
  found.fault_count += of_files.size();
  found.faults.insert(found.faults.end(), of_files.begin(), of_files.end());
  return found;
}

}  // namespace edgecase::audit
