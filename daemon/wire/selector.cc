#include "wire/selector.h"

#include <algorithm>
#include <array>
#include <vector>

#include "wire/decimal.h"
#include "wire/names.h"

namespace edgecase::wire {
namespace {

// Bytes of the UTF-8 character that begins at `position`.
std::size_t character_bytes(std::string_view text, std::size_t position) {
  std::size_t length = 1;
  while (position + length < text.size() &&
         (static_cast<unsigned char>(text[position + length]) & 0xc0) == 0x80) {
    ++length;
  }
  return length;
}

// One character, any character, or any run of them.
struct GlobPart {
  enum class Kind : unsigned char { Character, Any, Run };
  Kind kind;
  std::string_view character;

  bool meets(const GlobPart& other) const {
    return kind == Kind::Any || other.kind == Kind::Any || character == other.character;
  }
};

std::vector<GlobPart> glob_parts(std::string_view glob) {
  std::vector<GlobPart> parts;
  for (std::size_t i = 0; i < glob.size();) {
    const char c = glob[i];
    if (c == '*' || c == '?') {
      parts.push_back({c == '*' ? GlobPart::Kind::Run : GlobPart::Kind::Any, {}});
      ++i;
      continue;
    }
    if (c == '\\' && i + 1 < glob.size()) ++i;
    const std::size_t bytes = character_bytes(glob, i);
    parts.push_back({GlobPart::Kind::Character, glob.substr(i, bytes)});
    i += bytes;
  }
  return parts;
}

}  // namespace

// Remembers only the last `*`: a later one makes every earlier choice as good as any other, so the
// work is at most glob size times name size.
bool glob_matches(std::string_view glob, std::string_view name) {
  std::size_t g = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = ++g;
      star_name = n;
      continue;
    }
    if (g < glob.size() && glob[g] == '?') {
      ++g;
      n += character_bytes(name, n);
      continue;
    }
    const bool escaped = g + 1 < glob.size() && glob[g] == '\\';
    const std::size_t literal = escaped ? g + 1 : g;
    if (literal < glob.size() && glob[literal] == name[n]) {
      g = literal + 1;
      ++n;
      continue;
    }
    if (star == std::string_view::npos) return false;
    g = star;
    star_name += character_bytes(name, star_name);
    n = star_name;
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool globs_overlap(std::string_view one, std::string_view other) {
  const std::vector<GlobPart> a = glob_parts(one);
  const std::vector<GlobPart> b = glob_parts(other);
  // rest[j]: whether what is left of `one` and what is left of `other` from j on overlap.
  std::vector<bool> rest(b.size() + 1), before(b.size() + 1);
  for (std::size_t i = a.size() + 1; i-- > 0; std::swap(rest, before)) {
    for (std::size_t j = b.size() + 1; j-- > 0;) {
      const bool a_runs = i < a.size() && a[i].kind == GlobPart::Kind::Run;
      const bool b_runs = j < b.size() && b[j].kind == GlobPart::Kind::Run;
      if (i == a.size() && j == b.size()) {
        rest[j] = true;
      } else if (a_runs || b_runs) {
        // A run ends here, or takes the next part of the other side.
        rest[j] = (a_runs && (before[j] || (j < b.size() && rest[j + 1]))) ||
                  (b_runs && (rest[j + 1] || (i < a.size() && before[j])));
      } else {
        rest[j] = i < a.size() && j < b.size() && a[i].meets(b[j]) && before[j + 1];
      }
    }
  }
  return before[0];
}

bool is_literal(std::string_view glob) {
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\') {
      ++i;
    } else if (glob[i] == '*' || glob[i] == '?') {
      return false;
    }
  }
  return true;
}

std::string unescape_name(std::string_view glob) {
  std::string name;
  name.reserve(glob.size());
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\' && i + 1 < glob.size()) ++i;
    name.push_back(glob[i]);
  }
  return name;
}

std::string escape_name(std::string_view name) {
  std::string glob;
  glob.reserve(name.size());
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '\\') glob.push_back('\\');
    glob.push_back(c);
  }
  return glob;
}

bool Selector::matches(std::string_view device_name, std::string_view sensor_name) const {
  return glob_matches(device, device_name) && glob_matches(sensor, sensor_name);
}

bool Selector::is_exact() const {
  return is_literal(device) && is_literal(sensor);
}

