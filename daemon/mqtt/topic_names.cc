#include "mqtt/topic_names.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/names.h"

namespace edgecase::mqtt {
namespace {

std::vector<std::string_view> split_levels(std::string_view text) {
  std::vector<std::string_view> levels;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find('/', begin);
    levels.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return levels;
    begin = end + 1;
  }
}

std::optional<TopicField> field_of(std::string_view name) {
  if (name == "namespace") return TopicField::Namespace;
  if (name == "device") return TopicField::Device;
  if (name == "sensor") return TopicField::Sensor;
  return std::nullopt;
}

std::string& member_of(TopicMatch& match, TopicField field) {
  if (field == TopicField::Namespace) return match.namespace_name;
  return field == TopicField::Device ? match.device : match.sensor;
}

Status bad_level(std::string_view level, std::string_view what) {
  return invalid_argument("level \"" + std::string(level) + "\": " + std::string(what));
}

}  // namespace

Result<TopicTemplate::Level> TopicTemplate::parse_level(std::string_view text) {
  Level level;
  if (text == "+" || text == "#") {
    level.kind = text == "+" ? Kind::Any : Kind::Rest;
    return level;
  }
  if (text.find_first_of("+#") != std::string_view::npos && text.find('{') == text.npos) {
    return bad_level(text, "`+` and `#` stand alone in a level");
  }
  const std::size_t open = text.find('{');
  if (open == std::string_view::npos) {
    if (text.find('}') != text.npos) return bad_level(text, "`}` without `{`");
    level.prefix = text;
    return level;
  }
  const std::size_t close = text.find('}', open);
  if (close == std::string_view::npos) return bad_level(text, "`{` without `}`");
  level.prefix = text.substr(0, open);
  level.suffix = text.substr(close + 1);
  std::string_view name = text.substr(open + 1, close - open - 1);
  const bool many = !name.empty() && name.back() == '+';
  if (many) name.remove_suffix(1);
  const auto field = field_of(name);
  if (!field) return bad_level(text, "only {namespace}, {device}, {device+}, {sensor}, {sensor+}");
  if (many && *field == TopicField::Namespace) return bad_level(text, "{namespace} is one level");
  if (level.suffix.find_first_of("{}") != level.suffix.npos) {
    return bad_level(text, "one placeholder a level");
  }
  if ((level.prefix + level.suffix).find_first_of("+#") != std::string::npos) {
    return bad_level(text, "`+` and `#` stand alone in a level");
  }
  if (many && !(level.prefix.empty() && level.suffix.empty())) {
    return bad_level(text, "a placeholder of several levels stands alone");
  }
  level.kind = many ? Kind::CaptureMany : Kind::Capture;
  level.field = *field;
  return level;
}

Status TopicTemplate::check() const {
  int several = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    if (level.kind == Kind::Rest && i + 1 != levels_.size()) {
      return invalid_argument("`#` must be the last level");
    }
    several += level.kind == Kind::Rest || level.kind == Kind::CaptureMany ? 1 : 0;
    for (std::size_t j = 0; j < i; ++j) {
      if (level.field != TopicField::None && levels_[j].field == level.field) {
        return invalid_argument("the same placeholder twice");
      }
    }
  }
  if (several > 1) {
    return invalid_argument("at most one of {device+}, {sensor+} and `#`");
  }
  return ok();
}

