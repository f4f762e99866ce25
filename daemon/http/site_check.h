// Browsers run other people's pages and can reach this machine's loopback address. Two attacks are
// refused here; programs that are no browsers send none of the headers looked at.
//
// - Another site's page sends a request that changes something: told by Origin and Sec-Fetch-Site.
// - Another site's name is made to resolve to this machine (DNS rebinding), so that its page counts
//   as ours: told by a Host that is no address and no name of this machine.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/status.h"
#include "http/request_head.h"

namespace edgecase::http {

enum class Effect : unsigned char { Reads, Changes };

// NotAllowed says which header gave it away. `own_name` is the machine's host name.
Status check_site(const RequestHead& head, Effect effect, std::string_view own_name);

}  // namespace edgecase::http
