#include "value/group.h"

#include <algorithm>
#include <iterator>

#include "base/coding.h"
#include "edgecase/engine.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "value/packing.h"
#include "value/series_columns.h"
#include "value/value_format.h"

namespace edgecase::engine {

namespace {

// Runs between two marks, about: a reader with marks parses one stretch.
constexpr std::size_t kRunsPerMark = 16;

// What stands before the runs, which are left in `group`. `sequences` is empty without a column.
bool take_series_head(ByteView& group, GroupHead& head, std::vector<std::uint64_t>& sequences) {
  sequences.clear();
  if (!take_group_head(group, head) || (head.flags & ~kGroupFlagSequences) != 0) return false;
  if (head.flags == 0) return true;
  sequences.resize(head.entries);
  return take_integers(group, sequences) &&
         std::all_of(sequences.begin(), sequences.end(),
                     [&](std::uint64_t sequence) { return sequence <= head.sequence_max; });
}

}  // namespace

std::shared_ptr<const SeriesMarks> SeriesMarks::of(ByteView contents) {
  auto made = std::make_shared<SeriesMarks>();
  GroupHead head;
  std::vector<std::uint64_t> sequences;
  SeriesGroupReader all;
  if (take_series_head(contents, head, sequences) && all.open(contents, head.prefix, head.entries))
    all.mark_runs(*made);
  return made;
}

void SeriesGroupReader::mark_runs(SeriesMarks& marks) const {
  if (runs_.size() < 2 * kRunsPerMark) return;
  std::size_t due = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    // Short keys would have to be unpacked first.
    if (i < due || (i > 0 && run.short_keys())) continue;
    due = i + kRunsPerMark;
    SeriesMarks::Mark mark;
    mark.offset = static_cast<std::uint32_t>(run.offset);
    mark.entry = static_cast<std::uint32_t>(run.first);
    if (i > 0) {
      mark.key_offset = static_cast<std::uint32_t>(marks.keys.size());
      marks.keys.append(first_key(run));
      mark.key_size = static_cast<std::uint32_t>(marks.keys.size() - mark.key_offset);
    }
    marks.marks.push_back(mark);
  }
  marks.marks.shrink_to_fit();
  marks.keys.shrink_to_fit();
}

bool SeriesGroupReader::open(ByteView body, ByteView prefix, std::size_t entries,
                             const SeriesMarks* marks) {
  namespace_prefix_.assign(prefix);
  prefixes_.clear();
  runs_.clear();
  entries_ = entries;
  marks_ = marks != nullptr && !marks->marks.empty() ? marks : nullptr;
  loaded_ = SIZE_MAX;
  key_run_ = SIZE_MAX;
  stretch_ = SIZE_MAX;
  body_ = body;
  if (marks_ != nullptr) return true;
  std::uint64_t run_count = 0;
  if (!take_varint64(body, run_count) || run_count == 0 || run_count > entries) return false;
  runs_.reserve(run_count);
  return take_runs(body, 0, entries) && runs_.size() == run_count;
}

bool SeriesGroupReader::take_runs(ByteView input, std::size_t first, std::size_t end) {
  while (!input.empty()) {
    const bool is_first = runs_.empty();
    Run& run = runs_.emplace_back();
    run.first = first;
    run.offset = static_cast<std::size_t>(input.data() - body_.data());
    if (is_first) {
      run.prefix_size = prefixes_.size();
    } else if (const Run& before = runs_[runs_.size() - 2]; !before.short_keys()) {
      run.prefix_offset = before.prefix_offset;
      run.prefix_size = before.prefix_size;
    }
    if (!take_run(input, run) || run.count > end - first) return false;
    first += run.count;
  }
  return first == end;
}

bool SeriesGroupReader::take_stretch(std::size_t mark) {
  if (mark == stretch_) return true;
  stretch_ = SIZE_MAX;
  const auto& marks = marks_->marks;
  const SeriesMarks::Mark& from = marks[mark];
  const bool is_last = mark + 1 == marks.size();
  const std::size_t end = is_last ? body_.size() : marks[mark + 1].offset;
  runs_.clear();
  loaded_ = SIZE_MAX;
  key_run_ = SIZE_MAX;
  // What the first run shares with the one before stands in its own prefix as well.
  const ByteView key = marks_->key(from);
  prefixes_.assign(key.substr(0, key.size() - std::min(key.size(), kOrdinalBytes)));
  if (!take_runs(body_.substr(from.offset, end - from.offset), from.entry,
                 is_last ? entries_ : marks[mark + 1].entry) ||
      runs_.empty())
    return false;
  stretch_ = mark;
  return true;
}

