#include "config/settings.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "config/configuration.h"
#include "support/temp_directory.h"

namespace edgecase::config {
namespace {

Status read(const std::string& text, Configuration& configuration) {
  EC_TRY(apply_file(text, "e.toml", configuration));
  return validate(configuration);
}

std::string error_of(const std::string& text) {
  Configuration configuration;
  return read(text, configuration).message();
}

const std::string kCloud = "[[forward]]\nname = \"cloud\"\nto = \"influx+http://h:1\"\n";

TEST_CASE("forward: every key is read, shown and read back") {
  Configuration configuration;
  const std::string text =
      "[[forward]]\nname = \"cloud\"\nto = "
      "\"influx+https://metrics.example:8428/insert/0/influx/\"\n"
      "database = \"d\"\nselect = [\"kitchen\", \"plant:a?/*\", \"*:x/y\"]\n"
      "from = \"2026-11-01T00:00:00Z\"\ntoken-file = \"/t\"\nusername = \"u\"\ntls-ca = \"/ca\"\n"
      "tls-cert = \"/c\"\ntls-key = \"/k\"\nfresh-first = false\nbudget = \"500MiB/d\"\n"
      "[[forward]]\nname = \"hub\"\nto = \"edgecase+http://[::1]\"\nnamespace = \"board1\"\n";
  REQUIRE(read(text, configuration).ok());
  const auto& targets = configuration.settings.forward;
  REQUIRE(targets.size() == 2);
  const auto cloud = parse_forward(targets[0]);
  REQUIRE(cloud.ok());
  CHECK(cloud->kind == ForwardKind::Influx);
  CHECK(cloud->is_secure);
  CHECK(cloud->host == "metrics.example");
  CHECK(cloud->port == 8428);
  CHECK(cloud->path == "/insert/0/influx");
  REQUIRE(cloud->selections.size() == 3);
  CHECK(cloud->selections[0].namespace_name == "default");
  CHECK(cloud->selections[0].selector.device == "kitchen");
  CHECK(cloud->selections[1].namespace_name == "plant");
  CHECK(cloud->selections[2].namespace_name == "*");
  CHECK(cloud->from == ForwardFrom::Time);
  CHECK(cloud->from_ns == 1'793'491'200'000'000'000);
  CHECK(cloud->budget_bytes_per_second == 500u * 1024 * 1024 / 86'400);
  const auto hub = parse_forward(targets[1]);
  REQUIRE(hub.ok());
  CHECK(hub->kind == ForwardKind::EdgeCase);
  CHECK_FALSE(hub->is_secure);
  CHECK(hub->host == "::1");
  CHECK(hub->port == 8650);
  CHECK(hub->from == ForwardFrom::Now);

  Configuration again;
  REQUIRE(read(effective_text(configuration), again).ok());
  REQUIRE(again.settings.forward.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    again.settings.forward[i].where = targets[i].where;
    CHECK(again.settings.forward[i] == targets[i]);
  }
  const auto document = nlohmann::json::parse(effective_json(configuration));
  CHECK(document["forward"][0]["budget"] == "\"500MiB/d\"");
  CHECK(document["forward"][1]["where"] == "e.toml:14:1");
}

TEST_CASE("forward: what is wrong is said with its place and what would be right") {
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"forward = 1\n", "e.toml:1:11: forward: is not a list of tables, write [[forward]]"},
      {"forward = [1]\n", "e.toml:1:12: forward: is not a table, write [[forward]]"},
      {kCloud + "nmae = \"x\"\n",
       "e.toml:4:1: forward.nmae: unknown key, did you mean "
       "forward.name?"},
      {kCloud + "select = \"x\"\n",
       "e.toml:4:10: forward.select: is text, use a list of texts, as in [\"one\", \"two\"]"},
      {kCloud + "fresh-first = 1\n",
       "e.toml:4:15: forward.fresh-first: is a whole number, use true or false, without quotes"},
      {kCloud + "database = \"a\\nb\"\n",
       "e.toml:4:12: forward.database: is text, use plain text, without a line break or a zero "
       "byte"},
      {"[[forward]]\nto = \"influx+http://h\"\n",
       "e.toml:1:1: forward.name: is missing, write name = \"cloud\""},
      {kCloud + kCloud, "e.toml:5:8: forward.name: is another target's too, use a name of its own"},
      {"[[forward]]\nname = \"a/b\"\nto = \"influx+http://h\"\n", "e.toml:2:8: forward.name: "},
      {kCloud + "every = \"1\"\n", "e.toml:4:9: forward.every: \"1\" is not between 1s and 1h"},
      {kCloud + "every = \"2h\"\n", "e.toml:4:9: forward.every: \"2h\" is not between"},
      {kCloud + "keep-until-sent = \"30\"\n",
       "e.toml:4:19: forward.keep-until-sent: \"30\" is no time of a second or more, use 30d"},
      {kCloud + "retention = true\n", "e.toml:4:13: forward.retention: is of EdgeCase targets"},
      {kCloud + "namespace = \"x\"\n", "e.toml:4:13: forward.namespace: is of EdgeCase targets"},
      {kCloud + "org = \"x\"\n", "e.toml:4:7: forward.org: is set but bucket is not"},
      {kCloud + "tls-ca = \"/ca\"\n", "e.toml:4:10: forward.tls-ca: is set but `to`"},
      {kCloud + "username = \"u\"\n", "e.toml:4:12: forward.username: is set but token-file"},
      {kCloud + "select = []\n", "e.toml:4:10: forward.select: is empty"},
      {kCloud + "select = [\"a/b/c\"]\n", "e.toml:4:10: forward.select: \"a/b/c\": "},
      {kCloud + "select = [\"_audit:*\"]\n", "e.toml:4:10: forward.select: \"_audit:*\" names no"},
      {kCloud + "from = \"-7d\"\n", "e.toml:4:8: forward.from: \"-7d\" is neither now"},
      {kCloud + "budget = \"2MiB\"\n", "e.toml:4:10: forward.budget: \"2MiB\" is no budget"},
      {kCloud + "budget = \"1/d\"\n", "e.toml:4:10: forward.budget: \"1/d\" is less than"},
      {"[storage]\nmetadata-location = \"de\"\nvalues-location = \"de\"\nlocations = \"de\"\n" +
           kCloud + "location = \"us\"\n",
       "e.toml:8:12: forward.location: data may be in de alone (storage.locations), not in us"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    const std::string message = error_of(each.text);
    CHECK(message.substr(0, each.message.size()) == each.message);
  }
}

TEST_CASE("forward: what is no target's address is refused") {
  for (const char* to :
       {"", "http://h", "influx://h", "influx+http://", "influx+http://h:0", "influx+http://u:p@h",
        "influx+http://h/?db=x", "edgecase+https://h:99999", "influx+http://h h"}) {
    ForwardSettings settings;
    settings.name = "x";
    settings.to = to;
    CAPTURE(to);
    const auto parsed = parse_forward(settings);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.status().message().starts_with("to: "));
  }
}

TEST_CASE("forward: an address without its kind leads to those it may be") {
  struct Case {
    const char* to;
    const char* meant;
  };
  for (const Case& c : {
           Case{"http://hub:8650", "edgecase+http://hub:8650 or influx+http://hub:8650"},
           Case{"https://hub", "edgecase+https://hub or influx+https://hub"},
           Case{"127.0.0.1:8650", "edgecase+http://127.0.0.1:8650 or influx+http://127.0.0.1:8650"},
           Case{"[::1]:8650", "edgecase+http://[::1]:8650 or influx+http://[::1]:8650"},
           Case{"hub.lan", "edgecase+https://hub.lan or influx+https://hub.lan"},
           Case{"edgecase://hub", "edgecase+https://hub"},
           Case{"influx://localhost:8086", "influx+http://localhost:8086"},
           Case{"influxdb+https://h", "influx+https://h"},
           Case{"victoriametrics+http://v:8428/", "influx+http://v:8428/"},
           Case{"mqtt://h",
                "influx+https://metrics.example:8086 or edgecase+https://hub.example:8650"},
       }) {
    ForwardSettings settings;
    settings.name = "x";
    settings.to = c.to;
    CHECK(parse_forward(settings).status().message() ==
          "to: \"" + std::string(c.to) + "\" is no target, use " + c.meant);
  }
}

TEST_CASE("forward: there are at most so many targets") {
  std::string text;
  for (std::size_t i = 0; i <= kForwardTargetsMax; ++i)
    text += "[[forward]]\nname = \"t" + std::to_string(i) + "\"\nto = \"influx+http://h\"\n";
  CHECK(error_of(text) == "e.toml:25:1: forward: there are 9 targets, use at most 8");
}

TEST_CASE("forward: a token and certificates may be credentials") {
  test::TempDirectory directory;
  test::write_file(directory / "t", "x");
  const std::string text =
      "[[forward]]\nname = \"a\"\nto = \"influx+https://h\"\n"
      "token-file = \"credential:t\"\ntls-cert = \"credential:t\"\n"
      "tls-key = \"/k\"\n";
  Configuration configuration;
  REQUIRE(read(text, configuration).ok());
  Configuration other = configuration;
  CHECK(resolve_credentials(nullptr, other).message().starts_with("e.toml:4:14: forward.1.token"));
  CHECK(leave_out_credentials(other) ==
        std::vector<std::string>{"forward.1.token-file", "forward.1.tls-cert"});
  CHECK(other.settings.forward[0].tls_key.empty());
  REQUIRE(resolve_credentials(directory.path().c_str(), configuration).ok());
  CHECK(configuration.settings.forward[0].token_file == directory / "t");
  CHECK(error_of("[[forward]]\nname = \"a\"\nto = \"influx+https://h\"\n"
                 "token-file = \"credential:a/b\"\n")
            .find("cannot be a credential's name") != std::string::npos);
}

}  // namespace
}  // namespace edgecase::config
