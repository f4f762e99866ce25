// The keys of encryption at rest, as the settings name them: files of 32 bytes each.
#pragma once

#include <optional>

#include "config/configuration.h"
#include "edgecase/options.h"

namespace edgecase::config {

// Nothing when encryption is off. InvalidArgument, with the place of the setting: a file that
// cannot be read, is not of 32 bytes, is all zeros, or can be read or written by
// everybody.
Result<std::optional<MasterKeys>> load_master_keys(const Configuration& configuration);

// Whether a path lies on the same file system as another; false when that cannot be told.
bool on_one_file_system(const std::string& path, const std::string& other);

}  // namespace edgecase::config
