#include "app/lost_readings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "query/damage.h"
#include "wire/json_values.h"
#include "wire/reading.h"
#include "wire/reading_key.h"

namespace edgecase::app {
namespace {

using catalog::RecordKind;

struct Lost {
  std::string namespace_name;
  std::uint64_t readings = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
};
// Namespace, device, sensor; 0: several of the device.
using Series = std::tuple<NamespaceId, std::uint32_t, std::uint32_t>;

std::string name_of(const OfflineContents& records, RecordKind kind, const Series& series) {
  const auto& [id, device, sensor] = series;
  const std::uint32_t number = kind == RecordKind::Device ? device : sensor;
  const auto record = records.find(catalog::encode_record_key({kind, id, device, sensor}));
  if (record != records.end()) {
    const auto name = catalog::decode_record_field(record->second, catalog::FieldTag::Name);
    if (name.ok()) return std::string(*name);
  }
  return "number " + std::to_string(number) + " (its name is lost)";
}

void add(const LostEntries& each, std::map<Series, Lost>& all) {
  wire::ReadingKey first;
  wire::ReadingKey last;
  if (!wire::is_readable_namespace(each.namespace_name) || each.entries == 0 ||
      !wire::decode_reading_key(each.first, first) || !wire::decode_reading_key(each.last, last) ||
      first.device != last.device)
    return;
  const bool one = first.sensor == last.sensor;
  Lost& lost = all[{each.namespace_id, first.device, one ? first.sensor : 0}];
  lost.namespace_name = each.namespace_name;
  lost.readings += each.entries;
  if (!one) return;  // each of its sensors has times of its own
  lost.first_ns = std::min(lost.first_ns, first.time_ns);
  lost.last_ns = std::max(lost.last_ns, last.time_ns);
}

}  // namespace

std::vector<std::string> lost_readings(FileSystem& file_system, const Options& options,
                                       std::span<const LostEntries> lost) {
  std::map<Series, Lost> all;
  for (const LostEntries& each : lost) add(each, all);
  std::vector<std::string> lines;
  if (all.empty()) return lines;
  const auto read = read_offline(file_system, options, catalog::kCatalogNamespace);
  const OfflineContents records = read.ok() ? *read : OfflineContents();
  for (const auto& [series, each] : all) {
    const auto& [id, device, sensor] = series;
    std::string line = "namespace " + each.namespace_name + ", device " +
                       name_of(records, RecordKind::Device, {id, device, 0}) + ", ";
    line +=
        sensor == 0 ? "several sensors" : "sensor " + name_of(records, RecordKind::Sensor, series);
    line += ": " + std::to_string(each.readings) + " readings";
    if (sensor != 0)
      line += " from " + wire::time_text(each.first_ns) + " to " + wire::time_text(each.last_ns);
    lines.push_back(std::move(line));
  }
  return lines;
}

void tell_recovered(const catalog::Catalog& catalog, observe::Logger& logger) {
  const catalog::RecoveredNames names = catalog.recovered();
  if (catalog.is_damaged())
    logger.warning("catalog",
                   "records of it are damaged: devices whose names are lost go by names that begin "
                   "with recovered-, and retention rules stay as they are, until edgecase check "
                   "--repair, with the service stopped, brings back what can be had");
  if (names.devices == 0 && names.series == 0) return;
  logger.warning("catalog", "the names of " + std::to_string(names.devices) + " devices and " +
                                std::to_string(names.series) +
                                " series were lost: their readings are under names "
                                "that begin with recovered-");
}

// Which devices and times went with files that were damaged when the store was opened.
void tell_damage(const Engine& engine, const catalog::Catalog& catalog, observe::Logger& logger) {
  constexpr std::size_t kToldOfFileMax = 8;
  for (const query::Damage& damage : query::find_damage(engine, catalog)) {
    std::size_t told = 0;
    for (const query::LostSeries& lost : damage.lost) {
      if (told++ == kToldOfFileMax) break;
      std::string line = damage.file.path + " (" + damage.file.problem + "): lost of namespace " +
                         lost.namespace_name;
      if (!lost.device.empty()) line += ", " + lost.device + "/" + lost.sensor;
      if (lost.from_ns != INT64_MIN) line += " from " + wire::time_text(lost.from_ns);
      if (lost.to_ns != INT64_MAX) line += " to " + wire::time_text(lost.to_ns);
      logger.warning("damage", line);
    }
    if (told > kToldOfFileMax || damage.lost_more)
      logger.warning("damage", damage.file.path + ": and others; edgecase status names more");
  }
}

}  // namespace edgecase::app
