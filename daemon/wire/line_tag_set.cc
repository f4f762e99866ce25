// The tag set of a line: its tags, the device that they name, and what sensors have before and
// behind their fields.
#include <algorithm>
#include <bit>
#include <iterator>

#include "wire/line_protocol.h"
#include "wire/names.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kMeasurementSpecials = ", ";
constexpr std::string_view kSpecials = ",= ";

constexpr std::size_t kShownKeyMaxBytes = 60;

// The key of a tag, for a message: short, and readable.
std::string shown_key(std::string_view key) {
  std::string name(key);
  if (!is_valid_utf8(name)) return "its key is not UTF-8";
  make_name(name, kShownKeyMaxBytes);
  return name;
}

// Measurements of Telegraf's system inputs, whose tag `device` is a disk or an adapter of the host.
bool means_block_device(std::string_view measurement) {
  constexpr std::string_view kWhole[] = {"disk",
                                         "diskio",
                                         "hddtemp",
                                         "dmcache",
                                         "infiniband",
                                         "smartctl",
                                         "nvme",
                                         "docker_container_blkio",
                                         "ecs_container_blkio",
                                         "intel_dlb_ras"};
  return measurement.starts_with("smart_") ||
         std::find(std::begin(kWhole), std::end(kWhole), measurement) != std::end(kWhole);
}

std::size_t find_unescaped(std::string_view text, char stop, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == stop) return i;
    if (text[i] == '\\' && i + 1 < text.size() &&
        kSpecials.find(text[i + 1]) != std::string_view::npos) {
      ++i;
    }
  }
  return text.size();
}

}  // namespace

// Without escapes a view of the body itself, else a copy in the batch.
std::string_view LineNames::unescape(std::string_view raw, std::string_view specials,
                                     ReadingBatch& batch) const {
  if (!has_escapes_ || raw.find('\\') == std::string_view::npos) return raw;
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool escape =
        raw[i] == '\\' && i + 1 < raw.size() && specials.find(raw[i + 1]) != std::string_view::npos;
    if (escape) ++i;
    text.push_back(raw[i]);
  }
  return batch.keep(text);
}

// The first unescaped `stop` at or after `from`, else the end.
std::size_t LineNames::find(std::string_view text, char stop, std::size_t from) const {
  return has_escapes_ ? find_unescaped(text, stop, from)
                      : std::min(text.find(stop, from), text.size());
}

Status LineNames::build(std::string_view raw, ReadingBatch& batch, TagSet& set) {
  ++built_;
  has_escapes_ = raw.find('\\') != std::string_view::npos;
  const std::size_t comma = find(raw, ',', 0);
  const std::string_view measurement = unescape(raw.substr(0, comma), kMeasurementSpecials, batch);
  if (measurement.empty()) return invalid_argument("the measurement is missing");
  tags_.clear();
  if (comma < raw.size()) EC_TRY(split_tags(raw.substr(comma + 1), batch));
  // By key, so that the order in which a client writes its tags does not make another series.
  std::sort(tags_.begin(), tags_.end(), [](const Tag& a, const Tag& b) { return a.key < b.key; });

  for (std::size_t i = 1; i < tags_.size(); ++i) {
    if (tags_[i].key == tags_[i - 1].key)
      return invalid_argument("tag " + std::string(tags_[i].key) + " is given twice");
  }
  set.raw = raw;
  if (!is_valid_utf8(raw)) return invalid_argument("the measurement or a tag is not UTF-8");
  choose_device(measurement);
  if (is_device_made_) {
    set.device = batch.keep(device_);
  } else {
    set.device = named_by_[0] == nullptr ? measurement : named_by_[0]->value;
    if (!check_name("device", set.device).ok()) {
      device_.assign(set.device);
      make_name(device_, kDeviceNameMaxBytes);
      set.device = batch.keep(device_);
    }
  }
  prefix_.assign(measurement);
  suffix_.clear();
  for (const Tag& each : tags_) {
    if (names_device(each)) continue;
    suffix_ += suffix_.empty() ? '{' : ',';
    suffix_ += each.key;
    suffix_ += '=';
    suffix_ += each.value;
  }
  if (!suffix_.empty()) suffix_ += '}';
  describe(set);
  // Both rules make one name where there are no other tags.
  const bool may_be_old = !is_by_rule_ && !suffix_.empty() && named_by_[1] == nullptr &&
                          known_ != nullptr && known_->has_device(namespace_name_, set.device);
  if (may_be_old) set_old_prefix(measurement, named_by_[0]);
  key_.clear();
  std::size_t* end = key_ends_;
  for (const std::string_view part :
       {std::string_view(prefix_), std::string_view(suffix_), device_keys_}) {
    append_identity_text(part, key_);
    *end++ = key_.size();
  }
  append_identity_text(may_be_old ? set.device : std::string_view(), key_);
  // Tags that names do not tell may be others under the same names.
  if (!is_plain_) key_ += tag_bytes_;
  is_kind_of_device_ = may_be_old;
  return ok();
}

