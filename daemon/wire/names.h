// What a namespace, device or sensor may be called: UTF-8, 1 to 128 bytes, no control characters,
// no `/`.
#pragma once

#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

bool is_valid_utf8(std::string_view text);
// InvalidArgument says what is wrong with it; `what` is "device", "sensor", "namespace".
Status check_name(std::string_view what, std::string_view name);

}  // namespace edgecase::wire
