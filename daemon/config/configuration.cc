#include "config/configuration.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "config/settings_file.h"
#include "config/settings_table.h"
#include "config/validate.h"
#include "wire/names.h"

namespace edgecase::config {
namespace {

std::optional<uid_t> service_user() {
  passwd entry{};
  passwd* found = nullptr;
  char texts[4096];
  if (getpwnam_r(kServiceUser, &entry, texts, sizeof texts, &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return entry.pw_uid;
}

bool everybody_may_write(const struct stat& facts) {
  return (facts.st_mode & S_IWOTH) != 0;
}

bool belongs_to(const struct stat& facts, const Owners& owners) {
  return facts.st_uid == 0 || facts.st_uid == owners.own || facts.st_uid == owners.service;
}

}  // namespace

Status check_file_rights(const std::string& name, const struct stat& facts, const Owners& owners) {
  // A terminal and /dev/null hold nothing that somebody could have changed.
  if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode)) return ok();
  if (everybody_may_write(facts)) {
    return invalid_argument(name + ":1:1: file: everybody on this machine may change it; to do: " +
                            "see what it says, then chmod o-w " + name);
  }
  if (!belongs_to(facts, owners)) {
    return invalid_argument(
        name + ":1:1: file: belongs to the user with the number " + std::to_string(facts.st_uid) +
        ", neither to root nor to the daemon's user; to do: chown root " + name);
  }
  return ok();
}

Status check_file_rights(const std::string& name, int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) {
    return invalid_argument(name + ":1:1: file: cannot be looked at (" + std::strerror(errno) +
                            "), give the path of a file");
  }
  Owners owners{.own = geteuid(), .service = {}};
  // Asking who the service's user is loads what the system keeps its users in: only where it
  // matters.
  if (!belongs_to(facts, owners)) owners.service = service_user();
  return check_file_rights(name, facts, owners);
}

namespace {

// Nothing: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return invalid_argument(path + ":1:1: file: cannot be read (" + std::strerror(errno) +
                            "), let the daemon's user read it");
  }
  if (Status status = check_file_rights(path, fd); !status.ok()) {
    close(fd);
    return status;
  }
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 && text.size() <= kFileSizeMaxBytes) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  close(fd);
  if (error != 0) {
    return invalid_argument(path + ":1:1: file: cannot be read (" + std::strerror(error) +
                            "), give the path of a file");
  }
  if (text.size() > kFileSizeMaxBytes) {
    return invalid_argument(path + ":1:1: file: is larger than 1 MiB, give a configuration file");
  }
  return std::optional<std::string>(std::move(text));
}

Status apply_text(const Setting& setting, std::string_view text, OriginKind kind, std::string where,
                  Configuration& configuration) {
  if (Status status = set_from_text(setting, text, configuration.settings); !status.ok()) {
    return invalid_argument(where + ": " + std::string(setting.key) + ": " + status.message());
  }
  configuration.origins[std::string(setting.key)] = {kind, std::move(where)};
  return ok();
}

// EDGECASE_STORAGE_VALEUS and EDGECASE_STROAGE_VALUES are mistakes; EDGECASE_HOST and others belong
// to the command line, or to whoever starts the daemon.
Status unknown_variable(std::string_view variable) {
  std::vector<std::string> names;
  bool in_a_section = false;
  for (const Setting& setting : settings_table()) {
    const std::string& name = names.emplace_back(environment_name(setting));
    const std::size_t section_bytes = setting.section().size() + 1;
    in_a_section |= variable.starts_with(
        std::string_view(name).substr(0, kEnvironmentPrefix.size() + section_bytes));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = wire::nearest_word(variable, known);
  if (near.empty() && !in_a_section) return ok();
  return invalid_argument(
      std::string(variable) + ": unknown key, " +
      (near.empty() ? "see `edgecase config show`" : "did you mean " + std::string(near) + "?"));
}

Status apply_environment(const NamedTexts& environment, Configuration& configuration) {
  for (const auto& [variable, text] : environment) {
    if (!variable.starts_with(kEnvironmentPrefix)) continue;
    const Setting* found = nullptr;
    for (const Setting& setting : settings_table()) {
      if (environment_name(setting) == variable) found = &setting;
    }
    if (found == nullptr) {
      EC_TRY(unknown_variable(variable));
    } else {
      EC_TRY(apply_text(*found, text, OriginKind::Environment, variable, configuration));
    }
  }
  return ok();
}

Status apply_flags(const NamedTexts& flags, Configuration& configuration) {
  for (const auto& [key, text] : flags) {
    const Setting* setting = find_setting(key);
    if (setting == nullptr) {
      return invalid_argument("--" + key + ": unknown key, see `edgecase config show`");
    }
    EC_TRY(apply_text(*setting, text, OriginKind::Flag, flag_name(*setting), configuration));
  }
  return ok();
}

}  // namespace

std::string rule_origin(std::size_t number, std::string_view key) {
  return "mqtt.rule." + std::to_string(number) + "." + std::string(key);
}

std::string forward_origin(std::size_t number, std::string_view key) {
  return "forward." + std::to_string(number) + "." + std::string(key);
}

NamedTexts process_environment() {
  NamedTexts all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

Origin Configuration::origin_of(std::string_view key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? Origin() : found->second;
}

Status Configuration::error(std::string_view key, std::string_view what) const {
  const Origin origin = origin_of(key);
  const std::string where = origin.kind == OriginKind::Default ? "default" : origin.where;
  return invalid_argument(where + ": " + std::string(key) + ": " + std::string(what));
}

Result<Configuration> load_configuration(const Sources& sources) {
  Configuration configuration;
  if (!sources.file.empty()) {
    EC_ASSIGN_OR_RETURN(const std::optional<std::string> text, read_file(sources.file));
    if (text.has_value()) {
      configuration.file = sources.file;
      EC_TRY(apply_file(*text, sources.file, configuration));
    } else if (sources.missing_file == MissingFile::IsError) {
      return invalid_argument(sources.file +
                              ":1:1: file: does not exist, start one with `edgecase config "
                              "example`");
    }
  }
  EC_TRY(apply_environment(sources.environment, configuration));
  EC_TRY(apply_flags(sources.flags, configuration));

  // Without any rule the broker would be asked for nothing: the plain layout is the default.
  if (configuration.settings.mqtt.rules.empty()) {
    MqttRuleSettings rule;
    rule.topic = kDefaultTopic;
    configuration.settings.mqtt.rules.push_back(std::move(rule));
  }
  EC_TRY(validate(configuration));
  return configuration;
}

}  // namespace edgecase::config
