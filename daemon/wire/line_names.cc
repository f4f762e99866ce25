#include "wire/line_names.h"

#include <algorithm>

#include "wire/names.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kMeasurementSpecials = ", ";
constexpr std::string_view kKeySpecials = ",= ";

// Without escapes a view of the body itself, else a copy in the batch.
std::string_view unescape(std::string_view raw, std::string_view specials, ReadingBatch& batch) {
  if (raw.find('\\') == std::string_view::npos) return raw;
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
std::size_t find_unescaped(std::string_view text, char stop, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == stop) return i;
    if (text[i] == '\\' && i + 1 < text.size() &&
        kKeySpecials.find(text[i + 1]) != std::string_view::npos) {
      ++i;
    }
  }
  return text.size();
}

}  // namespace

void LineNames::reset() {
  by_raw_.clear();
  used_ = 0;
  current_ = nullptr;
  built_last_ = nullptr;
}

Status LineNames::select(std::string_view raw, ReadingBatch& batch) {
  if (current_ != nullptr && current_->raw == raw) return ok();
  if (const auto found = by_raw_.find(raw); found != by_raw_.end()) {
    current_ = found->second;
    return ok();
  }
  current_ = nullptr;
  const bool remember = used_ < kRememberedTagSetsMax;
  if (remember && used_ == sets_.size()) sets_.emplace_back();
  TagSet& set = remember ? sets_[used_] : unremembered_;
  set.fields.clear();
  EC_TRY(build(raw, batch, set));
  if (remember) {
    ++used_;
    by_raw_.emplace(raw, &set);
    built_last_ = &set;
  }
  current_ = &set;
  return ok();
}

Result<std::string_view> LineNames::sensor(std::string_view raw, ReadingBatch& batch) {
  // Devices of one kind send the same fields in the same order.
  const std::size_t index = current_->fields.size();
  if (current_->like != nullptr && index < current_->like->fields.size() &&
      current_->like->fields[index].raw == raw) {
    current_->fields.push_back({raw, current_->like->fields[index].sensor});
    return current_->fields.back().sensor;
  }
  for (const Field& field : current_->fields) {
    if (field.raw == raw) return field.sensor;
  }
  const std::string_view key = unescape(raw, kKeySpecials, batch);
  std::string_view name = current_->prefix;
  if (key != "value") {
    scratch_.assign(current_->prefix);
    scratch_ += '.';
    scratch_ += key;
    name = scratch_;
  }
  EC_TRY(check_name("sensor", name));
  name = batch.keep(name);
  if (current_->fields.size() < kRememberedFieldsMax) current_->fields.push_back({raw, name});
  return name;
}

Status LineNames::build(std::string_view raw, ReadingBatch& batch, TagSet& set) {
  const std::size_t comma = find_unescaped(raw, ',', 0);
  const std::string_view measurement = unescape(raw.substr(0, comma), kMeasurementSpecials, batch);
  if (measurement.empty()) return invalid_argument("the measurement is missing");
  tags_.clear();
  if (comma < raw.size()) EC_TRY(split_tags(raw.substr(comma + 1), batch));
  // By key, so that the order in which a client writes its tags does not make another series.
  std::sort(tags_.begin(), tags_.end(), [](const Tag& a, const Tag& b) { return a.key < b.key; });

  const Tag* device = nullptr;
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    if (i > 0 && tags_[i].key == tags_[i - 1].key) {
      return invalid_argument("tag " + std::string(tags_[i].key) + " is given twice");
    }
    if (tags_[i].key == "device") device = &tags_[i];
    if (tags_[i].key == "host" && device == nullptr) device = &tags_[i];
  }
  set.raw = raw;
  set.device = device == nullptr ? measurement : device->value;
  EC_TRY(check_name("device", set.device));
  scratch_.assign(measurement);
  for (const Tag& tag : tags_) {
    if (&tag == device) continue;
    scratch_ += '.';
    const std::size_t begin = scratch_.size();
    scratch_ += tag.value;
    std::replace(scratch_.begin() + static_cast<std::ptrdiff_t>(begin), scratch_.end(), '/', ':');
  }
  set.like = built_last_ != nullptr && built_last_->prefix == scratch_ ? built_last_ : nullptr;
  if (set.like != nullptr) set.fields.reserve(set.like->fields.size());
  set.prefix = set.like == nullptr ? batch.keep(scratch_) : set.like->prefix;
  return ok();
}

Status LineNames::split_tags(std::string_view text, ReadingBatch& batch) {
  std::size_t position = 0;
  while (true) {
    const std::size_t end = find_unescaped(text, ',', position);
    const std::string_view tag = text.substr(position, end - position);
    const std::size_t equals = find_unescaped(tag, '=', 0);
    if (equals == 0 || tag.empty()) return invalid_argument("a tag's key is missing");
    if (equals >= tag.size() - 1) return invalid_argument("a tag's value is missing");
    const std::string_view value = tag.substr(equals + 1);
    if (find_unescaped(value, '=', 0) < value.size()) {
      return invalid_argument("a tag's value holds an unescaped '='");
    }
    if (tags_.size() == kTagsPerLineMax) {
      return invalid_argument("more than " + std::to_string(kTagsPerLineMax) + " tags");
    }
    tags_.push_back({unescape(tag.substr(0, equals), kKeySpecials, batch),
                     unescape(value, kKeySpecials, batch)});
    if (end == text.size()) return ok();
    position = end + 1;
  }
}

}  // namespace edgecase::wire
