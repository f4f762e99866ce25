#include "config/settings.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/configuration.h"

namespace edgecase::config {
namespace {

// A value of the setting that is not its default; empty when only the default is allowed.
std::string other_value(const Setting& setting) {
  if (setting.support == Support::Refused) return "";
  switch (setting.kind) {
    case SettingKind::Text:
    case SettingKind::File:
      if (setting.key == "http.listen") return "127.0.0.1:1";
      if (setting.key == "mqtt.broker") return "mqtt://192.168.7.7:1884";
      if (setting.key == "mqtt.listen") return "127.0.0.1:2";
      // One alone of two that go together is refused.
      if (setting.key == "mqtt.password-file") return "";
      if (setting.name().starts_with("tls-")) return "";
      if (setting.key == "storage.locations") return "";
      if (setting.name().ends_with("-location")) return "de";
      return "/some/where";
    case SettingKind::Choice:
      return std::string(setting.choices.substr(setting.choices.rfind('|') + 1));
    case SettingKind::Duration:
    case SettingKind::Keeping: return "45d";
    case SettingKind::Size:
      if (setting.key == "http.head-limit") return "5120";
      return std::to_string(
          (setting.key.starts_with("storage") || setting.key == "http.in-flight-limit" ? 100u : 5u)
          << 20);
    case SettingKind::Number: return std::to_string(setting.maximum);
    case SettingKind::Flag: return "true";
    case SettingKind::List: return "192.0.2.7,2001:db8::1";  // addresses are names, too
  }
  return "";
}

std::string in_quotes(const Setting& setting, const std::string& value) {
  const bool bare = setting.kind == SettingKind::Size || setting.kind == SettingKind::Number ||
                    setting.kind == SettingKind::Flag;
  if (setting.kind == SettingKind::List) {
    const std::size_t comma = value.find(',');
    return "[" + quote_toml(value.substr(0, comma)) + ", " + quote_toml(value.substr(comma + 1)) +
           "]";
  }
  return bare ? value : quote_toml(value);
}

TEST_CASE("every key of the contract exists with its default") {
  struct Case {
    const char* key;
    const char* value;
  };
  const Settings defaults;
  for (const Case& c : {Case{"storage.metadata", "/var/lib/edgecase"},
                        Case{"storage.values", "/var/lib/edgecase/values"},
                        Case{"storage.memory-limit", "64MiB"},
                        Case{"storage.wal-limit", "256MiB"},
                        Case{"storage.reserve", "48MiB"},
                        Case{"storage.keep-free", "128MiB"},
                        Case{"storage.retention", "forever"},
                        Case{"storage.expiry", "bounded"},
                        Case{"storage.on-full", "reject"},
                        Case{"storage.encryption-key-file", ""},
                        Case{"http.socket", "/run/edgecase/edgecase.sock"},
                        Case{"http.listen", "localhost:8650"},
                        Case{"http.tls-cert", ""},
                        Case{"http.tls-key", ""},
                        Case{"http.allow-insecure", "false"},
                        Case{"mqtt.broker", "mqtt://127.0.0.1:1883"},
                        Case{"mqtt.username", ""},
                        Case{"mqtt.password-file", ""},
                        Case{"mqtt.tls-ca", ""},
                        Case{"mqtt.listen", ""},
                        Case{"audit.mode", "batched"}}) {
    CAPTURE(c.key);
    const Setting* setting = find_setting(c.key);
    REQUIRE(setting != nullptr);
    CHECK(value_text(*setting, defaults) == c.value);
  }
}

TEST_CASE("every row is complete and its default is allowed") {
  std::set<std::string_view> keys;
  std::string_view section;
  std::set<std::string_view> sections;
  for (const Setting& setting : settings_table()) {
    CAPTURE(setting.key);
    CHECK(keys.insert(setting.key).second);
    CHECK(setting.help.ends_with('.'));
    CHECK((setting.support == Support::Full) == setting.support_note.empty());
    CHECK((setting.kind == SettingKind::Choice) == !setting.choices.empty());
    if (setting.section() != section) CHECK(sections.insert(setting.section()).second);
    section = setting.section();
    Settings settings;
    CHECK(set_from_text(setting, value_text(setting, settings), settings).ok());
  }
}

TEST_CASE("every key is set by every source, and later sources win") {
  for (const Setting& setting : settings_table()) {
    CAPTURE(setting.key);
    const std::string other = other_value(setting);
    if (other.empty()) continue;
    Settings want;
    REQUIRE(set_from_text(setting, other, want).ok());
    const std::string text = value_text(setting, want);
    const std::string fallback = value_text(setting, Settings());
    CHECK(text != fallback);

    Configuration from_file;
    const std::string toml = "[" + std::string(setting.section()) + "]\n" +
                             std::string(setting.name()) + " = " + in_quotes(setting, other) + "\n";
    const Status applied = apply_file(toml, "x.toml", from_file);
    CHECK_MESSAGE(applied.ok(), applied.message());
    CHECK(value_text(setting, from_file.settings) == text);
    CHECK(from_file.origin_of(setting.key).where == "x.toml:2:1");

    Sources sources;
    sources.file = "";
    sources.environment = {{environment_name(setting), other}};
    const auto from_environment = load_configuration(sources);
    REQUIRE_MESSAGE(from_environment.ok(), from_environment.status().message());
    CHECK(value_text(setting, from_environment->settings) == text);
    CHECK(from_environment->origin_of(setting.key).where == environment_name(setting));

    sources.environment = {{environment_name(setting), fallback}};
    sources.flags = {{std::string(setting.key), other}};
    const auto from_flag = load_configuration(sources);
    REQUIRE_MESSAGE(from_flag.ok(), from_flag.status().message());
    CHECK(value_text(setting, from_flag->settings) == text);
    CHECK(from_flag->origin_of(setting.key).kind == OriginKind::Flag);
    CHECK(from_flag->origin_of(setting.key).where == flag_name(setting));
  }
}

TEST_CASE("lists are told what is wrong with them") {
  struct Case {
    const char* toml;
    const char* message;
  };
  for (const Case& c :
       {Case{"names = \"board.lan\"", "is text, use a list of texts"},
        Case{"names = [\"a\", 1]", "is not a name or an address in quotes"},
        Case{"names = [\"a,b\"]", "is not a name"}, Case{"names = [\"\"]", "is not a name"}}) {
    CAPTURE(c.toml);
    Configuration configuration;
    const Status status =
        apply_file("[http]\n" + std::string(c.toml) + "\n", "x.toml", configuration);
    CHECK(status.message().find(c.message) != std::string::npos);
    CHECK(status.message().starts_with("x.toml:2:"));
  }
  const std::pair<const char*, const char*> wrong[] = {{"http.names", "board.lan:80"},
                                                       {"http.names", "a,,b"},
                                                       {"http.proxies", "board.lan"},
                                                       {"http.proxies", "10.0.0.0/99"}};
  for (const auto& each : wrong) {
    CAPTURE(each.second);
    Sources sources;
    sources.file = "";
    sources.flags = {{each.first, each.second}};
    const Status status = load_configuration(sources).status();
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find(each.first) != std::string::npos);
  }
  Configuration empty;
  CHECK(apply_file("[http]\nnames = []\nproxies = [\"::1\"]\n", "x.toml", empty).ok());
  CHECK(empty.settings.http.names.empty());
  CHECK(empty.settings.http.proxies == std::vector<std::string>{"::1"});
}

TEST_CASE("names follow the key") {
  const Setting* setting = find_setting("storage.encryption-key-file");
  REQUIRE(setting != nullptr);
  CHECK(environment_name(*setting) == "EDGECASE_STORAGE_ENCRYPTION_KEY_FILE");
  CHECK(flag_name(*setting) == "--storage.encryption-key-file");
  CHECK(find_setting("storage") == nullptr);
  CHECK(find_setting("storage.") == nullptr);
}

TEST_CASE("text that a setting cannot take is refused with what would be right") {
  struct Case {
    const char* key;
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"storage.memory-limit", "lots", "\"lots\" is not a size"},
           Case{"storage.memory-limit", "", "\"\" is not a size"},
           Case{"storage.memory-limit", "1MiB", "1MiB is out of range, use 32MiB to 64GiB"},
           Case{"storage.wal-limit", "-1", "is not a size"},
           Case{"storage.on-full", "explode", "use one of reject|evict-oldest|thin-oldest"},
           Case{"storage.on-full", "", "use one of reject|evict-oldest|thin-oldest"},
           Case{"storage.on-full", "reject|evict-oldest",
                "use one of reject|evict-oldest|thin-oldest"},
           Case{"storage.retention", "30 parsecs", "use 30d, 12h, 90m or forever"},
           Case{"http.threads", "0", "0 is out of range, use 1 to 64"},
           Case{"http.threads", "four", "is not a whole number"},
           Case{"http.threads", "99999999999999999999", "is not a whole number"},
           Case{"http.threads", "4 ", "is not a whole number"},
           Case{"http.allow-insecure", "yes", "\"yes\" is neither true nor false"},
           Case{"storage.values", "a\nb", "line break"},
       }) {
    CAPTURE(c.key);
    CAPTURE(c.text);
    Settings settings;
    const Setting* setting = find_setting(c.key);
    REQUIRE(setting != nullptr);
    const Status status = set_from_text(*setting, c.text, settings);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK_MESSAGE(status.message().find(c.message) != std::string::npos, status.message());
    CHECK(value_text(*setting, settings) == value_text(*setting, Settings()));
  }
}

}  // namespace
}  // namespace edgecase::config