Result<Selector> parse_selector(std::string_view text) {
  if (text.empty()) return invalid_argument("empty selector; */* is everything");
  if (text.size() > kSelectorMaxBytes) {
    return invalid_argument("selector has " + std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(kSelectorMaxBytes) + " are allowed");
  }
  if (!is_valid_utf8(text)) return invalid_argument("selector is not UTF-8");
  std::size_t slash = std::string_view::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      if (++i == text.size()) return invalid_argument("selector ends in a lone \\");
      if (text[i] == '/') return invalid_argument("selector escapes a '/': no name holds one");
    } else if (text[i] == '/') {
      if (slash != std::string_view::npos) {
        return invalid_argument("selector has more than one '/': it is device/sensor");
      }
      slash = i;
    }
  }
  Selector selector;
  selector.device = std::string(text.substr(0, slash));
  if (slash != std::string_view::npos) selector.sensor = std::string(text.substr(slash + 1));
  if (selector.device.empty()) return invalid_argument("selector names no device before the '/'");
  if (selector.sensor.empty()) return invalid_argument("selector names no sensor after the '/'");
  return selector;
}

Result<SeriesName> parse_series_name(std::string_view text) {
  EC_ASSIGN_OR_RETURN(const Selector selector, parse_selector(text));
  if (text.find('/') == std::string_view::npos) {
    return invalid_argument("\"" + std::string(text) +
                            "\" names no sensor: one series is wanted, as in kitchen/temp");
  }
  if (!selector.is_exact()) {
    return invalid_argument(
        "one series is wanted, not a pattern: write \\* or \\? for a name with "
        "such a character");
  }
  SeriesName series{unescape_name(selector.device), unescape_name(selector.sensor)};
  EC_TRY(check_name("device", series.device));
  EC_TRY(check_name("sensor", series.sensor));
  return series;
}

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

namespace {

constexpr std::array<std::string_view, 12> kAggregateNames = {
    "mean", "min", "max", "sum", "count", "first", "last", "stddev", "p50", "p95", "p99", "minmax"};

// What the same thing is called elsewhere.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kAliases = {{
    {"avg", "mean"},
    {"average", "mean"},
    {"minimum", "min"},
    {"lowest", "min"},
    {"maximum", "max"},
    {"highest", "max"},
    {"total", "sum"},
    {"n", "count"},
    {"oldest", "first"},
    {"newest", "last"},
    {"latest", "last"},
    {"std", "stddev"},
    {"stdev", "stddev"},
    {"sd", "stddev"},
    {"median", "p50"},
    {"q50", "p50"},
}};

// "Mean" as "mean". No name is as long as what is not looked at.
constexpr std::size_t kNameMaxBytes = 32;
std::string lower_name(std::string_view text) {
  std::string lowered(text.substr(0, kNameMaxBytes));
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lowered;
}

}  // namespace

Result<Aggregate> parse_aggregate(std::string_view name) {
  const std::string lowered = lower_name(name);
  std::string_view known = lowered;
  for (const auto& [alias, meant] : kAliases) {
    if (alias == lowered) known = meant;
  }
  const auto* const found = std::find(kAggregateNames.begin(), kAggregateNames.end(), known);
  if (found != kAggregateNames.end())
    return static_cast<Aggregate>(found - kAggregateNames.begin());
  const std::string_view near = nearest_aggregate(name);
  return invalid_argument("unknown aggregate \"" + lowered +
                          "\"; one of mean min max sum count first last stddev p50 p95 p99 minmax" +
                          (near.empty() ? "" : ", did you mean " + std::string(near) + "?"));
}

std::string_view nearest_aggregate(std::string_view name) {
  // "95", "p95th" and "percentile95" are p95; p90 is near none of those there are.
  std::string digits(name);
  std::erase_if(digits, [](char c) { return !is_digit(c); });
  const auto* const found = std::find(kAggregateNames.begin(), kAggregateNames.end(), "p" + digits);
  if (found != kAggregateNames.end()) return *found;
  const std::string lowered = lower_name(name);
  if (!digits.empty() && (lowered.front() == 'p' || is_digit(lowered.front()))) return {};
  return nearest_word(lowered, kAggregateNames);
}

std::string_view aggregate_name(Aggregate aggregate) {
  return kAggregateNames[static_cast<std::size_t>(aggregate)];
}

}  // namespace edgecase::wire