// On entry `run` has the place of the prefix that its own may share bytes with.
bool SeriesGroupReader::take_run(ByteView& input, Run& run) {
  if (input.empty()) return false;
  run.flags = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  std::uint64_t count = 0;
  if ((run.flags & ~kRunFlagsKnown) != 0 || !take_varint64(input, count) || count == 0 ||
      count > kGroupEntriesMax)
    return false;
  run.count = count;
  if (!run.short_keys()) {
    std::uint64_t shared = 0;
    ByteView rest;
    const std::size_t shareable =
        run.prefix_size == 0 ? 0 : run.prefix_size - namespace_prefix_.size();
    if (!take_varint64(input, shared) || shared > shareable ||
        !take_length_prefixed(input, kKeySizeMaxBytes - shared, rest))
      return false;
    const std::size_t from = run.prefix_offset + namespace_prefix_.size();
    run.prefix_offset = prefixes_.size();
    prefixes_.append(namespace_prefix_);
    if (shared > 0) prefixes_.append(prefixes_, from, shared);
    prefixes_.append(rest);
    run.prefix_size = prefixes_.size() - run.prefix_offset;
    if (prefixes_.size() > kGroupRawMaxBytes) return false;
  }
  std::uint64_t body_size = 0;
  if (!take_varint64(input, body_size) || !take_bytes(input, body_size, run.body)) return false;
  return run.short_keys() || run.body.size() >= kOrdinalBytes;
}

Bytes SeriesGroupReader::first_key(const Run& run) const {
  Bytes first(prefixes_, run.prefix_offset, run.prefix_size);
  char ordinal[kOrdinalBytes];
  store_ordinal(ordinal, decode_fixed64(run.body.data()));
  return first.append(ordinal, sizeof ordinal);
}

bool SeriesGroupReader::starts_at_or_before(std::size_t index, ByteView full_key, bool& answer) {
  const Run& run = runs_[index];
  if (run.short_keys()) {
    if (!load(index)) return false;
    answer = Bytes(namespace_prefix_).append(short_keys_.front()) <= full_key;
  } else {
    answer = first_key(run) <= full_key;
  }
  return true;
}

bool SeriesGroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  if (marks_ != nullptr) {
    // The last mark at or before the key, or the first one, whose key is empty.
    const auto after = std::upper_bound(
        marks_->marks.begin() + 1, marks_->marks.end(), full_key,
        [this](ByteView key, const SeriesMarks::Mark& mark) { return key < marks_->key(mark); });
    if (!take_stretch(static_cast<std::size_t>(after - marks_->marks.begin()) - 1)) return false;
  }
  // The last run that starts at or before the key, or the first one.
  std::size_t low = 0;
  std::size_t high = runs_.size() - 1;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    bool before = false;
    if (!starts_at_or_before(middle, full_key, before)) return false;
    if (before) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (!load(low) || !search(runs_[low], full_key, index)) return false;
  index += runs_[low].first;
  return true;
}

