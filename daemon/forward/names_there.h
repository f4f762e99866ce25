// Names of series at a target, where they are not those that they have here: columns of windows,
// and devices under pseudonyms of that target. Immutable; any thread.
//
// A pseudonym is HMAC-SHA-256 under the target's salt (records.h), of which 96 bits are written:
// nobody finds the name, and two targets cannot tell that they have the same device. Of an
// identity the measurement and the tags that name the device are replaced; other tags stay.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "catalog/catalog.h"
#include "edgecase/bytes.h"
#include "wire/window_columns.h"

namespace edgecase::forward {

// What the series of a column is called: `cpu.idle_min{core=1}`.
catalog::SeriesEntry column_of(const catalog::SeriesEntry& entry, wire::WindowColumn column);

class Pseudonyms {
 public:
  // Without a salt names stay as they are.
  explicit Pseudonyms(Bytes salt = {}) : salt_(std::move(salt)) {}

  std::string of(std::string_view namespace_name, std::string_view name) const;
  catalog::SeriesEntry of(catalog::SeriesEntry entry) const;

 private:
  Bytes salt_;
};

}  // namespace edgecase::forward
