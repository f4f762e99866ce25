#include "value/series_columns.h"

#include <algorithm>

#include "base/coding.h"
#include "edgecase/engine.h"
#include "value/packing.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

ValueClass class_of(const EntryView& entry) {
  if (entry.kind == EntryKind::Delete) return ValueClass::Delete;
  if (entry.value.size() != kTaggedNumberBytes) return ValueClass::Other;
  if (entry.value.front() == kFloatTag) return ValueClass::Double;
  if (entry.value.front() == kIntegerTag) return ValueClass::Integer;
  return ValueClass::Other;
}

static_assert(static_cast<int>(SeriesClass::Delete) == static_cast<int>(ValueClass::Delete));
static_assert(static_cast<int>(SeriesClass::Float) == static_cast<int>(ValueClass::Double));
static_assert(static_cast<int>(SeriesClass::Integer) == static_cast<int>(ValueClass::Integer));

}  // namespace

SeriesColumns::SeriesColumns(std::size_t group_bytes, std::size_t entries_max, std::int64_t span_ns)
    : group_bytes_(group_bytes), entries_max_(entries_max), cuts_(span_ns) {}

// `full_key_begin` is a full key or what of it covers the scope.
bool SeriesColumns::takes(ByteView full_key_begin) const {
  if (empty()) return true;
  if (raw_bytes_ >= group_bytes_ || classes_.size() >= entries_max_) return false;
  const std::size_t scope_size = kNamespacePrefixBytes + scope_bytes_;
  const ByteView first_key = ByteView(keys_).substr(0, runs_.front().key_size);
  return full_key_begin.substr(0, scope_size) == first_key.substr(0, scope_size);
}

void SeriesColumns::begin_run(ByteView full_key) {
  Run run;
  run.key_offset = keys_.size();
  run.key_size = full_key.size();
  run.is_short = is_short_key(user_key_of(full_key));
  run.begin = classes_.size();
  run.others_begin = others_.size();
  run.shorts_begin = shorts_.size();
  runs_.push_back(run);
  keys_.append(full_key);
}

ByteView SeriesColumns::prefix_of(const Run& run) const {
  return ByteView(keys_).substr(run.key_offset, run.key_size - kOrdinalBytes);
}

bool SeriesColumns::continues(ByteView prefix) const {
  return !runs_.empty() && !runs_.back().is_short && prefix_of(runs_.back()) == prefix;
}

bool SeriesColumns::add(const EntryView& entry) {
  if (!takes(entry.full_key)) return false;
  const ByteView user_key = user_key_of(entry.full_key);
  const bool is_short = is_short_key(user_key);
  ByteView prefix;
  std::uint64_t ordinal = 0;
  if (!is_short) {
    prefix = entry.full_key.substr(0, entry.full_key.size() - kOrdinalBytes);
    ordinal = load_ordinal(entry.full_key.data() + prefix.size());
    if (cuts_.ends_before(prefix, ordinal, in_last_run())) return false;
    cuts_.add(prefix, ordinal);
  }
  const bool same_run = is_short ? !runs_.empty() && runs_.back().is_short : continues(prefix);
  if (!same_run) begin_run(entry.full_key);
  if (is_short) {
    if (same_run) keys_.append(entry.full_key);
    shorts_.push_back({keys_.size() - user_key.size(), user_key.size()});
  }
  const ValueClass value_class = class_of(entry);
  const bool is_number = value_class == ValueClass::Double || value_class == ValueClass::Integer;
  ordinals_.push_back(ordinal);
  numbers_.push_back(is_number ? decode_fixed64(entry.value.data() + 1) : 0);
  if (value_class == ValueClass::Other) {
    others_.push_back({other_bytes_.size(), entry.value.size()});
    other_bytes_.append(entry.value);
  }
  if (keeps_sequences_) sequences_.push_back(entry.sequence);
  const bool is_first = classes_.empty();
  classes_.push_back(static_cast<std::uint8_t>(value_class));
  raw_bytes_ += user_key.size();
  if (entry.kind == EntryKind::Put) raw_bytes_ += entry.value.size();
  if (entry.kind == EntryKind::Delete) ++summary_.deletes;
  summary_.sequence_min =
      is_first ? entry.sequence : std::min(summary_.sequence_min, entry.sequence);
  summary_.sequence_max = std::max(summary_.sequence_max, entry.sequence);
  return true;
}

