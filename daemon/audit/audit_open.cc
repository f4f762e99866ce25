// Opens the audit log: finds where it ended, and compares that with its checkpoints.
#include <algorithm>

#include "audit/audit_log.h"
#include "audit/head_file.h"

namespace edgecase::audit {
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

}  // namespace edgecase::audit
