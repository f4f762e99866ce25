// The settings as text for people: a commented example, and what is in effect.
#pragma once

#include <string>

#include "config/configuration.h"

namespace edgecase::config {

// A commented TOML file that loads as the defaults.
std::string example_text();

// One line a setting: key, value, where it came from. TOML that loads as the same settings.
std::string effective_text(const Configuration& configuration);
// {"settings":[{"key","value","source","where"?,"environment","flag"}...],"rules":[...],"file"?}
std::string effective_json(const Configuration& configuration);

}  // namespace edgecase::config
