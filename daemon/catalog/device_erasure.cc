// DeviceIndex's end of an erasure, and terms that were taken back: their bytes, too.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "catalog/device_records.h"
#include "catalog/erased.h"

namespace edgecase::catalog {
namespace {

constexpr std::size_t kSpansJoined = 4096;  // that are looked at together

}  // namespace

// Everything that there is and was of a device.
Status DeviceIndex::tell_spans(const DeviceName& name, const DeviceMetadata& said,
                               const SpanTaker& take) const {
  const Bytes suffix = name_bytes(name);
  for (const Bytes& prefix : index_prefixes(said))
    EC_TRY(take(span_of_key(records_, prefix + suffix)));
  EC_TRY(take(span_of_key(records_, 'D' + suffix)));
  const KeySpan notes = span_of_prefix(records_, taken_back_key(name, {}));
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {notes.lower, notes.upper}, {}));
  bool is_any = false;
  for (; iterator->valid(); iterator->next(), is_any = true)
    EC_TRY(take(span_of_key(records_, parse_taken_back(iterator->key()).second + suffix)));
  if (is_any) EC_TRY(take(notes));
  return iterator->status();
}

// Joins ranges with no key between them: those of a whole group are few. Keys of others that were
// removed may lie there.
Status DeviceIndex::tell_joined(std::vector<KeySpan> spans, const SpanTaker& take) const {
  std::sort(spans.begin(), spans.end(),
            [](const KeySpan& a, const KeySpan& b) { return a.lower < b.lower; });
  ReadOptions options;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {}, options));
  KeySpan joined;
  for (KeySpan& span : spans) {
    if (!joined.upper.empty()) {
      iterator->seek(joined.upper);
      EC_TRY(iterator->status());
      if (!iterator->valid() || iterator->key() >= span.lower) {
        joined.upper = std::max(std::move(joined.upper), std::move(span.upper));
        continue;
      }
      EC_TRY(take(std::move(joined)));
    }
    joined = std::move(span);
  }
  return joined.upper.empty() ? ok() : take(std::move(joined));
}

Status DeviceIndex::plan_erasure(const Erased& erased, const SpanTaker& take) {
  std::vector<std::uint32_t> by_name(erased.devices.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::sort(by_name.begin(), by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    const DeviceEntry &one = erased.devices[a], &other = erased.devices[b];
    return std::tie(one.namespace_name, one.device) < std::tie(other.namespace_name, other.device);
  });
  std::vector<KeySpan> spans;
  const auto gather = [&spans](KeySpan span) {
    spans.push_back(std::move(span));
    return ok();
  };
  for (const std::uint32_t at : by_name) {
    const DeviceName name{erased.devices[at].namespace_name, erased.devices[at].device};
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    EC_TRY(tell_spans(name, said, gather));
    if (spans.size() >= kSpansJoined) EC_TRY(tell_joined(std::exchange(spans, {}), take));
  }
  return tell_joined(std::move(spans), take);
}

void DeviceIndex::forget(const Erased& erased) {
  for (const DeviceEntry& device : erased.devices)
    remember({device.namespace_name, device.device}, {});
}

Status DeviceIndex::forget_taken_back() {
  const MutexLock lock(change_mutex_);
  return notes_ == 0 ? ok() : remove_taken_back();
}

// A term that is said again by now stays, written anew.
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
