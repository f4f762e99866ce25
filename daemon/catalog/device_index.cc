#include "catalog/device_index.h"

#include <algorithm>

#include "catalog/catalog.h"
#include "edgecase/options.h"

namespace edgecase::catalog {

std::optional<Bytes> RecentRecords::find(const Bytes& name) const {
  const ReaderLock lock(mutex_);
  const auto found = records_.find(name);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

std::uint64_t RecentRecords::changes() const {
  const ReaderLock lock(mutex_);
  return changes_;
}

void RecentRecords::note(const Bytes& name, const Bytes& record, std::uint64_t changes_before) {
  if (record.size() > kRecordMaxBytes) return;
  const WriterLock lock(mutex_);
  if (changes_ != changes_before) return;
  if (bytes_ + bytes_of(name, record) > kBytesMax) {
    records_.clear();
    bytes_ = 0;
  }
  const auto [at, is_new] = records_.try_emplace(name, record);
  if (is_new) bytes_ += bytes_of(at->first, at->second);
}

void RecentRecords::forget(const Bytes& name) {
  const WriterLock lock(mutex_);
  ++changes_;
  const auto found = records_.find(name);
  if (found == records_.end()) return;
  bytes_ -= bytes_of(found->first, found->second);
  records_.erase(found);
}

void RecentRecords::forget_all() {
  const WriterLock lock(mutex_);
  ++changes_;
  records_.clear();
  bytes_ = 0;
}

std::size_t RecentRecords::memory_bytes() const {
  const ReaderLock lock(mutex_);
  return bytes_;
}

namespace {

constexpr std::size_t kDevicesPerBatch = 500;

}  // namespace

Result<std::unique_ptr<DeviceIndex>> DeviceIndex::open(Engine& engine,
                                                       const DeviceIndexLimits& limits) {
  std::unique_ptr<DeviceIndex> index(new DeviceIndex(engine, limits));
  EC_TRY(index->load());
  return index;
}

Status DeviceIndex::load() {
  if (const auto found = engine_.find_namespace(kDevicesNamespace); found.ok()) {
    records_ = found->id;
  } else {
    EC_ASSIGN_OR_RETURN(
        records_, engine_.create_namespace(kDevicesNamespace, {.placement = Placement::Metadata}));
  }
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {"D", "E"}, without_damaged()));
  for (; iterator->valid(); iterator->next()) {
    EC_ASSIGN_OR_RETURN(const DeviceMetadata metadata, decode_metadata(iterator->value()));
    remember(parse_name(iterator->key().substr(1)), metadata);
  }
  EC_TRY(iterator->status());
  const MutexLock lock(change_mutex_);
  const auto notes = engine_.range_stats(records_, {"S", "T"}, {});
  if (notes.ok()) notes_ = notes->entries;
  return notes.status().code() == StatusCode::Corruption ? ok() : notes.status();
}

Result<DeviceMetadata> DeviceIndex::metadata(const DeviceName& name) const {
  if (!is_known(name)) return DeviceMetadata{};
  const Bytes suffix = name_bytes(name);
  if (const auto recent = recent_.find(suffix)) return decode_metadata(*recent);
  const std::uint64_t changes = recent_.changes();
  const auto record = engine_.get(records_, 'D' + suffix, {});
  if (record.status().code() == StatusCode::NotFound) return DeviceMetadata{};
  EC_TRY(record.status());
  recent_.note(suffix, *record, changes);
  tell_memory();
  return decode_metadata(*record);
}

void DeviceIndex::remember(const DeviceName& name, const DeviceMetadata& metadata) {
  {
    const WriterLock lock(mutex_);
    if (metadata.empty()) {
      terms_.remove(name.namespace_name, name.device);
    } else {
      terms_.set(name.namespace_name, name.device,
                 terms_text(metadata.purposes, metadata.objections));
    }
  }
  forget_recent(name);
  tell_memory();
}

void DeviceIndex::forget_recent(const DeviceName& name) {
  recent_.forget(name_bytes(name));
  if (observer_) observer_();
}

void DeviceIndex::forget_recent() {
  recent_.forget_all();
  if (observer_) observer_();
}

