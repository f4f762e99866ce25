#include "forward/names_there.h"

#include "auth/hashing.h"
#include "wire/identity.h"

namespace edgecase::forward {
namespace {

constexpr std::size_t kPseudonymBytes = 12;

std::string stem_of(const wire::Identity& identity) {
  return identity.field == wire::kValueField ? identity.measurement
                                             : identity.measurement + "." + identity.field;
}

// The entry under another identity: the name of its sensor follows, tags in it stay.
void rename(const wire::Identity& before, const wire::Identity& identity,
            std::string_view else_suffix, catalog::SeriesEntry& entry) {
  const std::string stem = stem_of(before);
  const bool begins_so = entry.sensor.starts_with(stem) &&
                         (entry.sensor.size() == stem.size() || entry.sensor[stem.size()] == '{');
  if (begins_so) {
    entry.sensor = stem_of(identity) + entry.sensor.substr(stem.size());
  } else {
    entry.sensor += else_suffix;
  }
  entry.identity = wire::encode_identity(identity);
}

}  // namespace

catalog::SeriesEntry column_of(const catalog::SeriesEntry& entry, wire::WindowColumn column) {
  catalog::SeriesEntry named = entry;
  const auto identity = catalog::identity_of(entry);
  if (!identity.ok()) {
    named.sensor += wire::column_suffix(column);
    named.identity.clear();
    return named;
  }
  wire::Identity of_column = *identity;
  of_column.field += wire::column_suffix(column);
  rename(*identity, of_column, wire::column_suffix(column), named);
  return named;
}

std::string Pseudonyms::of(std::string_view namespace_name, std::string_view name) const {
  if (salt_.empty()) return std::string(name);
  Bytes message(namespace_name);
  (message += '\0') += name;
  const auth::Digest digest = auth::hmac_sha256(salt_, message);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "p";
  for (std::size_t i = 0; i < kPseudonymBytes; ++i) {
    const auto byte = static_cast<unsigned char>(digest[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

catalog::SeriesEntry Pseudonyms::of(catalog::SeriesEntry entry) const {
  if (salt_.empty()) return entry;
  const std::string device = entry.device;
  const auto there = [&](const std::string& name) { return of(entry.namespace_name, name); };
  const auto identity = catalog::identity_of(entry);
  entry.device = there(device);
  if (!identity.ok()) return entry;
  wire::Identity named = *identity;
  if (named.measurement == device) named.measurement = entry.device;
  for (auto& [key, value] : named.tags) {
    if (value.empty()) continue;
    // It names the device alone, or with another tag.
    const bool is_part = device.starts_with(value + ".") || device.ends_with("." + value);
    if (value == device || is_part) value = there(value);
  }
  rename(*identity, named, "", entry);
  if (entry.sensor.find(device) != std::string::npos &&
      stem_of(named).find(device) == std::string::npos)
    entry.sensor = stem_of(named);
  return entry;
}

}  // namespace edgecase::forward
