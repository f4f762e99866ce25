// The log's own retention: old records go, and what is left still verifies. The anchor says where
// the chain begins now; that it is the daemon that cut there, a record of the chain says.
#include "audit/audit_log.h"
#include "audit/audit_reader.h"

namespace edgecase::audit {
namespace {

constexpr std::int64_t kLeapNs = 3'600'000'000'000;
constexpr std::int64_t kLeapWaitNs = 24 * kLeapNs;

}  // namespace

void AuditLog::cut() {
  Mark anchor;
  std::uint64_t last = 0, excess_bytes = 0;
  {
    const MutexLock lock(mutex_);
    anchor = anchor_;
    last = durable_.sequence;
    const std::uint64_t kept_bytes = durable_.bytes - std::min(durable_.bytes, anchor_.bytes);
    excess_bytes = kept_bytes - std::min(kept_bytes, options_.size_limit_bytes);
  }
  // An untrusted clock ends nothing, nor does one that readings do not expire by.
  std::int64_t keep_from_ns = INT64_MIN;
  const std::int64_t now_ns = parts_.engine.expiry_now_ns();
  if (waits_for_leap(now_ns) || options_.retention_ns == INT64_MAX ||
      parts_.clock.trust() != ClockTrust::Trusted ||
      __builtin_sub_overflow(now_ns, options_.retention_ns, &keep_from_ns))
    keep_from_ns = INT64_MIN;
  if (last <= anchor.sequence || (keep_from_ns == INT64_MIN && excess_bytes == 0)) return;
  const auto to = find_cut(anchor, last, keep_from_ns, excess_bytes);
  Status status = to.status();
  if (status.ok() && to->sequence > anchor.sequence) status = cut_to(anchor, *to);
  if (!status.ok()) report("cut", status);
}

// As what a leap hides of readings, records stay for a day, until a time server confirms the clock
// or it is set right.
bool AuditLog::waits_for_leap(std::int64_t expiry_now_ns) {
  if (expiry_now_ns == INT64_MIN) return true;  // no time is known
  const std::int64_t boot_ns = parts_.clock.boot_ns();
  const std::int64_t offset_ns = expiry_now_ns - boot_ns;
  const std::int64_t leapt_ns = offset_ns - expiry_offset_ns_.value_or(offset_ns);
  expiry_offset_ns_ = offset_ns;
  if (leapt_ns > kLeapNs) leapt_boot_ns_ = boot_ns;
  if (leapt_ns < -kLeapNs || parts_.clock.synchronised()) leapt_boot_ns_.reset();
  return leapt_boot_ns_ && boot_ns - *leapt_boot_ns_ < kLeapWaitNs;
}

// Whole pages; the last one always stays.
Result<Mark> AuditLog::find_cut(const Mark& anchor, std::uint64_t last, std::int64_t keep_from_ns,
                                std::uint64_t excess_bytes) {
  Mark to = anchor;
  ReadOptions once;
  once.fill_cache = false;
  const std::uint64_t end = std::min(last, anchor.sequence + kCutRecordsMax);
  EC_ASSIGN_OR_RETURN(
      const auto at,
      parts_.engine.scan(records_, {page_key(anchor.sequence), page_key(end)}, once));
  for (; at->valid(); at->next()) {
    const Bytes value(at->value());
    EC_TRY(at->status());
    EC_ASSIGN_OR_RETURN(const PageHead page, decode_page_head(sequence_of(at->key()), value));
    const bool too_many = to.bytes - anchor.bytes < excess_bytes;
    if (page.last_ns >= keep_from_ns && !too_many) break;
    to.sequence = page.last + 1;
    to.hash = page.hash;
    to.bytes += value.size();
  }
  EC_TRY(at->status());
  return to;
}

Status AuditLog::cut_to(const Mark& from, const Mark& to) {
  Record record;
  record.operation = std::string(kCutOperation);
  record.actor = "daemon";
  record.count = to.sequence - from.sequence;
  record.detail = cut_detail(to);
  EC_ASSIGN_OR_RETURN(const Ticket ticket, append(std::move(record)));
  EC_TRY(write_until(ticket.last));
  WriteBatch batch;
  batch.remove_range(records_, page_key(from.sequence), page_key(to.sequence));
  batch.remove_range(records_, step_key(from.sequence), step_key(to.sequence));
  batch.put(records_, kAnchorKey, encode_mark(to));
  EC_TRY(parts_.engine.write(batch, Durability::Sync));
  const MutexLock lock(mutex_);
  anchor_ = to;
  return ok();
}

}  // namespace edgecase::audit
