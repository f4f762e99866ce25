#include "query/left_out.h"

#include <algorithm>
#include <map>
#include <utility>

#include "wire/contract.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::query {

void LeftOut::add(LeftOutReadings readings) {
  if (!named_.empty() && more_ == 0) {
    LeftOutReadings& last = named_.back();
    if (last.namespace_name == readings.namespace_name && last.device == readings.device &&
        last.sensor == readings.sensor) {
      // Damage weighs more than a drive that is away.
      if (readings.why.code() == StatusCode::Corruption &&
          last.why.code() == StatusCode::Unavailable)
        last.why = std::move(readings.why);
      if (last.from_ns)
        last.from_ns = readings.from_ns ? std::optional(std::min(*last.from_ns, *readings.from_ns))
                                        : std::nullopt;
      if (last.to_ns)
        last.to_ns =
            readings.to_ns ? std::optional(std::max(*last.to_ns, *readings.to_ns)) : std::nullopt;
      return;
    }
  }
  if (named_.size() == kNamedMax) {
    ++more_;
  } else {
    named_.push_back(std::move(readings));
  }
}

LeftOutReadings lost_names() {
  return {"*",
          "*",
          "*",
          {},
          {},
          corruption("records of the catalog are damaged: devices and sensors whose names are lost "
                     "with them are not here")};
}

LeftOutReadings left_out_of(const std::string& namespace_name, const wire::LeftSelector& left) {
  return {namespace_name.empty() ? "*" : namespace_name,
          left.selector.device,
          left.selector.sensor,
          {},
          {},
          left.why};
}

wire::Json left_out_json(const LeftOut& left_out, std::size_t most) {
  wire::Json list = wire::Json::array();
  const std::vector<LeftOutReadings>& named = left_out.named();
  for (std::size_t i = 0; i < named.size() && i < most; ++i) {
    list.push_back({{"namespace", named[i].namespace_name},
                    {"device", named[i].device},
                    {"sensor", named[i].sensor},
                    {"from", wire::time_or_null(named[i].from_ns)},
                    {"to", wire::time_or_null(named[i].to_ns)},
                    {"code", wire::error_code_name(named[i].why.code())},
                    {"reason", named[i].why.to_string()}});
  }
  const std::uint64_t more = left_out.more() + (named.size() > most ? named.size() - most : 0);
  if (more > 0) list.push_back({{"more", more}});
  return list;
}

namespace {

using catalog::SeriesEntry;
using SeriesNumbers = std::pair<std::uint32_t, std::uint32_t>;  // of device and sensor

SeriesNumbers numbers_of(const SeriesEntry& entry) {
  return {entry.id.device, entry.id.sensor};
}

class Namer {
 public:
  Namer(const Engine& engine, const catalog::Catalog& catalog) : catalog_(catalog) {
    for (const NamespaceInfo& info : engine.namespaces()) names_[info.id] = info.name;
  }

  void name(const LostRange& range, Damage& damage) {
    const auto found = names_.find(range.namespace_id);
    if (found == names_.end()) return;  // dropped meanwhile
    const std::string& name = found->second;
    wire::ReadingKey first;
    wire::ReadingKey last{UINT32_MAX, UINT32_MAX, INT64_MAX};
    const bool of_readings = catalog_.has_namespace(name) && read_bound(range.first, first) &&
                             (!range.last || read_bound(*range.last, last));
    if (!of_readings) return add({name, "", ""}, damage);
    const std::vector<SeriesEntry>& series = series_of(name);
    const SeriesNumbers begin{first.device, first.sensor};
    const SeriesNumbers end{last.device, last.sensor};
    for (auto at = std::lower_bound(series.begin(), series.end(), begin,
                                    [](const SeriesEntry&entry, const SeriesNumbers&from) {
                                      return numbers_of(entry) < from;
                                    });
         at != series.end() && numbers_of(*at) <= end; ++at) {
      LostSeries lost{name, at->device, at->sensor};
      if (numbers_of(*at) == begin) lost.from_ns = first.time_ns;
      if (numbers_of(*at) == end) lost.to_ns = last.time_ns;
      add(std::move(lost), damage);
    }
  }

 private:
  // The first key of a namespace is empty: before all.
  static bool read_bound(ByteView key, wire::ReadingKey& bound) {
    if (!key.empty()) return wire::decode_reading_key(key, bound);
    bound = {0, 0, INT64_MIN};
    return true;
  }

  static void add(LostSeries lost, Damage& damage) {
    if (damage.lost.size() == kLostSeriesMax) {
      damage.lost_more = true;
      return;
    }
    damage.lost.push_back(std::move(lost));
  }

  const std::vector<SeriesEntry>& series_of(const std::string& name) {
    const auto [at, is_new] = series_.try_emplace(name);
    if (!is_new) return at->second;
    at->second = catalog_.select(name, all_);
    std::sort(at->second.begin(), at->second.end(),
              [](const auto& a, const auto& b) { return numbers_of(a) < numbers_of(b); });
    return at->second;
  }

  const catalog::Catalog& catalog_;
  const wire::Selector all_ = wire::parse_selector("*").value();
  std::map<NamespaceId, std::string> names_;
  std::map<std::string, std::vector<SeriesEntry>> series_;
};

}  // namespace

std::vector<Damage> find_damage(const Engine& engine, const catalog::Catalog& catalog) {
  std::vector<Damage> found;
  std::vector<DamagedFile> files = engine.damaged_files();
  if (files.empty()) return found;
  Namer namer(engine, catalog);
  for (DamagedFile& file : files) {
    Damage damage;
    damage.file = std::move(file);
    damage.lost_more = damage.file.more_lost_ranges > 0;
    for (const LostRange& range : damage.file.lost) namer.name(range, damage);
    found.push_back(std::move(damage));
  }
  return found;
}

}  // namespace edgecase::query
