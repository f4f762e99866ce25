#include "http/router.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "auth/token_store.h"
#include "http/request_head.h"
#include "wire/encoding.h"

namespace edgecase::http {
namespace {

bool is_browser(const RequestHead& head) {
  return !head.origin.empty() || !head.referer.empty() || !head.sec_fetch_site.empty() ||
         head.user_agent.starts_with("Mozilla/");
}

bool is_scheme(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char c, char wanted) {
                      return (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) == wanted;
                    });
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// Words between blanks, up to a comment.
std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <typename Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(words_of(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The last one, which the nearest proxy added; removed with its comma.
std::string_view take_last(std::string_view& list) {
  bool quoted = false;
  std::size_t comma = std::string_view::npos;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"') quoted = !quoted;
    if (list[i] == ',' && !quoted) comma = i;
  }
  const std::string_view last = comma == std::string_view::npos ? list : list.substr(comma + 1);
  list = list.substr(0, comma == std::string_view::npos ? 0 : comma);
  return without_blanks(last);
}

// The `for` of one element of Forwarded (RFC 7239).
std::string_view forwarded_for(std::string_view element) {
  while (!element.empty()) {
    const std::size_t end = std::min(element.find(';'), element.size());
    const std::string_view pair = without_blanks(element.substr(0, end));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && wire::is_same_host(pair.substr(0, equals), "for")) {
      std::string_view value = without_blanks(pair.substr(equals + 1));
      if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
        value = value.substr(1, value.size() - 2);
      }
      return value;
    }
    element.remove_prefix(std::min(end + 1, element.size()));
  }
  return {};
}

// "192.0.2.7", "192.0.2.7:4711", "2001:db8::1", "[2001:db8::1]:4711" in its one form; "": none.
std::string address_of(std::string_view node) {
  std::string bytes = wire::address_bytes(node);
  if (bytes.empty()) {
    const auto authority = wire::parse_authority(node);
    if (authority.ok()) bytes = wire::address_bytes(authority->host);
  }
  char text[INET6_ADDRSTRLEN] = {};
  if (bytes.empty()) return {};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  return inet_ntop(family, bytes.data(), text, sizeof text) == nullptr ? "" : text;
}

}  // namespace

Result<Sites> Sites::of(std::vector<std::string> names, const std::vector<std::string>& proxies) {
  Sites sites;
  for (const std::string& name : names) {
    EC_TRY(wire::check_host(name));
  }
  sites.names_ = std::move(names);
  for (const std::string& proxy : proxies) {
    EC_ASSIGN_OR_RETURN(wire::Network network, wire::parse_network(proxy));
    sites.proxies_.push_back(std::move(network));
  }
  return sites;
}

bool Sites::is_name(std::string_view host) const {
  if (!wire::address_bytes(host).empty() || wire::is_localhost(host)) return true;
  constexpr std::string_view kBelowLocalhost = ".localhost";
  if (host.size() > kBelowLocalhost.size() &&
      wire::is_same_host(host.substr(host.size() - kBelowLocalhost.size()), kBelowLocalhost)) {
    return true;
  }
  return std::any_of(names_.begin(), names_.end(),
                     [host](const std::string& name) { return wire::is_same_host(name, host); });
}

bool Sites::is_proxy(const std::string& address) const {
  return std::any_of(proxies_.begin(), proxies_.end(),
                     [&address](const wire::Network& each) { return each.holds(address); });
}

std::vector<std::string> own_names(std::string_view host_name, std::string_view hosts,
                                   std::string_view resolver) {
  if (host_name.empty()) return {};
  std::vector<std::string> names = {std::string(host_name)};
  const std::string first(host_name.substr(0, host_name.find('.')));
  if (first != host_name) names.push_back(first);
  std::vector<std::string> domains = {"local", "lan"};
  each_line(resolver, [&domains](const std::vector<std::string_view>& words) {
    if (words.empty() || (words[0] != "search" && words[0] != "domain")) return;
    // "." alone is the root.
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] != ".") domains.emplace_back(words[i]);
    }
  });
  for (const std::string& domain : domains) names.push_back(first + "." + domain);
  each_line(hosts, [&](const std::vector<std::string_view>& words) {
    const bool is_ours = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return wire::is_same_host(word, host_name) || wire::is_same_host(word, first);
    });
    if (!is_ours) return;
    for (std::size_t i = 1; i < words.size(); ++i) names.emplace_back(words[i]);
  });
  return names;
}

