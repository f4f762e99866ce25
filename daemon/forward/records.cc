#include "forward/records.h"

#include <algorithm>

#include "ingest/origins.h"
#include "wire/contract.h"

namespace edgecase::forward {
namespace {

constexpr std::uint8_t kVersion = 3, kVersionWithoutUntil = 2, kVersionWithoutUnsent = 1;
constexpr std::uint8_t kPausedFlag = 1, kAtRestFlag = 2;
constexpr char kTargets = 'T', kRefusals = 'U', kBegins = 'B', kShapes = 'S';

Bytes target_key(const std::string& name) {
  return Bytes(1, kTargets) + name;
}

Bytes refusal_prefix(const std::string& name) {
  return Bytes(1, kRefusals) + name + '\0';
}

Bytes refusal_key(const std::string& name, const Place& place) {
  Bytes key = refusal_prefix(name);
  append_number(place.namespace_id, key);
  return key + place.key;
}

// Everything that begins with it: no name has a byte of 0xff, nor has 0.
KeyRange all_of(const Bytes& prefix) {
  Bytes upper = prefix;
  upper.back() = static_cast<char>(upper.back() + 1);
  return {prefix, std::move(upper)};
}

ReadOptions unkept() {
  ReadOptions options;
  options.fill_cache = false;
  return options;
}

}  // namespace

Bytes encode_record(const Record& record) {
  Bytes out;
  append_number(kVersion, out);
  append_number(static_cast<std::uint8_t>((record.is_paused ? kPausedFlag : 0) |
                                          (record.is_at_rest ? kAtRestFlag : 0)),
                out);
  for (const std::uint64_t total :
       {record.totals.readings, record.totals.bytes, record.totals.undelivered, record.totals.unfit,
        record.totals.not_kept})
    append_number(total, out);
  for (const std::uint64_t count : record.totals.unsent) append_number(count, out);
  append_number(record.totals.expired_until_ns, out);
  record.cursor.append_to(out);
  return out;
}

Result<Record> decode_record(ByteView bytes) {
  std::uint8_t version = 0, flags = 0;
  if (take_number(bytes, version) && version > kVersion)
    return unsupported("a target's place is of a newer version of EdgeCase");
  Record record;
  Totals& totals = record.totals;
  if (version < kVersionWithoutUnsent || !take_number(bytes, flags) ||
      flags > (kPausedFlag | kAtRestFlag) || !take_number(bytes, totals.readings) ||
      !take_number(bytes, totals.bytes) || !take_number(bytes, totals.undelivered) ||
      !take_number(bytes, totals.unfit) || !take_number(bytes, totals.not_kept)) {
    return corruption("the record of a target is not what was written");
  }
  for (std::uint64_t& count : totals.unsent) {
    if (version != kVersionWithoutUnsent && !take_number(bytes, count))
      return corruption("the record of a target is cut");
  }
  if (version > kVersionWithoutUntil && !take_number(bytes, totals.expired_until_ns))
    return corruption("the record of a target is cut");
  record.is_paused = (flags & kPausedFlag) != 0;
  record.is_at_rest = (flags & kAtRestFlag) != 0;
  EC_ASSIGN_OR_RETURN(record.cursor, Cursor::take(bytes));
  if (!bytes.empty()) return corruption("the record of a target is longer than was written");
  return record;
}

Result<std::unique_ptr<Records>> Records::open(Engine& engine) {
  std::unique_ptr<Records> records(new Records(engine));
  const auto found = engine.find_namespace(kForwardNamespace);
  if (found.ok()) {
    records->id_ = found->id;
  } else if (found.status().code() != StatusCode::NotFound) {
    return found.status();
  }
  return records;
}

Result<NamespaceId> Records::made_id() {
  const MutexLock lock(mutex_);
  if (id_ == 0) {
    NamespaceOptions options;
    options.placement = Placement::Metadata;
    EC_ASSIGN_OR_RETURN(id_, engine_.create_namespace(kForwardNamespace, options));
  }
  return id_.load();
}

Result<std::vector<std::pair<std::string, Record>>> Records::load() const {
  std::vector<std::pair<std::string, Record>> all;
  if (id_ == 0) return all;
  // A place that is lost is the beginning: what goes twice changes nothing there.
  ReadOptions options = unkept();
  options.on_damage = [](const DamagedKeys&) {};
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(id_, all_of(Bytes(1, kTargets)), options));
  for (; each->valid(); each->next()) {
    std::string name(each->key().substr(1));
    auto record = decode_record(each->value());
    if (record.status().code() == StatusCode::Corruption) record = Record();
    if (!record.ok()) return record.status().with_context("target " + name + ": ");
    all.emplace_back(std::move(name), *std::move(record));
  }
  EC_TRY(each->status());
  return all;
}

Status Records::write(const std::string& name, const Record& record) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, made_id());
  WriteBatch batch;
  batch.put(id, target_key(name), encode_record(record));
  return engine_.write(batch, Durability::Sync);
}

