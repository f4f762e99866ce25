#include "app/audit_check.h"

#include <cstdint>
#include <optional>

#include "audit/audit_log.h"
#include "audit/head_file.h"
#include "audit/page.h"

namespace edgecase::app {
namespace {

using audit::Mark;

constexpr std::size_t kFaultsMax = 20;  // told

class Look {
 public:
  explicit Look(const OfflineContents& records) : records_(records) {}

  // `of`: who says that the log has reached `mark`.
  void claim(const std::string& of, const Mark& mark) { claims_.push_back({of, mark, false}); }
  void fault(std::string what) {
    if (faults_.size() < kFaultsMax) faults_.push_back(std::move(what));
  }

  std::vector<std::string> run() {
    begin();
    const Bytes first = audit::page_key(0);
    const Bytes end = audit::page_key(UINT64_MAX);
    for (auto at = records_.lower_bound(first); at != records_.end() && at->first < end; ++at)
      look_at(audit::sequence_of(at->first), at->second);
    for (const Claim& each : claims_) {
      if (each.is_seen || each.mark.sequence < first_) continue;
      const std::string record = "record " + std::to_string(each.mark.sequence);
      fault(each.mark.sequence > last_ ? "the end of the log is missing: " + each.of + " names " +
                                             record + ", the last one is " + std::to_string(last_)
                                       : record + " is not the one that " + each.of + " names");
    }
    return std::move(faults_);
  }

 private:
  struct Claim {
    std::string of;
    Mark mark;
    bool is_seen = false;
  };

  // Where the log begins, and what it says of its end.
  void begin() {
    for (const char* key : {audit::kAnchorKey, audit::kHeadKey}) {
      const auto found = records_.find(ByteView(key));
      if (found == records_.end()) continue;
      const auto mark = audit::decode_mark(found->second);
      if (!mark.ok()) {
        fault(mark.status().message());
      } else if (std::string_view(key) == audit::kHeadKey) {
        claim("the checkpoint beside it", *mark);
      } else {
        first_ = mark->sequence;
        previous_ = mark->hash;
      }
    }
    last_ = first_ - 1;
  }

  void look_at(std::uint64_t last, ByteView value) {
    const auto page = audit::decode_page(last, value);
    if (!page.ok()) {
      fault(page.status().message());
      last_ = last;
      return;
    }
    const audit::PageHead& head = page->head;
    const std::string records =
        "records " + std::to_string(head.first) + " to " + std::to_string(head.last);
    if (head.first > last_ + 1) {
      fault("records " + std::to_string(last_ + 1) + " to " + std::to_string(head.first - 1) +
            " are missing");
    } else if (audit::chain_hash(previous_, last, audit::body_of(value)) != head.hash) {
      fault(records + " were changed, or moved");
    }
    for (Claim& each : claims_)
      if (each.mark.sequence == last && each.mark.hash == head.hash) each.is_seen = true;
    previous_ = head.hash;
    last_ = last;
  }

  const OfflineContents& records_;
  std::vector<Claim> claims_;
  std::vector<std::string> faults_;
  std::uint64_t first_ = 1, last_ = 0;
  auth::Digest previous_{};
};

}  // namespace

Result<std::vector<std::string>> audit_faults(FileSystem& file_system, const Options& options) {
  const auto file = audit::read_head_file(file_system, options.values_directory);
  auto records = read_offline(file_system, options, audit::kAuditNamespace);
  const bool has_log = records.status().code() != StatusCode::NotFound;
  if (has_log) EC_TRY(records.status());
  if (!has_log && file.ok() && !*file) return std::vector<std::string>();
  const OfflineContents none;
  Look look(has_log ? *records : none);
  const std::string of = std::string(audit::kHeadFileName) + " beside the values";
  if (!file.ok()) {
    look.fault(file.status().message());
  } else if (*file) {
    look.claim(of, **file);
  } else if (has_log && records->contains(ByteView(audit::kHeadKey))) {
    look.fault(of + " is missing");
  }
  return look.run();
}

}  // namespace edgecase::app
