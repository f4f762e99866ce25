#include "setting_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "config/credentials.h"
#include "config/settings.h"

namespace edgecase::cli {
namespace {

std::string value_name(const config::Setting& setting) {
  switch (setting.kind) {
    case config::SettingKind::Size: return "SIZE";
    case config::SettingKind::Number: return "NUMBER";
    case config::SettingKind::Flag: return "true|false";
    case config::SettingKind::Choice: return std::string(setting.choices);
    case config::SettingKind::Duration:
    case config::SettingKind::Keeping: return "DURATION";
    case config::SettingKind::File: return "FILE";
    case config::SettingKind::List: return "TEXT,..";
    default: return "TEXT";
  }
}

}  // namespace

void add_setting_options(CLI::App& command, SettingArguments& arguments) {
  command
      .add_option(
          "--config", arguments.file,
          "Configuration file; must exist when given. Else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  const config::Settings defaults;
  for (const config::Setting& setting : config::settings_table()) {
    std::string help(setting.help);
    const std::string value = config::value_text(setting, defaults);
    help += value.empty() ? " Default: none." : " Default: " + value + ".";
    command
        .add_option_function<std::string>(
            config::flag_name(setting),
            [&arguments, key = std::string(setting.key)](const std::string& text) {
              arguments.flags.emplace_back(key, text);
            },
            help)
        ->type_name(value_name(setting))
        ->group("Settings");
  }
}

void add_directory_options(CLI::App& command, SettingArguments& arguments) {
  command
      .add_option("--config", arguments.file,
                  "Where the directories are read from; else " + std::string(config::kDefaultFile))
      ->type_name("FILE");
  for (const char* name : {"metadata", "values"}) {
    const auto take = [&arguments, key = std::string("storage.") + name](const std::string& text) {
      arguments.flags.emplace_back(key, text);
    };
    command
        .add_option_function<std::string>(std::string("--") + name, take,
                                          "The " + std::string(name) + " directory of the store")
        ->type_name("DIR");
  }
  command
      .add_option_function<std::string>(
          "--key-file",
          [&arguments](const std::string& text) {
            arguments.flags.emplace_back("storage.encryption-key-file", text);
          },
          "The key of an encrypted store, a file of 32 bytes")
      ->type_name("FILE");
}

Result<Options> load_store_options(const SettingArguments& arguments) {
  EC_ASSIGN_OR_RETURN(config::Configuration configuration, load_settings(arguments));
  EC_TRY(config::resolve_credentials(std::getenv(config::kCredentialsVariable), configuration));
  Options options;
  options.metadata_directory = configuration.settings.storage.metadata;
  options.values_directory = configuration.settings.storage.values;
  EC_ASSIGN_OR_RETURN(options.encryption, config::load_master_keys(configuration));
  return options;
}

Result<config::Configuration> load_settings(const SettingArguments& arguments) {
  config::Sources sources;
  if (!arguments.file.empty()) {
    sources.file = arguments.file;
    sources.missing_file = config::MissingFile::IsError;
  }
  sources.environment = config::process_environment();
  sources.flags = arguments.flags;
  return config::load_configuration(sources);
}

}  // namespace edgecase::cli
