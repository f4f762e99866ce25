#include "config/configuration.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace edgecase::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kStartsOfNumber = "+-0123456789";
constexpr std::string_view kBeforeValue = "=[,";
constexpr std::string_view kEndsOfValue = ",]}";

// Goes over the text character by character and knows whether it is within quotes or a comment, as
// the parser does: of a value that begins as a number it takes what a number cannot have, too, up
// to the value's end, so that no quotes begin in it.
class TomlWalk {
 public:
  TomlWalk(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  Status check() {
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      const bool is_space = byte == '\t' || byte == '\n' || byte == '\r';
      if ((byte < 0x20 && !is_space) || byte == 0x7f) return wrong("a control character");
      if (byte >= 0x80 && quotes_.empty() && !in_comment_) {
        return wrong("a character that belongs in quotes");
      }
      // The parser asks whether it is a blank, which of many it does not know.
      if (byte >= 0x80 && is_behind_backslash_) {
        return wrong("a character beyond ASCII right behind a backslash, or the blanks after one");
      }
      const std::size_t end = at_ + look();
      for (; at_ < end; ++at_) count(text_[at_]);
    }
    return ok();
  }

 private:
  // Enters and leaves quotes and comments; how many bytes that takes.
  std::size_t look() {
    const char c = text_[at_];
    const std::string_view rest = text_.substr(at_);
    if (c == '\n' && quotes_.size() <= 1) {
      in_comment_ = false;
      in_number_ = false;
      quotes_ = {};
      is_behind_backslash_ = false;
      starts_line_ = true;
    } else if (in_comment_) {
      return 1;
    } else if (!quotes_.empty()) {
      // What a backslash escapes is no end.
      const bool may_escape = quotes_.front() == '"';
      if (may_escape && (rest.starts_with(R"(\\)") || rest.starts_with(R"(\")"))) {
        is_behind_backslash_ = false;
        return 2;
      }
      const bool is_blank = kBlanks.find(c) != std::string_view::npos;
      is_behind_backslash_ = may_escape && (c == '\\' || (is_behind_backslash_ && is_blank));
      if (!rest.starts_with(quotes_)) return 1;
      const std::size_t size = quotes_.size();
      quotes_ = {};
      return size;
    } else if (c == '#') {
      in_comment_ = true;
      in_number_ = false;
    } else if ((c == '"' || c == '\'') && !in_number_) {
      const std::string_view three = c == '"' ? R"(""")" : "'''";
      quotes_ = rest.starts_with(three) ? three : three.substr(0, 1);
      note('"');
      return quotes_.size();
    } else {
      note(c);
    }
    return 1;
  }

  // Keeps up with where a number begins and ends, for a character outside of quotes and comments.
  void note(char c) {
    const bool is_blank = kBlanks.find(c) != std::string_view::npos;
    if (is_blank || kEndsOfValue.find(c) != std::string_view::npos) {
      in_number_ = false;
    } else if (kStartsOfNumber.find(c) != std::string_view::npos && may_start_value()) {
      in_number_ = true;
    }
    follows_blank_ = is_blank;
    if (is_blank) return;
    previous_ = c;
    starts_line_ = false;
  }

  // Keys do so too after a comma or within `[ ]`: names of settings do not begin with a digit.
  bool may_start_value() const {
    if (kBeforeValue.find(previous_) != std::string_view::npos) return true;
    return follows_blank_ && !starts_line_ && previous_ != '{';  // the time after a date
  }

  void count(char c) {
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {  // a UTF-8 character is one column
      ++column_;
    }
  }

  Status wrong(std::string_view what) const {
    return invalid_argument(name_ + ":" + std::to_string(line_) + ":" + std::to_string(column_) +
                            ": not TOML: " + std::string(what));
  }

  const std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t column_ = 1;
  std::string_view quotes_;           // that will end the text that at_ is in; empty: it is in none
  bool is_behind_backslash_ = false;  // in quotes, but for blanks
  bool in_comment_ = false;
  bool in_number_ = false;
  // What stands outside of quotes and comments, before at_: its last character but for blanks,
  // whether a blank came after that, and whether it was on an earlier line.
  char previous_ = '\n';
  bool follows_blank_ = true;
  bool starts_line_ = true;
};

}  // namespace

Status check_toml_characters(std::string_view text, const std::string& name) {
  return TomlWalk(text, name).check();
}

}  // namespace edgecase::config

// What the parser asserts of its input it finds wrong by itself, too; a misspelt file ends nothing.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "config/settings.h"
#include "wire/names.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::config {
namespace {

constexpr std::string_view kForward = "forward";

class FileReader {
 public:
  FileReader(const std::string& name, Configuration& configuration)
      : name_(name), configuration_(configuration) {}

  Status apply(const toml::table& root) {
    for (const auto& [section, node] : root) {
      if (section.str() == kForward) {
        EC_TRY(apply_targets(node));
        continue;
      }
      if (!is_section(section.str())) return unknown(section.source(), "", section.str());
      const toml::table* table = node.as_table();
      if (table == nullptr) {
        return error(section.source(), section.str(),
                     "is not a section, write [" + std::string(section.str()) + "]");
      }
      EC_TRY(apply_section(std::string(section.str()), *table));
    }
    return ok();
  }

 private:
  static bool is_section(std::string_view name) {
    for (const Setting& setting : settings_table()) {
      if (setting.section() == name) return true;
    }
    return name == "influx";  // which holds rules alone
  }

  std::string place(const toml::source_region& source) const {
    return name_ + ":" + std::to_string(source.begin.line) + ":" +
           std::to_string(source.begin.column);
  }

  Status error(const toml::source_region& source, std::string_view key,
               std::string_view what) const {
    return invalid_argument(place(source) + ": " + std::string(key) + ": " + std::string(what));
  }

  // `prefix` is empty for a section, else "storage.", "mqtt.rule." or "influx.rule.".
  Status unknown(const toml::source_region& source, const std::string& prefix,
                 std::string_view name) const {
    const std::string meant = meant_key(prefix, name);
    std::string what = prefix.empty() ? "unknown section" : "unknown key";
    what += meant.empty() ? ", see `edgecase config example`" : ", did you mean " + meant + "?";
    return error(source, prefix + std::string(name), what);
  }

  Status apply_section(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
      const std::string key = section + "." + std::string(name.str());
      if (key == "mqtt.rule" || key == "influx.rule") {
        EC_TRY(apply_rules(key, node));
        continue;
      }
      const Setting* setting = find_setting(key);
      if (setting == nullptr) return unknown(name.source(), section + ".", name.str());
      EC_TRY(apply_value(*setting, name.source(), node));
    }
    return ok();
  }

  Status apply_value(const Setting& setting, const toml::source_region& source,
                     const toml::node& node) {
    std::string text;
    EC_TRY(text_of(setting, source, node, text));
    if (Status status = set_from_text(setting, text, configuration_.settings); !status.ok()) {
      return error(node.source(), setting.key, status.message());
    }
    configuration_.origins[std::string(setting.key)] = {OriginKind::File, place(source)};
    return ok();
  }

  // The value as text, if its TOML type is the setting's.
  Status text_of(const Setting& setting, const toml::source_region& source, const toml::node& node,
                 std::string& text) const {
    const char* wanted = "text in quotes";
    switch (setting.kind) {
      case SettingKind::List: {
        wanted = "a list of texts, as in [\"one\", \"two\"]";
        const auto* list = node.as_array();
        if (list == nullptr) break;
        for (const toml::node& one : *list) {
          const auto* string = one.as_string();
          if (string == nullptr || string->get().empty() ||
              string->get().find(',') != std::string::npos) {
            return error(one.source(), setting.key, "is not a name or an address in quotes");
          }
          text += (text.empty() ? "" : ",") + string->get();
        }
        return ok();
      }
      case SettingKind::Flag:
        if (const auto* flag = node.as_boolean()) {
          text = flag->get() ? "true" : "false";
          return ok();
        }
        wanted = "true or false, without quotes";
        break;
      case SettingKind::Size:
      case SettingKind::Number:
        if (const auto* number = node.as_integer()) {
          text = std::to_string(number->get());
          return ok();
        }
        wanted = "a whole number, without quotes";
        if (setting.kind == SettingKind::Number) break;
        wanted = "a size, as in \"64MiB\"";
        [[fallthrough]];
      default:
        if (const auto* string = node.as_string()) {
          text = string->get();
          return ok();
        }
    }
    return error(source, setting.key, "is " + std::string(type_in_words(node)) + ", use " + wanted);
  }

  static std::string_view type_in_words(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::table: return "a table";
      case toml::node_type::array: return "a list";
      case toml::node_type::string: return "text";
      case toml::node_type::integer: return "a whole number";
      case toml::node_type::floating_point: return "a number with decimals";
      case toml::node_type::boolean: return "true or false";
      default: return "a date or time";
    }
  }

  Status apply_rules(const std::string& key, const toml::node& node) {
    const toml::array* rules = node.as_array();
    if (rules == nullptr) {
      return error(node.source(), key, "is not a list of tables, write [[" + key + "]]");
    }
    for (const toml::node& rule : *rules) {
      const toml::table* table = rule.as_table();
      if (table == nullptr) {
        return error(rule.source(), key, "is not a table, write [[" + key + "]]");
      }
      EC_TRY(key == "mqtt.rule" ? apply_rule(*table) : apply_line_rule(*table));
    }
    return ok();
  }

  Status apply_targets(const toml::node& node) {
    const toml::array* targets = node.as_array();
    if (targets == nullptr)
      return error(node.source(), kForward, "is not a list of tables, write [[forward]]");
    for (const toml::node& target : *targets) {
      const toml::table* table = target.as_table();
      if (table == nullptr)
        return error(target.source(), kForward, "is not a table, write [[forward]]");
      EC_TRY(apply_target(*table));
    }
    return ok();
  }

  Status apply_target(const toml::table& table) {
    ForwardSettings settings;
    settings.where = place(table.source());
    const std::size_t number = configuration_.settings.forward.size() + 1;
    for (const auto& [name, node] : table) {
      const auto keys = forward_keys();
      const auto found =
          std::find_if(keys.begin(), keys.end(),
                       [wanted = name.str()](const ForwardKey& key) { return key.name == wanted; });
      if (found == keys.end()) return unknown(name.source(), "forward.", name.str());
      EC_TRY(apply_target_key(*found, node, settings));
      configuration_.origins[forward_origin(number, found->name)] = {OriginKind::File,
                                                                     place(node.source())};
    }
    configuration_.settings.forward.push_back(std::move(settings));
    return ok();
  }

  Status apply_target_key(const ForwardKey& key, const toml::node& node,
                          ForwardSettings& settings) const {
    const char* wanted = "text in quotes";
    if (const auto* text = std::get_if<std::string ForwardSettings::*>(&key.member)) {
      if (const auto* string = node.as_string()) {
        const bool is_plain =
            string->get().find_first_of(std::string_view("\n\0", 2)) == std::string::npos;
        if (is_plain) {
          settings.** text = string->get();
          return ok();
        }
        wanted = "plain text, without a line break or a zero byte";
      }
    } else if (const auto* flag = std::get_if<bool ForwardSettings::*>(&key.member)) {
      wanted = "true or false, without quotes";
      if (const auto* boolean = node.as_boolean()) {
        settings.** flag = boolean->get();
        return ok();
      }
    } else {
      wanted = "a list of texts, as in [\"one\", \"two\"]";
      auto& list = settings.*std::get<std::vector<std::string> ForwardSettings::*>(key.member);
      const auto* array = node.as_array();
      const auto is_text = [](const toml::node& each) { return each.is_string(); };
      if (array != nullptr && std::all_of(array->begin(), array->end(), is_text)) {
        list.clear();
        for (const toml::node& each : *array) list.push_back(each.as_string()->get());
        return ok();
      }
    }
    return error(node.source(), "forward." + std::string(key.name),
                 "is " + std::string(type_in_words(node)) + ", use " + wanted);
  }

  Status apply_line_rule(const toml::table& table) {
    wire::LineRule rule;
    rule.line = static_cast<int>(table.source().begin.line);
    for (const auto& [name, node] : table) {
      std::string* const target = name.str() == "measurement" ? &rule.measurement
                                  : name.str() == "device"    ? &rule.device
                                                              : nullptr;
      if (target == nullptr) return unknown(name.source(), "influx.rule.", name.str());
      const auto* const text = node.as_string();
      if (text == nullptr) {
        return error(node.source(), "influx.rule." + std::string(name.str()),
                     "is " + std::string(type_in_words(node)) + ", use text in quotes");
      }
      *target = text->get();
    }
    if (const auto compiled = wire::CompiledLineRule::compile(rule); !compiled.ok()) {
      return invalid_argument(place(table.source()) + ": influx.rule." +
                              compiled.status().message());
    }
    std::vector<wire::LineRule>& rules = configuration_.settings.influx.rules;
    rules.push_back(std::move(rule));
    configuration_.origins["influx.rule." + std::to_string(rules.size())] = {OriginKind::File,
                                                                             place(table.source())};
    return ok();
  }

  Status apply_rule(const toml::table& table) {
    MqttRuleSettings rule;
    rule.line = static_cast<int>(table.source().begin.line);
    rule.where = place(table.source());
    const std::size_t number = configuration_.settings.mqtt.rules.size() + 1;
    for (const auto& [name, node] : table) {
      const RuleKey* found = nullptr;
      for (const RuleKey& key : rule_keys()) {
        if (key.name == name.str()) found = &key;
      }
      if (found == nullptr) return unknown(name.source(), "mqtt.rule.", name.str());
      const std::string key = "mqtt.rule." + std::string(found->name);
      configuration_.origins[rule_origin(number, found->name)] = {OriginKind::File,
                                                                  place(node.source())};
      if (found->text == nullptr) {
        EC_TRY(apply_qos(node, key, rule));
      } else {
        EC_TRY(apply_rule_text(*found, node, key, rule));
      }
    }
    if (rule.topic.empty() && rule.preset.empty()) {  // presets bring topics of their own
      return invalid_argument(rule.where +
                              ": mqtt.rule.topic: is missing, write topic = "
                              "\"sensors/{device}/{sensor}\"");
    }
    configuration_.settings.mqtt.rules.push_back(std::move(rule));
    configuration_.origins["mqtt.rule"] = {OriginKind::File, place(table.source())};
    return ok();
  }

  Status apply_qos(const toml::node& node, const std::string& key, MqttRuleSettings& rule) const {
    const auto* number = node.as_integer();
    if (number == nullptr || (number->get() != 0 && number->get() != 1)) {
      return error(node.source(), key,
                   "is neither 0 nor 1, use 1 (QoS 2 costs more messages and keeps no more)");
    }
    rule.qos = static_cast<int>(number->get());
    return ok();
  }

  Status apply_rule_text(const RuleKey& rule_key, const toml::node& node, const std::string& key,
                         MqttRuleSettings& rule) const {
    std::string& target = rule.*rule_key.text;
    if (const auto* string = node.as_string()) {
      target = string->get();
    } else if (const auto* list = node.as_array(); list != nullptr && rule_key.name == "purpose") {
      target.clear();
      for (const toml::node& one : *list) {
        if (!one.is_string()) return error(one.source(), key, "is not text, use \"heating\"");
        if (!target.empty()) target += ',';
        target += one.as_string()->get();
      }
    } else {
      return error(node.source(), key,
                   "is " + std::string(type_in_words(node)) + ", use text in quotes");
    }
    if (rule_key.name != "retention") return ok();
    const Status kept = wire::parse_keeping(target).status();
    if (kept.ok()) return ok();
    return error(node.source(), key, kept.message());
  }

  const std::string& name_;
  Configuration& configuration_;
};

}  // namespace

Status apply_file(std::string_view text, const std::string& name, Configuration& configuration) {
  EC_TRY(check_toml_characters(text, name));
  toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    // In one line, whatever it quotes.
    std::string words(error.description());
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; },
        ' ');
    return invalid_argument(name + ":" + std::to_string(error.source().begin.line) + ":" +
                            std::to_string(error.source().begin.column) + ": not TOML: " + words);
  }
  return FileReader(name, configuration).apply(parsed.table());
}

}  // namespace edgecase::config
