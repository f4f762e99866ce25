#include "config/configuration.h"

#include <doctest/doctest.h>

#include <string>

namespace edgecase::config {
namespace {

Result<Configuration> load_flags(NamedTexts flags) {
  Sources sources;
  sources.file = "";
  sources.flags = std::move(flags);
  return load_configuration(sources);
}

TEST_CASE("listen addresses") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"127.0.0.1:8650", "127.0.0.1", 8650}, Case{"[::1]:0", "::1", 0},
                        Case{"localhost:65535", "localhost", 65535}}) {
    CAPTURE(c.text);
    const auto address = parse_listen_address(c.text);
    REQUIRE(address.ok());
    CHECK(address->host == c.host);
    CHECK(address->port == c.port);
  }
  for (const char* text :
       {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:80x", "::1:80", "[::1:80", "[zz]:80", "http://a:80", "a b:80", "[::1]80"}) {
    CAPTURE(text);
    CHECK(parse_listen_address(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("settings that do not fit are refused with words") {
  struct Case {
    NamedTexts flags;
    const char* message;
  };
  const std::string long_path = "/" + std::string(120, 'x');
  for (const Case& c : {
           Case{{{"storage.values", "/var/lib/edgecase/"}},
                "--storage.values: storage.values: is the directory of storage.metadata too"},
           Case{{{"storage.values", "/var/./lib/x/../edgecase"}}, "storage.metadata too"},
           Case{{{"storage.values", "/var/lib"}}, "holds storage.metadata"},
           Case{{{"storage.values", "/"}}, "holds storage.metadata"},
           Case{{{"storage.values", "/var/lib/edgecase/wal"}}, "is the engine's own"},
           Case{{{"storage.values", "/var/lib/edgecase/wal/x"}}, "is the engine's own"},
           Case{{{"storage.values", "/var/lib/edgecase/tables"}}, "is the engine's own"},
           Case{{{"storage.values", ""}}, "is empty, give a directory"},
           Case{{{"storage.metadata", ""}}, "is empty, give a directory"},
           Case{{{"http.socket", long_path}}, "is longer than 107 bytes"},
           Case{{{"http.listen", "8650"}}, "\"8650\" is not an address, use localhost:8650"},
           Case{{{"http.body-limit", "32MiB"}}, "default: http.in-flight-limit: is less than"},
           Case{{{"http.tls-cert", "/c"}}, "http.tls-cert: is set but http.tls-key is empty"},
           Case{{{"http.tls-key", "/c"}}, "http.tls-key: is set but http.tls-cert is empty"},
           Case{{{"mqtt.broker", "ssl://a:8883"}}, "is not a broker"},
           Case{{{"mqtt.broker", "127.0.0.1:1883"}}, "is not a broker, use mqtt://127.0.0.1:1883"},
           Case{{{"mqtt.broker", "mqtt://"}}, "is not a broker"},
           Case{{{"mqtt.broker", "mqtt://a:0"}}, "is not a broker"},
           Case{{{"mqtt.broker", "mqtt://u:p@a:1883"}}, "holds a user, use mqtt.username"},
           Case{{{"mqtt.client-id", ""}}, "is empty, give a name"},
           Case{{{"mqtt.password-file", "/p"}}, "mqtt.username is not"},
           Case{{{"mqtt.tls-ca", "/ca"}}, "does not speak TLS"},
           Case{{{"mqtt.listen", "1884"}}, "is not an address, use localhost:1884"},
           Case{{{"storage.values-location", "de/1"}}, "storage.values-location: is no name"},
           Case{{{"storage.metadata-location", "de,fr"}}, "is one location, without a comma"},
           Case{{{"storage.locations", "de,fr"}}, "storage.metadata-location: is not said"},
           Case{{{"storage.locations", "de,fr"}, {"storage.metadata-location", "de"}},
                "storage.values-location: is not said"},
           Case{{{"storage.locations", "de, fr"},
                 {"storage.metadata-location", "fr"},
                 {"storage.values-location", "f"}},
                "storage.values-location: is none of storage.locations"},
       }) {
    CAPTURE(c.message);
    const auto configuration = load_flags(c.flags);
    CHECK(configuration.status().code() == StatusCode::InvalidArgument);
    CHECK_MESSAGE(configuration.status().message().find(c.message) != std::string::npos,
                  configuration.status().message());
  }
}

TEST_CASE("settings that fit are taken") {
  for (const NamedTexts& flags : {
           NamedTexts{{"storage.values", "/mnt/ssd"}},
           NamedTexts{{"storage.values", "/var/lib/edgecase-values"}},
           NamedTexts{{"storage.values", "/var/lib/edgecase/walnut"}},
           NamedTexts{{"http.listen", ""}},
           NamedTexts{{"http.socket", ""}},
           NamedTexts{{"http.listen", "0.0.0.0:8650"}},
           NamedTexts{{"http.listen", "127.0.0.1:0"}},
           NamedTexts{{"mqtt.broker", ""}},
           NamedTexts{{"mqtt.listen", "127.0.0.1:1884"}},
           NamedTexts{{"mqtt.listen", "[::1]:0"}},
           NamedTexts{{"mqtt.listen", "0.0.0.0:1884"}},
           NamedTexts{{"mqtt.broker", "mqtt://broker.local"}},
           NamedTexts{{"mqtt.broker", "mqtt://[fe80::1]:1883"}},
           NamedTexts{{"mqtt.broker", "mqtt://[fe80::1]"}},
           NamedTexts{{"mqtt.username", "u"}, {"mqtt.password-file", "/p"}},
           NamedTexts{{"storage.metadata-location", "de"}, {"storage.values-location", "us"}},
           NamedTexts{{"storage.locations", "de, fr"},
                      {"storage.metadata-location", "fr"},
                      {"storage.values-location", "de"}},
       }) {
    const auto configuration = load_flags(flags);
    CHECK_MESSAGE(configuration.ok(), configuration.status().message());
  }
}

TEST_CASE("where data may be") {
  StorageSettings storage;
  CHECK(check_location(storage, "").ok());
  CHECK(check_location(storage, "us").ok());
  storage.locations = "de, fr";
  CHECK(check_location(storage, "de").ok());
  CHECK(check_location(storage, "fr").ok());
  for (const char* elsewhere : {"", "us", "d", "de, fr", ","})
    CHECK(check_location(storage, elsewhere).code() == StatusCode::NotAllowed);
}

TEST_CASE("no setting of these is ignored") {
  const auto configuration = load_flags(
      {{"storage.retention", "30d"}, {"storage.expiry", "exact"}, {"audit.mode", "strict"}});
  REQUIRE(configuration.ok());
}

TEST_CASE("tiers and exact expiry do not go together") {
  const NamedTexts tiers{{"storage.retention", "7d then 1m:90d"}};
  CHECK(load_flags(tiers).ok());
  NamedTexts exact = tiers;
  exact.push_back({"storage.expiry", "exact"});
  const auto refused = load_flags(exact);
  CHECK(refused.status().code() == StatusCode::InvalidArgument);
  CHECK(refused.status().message().find("which tiers are not") != std::string::npos);
  const auto thins = load_flags({{"storage.on-full", "thin-oldest"}, {"storage.expiry", "exact"}});
  CHECK(thins.status().code() == StatusCode::InvalidArgument);
  CHECK(thins.status().message().find("thin-oldest makes tiers") != std::string::npos);
}

}  // namespace
}  // namespace edgecase::config
