#include "wire/line_names.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "wire/names.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kMeasurementSpecials = ", ";
constexpr std::string_view kKeySpecials = ",= ";

constexpr std::size_t kPlacesMin = 64;

std::uint64_t word_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Of all bytes: tag sets differ anywhere.
std::uint64_t hash_of(std::string_view raw) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto mix = [](std::uint64_t state, std::uint64_t word) {
    return (std::rotl(state, 5) ^ word) * kOdd;
  };
  std::uint64_t state = raw.size();
  std::uint64_t last = 0;
  if (raw.size() < kWord) {
    std::memcpy(&last, raw.data(), raw.size());
  } else {
    for (std::size_t at = 0; at + kWord < raw.size(); at += kWord)
      state = mix(state, word_at(raw.data() + at));
    last = word_at(raw.data() + raw.size() - kWord);
  }
  state = mix(state, last);
  return state ^ state >> 32;
}

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

void LineNames::begin(std::string_view namespace_name, const ReadingBatch& batch) {
  if (current_ == &unremembered_) current_ = nullptr;  // it lies in a body
  const bool is_held = numbering_ != 0 && batch.text_id() == text_id_;
  if (is_held && namespace_name == namespace_name_ && strangers_ < kStrangersMax) return;
  forget();
  text_id_ = batch.text_id();
  namespace_name_ = namespace_name;
}

void LineNames::forget() {
  static std::atomic<std::uint64_t> last_numbering{0};
  numbering_ = last_numbering.fetch_add(1, std::memory_order_relaxed) + 1;
  next_number_ = 1;
  current_ = nullptr;
  by_raw_.clear();
  by_prefix_.clear();
  sets_.clear();
  kinds_.clear();
  fields_ = 0;
  strangers_ = 0;
}

std::size_t LineNames::memory_bytes() const {
  constexpr std::size_t kNodeBytes = 64;  // of a map, with its share of the table
  return sets_.size() * sizeof(TagSet) + by_raw_.capacity() * sizeof(Place) +
         kinds_.size() * (sizeof(Kind) + kNodeBytes) + 2 * fields_ * sizeof(Field);
}

Status LineNames::select(std::string_view raw, ReadingBatch& batch) {
  TagSet* const before = current_;
  if (before != nullptr && before->raw == raw) {
    enter(*before);
    return ok();
  }
  if (before != nullptr && before->next != nullptr && before->next->raw == raw) {
    enter(*before->next);
    return ok();
  }
  const std::uint64_t hash = hash_of(raw);
  TagSet* found = by_raw_.empty() ? nullptr : place_of(raw, hash).set;
  if (found == nullptr) {
    current_ = nullptr;
    TagSet set;
    EC_TRY(build(raw, batch, set));
    found = &remember(set, hash, batch);
  }
  if (before != nullptr) before->next = found == &unremembered_ ? nullptr : found;
  enter(*found);
  return ok();
}

// Of the set of that text, or a free one. There are places.
LineNames::Place& LineNames::place_of(std::string_view raw, std::uint64_t hash) {
  for (std::uint64_t at = hash;; ++at) {
    Place& place = by_raw_[at & (by_raw_.size() - 1)];
    if (place.set == nullptr || (place.hash == hash && place.set->raw == raw)) return place;
  }
}

void LineNames::add_place(TagSet& set, std::uint64_t hash) {
  if (2 * sets_.size() > by_raw_.size()) {
    std::vector<Place> before(std::max(kPlacesMin, 2 * by_raw_.size()));
    before.swap(by_raw_);
    for (const Place& place : before)
      if (place.set != nullptr) place_of(place.set->raw, place.hash) = place;
  }
  place_of(set.raw, hash) = {hash, &set};
}

void LineNames::enter(TagSet& set) {
  current_ = &set;
  look_at_field(0);
  const std::size_t fields = set.kind->fields.size();
  if (set.numbers >= fields || &set == &unremembered_) return;
  const auto wanted = static_cast<std::uint32_t>(fields);
  if (wanted > kSeriesNumbersMax - next_number_) return;
  set.first_number = next_number_;
  set.numbers = wanted;
  next_number_ += wanted;
}

void LineNames::look_at_field(std::size_t index) {
  const std::vector<Field>& fields = current_->kind->fields;
  fields_begin_ = fields.data();
  fields_end_ = fields_begin_ + fields.size();
  field_ = fields_begin_ + index;
}

Status LineNames::name(std::string_view raw, ReadingBatch& batch, Reading& reading) {
  Kind& kind = *current_->kind;
  const auto known = std::find_if(kind.fields.begin(), kind.fields.end(),
                                  [raw](const Field& field) { return field.raw == raw; });
  if (known != kind.fields.end()) {
    look_at_field(static_cast<std::size_t>(known - kind.fields.begin()));
    take(reading);
    return ok();
  }
  const std::string_view key = unescape(raw, kKeySpecials, batch);
  std::string_view name = kind.prefix;
  if (key != "value") {
    scratch_.assign(kind.prefix);
    scratch_ += '.';
    scratch_ += key;
    name = scratch_;
  }
  EC_TRY(check_name("sensor", name));
  reading.sensor = batch.keep(name);
  reading.series_number = 0;
  if (kind.fields.size() == kRememberedFieldsMax) return ok();
  const bool is_kept = &kind != &unremembered_kind_;
  kind.fields.push_back({is_kept ? batch.keep(raw) : raw, reading.sensor});
  if (is_kept) ++fields_;
  look_at_field(kind.fields.size());
  return ok();
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
  return ok();
}

// Of a set that build() has just made, with its prefix in scratch_.
LineNames::TagSet& LineNames::remember(const TagSet& built, std::uint64_t hash,
                                       ReadingBatch& batch) {
  if (sets_.size() == kRememberedTagSetsMax) {
    ++strangers_;
    unremembered_ = built;
    const auto known = by_prefix_.find(scratch_);
    if (known != by_prefix_.end()) {
      unremembered_.kind = known->second;
      return unremembered_;
    }
    unremembered_kind_.prefix = batch.keep(scratch_);
    unremembered_kind_.fields.clear();
    unremembered_.kind = &unremembered_kind_;
    return unremembered_;
  }
  TagSet& set = sets_.emplace_back(built);
  set.raw = batch.keep(built.raw);
  // Out of the body, where it lay in it.
  const auto at = reinterpret_cast<std::uintptr_t>(built.device.data()) -
                  reinterpret_cast<std::uintptr_t>(built.raw.data());
  if (at < built.raw.size()) set.device = set.raw.substr(at, built.device.size());
  if (const auto known = by_prefix_.find(scratch_); known != by_prefix_.end()) {
    set.kind = known->second;
  } else {
    set.kind = &kinds_.emplace_back(Kind{batch.keep(scratch_), {}});
    by_prefix_.emplace(set.kind->prefix, set.kind);
  }
  add_place(set, hash);
  return set;
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