// Within the loaded run.
bool SeriesGroupReader::search(const Run& run, ByteView full_key, std::size_t& index) const {
  if (run.short_keys()) {
    const ByteView prefix = full_key.substr(0, namespace_prefix_.size());
    if (prefix != namespace_prefix_) {
      index = prefix < namespace_prefix_ ? 0 : run.count;
      return true;
    }
    const auto found = std::lower_bound(short_keys_.begin(), short_keys_.end(),
                                        full_key.substr(namespace_prefix_.size()));
    index = static_cast<std::size_t>(found - short_keys_.begin());
    return true;
  }
  const ByteView prefix = ByteView(prefixes_).substr(run.prefix_offset, run.prefix_size);
  const ByteView start = full_key.substr(0, prefix.size());
  if (start != prefix) {
    index = start < prefix ? 0 : run.count;
    return true;
  }
  // An ordinal is at or after the rest of the key when it is at least the rest, cut or padded with
  // zeros to 8 bytes; behind a longer rest only when it is more.
  const ByteView rest = full_key.substr(prefix.size());
  char padded[kOrdinalBytes] = {};
  std::memcpy(padded, rest.data(), std::min(rest.size(), kOrdinalBytes));
  const std::uint64_t wanted = load_ordinal(padded);
  const auto found = rest.size() > kOrdinalBytes
                         ? std::upper_bound(ordinals_.begin(), ordinals_.end(), wanted)
                         : std::lower_bound(ordinals_.begin(), ordinals_.end(), wanted);
  index = static_cast<std::size_t>(found - ordinals_.begin());
  return true;
}

bool SeriesGroupReader::load(std::size_t index) {
  if (index == loaded_) return true;
  loaded_ = SIZE_MAX;
  const Run& run = runs_[index];
  ByteView rest = run.body;
  if (!load_keys(run, rest) || !load_classes(run, rest) || !load_values(run, rest)) return false;
  loaded_ = index;
  return true;
}

bool SeriesGroupReader::load_keys(const Run& run, ByteView& rest) {
  if (run.short_keys()) {
    if (!take_strings(rest, run.count, short_keys_, unpacked_keys_)) return false;
    return std::all_of(short_keys_.begin(), short_keys_.end(), is_short_key);
  }
  std::uint64_t ordinal = 0;
  if (!take_fixed64(rest, ordinal)) return false;
  ordinals_.resize(run.count);
  const std::span<std::uint64_t> differences = std::span(ordinals_).subspan(1);
  const std::uint64_t unit = kOrdinalUnits[run.flags >> kRunUnitShift & kRunUnitMask];
  ordinals_[0] = ordinal;
  // Most sensors keep time.
  if (const auto one = take_one_integer(rest, differences.size())) {
    const std::uint64_t step = *one * unit;
    for (std::size_t i = 0; i < differences.size(); ++i) differences[i] = ordinal + (i + 1) * step;
    std::uint64_t length = 0;
    return step > 0 && !__builtin_mul_overflow(step, differences.size(), &length) &&
           length <= UINT64_MAX - ordinal;
  }
  if (!take_integers(rest, differences)) return false;
  bool ascending = true;
  for (std::uint64_t& difference : differences) {
    const std::uint64_t next = ordinal + difference * unit;
    ascending &= next > ordinal;
    ordinal = next;
    difference = next;
  }
  return ascending;
}

bool SeriesGroupReader::load_classes(const Run& run, ByteView& rest) {
  one_class_ = (run.flags & kRunFlagOneClass) != 0;
  if (one_class_) {
    if (rest.empty() || static_cast<unsigned char>(rest.front()) >= kValueClassCount) return false;
    class_ = static_cast<ValueClass>(rest.front());
    rest.remove_prefix(1);
    return true;
  }
  classes_.resize(run.count);
  return take_integers(rest, classes_) &&
         std::all_of(classes_.begin(), classes_.end(),
                     [](std::uint64_t c) { return c < kValueClassCount; });
}

bool SeriesGroupReader::load_values(const Run& run, ByteView rest) {
  std::size_t counts[kValueClassCount] = {};
  if (one_class_) {
    counts[static_cast<std::size_t>(class_)] = run.count;
  } else {
    for (const std::uint64_t c : classes_) ++counts[c];
  }
  const std::size_t doubles = counts[static_cast<std::size_t>(ValueClass::Double)];
  const std::size_t integers = counts[static_cast<std::size_t>(ValueClass::Integer)];
  const std::size_t others = counts[static_cast<std::size_t>(ValueClass::Other)];

  scratch_.resize(doubles + integers);
  if (!take_doubles(rest, std::span(scratch_).first(doubles)) ||
      !take_integers(rest, std::span(scratch_).subspan(doubles)) ||
      !take_strings(rest, others, others_, unpacked_others_) || !rest.empty())
    return false;
  if (one_class_ && others == 0) {
    numbers_.swap(scratch_);
    return true;
  }
  std::size_t next[kValueClassCount] = {0, 0, doubles, 0};
  numbers_.resize(run.count);
  for (std::size_t i = 0; i < run.count; ++i) {
    const std::size_t c = one_class_ ? static_cast<std::size_t>(class_) : classes_[i];
    const std::size_t from = next[c]++;
    const bool is_number = c == static_cast<std::size_t>(ValueClass::Double) ||
                           c == static_cast<std::size_t>(ValueClass::Integer);
    numbers_[i] = is_number ? scratch_[from] : from;
  }
  return true;
}

