#include "config/settings.h"

#include <algorithm>
#include <array>
#include <limits>

#include "wire/authority.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::config {
namespace {

constexpr std::uint16_t kInfluxPort = 8086;
constexpr std::uint16_t kEdgeCasePort = 8650;
constexpr std::uint64_t kSecondsPerDay = 86'400;
constexpr std::string_view kLaterVersion = "is not supported by this version, leave it out";

using S = ForwardSettings;
const std::array kKeys = {
    ForwardKey{"name", &S::name, "What the target is called; its place is kept under it."},
    ForwardKey{"to", &S::to,
               "influx+https://HOST:PORT for line protocol, edgecase+https://HOST:PORT for another "
               "EdgeCase; http for https where nobody listens."},
    ForwardKey{"database", &S::database,
               "InfluxDB 1: the database; \"\": the one with the namespace's name."},
    ForwardKey{"bucket", &S::bucket, "InfluxDB 2: the bucket, with org."},
    ForwardKey{"org", &S::org, "InfluxDB 2: the organisation of bucket."},
    ForwardKey{"namespace", &S::namespace_name,
               "Namespace at an EdgeCase target; \"\": the same as here."},
    ForwardKey{"select", &S::select,
               "Selectors, of the namespace default, or NAMESPACE:SELECTOR; *:SELECTOR is of all."},
    ForwardKey{"from", &S::from,
               "What a new target gets of what is stored: now, beginning, or a time."},
    ForwardKey{"token-file", &S::token_file,
               "File whose first line is the token, or with username the password.", Support::Full,
               true},
    ForwardKey{"username", &S::username, "User at the target; \"\": token-file is a token."},
    ForwardKey{"tls-ca", &S::tls_ca,
               "File of certificates that the target's must be signed by; \"\": those this machine "
               "trusts.",
               Support::Full, true},
    ForwardKey{"tls-cert", &S::tls_cert, "With tls-key: certificate shown to a target that asks.",
               Support::Full, true},
    ForwardKey{"tls-key", &S::tls_key, "File of tls-cert's private key, without a password.",
               Support::Full, true},
    ForwardKey{"every", &S::every,
               "Thinned, as in 1m: of each window FIELD_count, _min, _max, _sum, _mean, _first, "
               "_last."},
    ForwardKey{"fresh-first", &S::fresh_first, "What is new goes before what waits."},
    ForwardKey{"budget", &S::budget, "Bytes that the link takes, as in 2MiB/s or 500MiB/d."},
    ForwardKey{"keep-until-sent", &S::keep_until_sent,
               "How long rules and eviction spare what has not been sent, as in 30d; \"\": not at "
               "all, what goes unsent is counted."},
    ForwardKey{"pseudonyms", &S::pseudonyms,
               "Devices go under pseudonyms, which differ from target to target."},
    ForwardKey{
        "retention", &S::retention,
        "At an EdgeCase target: the rules of retention of what goes there go along; its token "
        "has write and erase."},
    ForwardKey{"location", &S::location, "Where the target is, as storage.locations has it."},
};

Status of_key(std::string_view key, std::string_view what) {
  return invalid_argument(std::string(key) + ": " + std::string(what));
}

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

Status check_support(const ForwardSettings& settings) {
  const ForwardSettings defaults;
  for (const ForwardKey& key : kKeys) {
    if (key.support == Support::Refused &&
        forward_toml(key, settings) != forward_toml(key, defaults))
      return of_key(key.name, kLaterVersion);
  }
  return ok();
}

// "edgecase+http://hub:8650 or influx+http://hub:8650": what an address without its kind, or with
// another program's name for it, may mean.
std::string urls_meant(const std::string& url) {
  const std::size_t mark = url.find("://");
  const std::string scheme = mark == std::string::npos ? "" : url.substr(0, mark);
  const std::string rest = mark == std::string::npos ? url : url.substr(mark + 3);
  const auto has = [&scheme](std::string_view word) {
    return scheme.find(word) != std::string::npos;
  };
  if (rest.empty() || rest.find_first_of(" \t") != std::string::npos || has("mqtt"))
    return "influx+https://metrics.example:8086 or edgecase+https://hub.example:8650";
  std::string_view host = std::string_view(rest).substr(0, rest.find_first_of(":/"));
  if (rest.front() == '[') host = std::string_view(rest).substr(1, rest.find(']') - 1);
  const bool is_plain =
      has("http") ? !has("https") : wire::is_localhost(host) || wire::is_loopback(host);
  const std::string end = (is_plain ? "+http://" : "+https://") + rest;
  const bool takes_lines = has("influx") || has("victoria") || has("quest") || has("prometheus");
  if (takes_lines) return "influx" + end;
  return has("edgecase") ? "edgecase" + end : "edgecase" + end + " or influx" + end;
}

Status parse_url(const std::string& url, ForwardTarget& target) {
  struct Scheme {
    std::string_view text;
    ForwardKind kind;
    bool is_secure;
    std::uint16_t port;
  };
  constexpr Scheme kSchemes[] = {{"influx+https://", ForwardKind::Influx, true, kInfluxPort},
                                 {"influx+http://", ForwardKind::Influx, false, kInfluxPort},
                                 {"edgecase+https://", ForwardKind::EdgeCase, true, kEdgeCasePort},
                                 {"edgecase+http://", ForwardKind::EdgeCase, false, kEdgeCasePort}};
  const auto* const scheme =
      std::find_if(std::begin(kSchemes), std::end(kSchemes),
                   [&url](const Scheme& each) { return url.starts_with(each.text); });
  if (scheme == std::end(kSchemes)) {
    return of_key("to", in_quotes(url) + " is no target, use " + urls_meant(url));
  }
  std::string_view rest = std::string_view(url).substr(scheme->text.size());
  const std::size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  std::string_view path = slash == std::string_view::npos ? "" : rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (host.find('@') != std::string_view::npos)
    return of_key("to", "holds a user, use username and token-file instead");
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '?' && c != '#' && c != '"' && c != '\\';
  });
  if (!is_plain) return of_key("to", "has a path with ?, #, quotes or spaces, use a plain one");
  const auto authority = wire::parse_authority(host);
  if (!authority.ok())
    return of_key("to", in_quotes(host) + " " + std::string(authority.status().message()));
  if (const Status named = wire::check_host(authority->host); !named.ok())
    return of_key("to", named.message());
  if (authority->port == 0) return of_key("to", "has the port 0, use the one it listens on");
  target.kind = scheme->kind;
  target.is_secure = scheme->is_secure;
  target.host = authority->host;
  target.port = authority->port.value_or(scheme->port);
  target.path = path;
  return ok();
}

