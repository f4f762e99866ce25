// Messages kept in the namespace `_rejected` that name what is erased: its own keys among theirs.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/erased.h"
#include "edgecase/engine.h"

namespace edgecase::erase {

// Names looked for in each message; an erasure of more devices takes every message.
inline constexpr std::size_t kMentionedNamesMax = 64;
// In texts, shorter names are looked for in topics alone: they would be everywhere.
inline constexpr std::size_t kMentionMinBytes = 3;

// Whether a device's name is one level or several of the topic (these joined by `/` or `.`).
bool topic_names(std::string_view topic, std::string_view device);
// Whether the name stands in the text, with no letter or digit beside it.
bool text_names(std::string_view text, std::string_view name);

// Keys of messages that name a device, or a sensor together with its device; all, where they cannot
// be read since a drive is away or damaged.
std::vector<catalog::KeySpan> find_mentions(Engine& engine, const catalog::Catalog& catalog,
                                            const catalog::Erased& erased);

}  // namespace edgecase::erase
