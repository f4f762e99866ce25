#include "catalog/device_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog/erased.h"
#include "wire/names.h"
#include "wire/selector.h"

namespace edgecase::catalog {
namespace {

using Json = nlohmann::json;

constexpr int kRecordVersion = 1;
constexpr std::size_t kDevicesPerBatch = 500;

Bytes name_bytes(const DeviceName& name) {
  return name.namespace_name + '\0' + name.device;
}

Bytes term_prefix(char kind, std::string_view term) {
  return Bytes(1, kind) + Bytes(term) + '\0';
}

// Of the key behind a prefix: "namespace 0 device".
DeviceName parse_name(ByteView bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  return {std::string(bytes.substr(0, end)),
          std::string(bytes.substr(std::min(end + 1, bytes.size())))};
}

// The first key behind all that begin so.
Bytes end_of(Bytes prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);  // a zero byte, always
  return prefix;
}

std::vector<Bytes> index_prefixes(const DeviceMetadata& metadata) {
  std::vector<Bytes> prefixes;
  if (!metadata.owner.empty()) prefixes.push_back(term_prefix('O', metadata.owner));
  for (const std::string& each : metadata.purposes) prefixes.push_back(term_prefix('P', each));
  for (const std::string& each : metadata.objections) prefixes.push_back(term_prefix('X', each));
  for (const auto& [label, value] : metadata.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  return prefixes;
}

std::string encode(const DeviceMetadata& metadata) {
  Json json = {{"version", kRecordVersion}};
  if (!metadata.owner.empty()) json["owner"] = metadata.owner;
  if (!metadata.purposes.empty()) json["purposes"] = metadata.purposes;
  if (!metadata.objections.empty()) json["objections"] = metadata.objections;
  if (!metadata.location.empty()) json["location"] = metadata.location;
  if (!metadata.labels.empty()) json["labels"] = metadata.labels;
  return json.dump();
}

Result<DeviceMetadata> decode(ByteView record) {
  // A field of another kind than it should be is what the library throws at.
  try {
    const Json json = Json::parse(record);
    if (json.at("version") != kRecordVersion) {
      return unsupported("metadata of a device was written by a newer version of EdgeCase");
    }
    DeviceMetadata metadata;
    metadata.owner = json.value("owner", "");
    metadata.purposes = json.value("purposes", metadata.purposes);
    metadata.objections = json.value("objections", metadata.objections);
    metadata.location = json.value("location", "");
    metadata.labels = json.value("labels", metadata.labels);
    return metadata;
  } catch (const Json::exception&) {
    return corruption("the record of a device's metadata is malformed");
  }
}

Status check_terms(const char* what, const std::vector<std::string>& terms) {
  if (terms.size() > kTermsMax) {
    return invalid_argument("a device has at most " + std::to_string(kTermsMax) + " " + what + "s");
  }
  for (const std::string& term : terms) EC_TRY(wire::check_name(what, term));
  return ok();
}

Status check(const DeviceName& name, const DeviceMetadata& metadata) {
  EC_TRY(wire::check_name("namespace", name.namespace_name));
  EC_TRY(wire::check_name("device", name.device));
  if (!metadata.owner.empty()) EC_TRY(wire::check_name("owner", metadata.owner));
  if (!metadata.location.empty()) EC_TRY(wire::check_name("location", metadata.location));
  EC_TRY(check_terms("purpose", metadata.purposes));
  EC_TRY(check_terms("objection", metadata.objections));
  if (metadata.labels.size() > kLabelsMax) {
    return invalid_argument("a device has at most " + std::to_string(kLabelsMax) + " labels");
  }
  for (const auto& [label, value] : metadata.labels) {
    EC_TRY(wire::check_name("label", label));
    EC_TRY(wire::check_name("label's value", value));
    if (label.find('=') != std::string::npos) return invalid_argument("a label's name holds a =");
  }
  return ok();
}

void tidy(std::vector<std::string>& terms) {
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
}

bool holds(const std::vector<std::string>& terms, std::string_view term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

}  // namespace

Result<std::unique_ptr<DeviceIndex>> DeviceIndex::open(Engine& engine) {
  std::unique_ptr<DeviceIndex> index(new DeviceIndex(engine));
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
    EC_ASSIGN_OR_RETURN(const DeviceMetadata metadata, decode(iterator->value()));
    remember(parse_name(iterator->key().substr(1)), metadata);
  }
  return iterator->status();
}

Result<DeviceMetadata> DeviceIndex::metadata(const DeviceName& name) const {
  const auto record = engine_.get(records_, 'D' + name_bytes(name), {});
  if (record.status().code() == StatusCode::NotFound) return DeviceMetadata{};
  EC_TRY(record.status());
  return decode(*record);
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
    batch.put(records_, 'D' + suffix, encode(after));
  }
}