void SeriesGroupReader::show_key(const Run& run, std::size_t in_run, EntryView& entry) {
  if (run.short_keys()) {
    key_.assign(namespace_prefix_).append(short_keys_[in_run]);
  } else {
    if (key_run_ != loaded_) {
      key_.assign(prefixes_, run.prefix_offset, run.prefix_size);
      key_.append(kOrdinalBytes, '\0');
    }
    store_ordinal(key_.data() + run.prefix_size, ordinals_[in_run]);
  }
  key_run_ = loaded_;
  entry.full_key = key_;
}

void SeriesGroupReader::show_value(std::size_t in_run, EntryView& entry) {
  const ValueClass value_class = one_class_ ? class_ : static_cast<ValueClass>(classes_[in_run]);
  entry.kind = value_class == ValueClass::Delete ? EntryKind::Delete : EntryKind::Put;
  switch (value_class) {
    case ValueClass::Delete: entry.value = ByteView(); return;
    case ValueClass::Other: entry.value = others_[numbers_[in_run]]; return;
    case ValueClass::Double: value_[0] = kFloatTag; break;
    case ValueClass::Integer: value_[0] = kIntegerTag; break;
  }
  encode_fixed64(value_ + 1, numbers_[in_run]);
  entry.value = ByteView(value_, sizeof value_);
}

std::size_t SeriesGroupReader::add_numbers(std::size_t index, Direction direction, ByteView lower,
                                           ByteView upper, NumberRun& run) const {
  if (loaded_ == SIZE_MAX) return 0;
  const Run& from = runs_[loaded_];
  if (from.short_keys() || index < from.first || index - from.first >= from.count ||
      run.prefix != ByteView(prefixes_).substr(from.prefix_offset, from.prefix_size))
    return 0;
  const bool forward = direction == Direction::Forward;
  const ValueClass wanted = run.columns.is_float ? ValueClass::Double : ValueClass::Integer;
  const std::size_t at = index - from.first;
  std::size_t begin = forward ? at : 0;
  std::size_t end = forward ? from.count : at + 1;
  std::size_t bound = 0;
  if (forward && !upper.empty() && search(from, upper, bound)) end = std::min(end, bound);
  if (!forward && !lower.empty() && search(from, lower, bound)) begin = std::max(begin, bound);
  if (begin >= end) return 0;
  std::size_t count = std::min(end - begin, run.room());
  if (one_class_) {
    if (class_ != wanted) return 0;
  } else {
    std::size_t alike = 0;
    while (alike < count && is_of_class(forward ? at + alike : at - alike, wanted)) ++alike;
    count = alike;
  }
  NumberColumns& into = run.columns;
  const auto add = [&](std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& all) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(forward ? at : at + 1 - count);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    if (forward) {
      to.insert(to.end(), first, last);
    } else {
      to.insert(to.end(), std::make_reverse_iterator(last), std::make_reverse_iterator(first));
    }
  };
  add(into.ordinals, ordinals_);
  add(into.bits, numbers_);
  return count;
}

bool SeriesGroupReader::hold_run_of(std::size_t index) {
  if (marks_ == nullptr || (!runs_.empty() && index >= runs_.front().first &&
                            index < runs_.back().first + runs_.back().count))
    return true;
  const auto after = std::upper_bound(
      marks_->marks.begin(), marks_->marks.end(), index,
      [](std::size_t wanted, const SeriesMarks::Mark& mark) { return wanted < mark.entry; });
  return take_stretch(static_cast<std::size_t>(after - marks_->marks.begin()) - 1);
}

