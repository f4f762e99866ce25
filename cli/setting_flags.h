// --config FILE and flags for settings: what serve, `config show` and the offline commands take.
#pragma once

#include <string>

#include "config/configuration.h"
#include "edgecase/options.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

struct SettingArguments {
  std::string file;  // empty: the usual place, which need not exist
  config::NamedTexts flags;
};

// `arguments` must outlive the parse.
void add_setting_options(CLI::App& command, SettingArguments& arguments);
// --config, --metadata, --values and --key-file alone: what commands take that work on a store
// without a daemon.
void add_directory_options(CLI::App& command, SettingArguments& arguments);
// The store that the settings name, with the keys that open it: directories and encryption.
// InvalidArgument as load_settings(), and for a key file that cannot be used.
Result<Options> load_store_options(const SettingArguments& arguments);
// From the file, this process' environment, and the flags.
Result<config::Configuration> load_settings(const SettingArguments& arguments);

}  // namespace edgecase::cli
