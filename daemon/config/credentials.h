// Files that systemd hands to the service alone (LoadCredential=, LoadCredentialEncrypted=): a
// setting that names a file takes `credential:NAME` too, which is the file NAME in the directory
// that $CREDENTIALS_DIRECTORY names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.h"

namespace edgecase::config {

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

}  // namespace edgecase::config
