// Compares a configuration that is read again with the one in force.
#pragma once

#include <string>

#include "config/settings.h"

namespace edgecase::app {

// What differs between two configurations, and what of it holds without a restart.
struct SettingChanges {
  bool of_rules = false;
  bool of_source = false;       // rules included
  std::string now, at_restart;  // keys, with commas between them
};
SettingChanges changes_of(const config::Settings& before, const config::Settings& after);

}  // namespace edgecase::app