// What belongs to another kind of target would be passed over in silence.
Status check_kind(const ForwardSettings& settings, const ForwardTarget& target) {
  const bool is_influx = target.kind == ForwardKind::Influx;
  if (is_influx && settings.retention)
    return of_key("retention", "is of EdgeCase targets, set the retention there");
  if (is_influx && !settings.namespace_name.empty())
    return of_key("namespace", "is of EdgeCase targets, use database or bucket");
  if (!is_influx && !settings.database.empty())
    return of_key("database", "is of Influx targets, use namespace");
  if (!is_influx && !settings.bucket.empty())
    return of_key("bucket", "is of Influx targets, use namespace");
  if (!settings.bucket.empty() && !settings.database.empty())
    return of_key("bucket", "and database are both set, use one of them");
  if (settings.bucket.empty() && !settings.org.empty())
    return of_key("org", "is set but bucket is not, set both or neither");
  if (!settings.namespace_name.empty())
    if (const Status named = wire::check_name("namespace", settings.namespace_name); !named.ok())
      return of_key("namespace", named.message());
  if (!target.is_secure && !settings.tls_ca.empty())
    return of_key("tls-ca", "is set but `to` does not speak TLS, use https there");
  if (!target.is_secure && !settings.tls_cert.empty())
    return of_key("tls-cert", "is set but `to` does not speak TLS, use https there");
  if (settings.tls_cert.empty() != settings.tls_key.empty())
    return of_key(settings.tls_cert.empty() ? "tls-key" : "tls-cert",
                  "is set alone, set tls-cert and tls-key or neither");
  if (!settings.username.empty() && settings.token_file.empty())
    return of_key("username", "is set but token-file is not, which holds the password");
  if (settings.username.find(':') != std::string::npos)
    return of_key("username", "has a colon, which HTTP cannot carry");
  return ok();
}

