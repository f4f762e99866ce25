#include "wire/selector.h"

#include <vector>

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

}  // namespace edgecase::wire
