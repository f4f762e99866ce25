// The effective settings and where each came from: flags > environment > file > default; what makes
// them valid (validate.cc), the secrets they name (credentials.cc), and all of it as text for
// people.
//
// Use: fill Sources, load_configuration(), look at settings. Every failure is InvalidArgument whose
// message is one line, `where: key: what is wrong, what would be right`, where `where` is
// `file:line:column`, the environment variable, or the flag.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "edgecase/options.h"
#include "edgecase/status.h"

namespace edgecase::config {

// Checks that a configuration file can be believed: who may have written it. Internal to config/.

// The user whom the package runs the daemon as.
inline constexpr char kServiceUser[] = "edgecase";

struct Owners {
  uid_t own = 0;                 // of this process
  std::optional<uid_t> service;  // of kServiceUser, where there is one
};

// A regular file, or a pipe with a name, that everybody may write, or that belongs to somebody
// other than root and `owners`, is refused. Its group may write it: whoever is in a group has been
// put there. `name` is for the message.
Status check_file_rights(const std::string& name, const struct stat& facts, const Owners& owners);

// The same for an open file, with the owners of this process and machine.
Status check_file_rights(const std::string& name, int descriptor);

inline constexpr char kDefaultFile[] = "/etc/edgecase/edgecase.toml";
// The rule that stands when no [[mqtt.rule]] is written.
inline constexpr char kDefaultTopic[] = "sensors/{device}/{sensor}";
inline constexpr std::size_t kFileSizeMaxBytes = 1u << 20;

enum class OriginKind : unsigned char { Default, File, Environment, Flag };

struct Origin {
  OriginKind kind = OriginKind::Default;
  std::string where;  // "/etc/edgecase/edgecase.toml:3:1", "EDGECASE_HTTP_LISTEN", "--http.listen"
};

enum class MissingFile : unsigned char { IsError, IsEmpty };

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct Sources {
  std::string file = kDefaultFile;  // "" reads none
  MissingFile missing_file = MissingFile::IsEmpty;
  NamedTexts environment;  // every variable of the process; others than ours are passed over
  NamedTexts flags;        // key and value, in the order given; the last of a key counts
};

// Under which `origins` tells the place of a key of a [[mqtt.rule]]; rules count from 1.
std::string rule_origin(std::size_t number, std::string_view key);

// The same of a [[forward]].
std::string forward_origin(std::size_t number, std::string_view key);

// The environment of this process.
NamedTexts process_environment();

struct Configuration {
  Settings settings;
  std::map<std::string, Origin, std::less<>> origins;  // of keys that are not defaults
  std::string file;                                    // what was read; empty when none

  Origin origin_of(std::string_view key) const;
  // "where: key: what": for errors found later, when a value meets the machine.
  Status error(std::string_view key, std::string_view what) const;
};

// Reads, merges and validates (validate()). A file that others than root, the daemon's user and the
// file's group may write is refused.
Result<Configuration> load_configuration(const Sources& sources);

// The configuration file, in TOML. Internal to config/.

// Finds characters that no TOML has, before its parser is asked, whose behaviour is not defined for
// some of them. InvalidArgument with the place, `name` being the file's: a control character
// anywhere, or one beyond ASCII outside of quotes and comments.
Status check_toml_characters(std::string_view text, const std::string& name);

// Applies `text` (the contents of the file `name`) to `configuration`. Errors: as
// of load_configuration().
Status apply_file(std::string_view text, const std::string& name, Configuration& configuration);

// The settings as text for people: a commented example, and what is in effect.

// A commented TOML file that loads as the defaults.
std::string example_text();

// One line a setting: key, value, where it came from. TOML that loads as the same settings.
std::string effective_text(const Configuration& configuration);
// {"settings":[{"key","value","source","where"?,"environment","flag"}...],"rules":[...],"file"?}
std::string effective_json(const Configuration& configuration);

// Validates what single values cannot tell: addresses, directories, and settings that must fit each
// other.

// "127.0.0.1:8650", "[::1]:8650", "localhost:8650" (both loopbacks).
struct ListenAddress {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen_address(std::string_view text);

// Whether data may be there. NotAllowed says where it may, by storage.locations; "": nobody said
// where.
Status check_location(const StorageSettings& storage, std::string_view location);

// An error of the [[forward]] table of that number, from 1, whose message begins with the key: with
// its place.
Status forward_error(const Configuration& configuration, std::size_t number, const Status& status);

// Looks at no drive: that is the daemon's, when it starts.
Status validate(Configuration& configuration);

// Secrets of the configuration: files of credentials, and the file of the master key.

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