// The namespace ends at the first colon; a name with a colon needs one in front.
Status parse_selections(const ForwardSettings& settings, ForwardTarget& target) {
  if (settings.select.empty()) return of_key("select", "is empty, use [\"*/*\"] for everything");
  for (const std::string& text : settings.select) {
    ForwardSelection selection{std::string(wire::kDefaultNamespace), {}};
    std::string_view rest = text;
    if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
      selection.namespace_name = rest.substr(0, colon);
      rest.remove_prefix(colon + 1);
      if (selection.namespace_name != "*")
        if (const Status named = wire::check_name("namespace", selection.namespace_name);
            !named.ok() || selection.namespace_name.starts_with('_'))
          return of_key("select", in_quotes(text) +
                                      " names no namespace before the colon, use "
                                      "default:kitchen/* or *:kitchen/*");
    }
    auto selector = wire::parse_selector(rest);
    if (!selector.ok())
      return of_key("select", in_quotes(text) + ": " + selector.status().message());
    selection.selector = *std::move(selector);
    target.selections.push_back(std::move(selection));
  }
  return ok();
}

Status parse_from(const ForwardSettings& settings, ForwardTarget& target) {
  if (settings.from == "now") return ok();
  if (settings.from == "beginning") {
    target.from = ForwardFrom::Beginning;
    return ok();
  }
  const auto time_ns = wire::parse_rfc3339_ns(settings.from);
  if (!time_ns.ok())
    return of_key("from", in_quotes(settings.from) +
                              " is neither now, beginning nor a time, use 2026-11-01T00:00:00Z");
  target.from = ForwardFrom::Time;
  target.from_ns = *time_ns;
  return ok();
}

// "2MiB/s", "500MiB/d".
Status parse_budget(const ForwardSettings& settings, ForwardTarget& target) {
  if (settings.budget.empty()) return ok();
  const std::string_view text = settings.budget;
  const bool is_daily = text.ends_with("/d");
  const auto bytes = is_daily || text.ends_with("/s")
                         ? wire::parse_size_bytes(text.substr(0, text.size() - 2))
                         : Result<std::uint64_t>(invalid_argument(""));
  if (!bytes.ok())
    return of_key("budget", in_quotes(text) + " is no budget, use 2MiB/s or 500MiB/d");
  target.budget_bytes_per_second = is_daily ? *bytes / kSecondsPerDay : *bytes;
  if (target.budget_bytes_per_second == 0)
    return of_key("budget", in_quotes(text) + " is less than a byte a second, use more");
  return ok();
}

// Windows begin at whole ones since 1970.
Status parse_every(const ForwardSettings& settings, ForwardTarget& target) {
  if (settings.every.empty()) return ok();
  constexpr std::int64_t kLeastNs = wire::kNanosecondsPerSecond;
  constexpr std::int64_t kMostNs = 3'600 * wire::kNanosecondsPerSecond;
  const auto every_ns = wire::parse_duration_ns(settings.every);
  if (!every_ns.ok() || *every_ns < kLeastNs || *every_ns > kMostNs)
    return of_key("every", in_quotes(settings.every) + " is not between 1s and 1h, use 1m");
  target.every_ns = *every_ns;
  return ok();
}

Status parse_keep(const ForwardSettings& settings, ForwardTarget& target) {
  if (settings.keep_until_sent.empty()) return ok();
  const auto keep_ns = wire::parse_duration_ns(settings.keep_until_sent);
  if (!keep_ns.ok() || *keep_ns < wire::kNanosecondsPerSecond)
    return of_key("keep-until-sent",
                  in_quotes(settings.keep_until_sent) + " is no time of a second or more, use 30d");
  target.keep_ns = *keep_ns;
  return ok();
}

}  // namespace

std::span<const ForwardKey> forward_keys() {
  return kKeys;
}

std::string forward_toml(const ForwardKey& key, const ForwardSettings& settings) {
  if (const auto* text = std::get_if<std::string S::*>(&key.member))
    return quote_toml(settings.**text);
  if (const auto* flag = std::get_if<bool S::*>(&key.member))
    return settings.**flag ? "true" : "false";
  std::string list;
  for (const std::string& each : settings.*std::get<std::vector<std::string> S::*>(key.member))
    list += (list.empty() ? "" : ", ") + quote_toml(each);
  return "[" + list + "]";
}

Result<ForwardTarget> parse_forward(const ForwardSettings& settings) {
  EC_TRY(check_support(settings));
  if (settings.name.empty()) return of_key("name", "is missing, write name = \"cloud\"");
  if (const Status named = wire::check_name("target", settings.name); !named.ok())
    return of_key("name", named.message());
  ForwardTarget target;
  EC_TRY(parse_url(settings.to, target));
  EC_TRY(check_kind(settings, target));
  EC_TRY(parse_selections(settings, target));
  EC_TRY(parse_from(settings, target));
  EC_TRY(parse_budget(settings, target));
  EC_TRY(parse_every(settings, target));
  EC_TRY(parse_keep(settings, target));
  return target;
}

}  // namespace edgecase::config