Result<TopicTemplate> TopicTemplate::parse(std::string_view text) {
  if (text.empty()) return invalid_argument("is empty");
  if (text.size() > kTopicMaxBytes) return invalid_argument("is longer than 65535 bytes");
  if (text.find('\0') != text.npos) return invalid_argument("holds a NUL character");
  if (!wire::is_valid_utf8(text)) return invalid_argument("is not UTF-8");
  if (text.substr(0, 7) == "$share/") {
    return invalid_argument("shared subscriptions are not supported: order and session are lost");
  }
  TopicTemplate result;
  result.text_ = text;
  for (const std::string_view part : split_levels(text)) {
    EC_ASSIGN_OR_RETURN(Level level, parse_level(part));
    result.levels_.push_back(std::move(level));
  }
  if (result.levels_.size() > kTopicLevelsMax) return invalid_argument("has over 128 levels");
  EC_TRY(result.check());
  for (std::size_t i = 0; i < result.levels_.size(); ++i) {
    const Level& level = result.levels_[i];
    if (i > 0) result.filter_ += '/';
    if (level.kind == Kind::Literal) {
      result.filter_ += level.prefix;
    } else if (level.kind == Kind::Rest) {
      result.filter_ += '#';
    } else if (level.kind == Kind::CaptureMany) {
      result.filter_ += "+/#";  // `#` also matches the level above it: one level or more
      break;
    } else {
      result.filter_ += '+';
    }
  }
  return result;
}

bool TopicTemplate::match_one(const Level& level, std::string_view text, TopicMatch& match) const {
  if (level.kind == Kind::Any) return true;
  if (level.kind == Kind::Literal) return text == level.prefix;
  if (text.size() <= level.prefix.size() + level.suffix.size()) return false;
  if (text.substr(0, level.prefix.size()) != level.prefix) return false;
  if (text.substr(text.size() - level.suffix.size()) != level.suffix) return false;
  text.remove_prefix(level.prefix.size());
  text.remove_suffix(level.suffix.size());
  member_of(match, level.field) = text;
  return true;
}

bool TopicTemplate::match(std::string_view topic, TopicMatch& match) const {
  if (topic.empty()) return false;
  if (topic[0] == '$' && (levels_[0].kind != Kind::Literal)) return false;
  match = {};
  match.levels = split_levels(topic);
  const std::size_t have = match.levels.size();
  const auto several = std::find_if(levels_.begin(), levels_.end(), [](const Level& level) {
    return level.kind == Kind::Rest || level.kind == Kind::CaptureMany;
  });
  const std::size_t before = static_cast<std::size_t>(several - levels_.begin());
  if (several == levels_.end()) {
    if (have != levels_.size()) return false;
    for (std::size_t i = 0; i < have; ++i) {
      if (!match_one(levels_[i], match.levels[i], match)) return false;
    }
    return true;
  }
  const std::size_t after = levels_.size() - before - 1;
  const std::size_t least = several->kind == Kind::CaptureMany ? 1 : 0;
  if (have < before + least + after) return false;
  for (std::size_t i = 0; i < before; ++i) {
    if (!match_one(levels_[i], match.levels[i], match)) return false;
  }
  for (std::size_t i = 0; i < after; ++i) {
    const std::size_t from_end = after - i;
    if (!match_one(levels_[levels_.size() - from_end], match.levels[have - from_end], match)) {
      return false;
    }
  }
  if (several->kind == Kind::Rest) return true;
  const std::vector<std::string_view> captured(
      match.levels.begin() + static_cast<std::ptrdiff_t>(before),
      match.levels.end() - static_cast<std::ptrdiff_t>(after));
  if (std::any_of(captured.begin(), captured.end(), [](auto level) { return level.empty(); })) {
    return false;
  }
  member_of(match, several->field) = join_levels(captured);
  if (several->field == TopicField::Device) match.device_levels = captured;
  return true;
}

std::string join_levels(const std::vector<std::string_view>& levels) {
  if (levels.size() == 1) return std::string(levels.front());
  std::string joined;
  std::uint64_t hash = 14'695'981'039'346'656'037u;  // FNV-1a
  bool is_ambiguous = false;
  for (const std::string_view level : levels) {
    if (!joined.empty()) joined += '.';
    joined += level;
    is_ambiguous |= level.find('.') != std::string_view::npos;
    for (const char c : level) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211u;
    hash = (hash ^ '/') * 1'099'511'628'211u;
  }
  if (!is_ambiguous) return joined;
  constexpr std::string_view kHex = "0123456789abcdef";
  joined += '~';
  for (int shift = 60; shift >= 16; shift -= 4) joined += kHex[hash >> shift & 15];
  return joined;
}

bool TopicTemplate::has(TopicField field) const {
  return std::any_of(levels_.begin(), levels_.end(),
                     [field](const Level& level) { return level.field == field; });
}

