// What a client shows of itself: the header Authorization.
#pragma once

#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace edgecase::http {

// The token in `Bearer T`, `Token T` (clients of Influx v2), or `Basic`, where it is the password
// and the user's name means nothing (clients of Influx v1, browsers). Empty for an empty header,
// for a scheme with nothing behind it (Telegraf without a token), and for a password that is empty
// or none of ours: some clients of Influx v1 always send `root:root`, which shows as little as
// nothing does. NotAllowed: another scheme, or malformed.
Result<std::string> presented_token(std::string_view authorization);

}  // namespace edgecase::http