std::size_t SeriesColumns::add(const SeriesRun& run) {
  if (!takes(run.prefix)) return 0;
  const bool is_other = !empty() && !continues(run.prefix);
  if (is_other && cuts_.is_on() && run.entries.size() >= kSpanEntriesMin) return 0;
  if (cuts_.ends_before(run.prefix, run.entries.front().ordinal, in_last_run())) return 0;
  if (!continues(run.prefix)) {
    Bytes key(run.prefix);
    key.resize(key.size() + kOrdinalBytes);
    store_ordinal(key.data() + run.prefix.size(), run.entries.front().ordinal);
    begin_run(key);
  }
  const std::size_t key_bytes = run.prefix.size() - kNamespacePrefixBytes + kOrdinalBytes;
  const std::size_t most = std::min(run.entries.size(), entries_max_ - classes_.size());
  if (empty()) summary_.sequence_min = run.entries.front().sequence();
  cuts_.add(run.prefix, run.entries.front().ordinal, 0);
  std::size_t count = 0;
  std::size_t counted = 0;  // by cuts_
  while (count < most && (raw_bytes_ < group_bytes_ || empty())) {
    const SeriesEntry& entry = run.entries[count];
    if (count > 0 && cuts_.is_on() && entry.ordinal >= cuts_.end()) {
      cuts_.add(run.prefix, run.entries[count - 1].ordinal, count - counted);
      counted = count;
      if (cuts_.is_dense()) break;
      cuts_.add(run.prefix, entry.ordinal, 0);
    }
    ++count;
    const bool is_delete = entry.value_class() == SeriesClass::Delete;
    classes_.push_back(static_cast<std::uint8_t>(entry.value_class()));
    ordinals_.push_back(entry.ordinal);
    numbers_.push_back(coding_inside::little_endian(entry.payload));
    raw_bytes_ += key_bytes + (is_delete ? 0 : kTaggedNumberBytes);
    summary_.deletes += is_delete ? 1 : 0;
    summary_.sequence_min = std::min(summary_.sequence_min, entry.sequence());
    summary_.sequence_max = std::max(summary_.sequence_max, entry.sequence());
  }
  if (count > counted) cuts_.add(run.prefix, run.entries[count - 1].ordinal, count - counted);
  if (keeps_sequences_) {
    for (const SeriesEntry& entry : run.entries.first(count))
      sequences_.push_back(entry.sequence());
  }
  return count;
}

const ItemSummary& SeriesColumns::summary() {
  summary_.first = ByteView(keys_).substr(0, runs_.front().key_size);
  const Run& last = runs_.back();
  if (last.is_short) {
    const Piece& piece = shorts_.back();
    summary_.last = ByteView(keys_).substr(piece.offset - kNamespacePrefixBytes,
                                           piece.size + kNamespacePrefixBytes);
  } else {
    last_key_.assign(keys_, last.key_offset, last.key_size);
    store_ordinal(last_key_.data() + last_key_.size() - kOrdinalBytes, ordinals_.back());
    summary_.last = last_key_;
  }
  summary_.entries = classes_.size();
  return summary_;
}

std::span<const EntryView> SeriesColumns::heads() {
  heads_.clear();
  EntryView head;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (!runs_[i].is_short) {
      head.full_key = ByteView(keys_).substr(runs_[i].key_offset, runs_[i].key_size);
      heads_.push_back(head);
      continue;
    }
    const std::size_t end = i + 1 < runs_.size() ? runs_[i + 1].shorts_begin : shorts_.size();
    for (std::size_t at = runs_[i].shorts_begin; at < end; ++at) {
      head.full_key = ByteView(keys_).substr(shorts_[at].offset - kNamespacePrefixBytes,
                                             shorts_[at].size + kNamespacePrefixBytes);
      heads_.push_back(head);
    }
  }
  return heads_;
}

std::span<const std::uint64_t> SeriesColumns::numbers_of_one_series(ValueClass& value_class) const {
  if (runs_.size() != 1 || runs_.front().is_short) return {};
  value_class = static_cast<ValueClass>(classes_.front());
  const bool is_number = value_class == ValueClass::Double || value_class == ValueClass::Integer;
  if (!is_number || std::count(classes_.begin(), classes_.end(), classes_.front()) !=
                        static_cast<std::ptrdiff_t>(classes_.size()))
    return {};
  return numbers_;
}

void SeriesColumns::append_body(Bytes& out, Packer* packer) {
  encoded_.clear();
  ByteView previous_prefix;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    append_run(encoded_, i, previous_prefix, packer);
    previous_prefix =
        runs_[i].is_short ? ByteView() : prefix_of(runs_[i]).substr(kNamespacePrefixBytes);
  }
  append_varint64(out, runs_.size());
  out.append(encoded_);
}

