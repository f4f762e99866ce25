// Secrets of the configuration: files of credentials, and the file of the master key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.h"
#include "edgecase/options.h"

namespace edgecase::config {

// Files that systemd hands to the service alone (LoadCredential=, LoadCredentialEncrypted=): a
// setting that names a file takes `credential:NAME` too, which is the file NAME in the directory
// that $CREDENTIALS_DIRECTORY names.

inline constexpr std::string_view kCredentialPrefix = "credential:";
inline constexpr char kCredentialsVariable[] = "CREDENTIALS_DIRECTORY";

// Whether every setting that names a credential gives it a name that can be one: a file's name
// without slashes.
Status check_credential_names(const Configuration& configuration);

// Puts the paths in place of the names. `directory`: kCredentialsVariable's value; null or "": this
// process has no credentials, which is an error if a setting names one. InvalidArgument, with the
// setting's place: no directory, or no such credential in it.
Status resolve_credentials(const char* directory, Configuration& configuration);

// For a look at a configuration without its credentials: takes out of the settings what names one,
// and what is of no use without it. Answers the keys of the former.
std::vector<std::string> leave_out_credentials(Configuration& configuration);

// The keys of encryption at rest, as the settings name them: files of 32 bytes each.

// Nothing when encryption is off. InvalidArgument, with the place of the setting: a file that
// cannot be read, is not of 32 bytes, is all zeros, or can be read or written by
// everybody.
Result<std::optional<MasterKeys>> load_master_keys(const Configuration& configuration);

// Whether a path lies on the same file system as another; false when that cannot be told.
bool on_one_file_system(const std::string& path, const std::string& other);

}  // namespace edgecase::config
