#include "ingest/left_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/reading_key.h"
#include "wire/time_text.h"

namespace edgecase::ingest {
namespace {

constexpr char kCopiesVersion = 1;
constexpr std::size_t kNamespaceBytes = 4;
constexpr std::size_t kRecordKeyBytes = 1 + kNamespaceBytes + wire::kSeriesPrefixBytes;
constexpr std::size_t kRecordValueBytes = 1 + 2 * wire::kReadingKeyBytes;

// Nothing that is still read is among them: were it so, they would end before it.
Status append_erasure(Engine& engine, NamespaceId id, KeyRange copies, WriteBatch& batch) {
  EC_ASSIGN_OR_RETURN(const auto live, engine.scan(id, copies, {}));
  EC_TRY(live->status());
  if (live->valid()) copies.upper = Bytes(live->key());
  batch.erase_range(id, copies.lower, copies.upper);
  return ok();
}

}  // namespace

Status LeftCopies::load() {
  if (is_loaded_) return ok();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (records.status().code() == StatusCode::NotFound) return ok();
  if (!records.ok()) return records.status();
  const KeyRange of_copies{Bytes(1, kCopiesRecord), Bytes(1, kCopiesRecord + 1)};
  EC_ASSIGN_OR_RETURN(const auto each, engine_.scan(records->id, of_copies, without_damaged()));
  for (; each->valid(); each->next()) {
    const ByteView key = each->key();
    const ByteView value = each->value();
    if (key.size() != kRecordKeyBytes || value.size() != kRecordValueBytes ||
        value.front() != kCopiesVersion) {
      continue;
    }
    Copies& copies = waiting_[Bytes(key)];
    copies.namespace_id =
        static_cast<NamespaceId>(wire::read_big_endian(key.substr(1, kNamespaceBytes)));
    copies.keys = {Bytes(value.substr(1, wire::kReadingKeyBytes)),
                   Bytes(value.substr(1 + wire::kReadingKeyBytes))};
  }
  EC_TRY(each->status());
  is_loaded_ = true;
  return ok();
}

void LeftCopies::append(const catalog::SeriesId& series, const KeyRange& copies,
                        WriteBatch& batch) {
  Bytes key(1, kCopiesRecord);
  wire::append_big_endian(series.namespace_id, key, kNamespaceBytes);
  wire::append_big_endian(series.device, key, 4);
  wire::append_big_endian(series.sensor, key, 4);
  const auto [found, is_new] = waiting_.try_emplace(key, Copies{series.namespace_id, copies, {}});
  Copies& known = found->second;
  if (!is_new) {
    known.keys = {std::min(known.keys.lower, copies.lower),
                  std::max(known.keys.upper, copies.upper)};
  }
  known.readers.reset();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (!records.ok()) return;
  batch.put(records->id, key, Bytes(1, kCopiesVersion) + known.keys.lower + known.keys.upper);
}

Status LeftCopies::erase() {
  if (waiting_.empty()) return ok();
  const auto records = engine_.find_namespace(wire::kUndatedNamespace);
  if (!records.ok()) return records.status();
  std::optional<std::weak_ptr<const void>> readers;
  for (auto& [key, copies] : waiting_) {
    if (copies.readers) continue;
    if (!readers) readers = engine_.held_snapshots();
    copies.readers = readers;
  }
  const std::vector<NamespaceInfo> namespaces = engine_.namespaces();
  WriteBatch batch;
  std::vector<Bytes> gone;
  for (const auto& [key, copies] : waiting_) {
    if (gone.size() == kEraseCopiesMax) break;
    if (!copies.readers->expired()) continue;
    gone.push_back(key);
    batch.remove(records->id, key);
    const bool is_there = std::any_of(
        namespaces.begin(), namespaces.end(),
        [id = copies.namespace_id](const NamespaceInfo& info) { return info.id == id; });
    if (is_there) EC_TRY(append_erasure(engine_, copies.namespace_id, copies.keys, batch));
  }
  if (gone.empty()) return ok();
  EC_TRY(engine_.write(batch, Durability::Async));
  for (const Bytes& key : gone) waiting_.erase(key);
  return ok();
}

}  // namespace edgecase::ingest
