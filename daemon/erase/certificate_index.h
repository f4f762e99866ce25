// An index of certificates by device and owner, so that few are read to find some. It holds the
// beginnings of the pseudonyms that each names; one that names more than kTagsMax may be of
// anybody.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "erase/certificate.h"

namespace edgecase::erase {

class CertificateIndex {
 public:
  static constexpr std::size_t kTagsMax = 4;

  // With a larger number than all before.
  void add(const Certificate& certificate);
  void remove_below(std::uint64_t number);
  // The largest number below `before` of one that may name both pseudonyms (hexadecimal; empty:
  // any).
  std::optional<std::uint64_t> newest_below(std::uint64_t before, std::string_view device,
                                            std::string_view owner) const;
  std::uint64_t memory_bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  using Tag = std::uint32_t;
  struct Entry {
    std::uint64_t number = 0;
    std::array<Tag, kTagsMax> tags{};
    std::uint32_t count = 0;  // above kTagsMax: it may name anybody
  };

  static Tag tag_of(std::string_view pseudonym);
  static bool may_name(const Entry& entry, std::string_view pseudonym);

  std::deque<Entry> entries_;  // by number
};

}  // namespace edgecase::erase