Status Records::write_begin(const std::string& name, CommitPosition begin) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, made_id());
  Bytes value;
  append_number(begin, value);
  WriteBatch batch;
  batch.put(id, Bytes(1, kBegins) + name, value);
  return engine_.write(batch, Durability::Async);
}

Result<CommitPosition> Records::begin(const std::string& name) const {
  if (id_ == 0) return CommitPosition{0};
  const auto value = engine_.get(id_, Bytes(1, kBegins) + name, unkept());
  if (value.status().code() == StatusCode::NotFound) return CommitPosition{0};
  EC_TRY(value.status());
  ByteView bytes = *value;
  CommitPosition begin = 0;
  if (!take_number(bytes, begin)) return corruption("where target " + name + " began is cut");
  return begin;
}

Status Records::write_shape(const std::string& name, const Shape& shape) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, made_id());
  Bytes value;
  append_number(shape.every_ns, value);
  value += shape.salt;
  WriteBatch batch;
  batch.put(id, Bytes(1, kShapes) + name, value);
  return engine_.write(batch, Durability::Async);
}

Result<Shape> Records::shape(const std::string& name) const {
  Shape shape;
  if (id_ == 0) return shape;
  const auto value = engine_.get(id_, Bytes(1, kShapes) + name, unkept());
  if (value.status().code() == StatusCode::NotFound) return shape;
  EC_TRY(value.status());
  ByteView bytes = *value;
  if (!take_number(bytes, shape.every_ns) || shape.every_ns < 0 ||
      (!bytes.empty() && bytes.size() != kSaltBytes)) {
    return corruption("how readings look at target " + name + " is not what was written");
  }
  shape.salt = bytes;
  return shape;
}

Status Records::forget(const std::string& name) {
  if (id_ == 0) return ok();
  const KeyRange refused = all_of(refusal_prefix(name));
  WriteBatch batch;
  batch.remove(id_, target_key(name));
  for (const char kind : {kBegins, kShapes}) batch.remove(id_, Bytes(1, kind) + name);
  batch.remove_range(id_, refused.lower, refused.upper);
  return engine_.write(batch, Durability::Sync);
}

Result<std::vector<Refusal>> Records::refusals(const std::string& name, const Place& behind,
                                               std::size_t most) const {
  std::vector<Refusal> some;
  if (id_ == 0) return some;
  KeyRange range = all_of(refusal_prefix(name));
  const std::size_t prefix_bytes = range.lower.size();
  if (behind.namespace_id != 0) range.lower = refusal_key(name, behind) + '\0';
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(id_, range, unkept()));
  for (; each->valid() && some.size() < most; each->next()) {
    ByteView key = each->key().substr(prefix_bytes);
    ByteView value = each->value();
    Refusal refusal;
    if (!take_number(key, refusal.place.namespace_id) || !take_number(value, refusal.status) ||
        !take_number(value, refusal.at_ns)) {
      EC_TRY(each->status());
      return corruption("a reading that target " + name + " refused is not kept as it was");
    }
    refusal.place.key = key;
    some.push_back(std::move(refusal));
  }
  EC_TRY(each->status());
  return some;
}

Result<std::size_t> Records::count_refusals(const std::string& name) const {
  if (id_ == 0) return std::size_t{0};
  EC_ASSIGN_OR_RETURN(const RangeStats stats,
                      engine_.range_stats(id_, all_of(refusal_prefix(name)), unkept()));
  return static_cast<std::size_t>(stats.entries);
}

Result<bool> Records::is_refused(const std::string& name, const Place& place) const {
  if (id_ == 0) return false;
  const auto value = engine_.get(id_, refusal_key(name, place), unkept());
  if (value.status().code() == StatusCode::NotFound) return false;
  EC_TRY(value.status());
  ByteView bytes = *value;
  std::uint16_t status = 0;
  return take_number(bytes, status) && status != 0;
}

Status Records::add_refusals(const std::string& name, const std::vector<Refusal>& refusals) {
  if (refusals.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const NamespaceId id, made_id());
  WriteBatch batch;
  for (const Refusal& each : refusals) {
    Bytes value;
    append_number(each.status, value);
    append_number(each.at_ns, value);
    batch.put(id, refusal_key(name, each.place), value);
  }
  return engine_.write(batch, Durability::Sync);
}

Status Records::remove_refusals(const std::string& name, const std::vector<Refusal>& refusals) {
  if (refusals.empty()) return ok();
  WriteBatch batch;
  for (const Refusal& each : refusals) batch.remove(id_, refusal_key(name, each.place));
  return engine_.write(batch, Durability::Sync);
}

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

Result<std::string> Lineage::store() {
  const MutexLock lock(mutex_);
  EC_TRY(begin());
  std::string digits;
  append_digits(store_, digits);
  return digits;
}

// Where that is lost, the run goes on after a restart.
void Lineage::note_answered() {
  const MutexLock lock(mutex_);
  if (!has_begun_ || is_answered_) return;
  is_answered_ = true;
  static_cast<void>(write(Durability::Async).ok());
}

}  // namespace edgecase::forward