// Sets what the identities of the set's series have in common.
void LineNames::describe(const TagSet& set) {
  const bool is_of_two = named_by_[1] != nullptr;
  device_keys_ = {};
  if (is_of_two && named_by_[0]->value.find('.') == std::string_view::npos &&
      set.device.size() == named_by_[0]->value.size() + 1 + named_by_[1]->value.size() &&
      set.device.starts_with(named_by_[0]->value) && set.device.ends_with(named_by_[1]->value)) {
    entity_keys_.assign(named_by_[0]->key);
    entity_keys_ += kBetweenKeys;
    entity_keys_ += named_by_[1]->key;
    device_keys_ = entity_keys_;
  } else if (!is_of_two && named_by_[0] != nullptr && set.device == named_by_[0]->value) {
    device_keys_ = named_by_[0]->key;
  }
  // A name ends where it says, and leads back to its parts.
  is_plain_ =
      (!device_keys_.empty() || naming_ == 0) && is_made_name(prefix_) && is_made_name(suffix_);
  const auto is_other = [this](const Tag& each) {
    return !names_device(each) || device_keys_.empty();
  };
  other_tags_ = static_cast<std::size_t>(std::count_if(tags_.begin(), tags_.end(), is_other));
  for (const Tag& each : tags_) {
    if (!has_escapes_) break;
    if (is_other(each) && (each.key.find_first_of(",=") != std::string_view::npos ||
                           each.value.find(',') != std::string_view::npos))
      is_plain_ = false;
  }
  tag_bytes_.clear();
  if (is_plain_) return;
  for (const Tag& each : tags_) {
    if (!is_other(each)) continue;
    append_identity_text(each.key, tag_bytes_);
    append_identity_text(each.value, tag_bytes_);
  }
}

const LineNames::Tag* LineNames::tag(std::string_view key) const {
  const auto found =
      std::lower_bound(tags_.begin(), tags_.end(), key,
                       [](const Tag& each, std::string_view wanted) { return each.key < wanted; });
  return found != tags_.end() && found->key == key ? &*found : nullptr;
}

// Sets what the device is named by, and device_ where that is not one tag's value.
void LineNames::choose_device(std::string_view measurement) {
  named_by_[0] = named_by_[1] = nullptr;
  naming_ = 0;
  is_device_made_ = false;
  is_by_rule_ = choose_by_rule(measurement);
  if (is_by_rule_) return;
  choose_by_tags(measurement);
  for (const Tag* each : named_by_)
    if (each != nullptr) naming_ |= std::uint64_t{1} << (each - tags_.data());
}

bool LineNames::choose_by_rule(std::string_view measurement) {
  const CompiledLineRule* const rule =
      rules_ == nullptr ? nullptr : rules_->find(measurement, tags_);
  if (rule == nullptr) return false;
  naming_ = rule->name(tags_, device_);
  if (rule->is_one_tag()) {
    named_by_[0] = &tags_[static_cast<std::size_t>(std::countr_zero(naming_))];
    return true;
  }
  make_name(device_, kDeviceNameMaxBytes);
  is_device_made_ = true;
  return true;
}

// What is stored under the device of version 0.1 goes on there.
void LineNames::choose_by_tags(std::string_view measurement) {
  const Tag* const device = tag("device");
  const Tag* const host = tag("host");
  const Tag* const domain = tag("domain");
  const Tag* const entity = tag("entity_id");
  const Tag* const old_device = device != nullptr ? device : host;
  const bool is_of_entity = domain != nullptr && entity != nullptr;
  const bool is_block_device = device != nullptr && means_block_device(measurement);
  named_by_[0] = old_device;
  if (!is_of_entity && !is_block_device) return;
  if (known_ != nullptr) {
    const std::string_view old_name = old_device == nullptr ? measurement : old_device->value;
    set_old_prefix(measurement, old_device);
    if (known_->has_series_of(namespace_name_, old_name, old_prefix_)) return;
  }
  if (!is_of_entity) {
    named_by_[0] = host;
    return;
  }
  named_by_[0] = domain;
  named_by_[1] = entity;
  device_.assign(domain->value);
  device_ += '.';
  device_ += entity->value;
  make_name(device_, kDeviceNameMaxBytes);
  is_device_made_ = true;
}

// As version 0.1 named it: the other tags' values, joined by `.`, their `/` as `:`.
void LineNames::set_old_prefix(std::string_view measurement, const Tag* device) {
  old_prefix_.assign(measurement);
  for (const Tag& each : tags_) {
    if (&each == device) continue;
    old_prefix_ += '.';
    const std::size_t begin = old_prefix_.size();
    old_prefix_ += each.value;
    std::replace(old_prefix_.begin() + static_cast<std::ptrdiff_t>(begin), old_prefix_.end(), '/',
                 ':');
  }
}

Status LineNames::split_tags(std::string_view text, ReadingBatch& batch) {
  std::size_t position = 0;
  while (true) {
    const std::size_t end = find(text, ',', position);
    const std::string_view tag = text.substr(position, end - position);
    const std::size_t equals = find(tag, '=', 0);
    if (equals == 0 || tag.empty()) return invalid_argument("a tag's key is missing");
    const std::string_view key = unescape(tag.substr(0, equals), kKeySpecials, batch);
    if (equals >= tag.size() - 1) {
      return invalid_argument("a tag's value is missing: " + shown_key(key));
    }
    const std::string_view value = tag.substr(equals + 1);
    // One that the value begins with means itself, as InfluxDB has it.
    if (find(value, '=', value[0] == '=' ? 1 : 0) < value.size()) {
      return invalid_argument("a tag's value holds an unescaped '=': " + shown_key(key));
    }
    if (tags_.size() == kTagsPerLineMax) {
      return invalid_argument("more than " + std::to_string(kTagsPerLineMax) + " tags");
    }
    tags_.push_back({key, unescape(value, kKeySpecials, batch)});
    if (end == text.size()) return ok();
    position = end + 1;
  }
}

}  // namespace edgecase::wire
