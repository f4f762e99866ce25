// Byte strings, owned and borrowed. Contents are arbitrary bytes, not text.
// A ByteView is valid for the length of a call unless the callee says otherwise.
#pragma once

#include <string>
#include <string_view>

namespace edgecase {

using Bytes = std::string;
using ByteView = std::string_view;

}  // namespace edgecase