bool SeriesGroupReader::move_to(std::size_t index, EntryView& entry) {
  if (loaded_ == SIZE_MAX || index < runs_[loaded_].first ||
      index - runs_[loaded_].first >= runs_[loaded_].count) {
    if (!hold_run_of(index)) return false;
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), index,
                         [](std::size_t wanted, const Run& run) { return wanted < run.first; });
    if (!load(static_cast<std::size_t>(after - runs_.begin()) - 1)) return false;
  }
  const Run& run = runs_[loaded_];
  show_key(run, index - run.first, entry);
  show_value(index - run.first, entry);
  return true;
}

void append_group(Bytes& out, GroupCodec codec, std::span<const EntryView> entries,
                  SequenceColumn sequences, Packer* packer) {
  EC_CHECK(!entries.empty() && entries.size() <= kGroupEntriesMax);
  GroupHead head;
  head.prefix = entries.front().full_key.substr(0, kNamespacePrefixBytes);
  head.entries = entries.size();
  for (const EntryView& entry : entries)
    head.sequence_max = std::max(head.sequence_max, entry.sequence);
  if (codec == GroupCodec::Plain) {
    append_group_head(out, head);
    append_plain_body(out, entries, head.sequence_max, sequences, packer);
    return;
  }
  const bool with_column = sequences == SequenceColumn::Written;
  head.flags = with_column ? kGroupFlagSequences : 0;
  append_group_head(out, head);
  if (with_column) {
    std::vector<std::uint64_t> all;
    all.reserve(entries.size());
    for (const EntryView& entry : entries) all.push_back(entry.sequence);
    append_integers(out, all);
  }
  SeriesColumns columns(SIZE_MAX, entries.size());
  for (const EntryView& entry : entries) EC_CHECK(columns.add(entry));
  columns.append_body(out, packer);
}

void append_group(Bytes& out, SeriesColumns& columns, Packer* packer) {
  const ItemSummary& summary = columns.summary();
  EC_CHECK(summary.entries <= kGroupEntriesMax);
  const std::span<const SequenceNumber> sequences = columns.sequences();
  const bool with_column =
      std::any_of(sequences.begin(), sequences.end(),
                  [&](SequenceNumber sequence) { return sequence != summary.sequence_max; });
  const unsigned char flags = with_column ? kGroupFlagSequences : 0;
  append_group_head(out, {flags, summary.first.substr(0, kNamespacePrefixBytes), summary.entries,
                          summary.sequence_max});
  if (with_column) append_integers(out, sequences);
  columns.append_body(out, packer);
}

bool GroupReader::open(ItemType type, ByteView group, const SeriesMarks* marks) {
  type_ = type;
  entry_ = EntryView();
  switch (type) {
    case ItemType::PlainGroup:
      if (!plain_.open(group)) return false;
      entries_ = plain_.entry_count();
      return true;
    case ItemType::SeriesGroup: return open_series(group, marks);
    case ItemType::Single: return false;
  }
  return false;
}

bool GroupReader::open_series(ByteView group, const SeriesMarks* marks) {
  GroupHead head;
  if (!take_series_head(group, head, sequences_)) return false;
  entries_ = head.entries;
  sequence_ = head.sequence_max;
  return series_.open(group, head.prefix, entries_, marks);
}

bool GroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  return type_ == ItemType::SeriesGroup ? series_.lower_bound(full_key, index)
                                        : plain_.lower_bound(full_key, index);
}

std::size_t GroupReader::add_numbers(std::size_t index, Direction direction, ByteView lower,
                                     ByteView upper, NumberRun& run) const {
  if (type_ != ItemType::SeriesGroup) return 0;
  const std::size_t count = series_.add_numbers(index, direction, lower, upper, run);
  if (sequences_.empty()) {
    run.sequences.insert(run.sequences.end(), count, sequence_);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      run.sequences.push_back(sequences_[direction == Direction::Forward ? index + i : index - i]);
  }
  return count;
}

bool GroupReader::move_to(std::size_t index) {
  if (type_ == ItemType::PlainGroup) return plain_.move_to(index, entry_);
  entry_.sequence = sequences_.empty() ? sequence_ : sequences_[index];
  return series_.move_to(index, entry_);
}

}  // namespace edgecase::engine
