// Whose request it is: of this machine, or handed on; of our own page, or another site's; and which
// token it shows.
//
// Browsers run other people's pages and can reach this machine's loopback address. Two attacks are
// refused here; programs that are no browsers send none of the headers looked at.
//
// - Another site's page sends a request that changes something: told by Origin and Sec-Fetch-Site.
// - Another site's name is made to resolve to this machine (DNS rebinding), so that its page counts
//   as ours: told by a Host that is no address and no name of this machine.
//
// A proxy makes others' requests come from its own address, most often this machine's. What it
// hands on says so (Forwarded, X-Forwarded-*, Via), and is nobody's on this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/authorize.h"
#include "edgecase/status.h"
#include "http/request_head.h"
#include "wire/authority.h"

namespace edgecase::http {

enum class Effect : unsigned char { Reads, Changes };

// Settings http.names and http.proxies, with this machine's own names.
class Sites {
 public:
  Sites() = default;
  // `names`: without ports. `proxies`: addresses, "192.0.2.7", "::1", or networks, "10.0.0.0/8".
  // InvalidArgument names the one that is neither.
  static Result<Sites> of(std::vector<std::string> names, const std::vector<std::string>& proxies);

  // Localhost and addresses are everybody's names.
  bool is_name(std::string_view host) const;
  bool is_proxy(const std::string& address) const;

 private:
  std::vector<std::string> names_;
  std::vector<wire::Network> proxies_;
};

// What a machine of this name is called: the name itself and its first part, alone, with .local and
// .lan, with the domains of `resolver` (the text of /etc/resolv.conf), and what the lines of
// `hosts` (of /etc/hosts) that hold it call it besides.
std::vector<std::string> own_names(std::string_view host_name, std::string_view hosts,
                                   std::string_view resolver);

// NotAllowed says which header gave it away.
Status check_site(const RequestHead& head, Effect effect, const Sites& sites);

// The asker, before it is known which token was shown: whoever is at the other end, or, of what a
// proxy handed on, somebody elsewhere: by the address that the proxy gives if it is one of `sites`,
// else by the proxy's own. A proxy on this machine that adds no header is known by HTTP/1.0 with a
// Host, and by a Referer of another host; one that hides all of that is not known.
auth::Principal asker(const RequestHead& head, const auth::Principal& connection,
                      const Sites& sites);

// The token in `Bearer T`, `Token T` (clients of Influx v2), or in `Basic` and `Token USER:T`,
// where it is the password and the user means nothing (clients of Influx v1, browsers). Empty for
// an empty header, for a scheme with nothing behind it (Telegraf without a token), and for a
// password that is empty or none of ours: some clients of Influx v1 always send `root:root`, which
// shows as little as nothing does. NotAllowed: another scheme, or malformed.
Result<std::string> presented_token(std::string_view authorization);

}  // namespace edgecase::http