void DeviceIndex::tell_memory() const {
  set_aside_.tell(memory_bytes() + recent_.memory_bytes());
}

std::uint64_t DeviceIndex::memory_bytes() const {
  const ReaderLock lock(mutex_);
  return terms_.memory_bytes();
}

void DeviceIndex::append(const DeviceName& name, const DeviceMetadata& before,
                         const DeviceMetadata& after, WriteBatch& batch) const {
  const Bytes suffix = name_bytes(name);
  for (const Bytes& prefix : index_prefixes(before)) batch.remove(records_, prefix + suffix);
  for (const Bytes& prefix : index_prefixes(after)) batch.put(records_, prefix + suffix, {});
  if (after.empty()) {
    batch.remove(records_, 'D' + suffix);
  } else {
    batch.put(records_, 'D' + suffix, encode_metadata(after));
  }
}

bool DeviceIndex::is_known(const DeviceName& name) const {
  const ReaderLock lock(mutex_);
  return terms_.contains(name.namespace_name, name.device);
}

Result<DeviceMetadata> DeviceIndex::changed(const DeviceChange& change,
                                            const DeviceMetadata& before,
                                            const Saying& saying) const {
  DeviceMetadata after = before;
  change.change(after);
  tidy(after.purposes);
  tidy(after.objections);
  EC_TRY(check_metadata(change.name, after));
  note_consent(before, saying, after);
  return after;
}

// What is taken back is noted, so that an erasure of the device later on knows of it. Where nothing
// is left that is said of it, all goes for good at once: nobody may ever erase it. Returns how many
// ranges and notes were added.
Result<DeviceIndex::Added> DeviceIndex::append_change(const Planned& planned,
                                                      WriteBatch& batch) const {
  const Bytes suffix = name_bytes(planned.name);
  const std::vector<Bytes> known = index_prefixes(planned.before);
  const std::vector<Bytes> kept = index_prefixes(planned.after);
  const auto holds = [](const std::vector<Bytes>& prefixes, const Bytes& prefix) {
    return std::find(prefixes.begin(), prefixes.end(), prefix) != prefixes.end();
  };
  Added added;
  if (planned.after.empty()) {
    EC_TRY(tell_spans(planned.name, planned.before, [&](const KeySpan& span) {
      batch.erase_range(records_, span.lower, span.upper);
      ++added.ranges;
      return ok();
    }));
    return added;
  }
  for (const Bytes& prefix : known) {
    if (holds(kept, prefix)) continue;
    batch.remove(records_, prefix + suffix);
    batch.put(records_, taken_back_key(planned.name, prefix), {});
    ++added.notes;
  }
  for (const Bytes& prefix : kept) {
    if (!holds(known, prefix)) batch.put(records_, prefix + suffix, {});
  }
  batch.put(records_, 'D' + suffix, encode_metadata(planned.after));
  return added;
}

// In batches of bounded size; all of them are planned by now.
Status DeviceIndex::write(std::span<const Planned> planned) {
  std::size_t first = 0;
  while (first < planned.size()) {
    WriteBatch batch;
    Added added;
    std::size_t next = first;
    while (next < planned.size() && next - first < kDevicesPerBatch && added.ranges == 0) {
      EC_ASSIGN_OR_RETURN(const Added more, append_change(planned[next], batch));
      if (more.ranges > kRangeDeletesPerBatchMax)
        return busy("what was taken back of a device waits for its bytes to go");
      added.ranges += more.ranges;
      added.notes += more.notes;
      ++next;
    }
    const Status written = engine_.write(batch, Durability::Sync);
    if (!written.ok()) forget_recent();
    EC_TRY(written);
    for (; first < next; ++first) remember(planned[first].name, planned[first].after);
    notes_ += added.notes;
  }
  return ok();
}

Status DeviceIndex::set(const DeviceName& name, const DeviceMetadata& metadata,
                        const Saying& saying) {
  return update(
             name, [&metadata](DeviceMetadata& all) { all = metadata; }, saying)
      .status();
}

Result<DeviceMetadata> DeviceIndex::update(const DeviceName& name,
                                           const std::function<void(DeviceMetadata&)>& change,
                                           const Saying& saying) {
  const DeviceChange one{name, change};
  const MutexLock lock(change_mutex_);
  return update_one(one, saying);
}