// With change_mutex_ held.
Status DeviceIndex::replace(const DeviceName& name, const DeviceMetadata& after) {
  EC_TRY(check(name, after));
  EC_ASSIGN_OR_RETURN(const DeviceMetadata before, metadata(name));
  if (before == after) return ok();
  if (before.empty()) {
    const std::shared_lock lock(mutex_);
    if (terms_.size() >= kDevicesMax) {
      return busy("something is said of " + std::to_string(kDevicesMax) + " devices already");
    }
  }
  // What is taken back goes for good: an erasure of the device later on would not know of it.
  WriteBatch batch;
  const std::vector<Bytes> kept = index_prefixes(after);
  std::vector<Bytes> gone = index_prefixes(before);
  if (after.empty()) gone.push_back("D");
  for (const Bytes& prefix : gone) {
    if (std::find(kept.begin(), kept.end(), prefix) != kept.end()) continue;
    const KeySpan span = span_of_key(records_, prefix + name_bytes(name));
    batch.erase_range(span.namespace_id, span.lower, span.upper);
  }
  append(name, {}, after, batch);
  EC_TRY(engine_.write(batch, Durability::Sync));
  remember(name, after);
  return ok();
}

Status DeviceIndex::set(const DeviceName& name, const DeviceMetadata& metadata) {
  return update(name, [&metadata](DeviceMetadata& all) { all = metadata; }).status();
}

Result<DeviceMetadata> DeviceIndex::update(const DeviceName& name,
                                           const std::function<void(DeviceMetadata&)>& change) {
  const std::lock_guard lock(change_mutex_);
  EC_ASSIGN_OR_RETURN(DeviceMetadata all, metadata(name));
  change(all);
  tidy(all.purposes);
  tidy(all.objections);
  EC_TRY(replace(name, all));
  return all;
}

Status DeviceIndex::introduce(const DeviceName& name, const DeviceMetadata& metadata) {
  const std::lock_guard lock(change_mutex_);
  {
    const std::shared_lock terms_lock(mutex_);
    if (terms_.contains(name)) return ok();
  }
  DeviceMetadata all = metadata;
  tidy(all.purposes);
  return replace(name, all);
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
  return ok();
}

std::vector<DeviceName> DeviceIndex::select(std::string_view namespace_name,
                                            std::string_view device_glob) const {
  const std::shared_lock lock(mutex_);
  std::vector<DeviceName> names;
  for (const auto& [name, terms] : terms_) {
    const bool in_scope = namespace_name.empty() ? !name.namespace_name.starts_with('_')
                                                 : name.namespace_name == namespace_name;
    if (in_scope && wire::glob_matches(device_glob, name.device)) names.push_back(name);
  }
  return names;
}

Result<std::unique_lock<std::mutex>> DeviceIndex::plan_erasure(const Erased& erased,
                                                               std::vector<KeySpan>& spans) {
  std::unique_lock lock(change_mutex_);
  for (const DeviceEntry& device : erased.devices) {
    const DeviceName name{device.namespace_name, device.device};
    EC_ASSIGN_OR_RETURN(const DeviceMetadata said, metadata(name));
    const Bytes suffix = name_bytes(name);
    for (const Bytes& prefix : index_prefixes(said))
      spans.push_back(span_of_key(records_, prefix + suffix));
    spans.push_back(span_of_key(records_, 'D' + suffix));
  }
  return lock;
}

void DeviceIndex::forget(const Erased& erased) {
  for (const DeviceEntry& device : erased.devices)
    remember({device.namespace_name, device.device}, {});
}

// All ranges are gone through side by side: the first one to end is the shortest.
Result<std::vector<DeviceName>> DeviceIndex::shortest(const std::vector<Bytes>& prefixes) const {
  struct Range {
    std::unique_ptr<Iterator> iterator;
    std::size_t prefix_bytes;
    std::vector<DeviceName> names;
  };
  std::vector<Range> ranges;
  for (const Bytes& prefix : prefixes) {
    EC_ASSIGN_OR_RETURN(auto iterator, engine_.scan(records_, {prefix, end_of(prefix)}, {}));
    ranges.push_back({std::move(iterator), prefix.find('\0') + 1, {}});
  }
  while (true) {
    for (Range& range : ranges) {
      if (!range.iterator->valid()) {
        EC_TRY(range.iterator->status());
        return std::move(range.names);
      }
      range.names.push_back(parse_name(range.iterator->key().substr(range.prefix_bytes)));
      range.iterator->next();
    }
  }
}

Result<std::vector<DeviceName>> DeviceIndex::find(std::string_view namespace_name,
                                                  const DeviceFilter& filter) const {
  if (filter.empty()) return invalid_argument("an owner, a purpose or a label is looked for");
  DeviceMetadata terms;
  terms.owner = filter.owner;
  if (!filter.purpose.empty()) terms.purposes = {filter.purpose};
  if (!filter.objection.empty()) terms.objections = {filter.objection};
  std::vector<Bytes> prefixes = index_prefixes(terms);
  for (const auto& [label, value] : filter.labels) {
    prefixes.push_back(term_prefix('L', label + "=" + value));
  }
  std::vector<Bytes> ranges = prefixes;
  if (!namespace_name.empty()) {
    for (Bytes& range : ranges) range += Bytes(namespace_name) + '\0';
  }
  EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> candidates, shortest(ranges));
  std::vector<DeviceName> names;
  for (const DeviceName& name : candidates) {
    bool has_all = true;
    for (std::size_t i = 0; i < prefixes.size() && has_all; ++i) {
      const Status found = engine_.get(records_, prefixes[i] + name_bytes(name), {}).status();
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
