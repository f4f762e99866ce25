// Names out of MQTT topics: how a rule reads them, and what it subscribes to (TopicTemplate), and
// which device such a name stands for (DeviceNames).
//
// Templates:
//
//   sensors/{device}/{sensor}     one level each
//   zigbee2mqtt/{device+}         one or more levels, joined by `.`; {sensor+} likewise
//   {namespace}/+/{device}/#      `+` matches one level, `#` any number at the end; both go
//   rack/dev-{device}/temp        literal text around one placeholder of a level
//
// At most one of {device+}, {sensor+} and `#`; each placeholder once. A placeholder never matches
// an empty level. As in MQTT, a first level that is not literal never matches a topic that begins
// with `$`.
//
// MQTT knows neither text around a wildcard nor levels behind `#`: there filter() asks for more
// than match() takes (`rack/+/temp`; `a/{device+}/temp` becomes `a/+/#`), and what does not match
// is treated as any message that fits no rule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/hashing.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
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

// The namespace of MQTT's own records: the engine's `_mqtt` on the metadata drive, which no query
// shows. The first byte of a key says whose record it is: 'D' DeviceNames, 'F' connection.h, 'Q'
// listener/session_table.h.
inline constexpr std::string_view kMqttNamespace = "_mqtt";

// Made where there is none yet. Errors: the engine's.
Result<NamespaceId> open_record_namespace(Engine& engine);

// Two devices never become one: which device a name made of a topic stands for, where several could
// have it. `1/OG` and `1.OG` are both called `1.OG` by their topics, and The Things Stack's devices
// are told apart only within their application. The first device has the plain name, for good; the
// other's ends in `~` and a hash.
//
// Records in the engine's namespace `_mqtt`, which name nobody: both are
// pseudonyms of the store (auth/hashing.h).
//
//   key      'D'  of the name, 8 bytes
//   value    1, the record's version; of the topic's levels, 8 bytes
//
// Everything is thread-safe.
class DeviceNames {
 public:
  // The most names that are remembered; later ones are as their topics say.
  static constexpr std::size_t kNamesMax = 65'536;

  // With what was remembered. `random`: one that nobody can predict. Errors: the engine's.
  static Result<std::unique_ptr<DeviceNames>> open(Engine& engine, Random& random);

  struct Named {
    std::string name;
    bool is_new = false;  // then this is to be durable with the first of its readings:
    std::string key, value;
    std::uint64_t name_number = 0, levels_number = 0;
  };
  // The name of the device whose topic says `levels`, and would be called `wanted`. It has the name
  // once keep() was told: not before it is known that it may write under it.
  Named name_of(std::string_view namespace_name, std::string_view wanted, std::string_view levels);
  void keep(const Named& named) EC_EXCLUDES(mutex_);

  NamespaceId namespace_id() const { return namespace_id_; }

 private:
  DeviceNames(Engine& engine, NamespaceId id, auth::Pseudonyms pseudonyms)
      : engine_(engine), namespace_id_(id), pseudonyms_(std::move(pseudonyms)) {}
  Status load() EC_EXCLUDES(mutex_);

  Engine& engine_;
  const NamespaceId namespace_id_;
  const auth::Pseudonyms pseudonyms_;
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> levels_of_ EC_GUARDED_BY(mutex_);  // by name
};

}  // namespace edgecase::mqtt