Result<DeviceMetadata> DeviceIndex::update_one(const DeviceChange& change, const Saying& saying) {
  const DeviceChange* const changes[] = {&change};
  EC_ASSIGN_OR_RETURN(Planned planned, plan(changes, saying, true));
  if (planned.before == planned.after) return std::move(planned.after);
  Growth growth;
  count(planned, growth);
  EC_TRY(check_room(growth));
  EC_TRY(make_room_for_notes());
  EC_TRY(write({&planned, 1}));
  return std::move(planned.after);
}

Result<DeviceIndex::Planned> DeviceIndex::plan(std::span<const DeviceChange* const> changes,
                                               const Saying& saying, bool is_alone) const {
  Planned planned{changes.front()->name, {}, {}};
  EC_ASSIGN_OR_RETURN(planned.before, metadata(planned.name));
  planned.after = planned.before;
  for (const DeviceChange* const change : changes) {
    auto next = changed(*change, planned.after, saying);
    if (!next.ok() && is_alone) return next.status();
    if (!next.ok()) return next.status().with_context("device " + planned.name.device + ": ");
    planned.after = std::move(next).value();
  }
  return planned;
}

void DeviceIndex::count(const Planned& planned, Growth& growth) const {
  if (planned.after.empty()) return;
  if (planned.before.empty()) ++growth.devices;
  Bytes terms = terms_text(planned.after.purposes, planned.after.objections);
  const ReaderLock lock(mutex_);
  if (terms_.has_set(terms)) return;
  const auto [at, is_new] = growth.sets.insert(std::move(terms));
  if (is_new) growth.set_bytes += DeviceTerms::set_bytes(*at);
}

Status DeviceIndex::check_room(const Growth& growth) const {
  const ReaderLock lock(mutex_);
  if (growth.devices > 0 && terms_.size() + growth.devices > limits_.devices) {
    return limit_reached("something is said of " + std::to_string(terms_.size()) +
                         " devices already, at most " + std::to_string(limits_.devices) +
                         " there may be (limits.devices)");
  }
  const std::uint64_t bytes = terms_.memory_bytes(growth.devices, growth.set_bytes);
  if (bytes > limits_.memory_bytes && bytes > terms_.memory_bytes()) {
    return limit_reached("what is said of devices takes the " +
                         std::to_string(limits_.memory_bytes >> 20) +
                         " MiB of memory that are its own (setting storage.memory-limit)");
  }
  return ok();
}

// Where the engine cannot keep up, whoever changes things waits.
Status DeviceIndex::make_room_for_notes() {
  while (notes_ > kNotesMax) EC_TRY(remove_taken_back());
  return ok();
}

// What `batch` makes of each of its devices, where that is something else.
Result<std::vector<DeviceIndex::Planned>> DeviceIndex::plan_batch(
    std::span<const DeviceChange* const> batch, const Saying& saying, bool is_alone) const {
  std::vector<Planned> changes;
  for (std::size_t first = 0, end = 0; first < batch.size(); first = end) {
    while (end < batch.size() && batch[end]->name == batch[first]->name) ++end;
    EC_ASSIGN_OR_RETURN(Planned planned, plan(batch.subspan(first, end - first), saying, is_alone));
    if (planned.before != planned.after) changes.push_back(std::move(planned));
  }
  return changes;
}

// When all batches have been checked, they are asked for again, and
// written.
Status DeviceIndex::update_batches(const BatchSource& next, const Saying& saying, bool is_alone) {
  Growth growth;
  for (const bool is_checked : {false, true}) {
    for (bool is_first = true;; is_first = false) {
      EC_ASSIGN_OR_RETURN(const std::vector<const DeviceChange*> batch, next(is_first));
      if (batch.empty()) break;
      EC_ASSIGN_OR_RETURN(const std::vector<Planned> changes, plan_batch(batch, saying, is_alone));
      if (is_checked) {
        if (is_first) EC_TRY(make_room_for_notes());
        EC_TRY(write(changes));
        continue;
      }
      for (const Planned& planned : changes) count(planned, growth);
      EC_TRY(check_room(growth));
    }
  }
  return ok();
}