Status check_site(const RequestHead& head, Effect effect, const Sites& sites) {
  if (!is_browser(head)) return ok();
  if (!head.host.empty()) {
    const auto authority = wire::parse_authority(head.host);
    if (!authority.ok() || !sites.is_name(authority->host)) {
      return not_allowed("Host \"" + head.host +
                         "\" is no name of this machine; http.names can make it one");
    }
  }
  if (effect == Effect::Reads) return ok();
  if (!head.origin.empty() && head.origin != "http://" + head.host &&
      head.origin != "https://" + head.host) {
    return not_allowed("a page of " + head.origin + " may not change anything here");
  }
  if (!head.sec_fetch_site.empty() && head.sec_fetch_site != "same-origin" &&
      head.sec_fetch_site != "none") {
    return not_allowed("a page of another site may not change anything here");
  }
  // A browser attaches it by itself, to whatever a page has it ask. Clients of Influx are no
  // browsers, though some are handed on from one.
  const std::string_view authorization = without_blanks(head.authorization);
  if (!is_influx_path(head.path) &&
      is_scheme(authorization.substr(0, authorization.find_first_of(" \t")), "basic")) {
    return not_allowed("a browser changes nothing by Basic: send the token as Bearer");
  }
  return ok();
}

namespace {

// "http://board.lan/page" -> "board.lan"
std::string_view authority_of(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return {};
  url.remove_prefix(begin + 3);
  return url.substr(0, url.find('/'));
}

// A proxy that adds no header gives itself away all the same: nginx asks by HTTP/1.0 and, unlike
// old programs that do, names a host; and what a browser was shown elsewhere, by another name than
// the one that is asked for here, is none of this machine's own pages.
bool seems_handed_on(const RequestHead& head) {
  if (!head.http_1_1 && !head.host.empty()) return true;
  const std::string_view shown = authority_of(head.referer);
  return !shown.empty() && !wire::is_same_host(shown, head.host);
}

}  // namespace

auth::Principal asker(const RequestHead& head, const auth::Principal& connection,
                      const Sites& sites) {
  const bool is_over_tcp = connection.kind == auth::PrincipalKind::Loopback;
  if (!head.is_forwarded && !(is_over_tcp && seems_handed_on(head))) return connection;
  auth::Principal other{auth::PrincipalKind::Remote, connection.name};
  // Each proxy adds whom it heard; what is before the first that is not believed may be anything.
  const bool has_list = !head.x_forwarded_for.empty();
  std::string_view list = has_list ? head.x_forwarded_for : head.forwarded;
  while (!list.empty() && sites.is_proxy(other.name)) {
    const std::string_view element = take_last(list);
    std::string address = address_of(has_list ? element : forwarded_for(element));
    if (address.empty()) break;
    other.name = std::move(address);
  }
  return other;
}

Result<std::string> presented_token(std::string_view authorization) {
  const std::string_view text = without_blanks(authorization);
  if (text.empty()) return std::string();
  const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view scheme = text.substr(0, blank);
  const std::string_view rest = without_blanks(text.substr(blank));
  // The password of `user:password`; one that is none of ours shows nothing.
  const auto password_of = [](std::string_view pair) {
    const std::string_view password = pair.substr(pair.find(':') + 1);
    return std::string(password.starts_with(auth::kTokenPrefix) ? password : std::string_view());
  };
  // Clients that were given no token send the scheme alone: as much as nothing.
  if (is_scheme(scheme, "bearer") || is_scheme(scheme, "token"))
    return rest.find(':') == std::string_view::npos ? std::string(rest) : password_of(rest);
  if (!is_scheme(scheme, "basic")) {
    return not_allowed("Authorization is one of Bearer, Token and Basic here");
  }
  if (rest.empty()) return std::string();
  const Status malformed = not_allowed("the header Authorization is malformed");
  const auto pair = wire::decode_base64(rest);
  if (!pair.ok()) return malformed;
  if (pair->find(':') == std::string::npos) return malformed;
  return password_of(*pair);
}

}  // namespace edgecase::http
