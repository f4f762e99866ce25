#include "erase/certificate_index.h"

#include <algorithm>

namespace edgecase::erase {

// As many hexadecimal digits as it has room for.
CertificateIndex::Tag CertificateIndex::tag_of(std::string_view pseudonym) {
  Tag tag = 0;
  for (const char digit : pseudonym.substr(0, 2 * sizeof(Tag))) {
    const auto value = static_cast<Tag>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    tag = tag << 4 | (value & 15);
  }
  return tag;
}

bool CertificateIndex::may_name(const Entry& entry, std::string_view pseudonym) {
  if (pseudonym.empty() || entry.count > kTagsMax) return true;
  const auto end = entry.tags.begin() + entry.count;
  return std::find(entry.tags.begin(), end, tag_of(pseudonym)) != end;
}

void CertificateIndex::add(const Certificate& certificate) {
  Entry entry;
  entry.number = certificate.number;
  const auto note = [&entry](std::string_view pseudonym) {
    if (entry.count < kTagsMax) entry.tags[entry.count] = tag_of(pseudonym);
    ++entry.count;
  };
  for (const std::string& each : certificate.device_pseudonyms) note(each);
  if (!certificate.owner_pseudonym.empty()) note(certificate.owner_pseudonym);
  entries_.push_back(entry);
}

void CertificateIndex::remove_below(std::uint64_t number) {
  while (!entries_.empty() && entries_.front().number < number) entries_.pop_front();
}

std::optional<std::uint64_t> CertificateIndex::newest_below(std::uint64_t before,
                                                            std::string_view device,
                                                            std::string_view owner) const {
  auto at = std::lower_bound(
      entries_.begin(), entries_.end(), before,
      [](const Entry& entry, std::uint64_t number) { return entry.number < number; });
  while (at != entries_.begin()) {
    --at;
    if (may_name(*at, device) && may_name(*at, owner)) return at->number;
  }
  return std::nullopt;
}

}  // namespace edgecase::erase