std::string TopicTemplate::literal_prefix() const {
  std::string prefix;
  for (const Level& level : levels_) {
    if (level.kind != Kind::Literal) break;
    if (!prefix.empty()) prefix += '/';
    prefix += level.prefix;
  }
  return prefix;
}

Result<NameTemplate> NameTemplate::parse(std::string_view text, const TopicTemplate& topic) {
  NameTemplate result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    if (open != 0) {
      Part part;
      part.text = text.substr(0, open);
      if (part.text.find('}') != std::string::npos) return invalid_argument("`}` without `{`");
      result.parts_.push_back(std::move(part));
      if (open == text.npos) break;
      text.remove_prefix(open);
    }
    const std::size_t close = text.find('}');
    if (close == text.npos) return invalid_argument("`{` without `}`");
    const std::string_view name = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    Part part;
    if (const auto field = field_of(name)) {
      if (!topic.has(*field)) {
        return invalid_argument("{" + std::string(name) + "} is not in the topic");
      }
      part.field = *field;
    } else if (!name.empty() && name.size() <= 3 &&
               name.find_first_not_of("0123456789") == name.npos) {
      for (const char digit : name) {
        part.level = part.level * 10 + static_cast<std::size_t>(digit - '0');
      }
      if (part.level == 0 || part.level > topic.level_count()) {
        return invalid_argument("the topic has no level {" + std::string(name) + "}");
      }
    } else {
      return invalid_argument("only {namespace}, {device}, {sensor} and {N} for topic level N");
    }
    result.parts_.push_back(std::move(part));
  }
  return result;
}

std::string NameTemplate::render(const TopicMatch& match) const {
  std::string name;
  for (const Part& part : parts_) {
    if (part.level > 0) {
      if (part.level <= match.levels.size()) name += match.levels[part.level - 1];
      continue;
    }
    switch (part.field) {
      case TopicField::None: name += part.text; break;
      case TopicField::Namespace: name += match.namespace_name; break;
      case TopicField::Device: name += match.device; break;
      case TopicField::Sensor: name += match.sensor; break;
    }
  }
  return name;
}

bool NameTemplate::is_fixed() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.level == 0 && part.field == TopicField::None;
  });
}

bool filter_covers(std::string_view wide, std::string_view narrow) {
  const auto wide_levels = split_levels(wide);
  const auto narrow_levels = split_levels(narrow);
  // A wildcard at the start leaves out topics that begin with `$`.
  const bool wild_start = wide_levels[0] == "+" || wide_levels[0] == "#";
  if (wild_start && !narrow_levels[0].empty() && narrow_levels[0][0] == '$') return false;
  for (std::size_t i = 0; i < wide_levels.size(); ++i) {
    if (wide_levels[i] == "#") return true;
    if (i >= narrow_levels.size() || narrow_levels[i] == "#") return false;
    if (wide_levels[i] != "+" && wide_levels[i] != narrow_levels[i]) return false;
  }
  if (narrow_levels.size() == wide_levels.size()) return true;
  return false;
}

bool filter_matches(std::string_view filter, std::string_view topic) {
  // A wildcard at the start leaves out topics that begin with `$`.
  if (topic.starts_with('$') && (filter.starts_with('+') || filter.starts_with('#'))) return false;
  while (true) {
    const std::size_t filter_end = filter.find('/');
    const std::string_view level = filter.substr(0, filter_end);
    if (level == "#") return true;
    const std::size_t topic_end = topic.find('/');
    if (level != "+" && level != topic.substr(0, topic_end)) return false;
    if (filter_end == filter.npos) return topic_end == topic.npos;
    filter.remove_prefix(filter_end + 1);
    if (topic_end == topic.npos) return filter == "#";
    topic.remove_prefix(topic_end + 1);
  }
}

