// The version of EdgeCase: "0.1.0".
#pragma once

#include <string_view>

namespace edgecase::wire {

std::string_view version();

}  // namespace edgecase::wire