Status DeviceIndex::update_all(std::span<const DeviceChange> changes, const Saying& saying) {
  // A device's follow one another.
  std::vector<const DeviceChange*> sorted;
  for (const DeviceChange& change : changes) sorted.push_back(&change);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->name < b->name; });
  auto at = sorted.begin();
  const auto next = [&](bool is_first) -> Result<std::vector<const DeviceChange*>> {
    if (is_first) at = sorted.begin();
    std::vector<const DeviceChange*> batch;
    for (; at != sorted.end(); ++at) {
      if (batch.size() >= kDevicesPerBatch && (*at)->name != batch.back()->name) break;
      batch.push_back(*at);
    }
    return batch;
  };
  const MutexLock lock(change_mutex_);
  return update_batches(next, saying, changes.size() == 1);
}

Status DeviceIndex::update_found(std::string_view namespace_name, const DeviceFilter& filter,
                                 const std::function<void(DeviceMetadata&)>& change,
                                 const Saying& saying,
                                 const std::function<void(const DeviceName&)>& told) {
  DevicePage page{std::nullopt, kDevicesPerBatch};
  std::vector<DeviceChange> changes;
  bool is_checked = false;
  // Behind the last one nothing has been changed yet.
  const auto next = [&](bool is_first) -> Result<std::vector<const DeviceChange*>> {
    if (is_first) page.after.reset();
    changes.clear();
    while (changes.empty()) {
      EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> names, find(namespace_name, filter, page));
      if (names.empty()) break;
      page.after = names.back();
      for (const DeviceName& name : names) {
        if (name.namespace_name.starts_with('_')) continue;
        changes.push_back({name, change});
        if (is_checked) told(name);
      }
    }
    if (changes.empty()) is_checked = true;
    std::vector<const DeviceChange*> batch;
    for (const DeviceChange& each : changes) batch.push_back(&each);
    return batch;
  };
  const MutexLock lock(change_mutex_);
  return update_batches(next, saying, false);
}

Status DeviceIndex::introduce(const DeviceName& name, const DeviceMetadata& metadata,
                              const Saying& saying) {
  const DeviceChange said{name, [&metadata](DeviceMetadata& all) { all = metadata; }};
  const MutexLock lock(change_mutex_);
  return is_known(name) ? ok() : update_one(said, saying).status();
}

Status DeviceIndex::forget_namespace(const std::string& namespace_name) {
  const MutexLock lock(change_mutex_);
  forget_recent();  // devices of which nothing is said go, too
  while (true) {
    EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> names,
                        records_in(namespace_name, {std::nullopt, kDevicesPerBatch}));
    if (names.empty()) break;
    WriteBatch batch;
    for (const DeviceName& name : names) {
      EC_ASSIGN_OR_RETURN(const DeviceMetadata before, metadata(name));
      append(name, before, {}, batch);
    }
    const Status written = engine_.write(batch, Durability::Sync);
    if (!written.ok()) forget_recent();
    EC_TRY(written);
    for (const DeviceName& name : names) remember(name, {});
  }
  WriteBatch notes;
  const KeySpan span = span_of_prefix(records_, 'S' + Bytes(namespace_name) + '\0');
  notes.remove_range(records_, span.lower, span.upper);
  return engine_.write(notes, Durability::Sync);
}

Status DeviceIndex::check_purpose(std::string_view namespace_name, std::string_view device,
                                  std::string_view purpose) const {
  const ReaderLock lock(mutex_);
  const TermsView terms = terms_.find(namespace_name, device);
  if (terms.is_empty()) return ok();
  const std::string who = "device " + std::string(device);
  if (purpose.empty()) {
    return not_allowed(who + " is read for a stated purpose only: say --purpose, or purpose=");
  }
  if (holds_term(terms.objections, purpose)) {
    return not_allowed(who + ": its owner objects to the purpose " + std::string(purpose));
  }
  if (!terms.purposes.empty() && !holds_term(terms.purposes, purpose)) {
    return not_allowed(who + " is not there for the purpose " + std::string(purpose));
  }
  return ok();
}

}  // namespace edgecase::catalog
