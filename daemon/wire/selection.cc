#include "wire/selection.h"

#include <algorithm>

#include "wire/names.h"

namespace edgecase::wire {
namespace {

bool any_matches(const std::vector<std::string>& globs, std::string_view name) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [name](const std::string& glob) {
           return glob_matches(glob, name);
         });
}

Status check_count(const std::vector<std::string>& texts, const char* what) {
  if (texts.size() <= kSelectorsMax) return ok();
  return invalid_argument(std::to_string(texts.size()) + " " + what + "; at most " +
                          std::to_string(kSelectorsMax) + " are allowed");
}

Status check_glob(const std::string& glob, const std::string& what) {
  if (glob.empty()) return invalid_argument(what + " is empty");
  if (glob.size() > kIdentityMaxBytes) return invalid_argument(what + " is too long");
  if (!is_valid_utf8(glob)) return invalid_argument(what + " is not UTF-8");
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\' && ++i == glob.size())
      return invalid_argument(what + " ends in a lone \\; \\\\ stands for one");
  }
  return ok();
}

Result<std::pair<std::string, std::string>> parse_tag(const std::string& text) {
  std::string key;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != '='; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    key += text[at];
  }
  if (at >= text.size() || key.empty()) {
    return invalid_argument("a tag is written KEY=VALUE, as in host=pi, not \"" + text + "\"");
  }
  std::string glob = text.substr(at + 1);
  if (glob.empty()) {
    return invalid_argument("tag " + key + " has no value: use " + key + "=VALUE, or \"" + key +
                            "=*\" for any");
  }
  if (!is_valid_utf8(key)) return invalid_argument("the key of a tag is not UTF-8");
  EC_TRY(check_glob(glob, "the value of tag " + key));
  return std::pair(std::move(key), std::move(glob));
}

}  // namespace

bool IdentityConditions::allow_measurement(std::string_view measurement) const {
  return any_matches(measurements, measurement);
}

bool IdentityConditions::hold_for(const Identity& identity) const {
  if (!allow_measurement(identity.measurement) || !any_matches(fields, identity.field))
    return false;
  return std::all_of(tags.begin(), tags.end(), [&identity](const auto& wanted) {
    return std::any_of(identity.tags.begin(), identity.tags.end(), [&wanted](const auto& tag) {
      return tag.first == wanted.first && glob_matches(wanted.second, tag.second);
    });
  });
}

bool Selection::matches(std::string_view device, std::string_view sensor) const {
  return std::any_of(selectors.begin(), selectors.end(),
                     [&](const Selector& each) { return each.matches(device, sensor); });
}

bool Selection::matches_device(std::string_view device) const {
  return std::any_of(selectors.begin(), selectors.end(),
                     [device](const Selector& each) { return glob_matches(each.device, device); });
}

bool Selection::is_exact() const {
  return std::all_of(selectors.begin(), selectors.end(),
                     [](const Selector& each) { return each.is_exact(); });
}

bool Selection::names_devices() const {
  return std::all_of(selectors.begin(), selectors.end(),
                     [](const Selector& each) { return is_literal(each.device); });
}

Selection Selection::within(std::string_view device) const {
  Selection narrow;
  narrow.selectors.clear();
  narrow.identity = identity;
  for (const Selector& each : selectors) {
    if (glob_matches(each.device, device))
      narrow.selectors.push_back({escape_name(device), each.sensor});
  }
  return narrow;
}

std::string Selection::text() const {
  std::string text = selectors.front().device + "/" + selectors.front().sensor;
  if (selectors.size() > 1) {
    text += " and " + std::to_string(selectors.size() - 1) +
            (selectors.size() == 2 ? " more selector" : " more selectors");
  }
  const char* between = " with ";
  const auto add = [&](const char* what, const std::string& value) {
    text.append(between).append(what).append(value);
    between = ", ";
  };
  for (const std::string& each : identity.measurements) add("measurement ", each);
  for (const auto& [key, glob] : identity.tags) add("tag ", key + "=" + glob);
  for (const std::string& each : identity.fields) add("field ", each);
  return text;
}

Result<Selection> parse_selection(const SelectionTexts& texts) {
  EC_TRY(check_count(texts.selectors, "selectors"));
  EC_TRY(check_count(texts.measurements, "measurements"));
  EC_TRY(check_count(texts.tags, "tags"));
  EC_TRY(check_count(texts.fields, "fields"));
  Selection selection;
  if (!texts.selectors.empty()) selection.selectors.clear();
  for (const std::string& text : texts.selectors) {
    Result<Selector> selector = parse_selector(text);
    if (!selector.ok() && texts.selectors.size() > 1)
      return invalid_argument("\"" + text + "\": " + selector.status().message());
    EC_TRY(selector.status());
    selection.selectors.push_back(std::move(selector).value());
  }
  for (const std::string& text : texts.measurements) EC_TRY(check_glob(text, "the measurement"));
  for (const std::string& text : texts.fields) EC_TRY(check_glob(text, "the field"));
  for (const std::string& text : texts.tags) {
    EC_ASSIGN_OR_RETURN(auto tag, parse_tag(text));
    selection.identity.tags.push_back(std::move(tag));
  }
  selection.identity.measurements = texts.measurements;
  selection.identity.fields = texts.fields;
  return selection;
}

}  // namespace edgecase::wire