void SeriesColumns::append_run(Bytes& out, std::size_t index, ByteView previous_prefix,
                               Packer* packer) {
  const Run& run = runs_[index];
  const bool is_last = index + 1 == runs_.size();
  const std::size_t end = is_last ? classes_.size() : runs_[index + 1].begin;
  rest_.clear();
  unsigned flags = 0;
  if (run.is_short) {
    flags |= kRunFlagShortKeys;
    strings_.clear();
    for (std::size_t i = 0; i < end - run.begin; ++i) {
      const Piece& piece = shorts_[run.shorts_begin + i];
      strings_.push_back(ByteView(keys_).substr(piece.offset, piece.size));
    }
    append_strings(rest_, strings_, packer);
  } else {
    flags |= append_ordinals(rest_, std::span(ordinals_).subspan(run.begin, end - run.begin))
             << kRunUnitShift;
  }
  const auto classes = std::span(classes_).subspan(run.begin, end - run.begin);
  const bool one_class = std::all_of(classes.begin(), classes.end(),
                                     [&](std::uint8_t c) { return c == classes.front(); });
  if (one_class) {
    flags |= kRunFlagOneClass;
    rest_.push_back(static_cast<char>(classes.front()));
  } else {
    column_.assign(classes.begin(), classes.end());
    append_integers(rest_, column_);
  }
  append_numbers(rest_, run.begin, end);
  strings_.clear();
  const std::size_t others_end = is_last ? others_.size() : runs_[index + 1].others_begin;
  for (std::size_t i = run.others_begin; i < others_end; ++i) {
    strings_.push_back(ByteView(other_bytes_).substr(others_[i].offset, others_[i].size));
  }
  append_strings(rest_, strings_, packer);

  out.push_back(static_cast<char>(flags));
  append_varint64(out, end - run.begin);
  if (!run.is_short) {
    const ByteView prefix = prefix_of(run).substr(kNamespacePrefixBytes);
    std::size_t shared = 0;
    while (shared < std::min(prefix.size(), previous_prefix.size()) &&
           prefix[shared] == previous_prefix[shared])
      ++shared;
    append_varint64(out, shared);
    append_length_prefixed(out, prefix.substr(shared));
  }
  append_varint64(out, rest_.size());
  out.append(rest_);
}

// Appends the ordinals of a run and returns which unit its differences are in.
unsigned SeriesColumns::append_ordinals(Bytes& out, std::span<const std::uint64_t> ordinals) {
  append_fixed64(out, ordinals.front());
  column_.resize(ordinals.size() - 1);
  unsigned unit = 3;
  std::uint64_t known = 0;  // a difference that is a multiple of the unit
  for (std::size_t i = 1; i < ordinals.size(); ++i) {
    const std::uint64_t difference = ordinals[i] - ordinals[i - 1];
    column_[i - 1] = difference;
    if (difference == known) continue;
    while (unit > 0 && difference % kOrdinalUnits[unit] != 0) --unit;
    known = difference;
  }
  if (unit > 0) {
    // Mostly the same again: sooner compared than divided.
    known = 0;
    std::uint64_t quotient = 0;
    for (std::uint64_t& difference : column_) {
      if (difference != known) {
        known = difference;
        quotient = difference / kOrdinalUnits[unit];
      }
      difference = quotient;
    }
  }
  append_integers(out, column_);
  return unit;
}

void SeriesColumns::append_numbers(Bytes& out, std::size_t begin, std::size_t end) {
  for (const ValueClass value_class : {ValueClass::Double, ValueClass::Integer}) {
    const auto wanted = static_cast<std::uint8_t>(value_class);
    const auto classes = std::span(classes_).subspan(begin, end - begin);
    const auto count = static_cast<std::size_t>(std::count(classes.begin(), classes.end(), wanted));
    std::span<const std::uint64_t> numbers = std::span(numbers_).subspan(begin, end - begin);
    if (count != numbers.size()) {
      column_.clear();
      for (std::size_t i = begin; i < end; ++i) {
        if (classes_[i] == wanted) column_.push_back(numbers_[i]);
      }
      numbers = column_;
    }
    if (value_class == ValueClass::Double) {
      append_doubles(out, numbers);
    } else {
      append_integers(out, numbers);
    }
  }
}

void SeriesColumns::clear() {
  raw_bytes_ = 0;
  runs_.clear();
  keys_.clear();
  classes_.clear();
  ordinals_.clear();
  numbers_.clear();
  sequences_.clear();
  shorts_.clear();
  others_.clear();
  other_bytes_.clear();
  summary_ = ItemSummary();
}

}  // namespace edgecase::engine
