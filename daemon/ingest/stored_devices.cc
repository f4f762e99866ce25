#include "ingest/stored_devices.h"

#include <algorithm>

namespace edgecase::ingest {
namespace {

constexpr std::size_t kIndexMin = 64;

}  // namespace

void StoredDevices::add(audit::AuditLog& log, std::span<const wire::Reading> readings,
                        std::span<const catalog::SeriesId> ids, std::span<const Author> authors) {
  std::size_t next_author = 0, author = 0;
  for (std::size_t i = 0; i < ids.size();) {
    while (next_author < authors.size() && authors[next_author].first_reading <= i)
      author = author_of(authors[next_author++]);
    const std::size_t limit = next_author < authors.size()
                                  ? std::min(authors[next_author].first_reading, ids.size())
                                  : ids.size();
    const std::size_t first = i++;
    while (i < limit && ids[i].device == ids[first].device &&
           ids[i].namespace_id == ids[first].namespace_id)
      ++i;
    device_of(log, author, readings[first], ids[first]).target.count += i - first;
  }
}

std::size_t StoredDevices::author_of(const Author& author) {
  const auto [at, is_new] = author_numbers_.try_emplace(author.name, authors_.size() + 1);
  if (is_new) authors_.push_back(author);
  return at->second;
}

StoredDevices::Device& StoredDevices::device_of(audit::AuditLog& log, std::size_t author,
                                                const wire::Reading& reading,
                                                const catalog::SeriesId& id) {
  const auto make = [&]() -> Device& {
    if (namespace_name(id.namespace_id).empty())
      namespaces_.push_back({id.namespace_id, std::string(reading.namespace_name)});
    const std::uint64_t pseudonym =
        log.device_pseudonym(id.namespace_id, id.device, reading.namespace_name, reading.device);
    return devices_.emplace_back(Device{author, id.namespace_id, id.device, {pseudonym, 0}});
  };
  // Messages of many authors are few of each device: drafts() puts these together.
  if (author != 0) return make();
  if (2 * (indexed_ + 1) > index_.size()) make_index_larger();
  std::uint32_t& place = place_of(id.namespace_id, id.device);
  if (place != 0) return devices_[place - 1];
  Device& made = make();
  ++indexed_;
  place = static_cast<std::uint32_t>(devices_.size());
  return made;
}

std::uint32_t& StoredDevices::place_of(NamespaceId namespace_id, std::uint32_t id) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::uint64_t key = std::uint64_t{namespace_id} << 32 | id;
  for (std::size_t at = key * kOdd >> 32;; ++at) {
    std::uint32_t& place = index_[at % index_.size()];
    if (place == 0) return place;
    const Device& device = devices_[place - 1];
    if (device.id == id && device.namespace_id == namespace_id) return place;
  }
}

void StoredDevices::make_index_larger() {
  index_.assign(std::max(kIndexMin, 2 * index_.size()), 0);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].author != 0) continue;
    place_of(devices_[i].namespace_id, devices_[i].id) = static_cast<std::uint32_t>(i + 1);
  }
}

std::string_view StoredDevices::namespace_name(NamespaceId id) const {
  const auto found = std::find_if(namespaces_.begin(), namespaces_.end(),
                                  [id](const Namespace& each) { return each.id == id; });
  return found == namespaces_.end() ? std::string_view() : found->name;
}

std::vector<audit::Draft> StoredDevices::drafts(const auth::Principal& principal) const {
  std::vector<const Device*> devices;
  devices.reserve(devices_.size());
  for (const Device& device : devices_) devices.push_back(&device);
  const auto is_before = [](const Device* a, const Device* b) { return a->place() < b->place(); };
  if (!std::is_sorted(devices.begin(), devices.end(), is_before))
    std::sort(devices.begin(), devices.end(), is_before);
  std::vector<audit::Draft> drafts;
  std::vector<audit::Target> targets;
  const auto finish = [&](const Device& of) {
    audit::Stored stored{kOperation, principal.name, {}, namespace_name(of.namespace_id)};
    if (of.author > 0) {
      stored.actor = authors_[of.author - 1].name;
      stored.token = authors_[of.author - 1].token;
    } else if (principal.grant != nullptr) {
      stored.token = principal.grant->token_id;
    }
    drafts.push_back(audit::draft_of(stored, targets));
    targets.clear();
  };
  const Device* last = nullptr;
  for (const Device* const device : devices) {
    if (last != nullptr && last->place() == device->place()) {
      targets.back().count += device->target.count;
      continue;
    }
    const bool is_other = last != nullptr && (last->author != device->author ||
                                              last->namespace_id != device->namespace_id ||
                                              targets.size() == audit::kTargetsMax);
    if (is_other) finish(*last);
    last = device;
    targets.push_back(device->target);
  }
  if (last != nullptr) finish(*last);
  return drafts;
}

void StoredDevices::clear() {
  // What one large commit needed is not looked through for each small one.
  if (index_.size() > kIndexMin && 8 * indexed_ < index_.size()) index_.resize(kIndexMin);
  std::fill(index_.begin(), index_.end(), 0);
  indexed_ = 0;
  devices_.clear();
  namespaces_.clear();
  authors_.clear();
  author_numbers_.clear();
}

}  // namespace edgecase::ingest
