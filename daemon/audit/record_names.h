// Pseudonyms that stand in the audit log for devices, owners and other names (auth/pseudonyms.h).
// Their first 64 bits are kept, so a certificate of an erasure begins with the same 16 digits.
// Thread-safe. Remembers those made last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "audit/record.h"
#include "auth/pseudonyms.h"
#include "edgecase/mutex.h"
#include "wire/selector.h"

namespace edgecase::audit {

class RecordNames {
 public:
  static constexpr std::size_t kRememberedMax = 4'096;

  explicit RecordNames(auth::Pseudonyms pseudonyms) : pseudonyms_(std::move(pseudonyms)) {}

  std::uint64_t of_device(std::string_view namespace_name, std::string_view device) const;
  // The name of any other text; one of another kind never looks the same. "~" and 16 hex digits.
  std::string of_text(std::string_view kind, std::string_view text) const;

  // Nothing of names that were asked for stays in memory.
  void forget() const EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    known_.clear();
  }

  // What may be written of a selector: globs without a literal character (`*`, `?*`) as they are,
  // everything else as a pseudonym. A device named exactly becomes a target.
  void describe(std::string_view namespace_name, const wire::Selector& selector,
                Record& record) const;
  // The same of several, with `, ` between; of more than kSelectorsTold no more than that they may
  // be any.
  static constexpr std::size_t kSelectorsTold = 8;
  void describe(std::string_view namespace_name, std::span<const wire::Selector> selectors,
                Record& record) const;

 private:
  std::uint64_t of(std::string_view kind, std::string_view namespace_name,
                   std::string_view name) const;
  std::string part(std::string_view kind, std::string_view namespace_name,
                   std::string_view glob) const;

  const auth::Pseudonyms pseudonyms_;
  mutable Mutex mutex_;
  mutable std::unordered_map<std::string, std::uint64_t> known_ EC_GUARDED_BY(mutex_);
};

std::string pseudonym_text(std::uint64_t pseudonym);  // 16 hex digits

// Whether the record reaches over devices that it does not name, and this may be one.
bool may_reach(const Record& record, std::string_view namespace_name, std::string_view device);

// Whether the record is of the device, or may be: it reaches over devices that it does not name.
bool concerns(const Record& record, std::uint64_t pseudonym, std::string_view namespace_name,
              std::string_view device);

}  // namespace edgecase::audit
