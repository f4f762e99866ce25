#include <algorithm>
#include <utility>

#include "audit/audit_log.h"
#include "audit/page.h"

namespace edgecase::audit {

// Opens the audit log: finds where it ended, and compares that with its checkpoints.

namespace {

Result<std::optional<Mark>> read_mark(Engine& engine, NamespaceId records, ByteView key) {
  const auto value = engine.get(records, key, {});
  const StatusCode code = value.status().code();
  // A mark that is lost is none: what it would be compared with says so.
  if (code == StatusCode::NotFound || code == StatusCode::Corruption) return std::optional<Mark>();
  if (!value.ok()) return value.status();
  EC_ASSIGN_OR_RETURN(const Mark mark, decode_mark(*value));
  return std::optional<Mark>(mark);
}

}  // namespace

Status AuditLog::load() {
  const auto found = parts_.engine.find_namespace(kAuditNamespace);
  if (found.ok()) {
    records_ = found->id;
  } else if (found.status().code() == StatusCode::NotFound) {
    NamespaceOptions options;
    options.placement = Placement::Metadata;
    EC_ASSIGN_OR_RETURN(records_, parts_.engine.create_namespace(kAuditNamespace, options));
  } else {
    return found.status();
  }
  EC_ASSIGN_OR_RETURN(auth::Pseudonyms pseudonyms,
                      auth::Pseudonyms::load(parts_.engine, parts_.random));
  names_ = std::make_unique<const RecordNames>(std::move(pseudonyms));
  EC_TRY(load_end());
  {
    const MutexLock lock(mutex_);
    settled_sequence_ = durable_.sequence;
  }
  if (!is_on()) return ok();
  EC_TRY(load_spare());
  EC_ASSIGN_OR_RETURN(const auto head, read_mark(parts_.engine, records_, kHeadKey));
  if (head) {
    const MutexLock lock(mutex_);
    head_written_ = head->sequence;
  }
  compare_heads(head);
  if (pages_are_lost_) distrust("pages of it are damaged");
  write_head(HeadFile::Now);
  return ok();
}

Status AuditLog::load_end() {
  EC_ASSIGN_OR_RETURN(const auto anchor, read_mark(parts_.engine, records_, kAnchorKey));
  if (anchor) {
    anchor_ = *anchor;
    durable_.sequence = anchor->sequence - 1;
    durable_.hash = anchor->hash;
  }
  EC_ASSIGN_OR_RETURN(const auto head, read_mark(parts_.engine, records_, kHeadKey));
  durable_.bytes = head ? head->bytes : anchor_.bytes;
  // Pages that are lost keep their numbers: the chain goes on behind them, and verify tells of
  // them.
  std::uint64_t lost_up_to = 0;
  bool is_damaged = false;
  ReadOptions newest_first;
  newest_first.direction = Direction::Reverse;
  newest_first.on_damage = [&](const DamagedKeys& keys) {
    is_damaged = true;
    if (keys.last && keys.last->size() >= page_key(0).size())
      lost_up_to =
          std::max(lost_up_to, sequence_of(ByteView(*keys.last).substr(0, page_key(0).size())));
  };
  EC_ASSIGN_OR_RETURN(
      const auto last,
      parts_.engine.scan(records_, {page_key(0), page_key(UINT64_MAX)}, newest_first));
  EC_TRY(last->status());
  if (is_damaged) {
    pages_are_lost_ = true;
    if (head && head->sequence >= lost_up_to) {
      lost_up_to = head->sequence;
      durable_.hash = head->hash;
    }
    if (!last->valid() || sequence_of(last->key()) < lost_up_to) {
      durable_.sequence = std::max(durable_.sequence, lost_up_to);
      return ok();
    }
  }
  if (!last->valid()) return ok();
  const std::uint64_t sequence = sequence_of(last->key());
  const Bytes value(last->value());
  EC_TRY(last->status());
  // A damaged page is for verify to tell; the chain goes on behind what is there.
  durable_.sequence = sequence;
  const auto page = decode_page_head(sequence, value);
  if (page.ok()) {
    durable_.hash = page->hash;
    last_time_ns_ = page->last_ns;
  } else {
    durable_.hash = auth::sha256(value);
  }
  return ok();
}

// A head that the log does not reach, or reaches with another record.
void AuditLog::compare_heads(const std::optional<Mark>& head) {
  const State at = state();
  const auto differs = [this, &at](const Mark& mark) {
    if (mark.sequence == 0 || mark.sequence < at.first) return false;
    const auto value = parts_.engine.get(records_, page_key(mark.sequence), {});
    if (!value.ok()) return value.status().code() == StatusCode::NotFound;
    const auto page = decode_page_head(mark.sequence, *value);
    return !page.ok() || page->hash != mark.hash;
  };
  const auto words = [](const char* which, const Mark& mark) {
    return std::string(which) + " says record " + std::to_string(mark.sequence) + " is " +
           auth::hex_text(auth::view_of(mark.hash)) + ", the log says otherwise";
  };
  if (head && differs(*head)) distrust(words("the checkpoint", *head));
  const auto file = read_head_file(parts_.file_system, options_.head_directory);
  if (const Status away = parts_.engine.stats().values.degraded;
      !away.ok() && (!file.ok() || !*file)) {
    note_unchecked(away);
  } else if (!file.ok()) {
    distrust(file.status().code() == StatusCode::Corruption
                 ? std::string(kHeadFileName) + " is damaged"
                 : std::string(kHeadFileName) + " can not be read");
  } else if (!*file) {
    if (at.sequence > 0) distrust(std::string(kHeadFileName) + " is missing");
  } else if (differs(**file)) {
    distrust(words(kHeadFileName, **file));
  }
}

// Notes that the head beside the values could not be compared: their drive is not there.
void AuditLog::note_unchecked(const Status& away) {
  const std::string what = std::string(kHeadFileName) + " could not be compared";
  if (parts_.logger != nullptr) parts_.logger->warning("audit", what + ": " + away.to_string());
  note_finding("audit.unchecked", Outcome::Unavailable, what);
}

void AuditLog::distrust(const std::string& what) {
  if (parts_.logger != nullptr) {
    parts_.logger->warning("audit", "the audit log was changed, or lost something: " + what);
  }
  note_finding("audit.mismatch", Outcome::Corruption, what);
}

void AuditLog::note_finding(const char* operation, Outcome outcome, const std::string& what) {
  Record record;
  record.operation = operation;
  record.actor = "daemon";
  record.outcome = outcome;
  record.detail = what;
  const MutexLock lock(mutex_);
  push(draft_of(record));
}

// The log's own retention: old records go, and what is left still verifies. The anchor says where
// the chain begins now; that it is the daemon that cut there, a record of the chain says.

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

// Records of reads and changes while the log's drive takes no more: page.h.

// What an earlier run left there: the log takes it in before all else.
Status AuditLog::load_spare() {
  if (options_.spare_directory.empty()) return ok();
  Result<SparePages> opened =
      SparePages::open(parts_.file_system, options_.spare_directory, parts_.engine.sealer());
  if (opened.status().code() == StatusCode::NotFound) {
    make_spare();
    return ok();
  }
  if (!opened.ok()) return opened.status();
  const MutexLock file_lock(spare_mutex_);
  spare_.emplace(std::move(opened).value());
  if (spare_->dropped_bytes() > 0 && parts_.logger != nullptr) {
    parts_.logger->warning(
        "audit", std::string(kSpareFileName) + ": " + std::to_string(spare_->dropped_bytes()) +
                     " bytes of it are no whole page, and are overwritten: one that nobody was "
                     "told was durable, or they were damaged, or are not of this store");
  }
  take_in_spared(*spare_);
  spare_->forget_found();
  return ok();
}

void AuditLog::take_in_spared(SparePages& spare) {
  std::uint64_t missing_before = 0;
  {
    const MutexLock lock(mutex_);
    for (const Record& record : spare.found()) {
      const std::uint64_t next = last_sequence() + 1;
      if (record.sequence < next) continue;
      if (record.sequence > next) {
        missing_before = record.sequence;
        break;
      }
      Draft draft = draft_of(record);
      draft.time_ns = record.time_ns;
      draft.trust = record.trust;
      enqueue(std::move(draft));
      spared_sequence_ = record.sequence;
    }
    settled_sequence_ = std::max(durable_.sequence, spared_sequence_);
  }
  if (missing_before != 0)
    distrust("records before " + std::to_string(missing_before) + " are missing");
}

// Without room for it, the next minute tries again.
void AuditLog::make_spare() {
  if (mode() != Mode::Strict || options_.spare_directory.empty()) return;
  const MutexLock file_lock(spare_mutex_);
  if (spare_) return;
  Result<SparePages> made =
      SparePages::create(parts_.file_system, options_.spare_directory, parts_.engine.sealer());
  if (made.ok()) spare_.emplace(std::move(made).value());
}

// A page of what waits and is not there yet; empty: all up to `sequence` is durable.
AuditLog::SparedPage AuditLog::next_spared(std::uint64_t sequence) {
  const MutexLock lock(mutex_);
  SparedPage page;
  const std::uint64_t before = std::max(durable_.sequence, spared_sequence_);
  if (before >= sequence) return page;
  std::vector<const Draft*> drafts;
  std::size_t bytes = 0;
  page.last = before;
  while (page.last < last_sequence() && drafts.size() < kPageRecordsMax && bytes < kPageBytesMax) {
    drafts.push_back(&queue_[page.last - durable_.sequence].draft);
    bytes += drafts.back()->memory_bytes();
    ++page.last;
  }
  page.body = encode_page(drafts);
  page.is_first = durable_.sequence >= spared_sequence_;
  return page;
}

bool AuditLog::spare_until(std::uint64_t sequence) {
  const MutexLock file_lock(spare_mutex_);
  if (!spare_) return false;
  for (;;) {
    const SparedPage page = next_spared(sequence);
    if (page.body.empty()) return true;
    // What is in it by now is in the log.
    if (page.is_first && !spare_->clear().ok()) return false;
    if (!spare_->append(page.last, page.body).ok()) return false;
    const MutexLock lock(mutex_);
    spared_sequence_ = page.last;
    settled_sequence_.store(std::max(durable_.sequence, spared_sequence_),
                            std::memory_order_release);
  }
}

void AuditLog::clear_spare() {
  const MutexLock file_lock(spare_mutex_);
  if (!spare_ || spare_->empty()) return;
  {
    const MutexLock lock(mutex_);
    if (durable_.sequence < spared_sequence_) return;
  }
  if (const Status cleared = spare_->clear(); !cleared.ok()) report("clear the spare of", cleared);
}

}  // namespace edgecase::audit
