#include "auth/authenticator.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace edgecase::auth {

std::string network_of(const std::string& address) {
  in6_addr six{};
  const std::string plain = address.substr(0, address.find('%'));
  if (inet_pton(AF_INET6, plain.c_str(), &six) != 1 || IN6_IS_ADDR_V4MAPPED(&six)) return address;
  std::fill(six.s6_addr + 8, six.s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET6, &six, text, sizeof text) == nullptr ? address : text;
}

Result<Principal> Authenticator::authenticate(const Principal& connection, std::string_view token) {
  if (token.empty()) {
    for (const std::string& name : connection.certificate) {
      std::shared_ptr<const Grant> stands = tokens_.of_certificate(name);
      if (stands == nullptr) continue;
      return Principal{connection.kind, "certificate " + name + " of " + connection.name,
                       std::move(stands)};
    }
    if (is_current(connection)) return connection;
    if (connection.certificate.empty())
      return fail(connection,
                  not_allowed("a token is needed here: sudo edgecase token create --read '*/*' "
                              "makes one, --token or EDGECASE_TOKEN shows it"));
    return fail(connection, not_allowed("nothing says what the certificate of " +
                                        connection.certificate.front() +
                                        " may do (edgecase token create --certificate NAME)"));
  }
  auto grant = tokens_.check(token);
  if (!grant.ok()) return fail(connection, grant.status());
  Principal principal{connection.kind, "token " + (*grant)->token_id + " of " + connection.name};
  principal.grant = std::move(grant).value();
  return principal;
}

bool Authenticator::is_current(const Principal& principal) const {
  if (principal.grant) return !tokens_.has_ended(*principal.grant);
  switch (principal.kind) {
    case PrincipalKind::Loopback: return !tokens_.any();
    case PrincipalKind::Remote: return insecure_ == InsecureAccess::Allowed && !tokens_.any();
    default: return true;
  }
}

Status Authenticator::fail(const Principal& connection, Status why) {
  failures_.fetch_add(1, std::memory_order_relaxed);
  if (take_attempt(network_of(connection.name))) return why;
  throttled_.fetch_add(1, std::memory_order_relaxed);
  return busy("too many failed logins from " + connection.name + ", try again later");
}

bool Authenticator::take_attempt(const std::string& address) {
  const std::int64_t now_ns = clock_.boot_ns();
  const MutexLock lock(mutex_);
  if (const auto known = by_address_.find(address); known != by_address_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, known->second);
  } else {
    if (buckets_.size() >= kAddressesMax) {
      by_address_.erase(buckets_.back().address);
      buckets_.pop_back();
    }
    buckets_.push_front({address, kBurst, now_ns});
    by_address_.emplace(buckets_.front().address, buckets_.begin());
  }
  Bucket& bucket = buckets_.front();
  bucket.left = std::min<double>(kBurst, bucket.left + static_cast<double>(now_ns - bucket.at_ns) /
                                                           static_cast<double>(kRefillNs));
  bucket.at_ns = now_ns;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace edgecase::auth