bool filters_overlap(std::string_view a, std::string_view b) {
  const auto a_levels = split_levels(a);
  const auto b_levels = split_levels(b);
  const auto is_wild = [](std::string_view level) { return level == "+" || level == "#"; };
  const auto is_own = [](std::string_view level) { return level.starts_with('$'); };
  if (is_wild(a_levels[0]) && is_own(b_levels[0])) return false;
  if (is_wild(b_levels[0]) && is_own(a_levels[0])) return false;
  for (std::size_t i = 0; i < std::max(a_levels.size(), b_levels.size()); ++i) {
    const bool a_ends = i >= a_levels.size();
    const bool b_ends = i >= b_levels.size();
    if ((!a_ends && a_levels[i] == "#") || (!b_ends && b_levels[i] == "#")) return true;
    if (a_ends || b_ends) return false;
    if (!is_wild(a_levels[i]) && !is_wild(b_levels[i]) && a_levels[i] != b_levels[i]) return false;
  }
  return true;
}

Result<NamespaceId> open_record_namespace(Engine& engine) {
  const auto found = engine.find_namespace(kMqttNamespace);
  if (found.ok()) return found->id;
  if (found.status().code() != StatusCode::NotFound) return found.status();
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  return engine.create_namespace(kMqttNamespace, options);
}

namespace {

constexpr char kNameRecordKind = 'D';
constexpr char kNameRecordVersion = 1;
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kHashDigits = 12;

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes.substr(0, kNumberBytes)) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

std::uint64_t number_of(const auth::Pseudonym& pseudonym) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) {
    number = number << 8 | static_cast<unsigned char>(pseudonym[i]);
  }
  return number;
}

std::string record_part(char first, std::uint64_t number) {
  std::string bytes(1, first);
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string hash_text(std::uint64_t number) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "~";
  for (std::size_t i = 0; i < kHashDigits; ++i) text += kHex[number >> (60 - 4 * i) & 15];
  return text;
}

}  // namespace

Result<std::unique_ptr<DeviceNames>> DeviceNames::open(Engine& engine, Random& random) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, open_record_namespace(engine));
  EC_ASSIGN_OR_RETURN(auth::Pseudonyms pseudonyms, auth::Pseudonyms::load(engine, random));
  std::unique_ptr<DeviceNames> names(new DeviceNames(engine, id, std::move(pseudonyms)));
  EC_TRY(names->load());
  return names;
}

Status DeviceNames::load() {
  KeyRange range;
  range.lower = Bytes(1, kNameRecordKind);
  range.upper = Bytes(1, kNameRecordKind + 1);
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each, engine_.scan(namespace_id_, range, {}));
  const MutexLock lock(mutex_);
  for (; each->valid() && levels_of_.size() < kNamesMax; each->next()) {
    const std::string_view key = each->key(), value = each->value();
    // What cannot be read is as if nobody had the name yet.
    if (key.size() != 1 + kNumberBytes || value.size() != 1 + kNumberBytes) continue;
    if (value[0] == kNameRecordVersion)
      levels_of_[number_of(key.substr(1))] = number_of(value.substr(1));
  }
  return each->status();
}

DeviceNames::Named DeviceNames::name_of(std::string_view namespace_name, std::string_view wanted,
                                        std::string_view levels) {
  const std::uint64_t name = number_of(pseudonyms_.of_text("mqtt device", namespace_name, wanted));
  const std::uint64_t of_levels =
      number_of(pseudonyms_.of_text("mqtt device levels", namespace_name, levels));
  Named named;
  named.name = wanted;
  const MutexLock lock(mutex_);
  const auto found = levels_of_.find(name);
  if (found != levels_of_.end()) {
    if (found->second != of_levels) named.name += hash_text(of_levels);
    return named;
  }
  if (levels_of_.size() == kNamesMax) return named;
  named.is_new = true;
  named.name_number = name;
  named.levels_number = of_levels;
  named.key = record_part(kNameRecordKind, name);
  named.value = record_part(kNameRecordVersion, of_levels);
  return named;
}

void DeviceNames::keep(const Named& named) {
  if (!named.is_new) return;
  const MutexLock lock(mutex_);
  levels_of_.emplace(named.name_number, named.levels_number);
}

}  // namespace edgecase::mqtt
