#include "catalog/device_index.h"

#include <algorithm>

#include "catalog/device_records.h"
#include "catalog/erased.h"
#include "edgecase/options.h"
#include "wire/selector.h"

namespace edgecase::catalog {
namespace {

constexpr std::size_t kDevicesPerBatch = 500;

bool holds(const std::vector<std::string>& terms, std::string_view term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

}  // namespace

bool DeviceFilter::holds_for(const DeviceMetadata& said) const {
  return (owner.empty() || said.owner == owner) &&
         (purpose.empty() || holds(said.purposes, purpose)) &&
         (objection.empty() || holds(said.objections, objection)) &&
         std::all_of(labels.begin(), labels.end(), [&said](const auto& label) {
           const auto known = said.labels.find(label.first);
           return known != said.labels.end() && known->second == label.second;
         });
}

Result<std::unique_ptr<DeviceIndex>> DeviceIndex::open(Engine& engine, std::size_t devices_max) {
  std::unique_ptr<DeviceIndex> index(new DeviceIndex(engine, devices_max));
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
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {"D", "E"}, {}));
  for (; iterator->valid(); iterator->next()) {
    EC_ASSIGN_OR_RETURN(const DeviceMetadata metadata, decode_metadata(iterator->value()));
    remember(parse_name(iterator->key().substr(1)), metadata);
  }
  EC_TRY(iterator->status());
  EC_ASSIGN_OR_RETURN(const RangeStats notes, engine_.range_stats(records_, {"S", "T"}, {}));
  notes_ = notes.entries;
  return ok();
}

Result<DeviceMetadata> DeviceIndex::metadata(const DeviceName& name) const {
  if (!is_known(name)) return DeviceMetadata{};
  const auto record = engine_.get(records_, 'D' + name_bytes(name), {});
  if (record.status().code() == StatusCode::NotFound) return DeviceMetadata{};
  EC_TRY(record.status());
  return decode_metadata(*record);
}

void DeviceIndex::remember(const DeviceName& name, const DeviceMetadata& metadata) {
  const std::unique_lock lock(mutex_);
  if (metadata.empty()) {
    terms_.erase(name);
  } else {
    terms_[name] = {metadata.purposes, metadata.objections};
  }
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
  const std::shared_lock lock(mutex_);
  return terms_.contains(name);
}

// With change_mutex_ held.
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
    std::vector<KeySpan> spans;
    EC_TRY(append_spans(planned.name, planned.before, spans));
    for (const KeySpan& span : spans) batch.erase_range(records_, span.lower, span.upper);
    added.ranges = spans.size();
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

// With change_mutex_ held. In batches of bounded size; all of them are planned by now.
Status DeviceIndex::write(const std::vector<Planned>& planned) {
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
    EC_TRY(engine_.write(batch, Durability::Sync));
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
  const std::lock_guard lock(change_mutex_);
  std::map<DeviceName, DeviceMetadata> after;
  EC_TRY(replace({&one, 1}, saying, after));
  return std::move(after.begin()->second);
}

Status DeviceIndex::update_all(std::span<const DeviceChange> changes, const Saying& saying) {
  const std::lock_guard lock(change_mutex_);
  std::map<DeviceName, DeviceMetadata> after;
  return replace(changes, saying, after);
}

// With change_mutex_ held.
Status DeviceIndex::replace(std::span<const DeviceChange> changes, const Saying& saying,
                            std::map<DeviceName, DeviceMetadata>& after) {
  std::map<DeviceName, DeviceMetadata> before;
  for (const DeviceChange& change : changes) {
    const auto [at, is_first] = before.try_emplace(change.name);
    if (is_first) {
      EC_ASSIGN_OR_RETURN(at->second, metadata(change.name));
      after[change.name] = at->second;
    }
    DeviceMetadata& said = after[change.name];
    auto next = changed(change, said, saying);
    if (!next.ok()) {
      if (changes.size() == 1) return next.status();
      return invalid_argument("device " + change.name.device + ": " + next.status().message());
    }
    said = std::move(next).value();
  }
  std::vector<Planned> planned;
  std::size_t added = 0;
  for (const auto& [name, said] : after) {
    if (before[name] == said) continue;
    if (before[name].empty()) ++added;
    planned.push_back({name, before[name], said});
  }
  if (added > 0) {
    const std::shared_lock lock(mutex_);
    if (terms_.size() + added > devices_max_) {
      return busy("something is said of " + std::to_string(terms_.size()) +
                  " devices already, at most " + std::to_string(devices_max_) +
                  " there may be (limits.devices)");
    }
  }
  // Where the engine cannot keep up, whoever changes things waits.
  while (notes_ > kNotesMax) EC_TRY(remove_taken_back());
  return write(planned);
}

Status DeviceIndex::introduce(const DeviceName& name, const DeviceMetadata& metadata,
                              const Saying& saying) {
  const std::lock_guard lock(change_mutex_);
  if (is_known(name)) return ok();
  const DeviceChange said{name, [&metadata](DeviceMetadata& all) { all = metadata; }};
  std::map<DeviceName, DeviceMetadata> after;
  return replace({&said, 1}, saying, after);
}

