#include "catalog/device_index.h"

#include <algorithm>
#include <utility>

#include "wire/selector.h"

namespace edgecase::catalog {
namespace {

constexpr std::size_t kSizeBytes = 2;
// What a set takes beside its text: a node and its place in the table that finds it, a row, and
// what the allocator adds.
constexpr std::uint64_t kSetOverheadBytes = 144;

// A list is its texts, each behind its length.
void append_list_text(const std::vector<std::string>& terms, Bytes& out) {
  for (const std::string& each : terms) {
    out += static_cast<char>(each.size());
    out += each;
  }
}

}  // namespace

Bytes terms_text(const std::vector<std::string>& purposes,
                 const std::vector<std::string>& objections) {
  Bytes text(kSizeBytes, '\0');
  append_list_text(purposes, text);
  const std::size_t size = text.size() - kSizeBytes;
  text[0] = static_cast<char>(size & 0xff);
  text[1] = static_cast<char>(size >> 8);
  append_list_text(objections, text);
  return text;
}

bool holds_term(ByteView list, std::string_view term) {
  while (!list.empty()) {
    const std::size_t size = static_cast<unsigned char>(list.front());
    if (list.substr(1, size) == term) return true;
    list.remove_prefix(1 + size);
  }
  return false;
}

DeviceTerms::Slot DeviceTerms::key_of(std::string_view namespace_name,
                                      std::string_view device) const {
  SipHash hash(key_);
  hash.add(namespace_name);
  hash.add(std::string_view("\0", 1));  // no name holds it
  hash.add(device);
  const auto [first, second] = hash.finish();
  return {first, static_cast<std::uint32_t>(second), kNone};
}

// The place of the device, or where it would be put.
std::size_t DeviceTerms::place_of(const Slot& key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = key.hash & mask;
  while (slots_[i].set != kNone &&
         (slots_[i].hash != key.hash || slots_[i].more_hash != key.more_hash)) {
    i = (i + 1) & mask;
  }
  return i;
}

bool DeviceTerms::contains(std::string_view namespace_name, std::string_view device) const {
  return slots_[place_of(key_of(namespace_name, device))].set != kNone;
}

TermsView DeviceTerms::find(std::string_view namespace_name, std::string_view device) const {
  if (count_ == 0) return {};
  const Slot& slot = slots_[place_of(key_of(namespace_name, device))];
  if (slot.set == kNone) return {};
  const ByteView text = *sets_[slot.set].text;
  const std::size_t size =
      static_cast<unsigned char>(text[0]) | std::size_t{static_cast<unsigned char>(text[1])} << 8;
  return {text.substr(kSizeBytes, size), text.substr(kSizeBytes + size)};
}

void DeviceTerms::set(std::string_view namespace_name, std::string_view device,
                      const Bytes& terms) {
  const std::uint32_t id = take_set(terms);
  Slot slot = key_of(namespace_name, device);
  std::size_t place = place_of(slot);
  if (slots_[place].set != kNone) {
    release_set(slots_[place].set);
  } else if (++count_ * 4 > slots_.size() * 3) {
    grow();
    place = place_of(slot);
  }
  slot.set = id;
  slots_[place] = slot;
}

// Removes a device; slots behind it move up, as far as they may.
void DeviceTerms::remove(std::string_view namespace_name, std::string_view device) {
  std::size_t gap = place_of(key_of(namespace_name, device));
  if (slots_[gap].set == kNone) return;
  release_set(slots_[gap].set);
  --count_;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = (gap + 1) & mask; slots_[i].set != kNone; i = (i + 1) & mask) {
    const std::size_t wanted = slots_[i].hash & mask;
    if (((i - wanted) & mask) < ((i - gap) & mask)) continue;
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = {};
}

void DeviceTerms::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.set != kNone) slots_[place_of(slot)] = slot;
  }
}

std::uint32_t DeviceTerms::take_set(const Bytes& terms) {
  const auto [at, is_new] = ids_.try_emplace(terms, 0);
  if (is_new) {
    set_bytes_ += set_bytes(terms);
    if (free_ids_.empty()) {
      at->second = static_cast<std::uint32_t>(sets_.size());
      sets_.emplace_back();
    } else {
      at->second = free_ids_.back();
      free_ids_.pop_back();
    }
    sets_[at->second] = {&at->first, 0};
  }
  ++sets_[at->second].devices;
  return at->second;
}

void DeviceTerms::release_set(std::uint32_t id) {
  Set& set = sets_[id];
  if (--set.devices > 0) return;
  set_bytes_ -= set_bytes(*set.text);
  ids_.erase(ids_.find(*set.text));
  set.text = nullptr;
  free_ids_.push_back(id);
}

std::uint64_t DeviceTerms::set_bytes(const Bytes& terms) {
  return kSetOverheadBytes + terms.size();
}

std::uint64_t DeviceTerms::memory_bytes(std::size_t devices, std::uint64_t more_set_bytes) const {
  std::uint64_t slots = slots_.size();
  while ((count_ + devices) * 4 > slots * 3) slots *= 2;
  return slots * sizeof(Slot) + set_bytes_ + more_set_bytes;
}

// DeviceIndex's lists: of what is said to devices, and of all of them.

