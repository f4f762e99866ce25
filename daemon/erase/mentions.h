// Mentions of what is erased in texts that the store keeps: messages in the namespace `_rejected`,
// which go, and views in `_views`, which lose the series. No state; called under the erasure's
// locks.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/catalog.h"
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

// A view of the page that shows a series that is erased.
struct ViewMention {
  NamespaceId namespace_id = 0;
  Bytes key;    // whose bytes go; empty: those of every view
  Bytes value;  // the view without the series, under that key; empty: the view goes
};

// Views are read as the page writes them: {"charts":[["NS/DEVICE/SENSOR", ...], ...]}, each name
// percent-encoded. A view that is none goes where it holds a name; all go where they cannot be
// read.
std::vector<ViewMention> find_views(Engine& engine, const catalog::Erased& erased);

}  // namespace edgecase::erase