Status DeviceIndex::forget_namespace(const std::string& namespace_name) {
  const std::lock_guard lock(change_mutex_);
  std::vector<DeviceName> names;
  {
    const std::shared_lock terms_lock(mutex_);
    for (auto at = terms_.lower_bound({namespace_name, ""});
         at != terms_.end() && at->first.namespace_name == namespace_name; ++at) {
      names.push_back(at->first);
    }
  }
  for (std::size_t first = 0; first < names.size(); first += kDevicesPerBatch) {
    const std::size_t end = std::min(first + kDevicesPerBatch, names.size());
    WriteBatch batch;
    for (std::size_t i = first; i < end; ++i) {
      EC_ASSIGN_OR_RETURN(const DeviceMetadata before, metadata(names[i]));
      append(names[i], before, {}, batch);
    }
    EC_TRY(engine_.write(batch, Durability::Sync));
    for (std::size_t i = first; i < end; ++i) remember(names[i], {});
  }
  WriteBatch notes;
  const KeySpan span = span_of_prefix(records_, 'S' + Bytes(namespace_name) + '\0');
  notes.remove_range(records_, span.lower, span.upper);
  return engine_.write(notes, Durability::Sync);
}

std::vector<DeviceName> DeviceIndex::select(std::string_view namespace_name,
                                            std::string_view device_glob) const {
  const std::shared_lock lock(mutex_);
  std::vector<DeviceName> names;
  if (!namespace_name.empty() && wire::is_literal(device_glob)) {
    DeviceName only{std::string(namespace_name), wire::unescape_name(device_glob)};
    if (terms_.contains(only)) names.push_back(std::move(only));
    return names;
  }
  for (const auto& [name, terms] : terms_) {
    const bool in_scope = namespace_name.empty() ? !name.namespace_name.starts_with('_')
                                                 : name.namespace_name == namespace_name;
    if (in_scope && wire::glob_matches(device_glob, name.device)) names.push_back(name);
  }
  return names;
}

// All ranges are gone through side by side: the first one to end is the shortest. Or, where a page
// is full before, as many as it needs.
Result<std::vector<DeviceName>> DeviceIndex::find(std::string_view namespace_name,
                                                  const DeviceFilter& filter,
                                                  const DevicePage& page) const {
  if (filter.empty()) return invalid_argument("an owner, a purpose or a label is looked for");
  struct Range {
    Bytes prefix;
    std::unique_ptr<Iterator> iterator;
    std::vector<DeviceName> names;
  };
  const Bytes scope = namespace_name.empty() ? Bytes() : Bytes(namespace_name) + '\0';
  std::vector<Range> ranges;
  for (Bytes& prefix : prefixes_of(filter)) {
    const Bytes all = prefix + scope;
    Bytes first = all;
    if (page.after) first = std::max(first, prefix + name_bytes(*page.after) + '\0');
    EC_ASSIGN_OR_RETURN(auto iterator,
                        engine_.scan(records_, {std::min(first, end_of(all)), end_of(all)}, {}));
    ranges.push_back({std::move(prefix), std::move(iterator), {}});
  }
  const bool is_single = ranges.size() == 1;
  const std::vector<DeviceName>* candidates = nullptr;
  while (candidates == nullptr) {
    for (Range& range : ranges) {
      const bool is_full = is_single && range.names.size() >= page.limit;
      if (is_full || !range.iterator->valid()) {
        EC_TRY(range.iterator->status());
        candidates = &range.names;
        break;
      }
      range.names.push_back(parse_name(range.iterator->key().substr(range.prefix.size())));
      range.iterator->next();
    }
  }
  if (is_single) return *candidates;
  std::vector<DeviceName> names;
  for (const DeviceName& name : *candidates) {
    if (names.size() >= page.limit) break;
    bool has_all = true;
    for (std::size_t i = 0; i < ranges.size() && has_all; ++i) {
      const Status found = engine_.get(records_, ranges[i].prefix + name_bytes(name), {}).status();
      if (!found.ok() && found.code() != StatusCode::NotFound) return found;
      has_all = found.ok();
    }
    if (has_all) names.push_back(name);
  }
  return names;
}

std::vector<DeviceName> DeviceIndex::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<DeviceName> names;
  names.reserve(terms_.size());
  for (const auto& each : terms_) names.push_back(each.first);
  return names;
}

Status DeviceIndex::check_purpose(std::string_view namespace_name, std::string_view device,
                                  std::string_view purpose) const {
  const std::shared_lock lock(mutex_);
  if (terms_.empty()) return ok();
  const auto found = terms_.find({std::string(namespace_name), std::string(device)});
  if (found == terms_.end()) return ok();
  const auto& [purposes, objections] = found->second;
  if (purposes.empty() && objections.empty()) return ok();
  const std::string who = "device " + std::string(device);
  if (purpose.empty()) {
    return not_allowed(who + " is read for a stated purpose only: say --purpose, or purpose=");
  }
  if (holds(objections, purpose)) {
    return not_allowed(who + ": its owner objects to the purpose " + std::string(purpose));
  }
  if (!purposes.empty() && !holds(purposes, purpose)) {
    return not_allowed(who + " is not there for the purpose " + std::string(purpose));
  }
  return ok();
}

}  // namespace edgecase::catalog
