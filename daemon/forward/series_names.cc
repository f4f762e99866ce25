#include "forward/series_names.h"

#include <algorithm>

#include "auth/hashing.h"
#include "forward/windows.h"
#include "wire/names.h"

namespace edgecase::forward {

bool SeriesNames::wants(const std::string& namespace_name) const {
  return std::any_of(selections_.begin(), selections_.end(),
                     [&namespace_name](const config::ForwardSelection& each) {
                       return each.namespace_name == "*" || each.namespace_name == namespace_name;
                     });
}

bool SeriesNames::is_wanted(const catalog::SeriesEntry& entry) const {
  return std::any_of(
      selections_.begin(), selections_.end(), [&entry](const config::ForwardSelection& each) {
        return (each.namespace_name == "*" || each.namespace_name == entry.namespace_name) &&
               each.selector.matches(entry.device, entry.sensor);
      });
}

const SeriesNames::Series* SeriesNames::find(const catalog::SeriesId& id) {
  if (generation_ != catalog_.generation() ||
      (rules_ != nullptr && rules_generation_ != rules_->generation())) {
    forget();
  }
  auto found = series_.find(id);
  if (found == series_.end()) {
    if (!load_device({id.namespace_id, id.device})) return nullptr;
    found = series_.find(id);
  }
  return found == series_.end() ? nullptr : &found->second;
}

void SeriesNames::forget() {
  generation_ = catalog_.generation();
  if (rules_ != nullptr) rules_generation_ = rules_->generation();
  series_.clear();
  rows_seen_ = 0;
}

// Devices come in rows: a new one is behind those that were seen, any other is looked for from the
// beginning.
bool SeriesNames::load_device(const DeviceKey& wanted) {
  const std::uint32_t rows = catalog_.device_rows();
  const auto is_it = [&](std::uint32_t row) {
    const auto device = catalog_.device_at(row);
    if (!device.ok() || DeviceKey(device->namespace_id, device->id) != wanted) return false;
    remember(*device);
    return true;
  };
  const std::uint32_t seen = std::min(rows_seen_, rows);
  rows_seen_ = rows;
  for (std::uint32_t row = seen; row < rows; ++row)
    if (is_it(row)) return true;
  for (std::uint32_t row = 0; row < seen; ++row)
    if (is_it(row)) return true;
  return false;
}

void SeriesNames::remember(const catalog::DeviceEntry& device) {
  const wire::Selector all{wire::escape_name(device.device), "*"};
  const std::vector<catalog::SeriesRow> rows =
      catalog_.select_rows(device.namespace_name, all, catalog::RowOrder::Any);
  if (series_.size() + rows.size() > kSeriesMax) series_.clear();
  for (const catalog::SeriesRow row : rows) {
    auto entry = catalog_.series_at(row);
    if (!entry.ok()) continue;  // erased meanwhile
    const catalog::SeriesId id = entry->id;
    series_.insert_or_assign(id, series_of(row, *std::move(entry)));
  }
}

SeriesNames::Series SeriesNames::series_of(catalog::SeriesRow row,
                                           catalog::SeriesEntry entry) const {
  Series series;
  series.row = row;
  series.is_wanted = is_wanted(entry);
  if (rules_ != nullptr && series.is_wanted) {
    const wire::Keeping of_readings = rules_->keeping(entry);
    const wire::Keeping keeping =
        every_ns_ > 0 ? keeping_of_columns(of_readings, every_ns_) : of_readings;
    if (keeping.raw_ns != kRetentionForever) series.keeping = wire::keeping_text(keeping);
  }
  series.entry = pseudonyms_.of(std::move(entry));
  return series;
}

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
