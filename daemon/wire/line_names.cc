#include "wire/line_protocol.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

#include "wire/names.h"
#include "wire/selector.h"

namespace edgecase::wire {
namespace {

constexpr std::size_t kPlacesMin = 64;

// What make_name() leaves of a kind's names is so with this field, too.
bool is_plain_field(std::string_view key) {
  return key.find('{') == std::string_view::npos && is_made_name(key);
}

}  // namespace

void LineNames::begin(std::string_view namespace_name, ReadingBatch& batch) {
  if (current_ == &unremembered_) current_ = nullptr;  // it lies in a body
  written_out_ = nullptr;                              // its kind lies in what was decoded
  joined_ = &batch.joined;
  joined_->begin_anew();
  const bool is_held = numbering_ != 0 && batch.names.id() == names_id_;
  const bool is_stale = strangers_ >= std::max(kStrangersMax, 8 * sets_.size());
  // What was added last may have gone beyond what there was room for.
  const bool is_too_much = bytes_of(batch) > room_bytes_ + 2 * TextStore::kBlockMaxBytes;
  if (is_held && namespace_name == namespace_name_ && !is_stale && !is_too_much) return;
  forget();
  batch.names.clear();
  names_id_ = batch.names.id();
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
  stems_.clear();
  written_out_ = nullptr;
  fields_ = 0;
  strangers_ = 0;
}

std::size_t LineNames::memory_bytes() const {
  constexpr std::size_t kNodeBytes = 64;  // of a map, with its share of the table
  // Places are counted as after the next growth.
  return sets_.size() * (sizeof(TagSet) + 3 * sizeof(Place)) +
         kinds_.size() * (sizeof(Kind) + kNodeBytes) + stems_.size() * sizeof(Stems) +
         fields_ * sizeof(Field);
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
  const std::uint64_t hash = hash_(raw);
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

// The place of the set with that text, or a free one. There are places.
LineNames::Place& LineNames::place_of(std::string_view raw, std::uint64_t hash) {
  for (std::uint64_t at = hash;; ++at) {
    Place& place = by_raw_[at & (by_raw_.size() - 1)];
    if (place.set == nullptr || (place.hash == hash && place.set->raw == raw)) return place;
  }
}

void LineNames::add_place(TagSet& set, std::uint64_t hash) {
  if (4 * sets_.size() > 3 * by_raw_.size()) {
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
}

// When a field comes again: many sets come only once.
void LineNames::give_numbers() {
  TagSet& set = *current_;
  const auto wanted = static_cast<std::uint32_t>(fields_end_ - fields_begin_);
  if (&set == &unremembered_ || wanted > kSeriesNumbersMax - next_number_) return;
  set.first_number = next_number_;
  set.numbers = wanted;
  next_number_ += wanted;
}

std::string_view LineNames::join(std::string_view stem) {
  const std::string_view tags = current_->tags;
  const std::size_t bytes = stem.size() + tags.size() + 2;
  char* const name = joined_->room(bytes);
  char* at = name;
  std::memcpy(at, stem.data(), stem.size());
  at += stem.size();
  *at++ = '{';
  std::memcpy(at, tags.data(), tags.size());
  at[tags.size()] = '}';
  return {name, bytes};
}

void LineNames::look_at_field(std::size_t index) {
  const std::vector<Field>& fields =
      current_->stems != nullptr ? current_->stems->fields : current_->kind->fields;
  fields_begin_ = fields.data();
  fields_end_ = fields_begin_ + fields.size();
  field_ = fields_begin_ + index;
}

Status LineNames::name(std::string_view raw, ReadingBatch& batch, Reading& reading) {
  const bool is_short = current_->stems != nullptr;
  const auto known = std::find_if(fields_begin_, fields_end_,
                                  [raw](const Field& field) { return field.raw == raw; });
  if (known != fields_end_ && (!is_short || is_joined(known))) {
    field_ = known;
    take(reading);
    return ok();
  }
  if (is_short) write_out(batch);
  Kind& kind = is_short ? unremembered_kind_ : *current_->kind;
  has_escapes_ = raw.find('\\') != std::string_view::npos;
  const std::string_view key = unescape(raw, kKeySpecials, batch);
  if (!is_valid_utf8(key)) return invalid_argument("a field's key is not UTF-8");
  const bool is_known = !is_short && &kind != &unremembered_kind_;
  // A key that is longer than any identity is refused below.
  const bool is_kept = is_known && kind.fields.size() < kRememberedFieldsMax &&
                       raw.size() <= kIdentityMaxBytes && has_room(batch);
  if (!is_kept && is_known) ++strangers_;
  TextStore& store = is_kept ? batch.names : batch.texts;
  const auto join = [&](std::string_view prefix, std::string_view suffix) {
    scratch_.assign(prefix);
    if (key != "value") {
      scratch_ += '.';
      scratch_ += key;
    }
    scratch_ += suffix;
  };
  const SeriesIdentity* identity = nullptr;
  bool is_old = false;
  if (!kind.device.empty() && known_ != nullptr) {
    join(kind.old_prefix, {});
    identity = identify(kind, key, store);
    is_old = known_->has_series(namespace_name_, kind.device, scratch_, *identity);
  }
  if (!is_old) {
    join(kind.prefix, kind.suffix);
    // What was in the name before the field's key was looked at before.
    if (kind.plain != nullptr && scratch_.size() <= kSensorNameMaxBytes && is_plain_field(key)) {
      identity = kind.plain;
    } else {
      make_name(scratch_, kSensorNameMaxBytes);
      if (identity == nullptr) identity = identify(kind, key, store);
    }
  }
  if (identity->body.size() > kIdentityMaxBytes)
    return invalid_argument("measurement, tags and field have more than " +
                            std::to_string(kIdentityMaxBytes) + " bytes");
  reading.sensor = store.keep(scratch_);
  reading.identity = identity;
  reading.series_number = 0;
  if (is_short) {
    note_joined(raw, reading, batch);
    return ok();
  }
  if (!is_kept && (is_known || kind.fields.size() == kRememberedFieldsMax)) return ok();
  const std::size_t before = kind.fields.capacity();
  kind.fields.push_back({is_kept ? store.keep(raw) : raw, reading.sensor, identity});
  if (is_kept) fields_ += kind.fields.capacity() - before;
  look_at_field(kind.fields.size());
  return ok();
}

// Makes the kind of the current set, which is short, for a field that the set has not had.
void LineNames::write_out(ReadingBatch& batch) {
  if (written_out_ == current_) return;
  const Stems& stems = *current_->stems;
  const std::string_view tags = current_->tags;
  scratch_.assign("{");
  scratch_ += tags;
  scratch_ += '}';
  unremembered_kind_ = {};
  Kind& kind = unremembered_kind_;
  kind.prefix = kind.measurement = stems.prefix;
  kind.suffix = batch.keep(scratch_);
  kind.plain = stems.plain;
  kind.device_keys = stems.device_keys;
  kind.tags = 1 + static_cast<std::size_t>(std::count(tags.begin(), tags.end(), ','));
  written_out_ = current_;
  if (!current_->may_be_old || known_ == nullptr ||
      !known_->has_device(namespace_name_, current_->device)) {
    return;
  }
  scratch_.assign(stems.prefix);
  for (std::string_view rest = tags; !rest.empty();) {
    const std::string_view tag = rest.substr(0, rest.find(','));
    scratch_ += '.';
    scratch_ += tag.substr(tag.find('=') + 1);
    rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
  }
  kind.device = current_->device;
  kind.old_prefix = batch.keep(scratch_);
}

// A field of the current set, which is short, has got a name as others have that are joined, or one
// of its own, which is made each time.
void LineNames::note_joined(std::string_view raw, const Reading& reading, ReadingBatch& batch) {
  Stems& stems = *current_->stems;
  const auto known = std::find_if(stems.fields.begin(), stems.fields.end(),
                                  [raw](const Field& field) { return field.raw == raw; });
  const auto index = static_cast<std::size_t>(known - stems.fields.begin());
  const std::size_t tail_bytes = current_->tags.size() + 2;
  const bool is_joined = reading.identity == stems.plain && reading.sensor.size() > tail_bytes;
  const bool is_known = known != stems.fields.end();
  if (!is_joined || (!is_known && (index == kShortFieldsMax || !has_room(batch)))) {
    ++strangers_;
    look_at_field(stems.fields.size());
    return;
  }
  if (!is_known) {
    const std::string_view stem = reading.sensor.substr(0, reading.sensor.size() - tail_bytes);
    const std::size_t before = stems.fields.capacity();
    stems.fields.push_back({batch.names.keep(raw), batch.names.keep(stem), stems.plain});
    fields_ += stems.fields.capacity() - before;
  }
  current_->joined |= std::uint64_t{1} << index;
  look_at_field(index + 1);
}

// Identifies a field whose name does not tell it.
const SeriesIdentity* LineNames::identify(const Kind& kind, std::string_view field,
                                          TextStore& store) {
  Bytes body;
  append_identity_head(kind.tags, kind.measurement, field, body);
  body += kind.tag_bytes;
  if (kind.plain != nullptr && !kind.suffix.empty()) {
    std::string_view rest = kind.suffix.substr(1, kind.suffix.size() - 2);
    while (!rest.empty()) {
      const std::string_view tag = rest.substr(0, rest.find(','));
      const std::size_t equals = tag.find('=');
      append_identity_text(tag.substr(0, equals), body);
      append_identity_text(tag.substr(equals + 1), body);
      rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
    }
  }
  return store.keep_object(SeriesIdentity{0, kind.device_keys, store.keep(body)});
}

void LineNames::fill(Kind& kind, std::string_view device, TextStore& store) const {
  kind.key = store.keep(key_);
  const auto part = [&kind](std::size_t end, std::size_t bytes) {
    return kind.key.substr(end - bytes, bytes);
  };
  kind.prefix = part(key_ends_[0], prefix_.size());
  kind.suffix = part(key_ends_[1], suffix_.size());
  kind.device_keys = part(key_ends_[2], device_keys_.size());
  kind.tag_bytes = part(kind.key.size(), tag_bytes_.size());
  kind.device = is_kind_of_device_ ? device : std::string_view();
  kind.old_prefix = is_kind_of_device_ ? store.keep(old_prefix_) : std::string_view();
  kind.measurement = kind.prefix;
  kind.tags = other_tags_;
  kind.plain = nullptr;
  if (!is_plain_) return;
  kind.plain = store.keep_object(
      SeriesIdentity{static_cast<std::uint16_t>(kind.prefix.size()), kind.device_keys, {}});
}

// The stems of a set that build() has just made; null: it cannot be short.
LineNames::Stems* LineNames::stems_of_built(ReadingBatch& batch) {
  if (!is_plain_ || suffix_.empty()) return nullptr;
  const auto known = std::find_if(stems_.begin(), stems_.end(), [this](const Stems& stems) {
    return stems.prefix == prefix_ && stems.device_keys == device_keys_;
  });
  if (known != stems_.end()) return &*known;
  if (stems_.size() == kStemsMax) return nullptr;
  Stems& stems = stems_.emplace_back();
  stems.prefix = batch.names.keep(prefix_);
  stems.device_keys = batch.names.keep(device_keys_);
  stems.plain = batch.names.keep_object(
      SeriesIdentity{static_cast<std::uint16_t>(prefix_.size()), stems.device_keys, {}});
  return &stems;
}

// Remembers a set that build() has just made.
LineNames::TagSet& LineNames::remember(const TagSet& built, std::uint64_t hash,
                                       ReadingBatch& batch) {
  const auto known = by_prefix_.find(key_);
  const bool is_known = known != by_prefix_.end();
  // One that is longer than any identity is refused with its first field.
  if (built.raw.size() > 2 * kIdentityMaxBytes || !has_room(batch)) {
    ++strangers_;
    unremembered_ = built;
    if (is_known) {
      unremembered_.kind = known->second;
      return unremembered_;
    }
    fill(unremembered_kind_, unremembered_.device, batch.texts);
    unremembered_kind_.fields.clear();
    unremembered_.kind = &unremembered_kind_;
    written_out_ = nullptr;
    return unremembered_;
  }
  TagSet& set = sets_.emplace_back(built);
  set.raw = batch.names.keep(built.raw);
  // What lay in the body lies in the copy.
  const auto copied = [&](std::string_view text) {
    const auto at = reinterpret_cast<std::uintptr_t>(text.data()) -
                    reinterpret_cast<std::uintptr_t>(built.raw.data());
    return at < built.raw.size() ? set.raw.substr(at, text.size()) : batch.names.keep(text);
  };
  set.device = copied(built.device);
  const bool is_short = !is_known && bytes_of(batch) >= written_out_bytes();
  if (is_short) set.stems = stems_of_built(batch);
  if (set.stems != nullptr) {
    const std::string_view tags = std::string_view(suffix_).substr(1, suffix_.size() - 2);
    const std::size_t at = set.raw.find(tags);  // mostly they are in order
    set.tags = at < set.raw.size() ? set.raw.substr(at, tags.size()) : batch.names.keep(tags);
    set.may_be_old = !is_by_rule_ && named_by_[1] == nullptr;
  } else if (is_known) {
    set.kind = known->second;
  } else {
    set.kind = &kinds_.emplace_back();
    fill(*set.kind, set.device, batch.names);
    by_prefix_.emplace(set.kind->key, set.kind);
  }
  add_place(set, hash);
  return set;
}

namespace {

constexpr std::size_t kTemplateMaxBytes = 1'024;

const LineTag* find_tag(std::span<const LineTag> tags, std::string_view key) {
  const auto found = std::lower_bound(
      tags.begin(), tags.end(), key,
      [](const LineTag& each, std::string_view wanted) { return each.key < wanted; });
  return found != tags.end() && found->key == key ? &*found : nullptr;
}

}  // namespace

Result<CompiledLineRule> CompiledLineRule::compile(const LineRule& rule) {
  // One side of a selector has the same form.
  if (const auto glob = parse_selector(rule.measurement + "/*");
      rule.measurement.find('/') != std::string::npos || !glob.ok()) {
    return invalid_argument("measurement: \"" + rule.measurement +
                            "\" is no name with * and ?, write \"weather_*\"");
  }
  const std::string_view text = rule.device;
  if (text.empty()) return invalid_argument("device: is missing, write device = \"{station}\"");
  if (text.size() > kTemplateMaxBytes || !is_valid_utf8(text)) {
    return invalid_argument("device: is not UTF-8 of at most " + std::to_string(kTemplateMaxBytes) +
                            " bytes");
  }
  CompiledLineRule compiled;
  compiled.written_ = rule;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_tag = text[at] == '{';
    const std::size_t begin = at + (is_tag ? 1 : 0);
    const std::size_t end = std::min(text.find_first_of("{}", begin), text.size());
    if (is_tag && (end == begin || end == text.size() || text[end] != '}')) {
      return invalid_argument("device: \"" + rule.device +
                              "\": behind { stands the key of a tag, and then }");
    }
    if (!is_tag && end < text.size() && text[end] == '}') {
      return invalid_argument("device: \"" + rule.device + "\": there is a } without its {");
    }
    compiled.parts_.push_back({std::string(text.substr(begin, end - begin)), is_tag});
    at = end + (is_tag ? 1 : 0);
  }
  return compiled;
}

bool CompiledLineRule::matches(std::string_view measurement, std::span<const LineTag> tags) const {
  return glob_matches(written_.measurement, measurement) &&
         std::all_of(parts_.begin(), parts_.end(), [tags](const Part& part) {
           return !part.is_tag || find_tag(tags, part.text) != nullptr;
         });
}

std::uint64_t CompiledLineRule::name(std::span<const LineTag> tags, std::string& device) const {
  std::uint64_t used = 0;
  device.clear();
  for (const Part& part : parts_) {
    const LineTag* const tag = part.is_tag ? find_tag(tags, part.text) : nullptr;
    device += tag == nullptr ? std::string_view(part.text) : tag->value;
    if (tag != nullptr) used |= std::uint64_t{1} << (tag - tags.data());
  }
  return used;
}

Result<LineRules> LineRules::compile(std::span<const LineRule> rules) {
  LineRules compiled;
  for (const LineRule& rule : rules) {
    auto one = CompiledLineRule::compile(rule);
    if (!one.ok()) {
      std::string where = "influx.rule " + std::to_string(compiled.rules_.size() + 1);
      if (rule.line > 0) where += " (line " + std::to_string(rule.line) + ")";
      return invalid_argument(where + ": " + one.status().message());
    }
    compiled.rules_.push_back(std::move(one).value());
  }
  return compiled;
}

const CompiledLineRule* LineRules::find(std::string_view measurement,
                                        std::span<const LineTag> tags) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const CompiledLineRule& rule) {
    return rule.matches(measurement, tags);
  });
  return found == rules_.end() ? nullptr : &*found;
}

}  // namespace edgecase::wire
