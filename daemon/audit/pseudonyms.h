// How devices, owners and other names stand in the audit log: as HMAC-SHA-256 under a key of the
// store, its first 64 bits. Whoever knows a name (and may ask the daemon) finds its records; the
// log tells no names. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "audit/record.h"
#include "wire/selector.h"

namespace edgecase::audit {

class Pseudonyms {
 public:
  explicit Pseudonyms(std::string key) : key_(std::move(key)) {}

  std::uint64_t of_device(std::string_view namespace_name, std::string_view device) const;
  // Of any other text; one of another kind never looks the same. "~" and 16 hex digits.
  std::string of_text(std::string_view kind, std::string_view text) const;

  // What may be written of a selector: globs without a literal character (`*`, `?*`) as they are,
  // everything else as a pseudonym. A device named exactly becomes a target.
  void describe(std::string_view namespace_name, const wire::Selector& selector,
                Record& record) const;

 private:
  std::string part(std::string_view kind, std::string_view namespace_name,
                   std::string_view glob) const;

  const std::string key_;
};

std::string pseudonym_text(std::uint64_t pseudonym);  // 16 hex digits

// Whether the record is of the device, or may be: it reaches over devices that it does not name.
bool concerns(const Record& record, std::uint64_t pseudonym, std::string_view namespace_name,
              std::string_view device);

}  // namespace edgecase::audit
