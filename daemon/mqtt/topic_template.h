// Topic templates: how a rule reads names out of an MQTT topic, and what it subscribes to.
//
//   sensors/{device}/{sensor}     one level each
//   zigbee2mqtt/{device+}         one or more levels, joined by `.`; {sensor+} likewise
//   {namespace}/+/{device}/#      `+` matches one level, `#` any number at the end; both are
//   dropped rack/dev-{device}/temp        literal text around one placeholder of a level
//
// At most one of {device+}, {sensor+} and `#`; each placeholder once. A placeholder never matches
// an empty level. As in MQTT, a first level that is not literal never matches a topic that begins
// with
// `$`.
//
// MQTT knows neither text around a wildcard nor levels behind `#`: there filter() asks for more
// than match() takes (`rack/+/temp`; `a/{device+}/temp` becomes `a/+/#`), and what does not match
// is treated as any message that fits no rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::mqtt {

inline constexpr std::size_t kTopicMaxBytes = 65'535;
inline constexpr std::size_t kTopicLevelsMax = 128;

// What a template read out of a topic; empty where it has no such placeholder. `levels` are views
// into the topic.
struct TopicMatch {
  std::string namespace_name;
  std::string device;
  std::string sensor;
  std::vector<std::string_view> levels;
  std::vector<std::string_view> device_levels;  // of {device+}
};

// One name of several levels: joined by `.`. Where a level holds one itself, it ends in `~` and a
// hash of the levels, so that `a.b/c` and `a/b.c` are two.
std::string join_levels(const std::vector<std::string_view>& levels);

enum class TopicField : std::uint8_t { None, Namespace, Device, Sensor };

class TopicTemplate {
 public:
  // InvalidArgument says what is wrong, without naming the rule.
  static Result<TopicTemplate> parse(std::string_view text);

  bool match(std::string_view topic, TopicMatch& match) const;
  bool has(TopicField field) const;
  std::size_t level_count() const { return levels_.size(); }
  const std::string& text() const { return text_; }
  // The MQTT subscription filter; matches every topic that match() takes.
  const std::string& filter() const { return filter_; }
  // Literal levels before the first other one: "zigbee2mqtt".
  std::string literal_prefix() const;

 private:
  enum class Kind : std::uint8_t { Literal, Any, Rest, Capture, CaptureMany };
  struct Level {
    Kind kind = Kind::Literal;
    TopicField field = TopicField::None;
    std::string prefix;  // of a literal: all of it
    std::string suffix;
  };
  static Result<Level> parse_level(std::string_view text);
  Status check() const;
  bool match_one(const Level& level, std::string_view text, TopicMatch& match) const;

  std::string text_;
  std::string filter_;
  std::vector<Level> levels_;
};

// A name made of text and of what a topic gave: "pi-{device}", "{2}.{3}" ({N}: topic level N,
// counted from 1).
class NameTemplate {
 public:
  // Every placeholder must be there in `topic`.
  static Result<NameTemplate> parse(std::string_view text, const TopicTemplate& topic);
  std::string render(const TopicMatch& match) const;
  bool is_fixed() const;

 private:
  struct Part {
    std::string text;
    TopicField field = TopicField::None;
    std::size_t level = 0;  // > 0: this one
  };
  std::vector<Part> parts_;
};

// Whether every topic that `narrow` matches is matched by `wide`; both are MQTT filters.
bool filter_covers(std::string_view wide, std::string_view narrow);
// Whether a broker that has the filter sends what comes under `topic`.
bool filter_matches(std::string_view filter, std::string_view topic);
// Whether there is a topic that both match.
bool filters_overlap(std::string_view a, std::string_view b);

}  // namespace edgecase::mqtt
