#include "check/namespace_rebuild.h"

#include <algorithm>
#include <string>

#include "edgecase/options.h"

namespace edgecase::engine {
namespace {

bool is_before(const NamespaceInfo& info, NamespaceId id) {
  return info.id < id;
}

}  // namespace

const NamespaceInfo* NamespaceRebuild::find(NamespaceId id) const {
  const auto place = std::lower_bound(known_.begin(), known_.end(), id, is_before);
  return place == known_.end() || place->id != id ? nullptr : &*place;
}

const NamespaceInfo* NamespaceRebuild::find_name(std::string_view name) const {
  const auto place = std::find_if(known_.begin(), known_.end(),
                                  [name](const NamespaceInfo& info) { return info.name == name; });
  return place == known_.end() ? nullptr : &*place;
}

void NamespaceRebuild::insert(const NamespaceInfo& info) {
  id_limit_ = std::max(id_limit_, info.id + 1);
  known_.insert(std::lower_bound(known_.begin(), known_.end(), info.id, is_before), info);
}

void NamespaceRebuild::take(const std::vector<NamespaceInfo>& known, NamespaceId id_limit) {
  known_ = known;
  id_limit_ = std::max(id_limit_, id_limit);
  known_below_ = id_limit;
}

bool NamespaceRebuild::is_dropped(NamespaceId id) const {
  if (id >= 1 && id < known_below_ && find(id) == nullptr) return true;
  return dropped_.contains(id);
}

void NamespaceRebuild::add(NamespaceId id, std::string_view name, const NamespaceOptions& options) {
  if (is_dropped(id) || find(id) != nullptr) return;
  id_limit_ = std::max(id_limit_, id + 1);
  const NamespaceInfo* const other = find_name(name);
  if (other != nullptr && other->id > id) {
    dropped_.insert(id);
    return;
  }
  if (other != nullptr) {
    const NamespaceId older = other->id;
    dropped_.insert(older);
    std::erase_if(known_, [older](const NamespaceInfo& info) { return info.id == older; });
  }
  insert({id, std::string(name), options});
}

void NamespaceRebuild::ensure(NamespaceId id, const NamespaceOptions& options) {
  if (is_dropped(id) || find(id) != nullptr) return;
  const std::string placeholder = "recovered-" + std::to_string(id);
  std::string name = placeholder;
  for (int i = 2; find_name(name) != nullptr; ++i) name = placeholder + "-" + std::to_string(i);
  findings_.loss("namespace " + std::to_string(id) + ": its name is lost; it is called " + name);
  insert({id, name, options});
}

void NamespaceRebuild::mark_repaired() {
  if (find_name(kRepairedNamespace) != nullptr) return;
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  // Where a file has the last number there is room before it.
  NamespaceId id = std::min(id_limit_, kNamespaceIdMax);
  while (id > 1 && (find(id) != nullptr || is_dropped(id))) --id;
  insert({id, std::string(kRepairedNamespace), options});
}

NamespaceOptions NamespaceRebuild::options_of(NamespaceId id) const {
  const NamespaceInfo* const info = find(id);
  return info == nullptr ? NamespaceOptions{} : info->options;
}

Bytes NamespaceRebuild::name_of(NamespaceId id) const {
  const NamespaceInfo* const info = find(id);
  return info == nullptr ? Bytes() : info->name;
}

}  // namespace edgecase::engine
