// The checksums of an item: one of all of it, or, of a plain group, one of what stands before its
// pages and one of each page. All are salted with where they lie. Layout: value_format.h.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Fills in the checksums of an item that is whole but for them, as it belongs at `offset` of file
// `file_number`. For an item that is no plain group, `end` belongs behind it.
void place_checksums(Bytes& item, std::uint64_t file_number, std::uint64_t offset,
                     ByteView end = {});

// `item` is larger than an item's head.
bool checksums_match(ByteView item, std::uint64_t file_number, std::uint64_t offset);
// Whether the checksum of one page holds; the page is larger than its checksum.
bool page_checksum_matches(ByteView page, std::uint64_t file_number, std::uint64_t offset);

}  // namespace edgecase::engine
