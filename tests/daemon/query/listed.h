// A list of series or devices, as a whole.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "query/listings.h"

namespace edgecase::test {

template <typename Info, typename Listing>
std::vector<Info> all_of(Result<Listing> listing) {
  REQUIRE_MESSAGE(listing.ok(), listing.status().to_string());
  std::vector<Info> all;
  Info info;
  while (true) {
    const auto more = listing->next(info);
    REQUIRE_MESSAGE(more.ok(), more.status().to_string());
    if (!*more) return all;
    all.push_back(info);
  }
}

}  // namespace edgecase::test