namespace {

bool is_among(const std::vector<std::string>& terms, std::string_view term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

// One range of keys that end in names, in their order.
struct TermRange {
  Bytes prefix;
  std::unique_ptr<Iterator> iterator;

  ByteView name() const { return iterator->key().substr(prefix.size()); }
};

// Whether all ranges stand on one name, the first that all have; false: there is none left. Each
// goes on to where another one stands, so that none is gone through where the shortest has nothing.
bool meet(std::vector<TermRange>& ranges) {
  Bytes wanted;
  for (std::size_t i = 0, same = 0; same < ranges.size(); i = (i + 1) % ranges.size()) {
    TermRange& range = ranges[i];
    if (same > 0 && range.iterator->valid() && range.name() < wanted)
      range.iterator->seek(range.prefix + wanted);
    if (!range.iterator->valid()) return false;
    if (same > 0 && range.name() == wanted) {
      ++same;
    } else {
      wanted = Bytes(range.name());
      same = 1;
    }
  }
  return true;
}

}  // namespace

bool DeviceFilter::holds_for(const DeviceMetadata& said) const {
  return (owner.empty() || said.owner == owner) &&
         (purpose.empty() || is_among(said.purposes, purpose)) &&
         (objection.empty() || is_among(said.objections, objection)) &&
         std::all_of(labels.begin(), labels.end(), [&said](const auto& label) {
           const auto known = said.labels.find(label.first);
           return known != said.labels.end() && known->second == label.second;
         });
}

Result<std::vector<DeviceName>> DeviceIndex::find(std::string_view namespace_name,
                                                  const DeviceFilter& filter,
                                                  const DevicePage& page) const {
  if (filter.empty()) return invalid_argument("an owner, a purpose or a label is looked for");
  const Bytes scope = namespace_name.empty() ? Bytes() : Bytes(namespace_name) + '\0';
  std::vector<TermRange> ranges;
  for (Bytes& prefix : prefixes_of(filter)) {
    const Bytes all = prefix + scope;
    Bytes first = all;
    if (page.after) first = std::max(first, prefix + name_bytes(*page.after) + '\0');
    EC_ASSIGN_OR_RETURN(auto iterator,
                        engine_.scan(records_, {std::min(first, end_of(all)), end_of(all)}, {}));
    ranges.push_back({std::move(prefix), std::move(iterator)});
  }
  std::vector<DeviceName> names;
  while (names.size() < page.limit && meet(ranges)) {
    names.push_back(parse_name(ranges.front().name()));
    ranges.front().iterator->next();
  }
  for (const TermRange& range : ranges) EC_TRY(range.iterator->status());
  return names;
}

// Names of those that something is said of, of one namespace or of all.
Result<std::vector<DeviceName>> DeviceIndex::records_in(std::string_view namespace_name,
                                                        const DevicePage& page) const {
  const Bytes all = namespace_name.empty() ? Bytes("D") : 'D' + Bytes(namespace_name) + '\0';
  const Bytes end = namespace_name.empty() ? Bytes("E") : end_of(all);
  Bytes first = all;
  if (page.after) first = std::max(first, 'D' + name_bytes(*page.after) + '\0');
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {std::min(first, end), end}, {}));
  std::vector<DeviceName> names;
  for (; iterator->valid() && names.size() < page.limit; iterator->next())
    names.push_back(parse_name(iterator->key().substr(1)));
  EC_TRY(iterator->status());
  return names;
}

Result<std::uint64_t> DeviceIndex::count_owners(
    const std::function<bool(const DeviceName&)>& counted) const {
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(records_, {"O", "P"}, {}));
  std::uint64_t owners = 0;
  while (iterator->valid()) {
    const ByteView key = iterator->key();
    const std::size_t end = std::min(key.find('\0'), key.size() - 1);
    if (!counted(parse_name(key.substr(end + 1)))) {
      iterator->next();
      continue;
    }
    ++owners;
    iterator->seek(end_of(Bytes(key.substr(0, end + 1))));
  }
  EC_TRY(iterator->status());
  return owners;
}

Result<std::vector<DeviceName>> DeviceIndex::all(const DevicePage& page) const {
  return records_in("", page);
}

Status DeviceIndex::each(std::string_view namespace_name, std::string_view device_glob,
                         const std::function<Status(const DeviceName&)>& take) const {
  if (!namespace_name.empty() && wire::is_literal(device_glob)) {
    const DeviceName only{std::string(namespace_name), wire::unescape_name(device_glob)};
    return is_known(only) ? take(only) : ok();
  }
  constexpr std::size_t kPerPage = 1000;
  for (DevicePage page{std::nullopt, kPerPage};;) {
    EC_ASSIGN_OR_RETURN(const std::vector<DeviceName> names, records_in(namespace_name, page));
    for (const DeviceName& name : names) {
      const bool is_own = namespace_name.empty() && name.namespace_name.starts_with('_');
      if (!is_own && wire::glob_matches(device_glob, name.device)) EC_TRY(take(name));
    }
    if (names.size() < page.limit) return ok();
    page.after = names.back();
  }
}

Result<std::vector<DeviceName>> DeviceIndex::select(std::string_view namespace_name,
                                                    std::string_view device_glob) const {
  std::vector<DeviceName> names;
  EC_TRY(each(namespace_name, device_glob, [&names](const DeviceName& name) {
    names.push_back(name);
    return ok();
  }));
  return names;
}

}  // namespace edgecase::catalog
