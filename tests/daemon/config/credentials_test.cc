#include "config/configuration.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "config/settings.h"
#include "support/temp_directory.h"

namespace edgecase::config {
namespace {

using test::TempDirectory;

Result<Configuration> load(NamedTexts flags) {
  Sources sources;
  sources.file = "";
  sources.flags = std::move(flags);
  return load_configuration(sources);
}

TEST_CASE("credentials: every setting that names a file takes one, no other does") {
  TempDirectory directory;
  test::write_file(directory / "a", "x");
  std::size_t files = 0;
  for (const Setting& setting : settings_table()) {
    if (setting.kind != SettingKind::Text && setting.kind != SettingKind::File) continue;
    CAPTURE(setting.key);
    Configuration configuration;
    REQUIRE(set_from_text(setting, "credential:a", configuration.settings).ok());
    REQUIRE(resolve_credentials(directory.path().c_str(), configuration).ok());
    const bool is_file = setting.kind == SettingKind::File;
    CHECK(value_text(setting, configuration.settings) ==
          (is_file ? directory / "a" : "credential:a"));
    files += is_file ? 1 : 0;
    const bool says_file = setting.name().ends_with("-file") || setting.name().starts_with("tls-");
    CHECK(is_file == says_file);
  }
  CHECK(files == 12);
}

TEST_CASE("credentials: a key is read from one") {
  TempDirectory directory;
  test::write_file(directory / "key", std::string(32, 'k'));
  auto configuration = load({{"storage.encryption-key-file", "credential:key"}});
  REQUIRE(configuration.ok());
  REQUIRE(resolve_credentials(directory.path().c_str(), *configuration).ok());
  CHECK(configuration->settings.storage.encryption_key_file == directory / "key");
  CHECK(configuration->origin_of("storage.encryption-key-file").kind == OriginKind::Flag);
}

TEST_CASE("credentials: what names none stays as it is") {
  auto configuration = load({{"storage.encryption-key-file", "/etc/edgecase/key"}});
  REQUIRE(configuration.ok());
  REQUIRE(resolve_credentials(nullptr, *configuration).ok());
  CHECK(configuration->settings.storage.encryption_key_file == "/etc/edgecase/key");
  CHECK(leave_out_credentials(*configuration).empty());
  CHECK(configuration->settings.storage.encryption_key_file == "/etc/edgecase/key");
}

TEST_CASE("credentials: without a directory, or without this one, it says what the service lacks") {
  TempDirectory directory;
  auto configuration = load({{"http.tls-cert", "/c"}, {"http.tls-key", "credential:tls"}});
  REQUIRE(configuration.ok());
  const std::string none =
      "--http.tls-key: http.tls-key: credential:tls: systemd has handed no credentials to this "
      "process; to do: the service wants LoadCredential=tls:FILE (systemctl edit edgecased), a "
      "command FILE itself";
  CHECK(resolve_credentials(nullptr, *configuration).message() == none);
  CHECK(resolve_credentials("", *configuration).message() == none);
  const Status missing = resolve_credentials(directory.path().c_str(), *configuration);
  CHECK(missing.code() == StatusCode::InvalidArgument);
  CHECK(missing.message() ==
        "--http.tls-key: http.tls-key: credential:tls: is not among the credentials of the "
        "service; to do: add LoadCredential=tls:FILE to it (systemctl edit edgecased)");
}

TEST_CASE("credentials: a name is that of a file in the directory") {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../key"),
        std::string("a/b"), std::string("/etc/shadow"), std::string(256, 'n')}) {
    CAPTURE(name);
    const auto configuration = load({{"storage.encryption-key-file", "credential:" + name}});
    CHECK(configuration.status().code() == StatusCode::InvalidArgument);
    CHECK(configuration.status().message().find("cannot be a credential's name") !=
          std::string::npos);
  }
  CHECK(load({{"storage.encryption-key-file", "credential:" + std::string(255, 'n')}}).ok());
}

TEST_CASE("credentials: a look without them leaves out what is of no use alone") {
  auto configuration = load({{"storage.encryption-key-file", "credential:key"},
                             {"storage.encryption-previous-key-file", "/old"},
                             {"http.tls-cert", "/c"},
                             {"http.tls-key", "credential:tls"},
                             {"mqtt.tls-cert", "/m"},
                             {"mqtt.tls-key", "/k"}});
  REQUIRE(configuration.ok());
  CHECK(leave_out_credentials(*configuration) ==
        std::vector<std::string>{"storage.encryption-key-file", "http.tls-key"});
  const Settings& settings = configuration->settings;
  CHECK(settings.storage.encryption_previous_key_file.empty());
  CHECK(settings.http.tls_cert.empty());
  CHECK(settings.http.tls_key.empty());
  CHECK(settings.mqtt.tls_cert == "/m");
  CHECK(load_master_keys(*configuration).ok());
}

TEST_CASE("credentials: a key that everybody can read or write is none") {
  TempDirectory directory;
  const std::string path = directory / "key";
  test::write_file(path, std::string(32, 'k'));
  const auto configuration = load({{"storage.encryption-key-file", path}});
  REQUIRE(configuration.ok());
  for (const mode_t everybody : {mode_t{S_IROTH}, mode_t{S_IWOTH}}) {
    CAPTURE(everybody);
    REQUIRE(::chmod(path.c_str(), S_IRUSR | everybody) == 0);
    const auto keys = load_master_keys(*configuration);
    CHECK(keys.status().code() == StatusCode::InvalidArgument);
    CHECK(keys.status().message().find("run chmod 0400 on it") != std::string::npos);
  }
  REQUIRE(::chmod(path.c_str(), S_IRUSR | S_IRGRP) == 0);
  CHECK(load_master_keys(*configuration).ok());
}

}  // namespace
}  // namespace edgecase::config
