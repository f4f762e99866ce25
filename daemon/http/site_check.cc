#include "http/site_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace edgecase::http {
namespace {

bool is_browser(const RequestHead& head) {
  return !head.origin.empty() || !head.referer.empty() || !head.sec_fetch_site.empty() ||
         head.user_agent.starts_with("Mozilla/");
}

// "name:8650" and "[::1]:8650" without port and brackets.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

bool is_own_name(std::string_view name, std::string_view own_name) {
  const std::string text(name);
  in6_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) == 1) return true;
  if (inet_pton(AF_INET6, text.c_str(), &address) == 1) return true;
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  const auto is = [name](std::string_view other) {
    return std::equal(name.begin(), name.end(), other.begin(), other.end(), [](char a, char b) {
      const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      };
      return lower(a) == lower(b);
    });
  };
  if (own_name.empty()) return false;
  return is(own_name) || is(own_name.substr(0, own_name.find('.'))) ||
         is(std::string(own_name) + ".local");
}

}  // namespace

Status check_site(const RequestHead& head, Effect effect, std::string_view own_name) {
  if (!is_browser(head)) return ok();
  if (!head.host.empty() && !is_own_name(host_name(head.host), own_name)) {
    return not_allowed("Host \"" + head.host + "\" is no name of this machine");
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
  return ok();
}

}  // namespace edgecase::http
