// DeviceIndex's lists: of what is said to devices, and of all of them.
#include <algorithm>
#include <utility>

#include "catalog/device_index.h"
#include "catalog/device_records.h"
#include "wire/selector.h"

namespace edgecase::catalog {
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
