#include "audit/record_names.h"

#include <algorithm>
#include <utility>

namespace edgecase::audit {
namespace {

constexpr char kMark = '~';
constexpr std::string_view kBetweenSelectors = ", ";

std::uint64_t first_64_bits(const auth::Pseudonym& pseudonym) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8 | pseudonym[i];
  return number;
}

bool holds_no_name(std::string_view glob) {
  return glob.find_first_not_of("*?") == std::string_view::npos;
}

}  // namespace

std::uint64_t RecordNames::of(std::string_view kind, std::string_view namespace_name,
                              std::string_view name) const {
  std::string text(kind);
  text.append(1, '\0').append(namespace_name).append(1, '\0').append(name);
  {
    const MutexLock lock(mutex_);
    if (const auto known = known_.find(text); known != known_.end()) return known->second;
  }
  const std::uint64_t made = first_64_bits(pseudonyms_.of_text(kind, namespace_name, name));
  const MutexLock lock(mutex_);
  if (known_.size() >= kRememberedMax) known_.clear();
  known_.emplace(std::move(text), made);
  return made;
}

std::uint64_t RecordNames::of_device(std::string_view namespace_name,
                                     std::string_view device) const {
  return of("device", namespace_name, device);
}

std::string RecordNames::of_text(std::string_view kind, std::string_view text) const {
  return kMark + pseudonym_text(of(kind, "", text));
}

std::string RecordNames::part(std::string_view kind, std::string_view namespace_name,
                              std::string_view glob) const {
  if (holds_no_name(glob)) return std::string(glob);
  return kMark + pseudonym_text(of(kind, namespace_name, glob));
}

void RecordNames::describe(std::string_view namespace_name, const wire::Selector& selector,
                           Record& record) const {
  const bool is_one = wire::is_literal(selector.device) && !namespace_name.empty();
  if (is_one) {
    const std::string name = wire::unescape_name(selector.device);
    record.targets.push_back({of_device(namespace_name, name), 0});
    record.selector = kMark + pseudonym_text(record.targets.back().pseudonym);
  } else {
    record.selector = part("pattern", namespace_name, selector.device);
    record.reaches_more = true;
  }
  record.selector += "/" + part("sensor", namespace_name, selector.sensor);
}

void RecordNames::describe(std::string_view namespace_name,
                           std::span<const wire::Selector> selectors, Record& record) const {
  if (selectors.size() == 1) return describe(namespace_name, selectors.front(), record);
  std::string all;
  for (const wire::Selector& each : selectors) {
    Record one;
    describe(namespace_name, each, one);
    if (!all.empty()) all += kBetweenSelectors;
    all += one.selector;
    record.reaches_more = record.reaches_more || one.reaches_more;
    record.targets.insert(record.targets.end(), one.targets.begin(), one.targets.end());
  }
  // Devices that are named and those that were reached have one list.
  if (record.targets.size() > kTargetsMax) record.reaches_more = true;
  if (record.reaches_more) record.targets.clear();
  record.selector = selectors.size() > kSelectorsTold ? "*/*" : all;
}

std::string pseudonym_text(std::uint64_t pseudonym) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[pseudonym >> shift & 15];
  }
  return text;
}

bool concerns(const Record& record, std::uint64_t pseudonym, std::string_view namespace_name,
              std::string_view device) {
  if (std::any_of(record.targets.begin(), record.targets.end(),
                  [pseudonym](const Target& each) { return each.pseudonym == pseudonym; })) {
    return true;
  }
  return may_reach(record, namespace_name, device);
}

bool may_reach(const Record& record, std::string_view namespace_name, std::string_view device) {
  if (!record.reaches_more) return false;
  if (record.namespace_name != namespace_name && record.namespace_name != "*") return false;
  std::string_view rest = record.selector;
  do {
    const std::string_view one = rest.substr(0, rest.find(kBetweenSelectors));
    rest.remove_prefix(std::min(rest.size(), one.size() + kBetweenSelectors.size()));
    const std::string_view glob = one.substr(0, one.find('/'));
    // Without a selector it was asked by owner or label.
    if (glob.empty() || glob.starts_with(kMark) || wire::glob_matches(glob, device)) return true;
  } while (!rest.empty());
  return false;
}

}  // namespace edgecase::audit
