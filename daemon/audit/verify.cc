#include <algorithm>

#include "audit/audit_reader.h"
#include "audit/head_file.h"

namespace edgecase::audit {
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
