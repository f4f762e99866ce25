#include "forward/lineage.h"

#include "forward/record_bytes.h"
#include "ingest/origins.h"
#include "wire/routes.h"

namespace edgecase::forward {
namespace {

constexpr char kKey[] = "O";
constexpr std::size_t kStoreBytes = 16, kRunBytes = 8;

void append_digits(ByteView bytes, std::string& out) {
  for (const char c : bytes) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

Status Lineage::begin() {
  if (has_begun_) return ok();
  store_.clear();
  runs_.clear();
  is_answered_ = false;
  EC_ASSIGN_OR_RETURN(const NamespaceId id, records_.made_id());
  ReadOptions options;
  options.fill_cache = false;
  const auto value = engine_.get(id, kKey, options);
  if (value.ok()) {
    ByteView bytes = *value;
    if (bytes.size() < kStoreBytes + 1 + kRunBytes || (bytes.size() - 1) % kRunBytes != 0)
      return corruption("which store this is to others is not what was written");
    store_ = bytes.substr(0, kStoreBytes);
    is_answered_ = bytes[kStoreBytes] != 0;
    runs_ = bytes.substr(kStoreBytes + 1);
  } else if (value.status().code() != StatusCode::NotFound) {
    return value.status();
  }
  if (store_.empty() || is_answered_) {
    while (store_.size() < kStoreBytes) append_number(random_.next(), store_);
    Bytes run;
    append_number(random_.next(), run);
    runs_ = (run + runs_).substr(0, ingest::OriginClaim::kRunsMax * kRunBytes);
    is_answered_ = false;
    EC_TRY(write(Durability::Sync));
  }
  has_begun_ = true;
  return ok();
}

Status Lineage::write(Durability durability) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, records_.made_id());
  WriteBatch batch;
  batch.put(id, kKey, store_ + Bytes(1, is_answered_ ? '\1' : '\0') + runs_);
  return engine_.write(batch, durability);
}

Result<std::string> Lineage::header(bool is_known) {
  const MutexLock lock(mutex_);
  EC_TRY(begin());
  std::string line = std::string(wire::routes::kOriginHeader) + ": ";
  append_digits(store_, line);
  for (std::size_t at = 0; at < (is_known ? kRunBytes : runs_.size()); at += kRunBytes) {
    line += ' ';
    append_digits(ByteView(runs_).substr(at, kRunBytes), line);
  }
  return line + "\r\n";
}

// Where that is lost, the run goes on after a restart.
void Lineage::note_answered() {
  const MutexLock lock(mutex_);
  if (!has_begun_ || is_answered_) return;
  is_answered_ = true;
  static_cast<void>(write(Durability::Async).ok());
}

}  // namespace edgecase::forward
