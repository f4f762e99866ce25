// DeviceIndex's end of an erasure, and terms that were taken back: their bytes, too.
#include <algorithm>
#include <utility>

#include "catalog/device_records.h"
#include "catalog/erased.h"

namespace edgecase::catalog {

// With change_mutex_ held. Everything that there is and was of a device.
Status DeviceIndex::append_spans(const DeviceName& name, const DeviceMetadata& said,
                                 std::vector<KeySpan>& spans) const {
  const Bytes suffix = name_bytes(name);
  for (const Bytes& prefix : index_prefixes(said))
    spans.push_back(span_of_key(records_, prefix + suffix));
  spans.push_back(span_of_key(records_, 'D' + suffix));
  const KeySpan notes = span_of_prefix(records_, taken_back_key(name, {}));
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {notes.lower, notes.upper}, {}));
  bool is_any = false;
  for (; iterator->valid(); iterator->next(), is_any = true)
    spans.push_back(span_of_key(records_, parse_taken_back(iterator->key()).second + suffix));
  if (is_any) spans.push_back(notes);
  return iterator->status();
}

Result<std::unique_lock<std::mutex>> DeviceIndex::plan_erasure(const Erased& erased,
                                                               std::vector<KeySpan>& spans) {
  std::unique_lock lock(change_mutex_);
  for (const DeviceEntry& device : erased.devices) {
    const DeviceName name{device.namespace_name, device.device};
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    EC_TRY(append_spans(name, said, spans));
  }
  return lock;
}

void DeviceIndex::forget(const Erased& erased) {
  for (const DeviceEntry& device : erased.devices)
    remember({device.namespace_name, device.device}, {});
}

Status DeviceIndex::forget_taken_back() {
  const std::lock_guard lock(change_mutex_);
  return notes_ == 0 ? ok() : remove_taken_back();
}

// With change_mutex_ held. A term that is said again by now stays, written anew.
Status DeviceIndex::remove_taken_back() {
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {"S", "T"}, options));
  WriteBatch batch;
  Bytes first, last;
  std::vector<Bytes> again;
  std::uint64_t removed = 0;
  for (; iterator->valid() && removed < kNotesPerBatch; iterator->next(), ++removed) {
    last = Bytes(iterator->key());
    if (first.empty()) first = last;
    const auto [name, prefix] = parse_taken_back(last);
    const Bytes key = prefix + name_bytes(name);
    const KeySpan span = span_of_key(records_, key);
    batch.erase_range(records_, span.lower, span.upper);
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    const std::vector<Bytes> live = index_prefixes(said);
    if (std::find(live.begin(), live.end(), prefix) != live.end()) again.push_back(key);
  }
  EC_TRY(iterator->status());
  if (removed == 0) {
    notes_ = 0;
    return ok();
  }
  batch.erase_range(records_, first, last + '\0');
  for (const Bytes& key : again) batch.put(records_, key, {});
  EC_TRY(engine_.write(batch, Durability::Sync));
  notes_ -= std::min(notes_, removed);
  return ok();
}

}  // namespace edgecase::catalog
