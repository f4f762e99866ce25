#include "table/window_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "table/table_files.h"
#include "value/packing.h"

namespace edgecase::engine {
namespace {

// Windows that hold fewer are as soon decoded.
constexpr std::uint64_t kNumbersMin = 4;

// Sums of sensors' readings are decimals of few places; of others all bits are kept.
constexpr unsigned kSumPlacesMax = 6;
constexpr unsigned char kRawHighs = 255;

enum : unsigned char { kNoLow = 0, kFloatLow = 1, kDoubleLow = 2, kLowMask = 3, kIsEven = 4 };

// The first ordinal behind the window of `ordinal`, or the last one there is.
std::uint64_t end_of(std::uint64_t ordinal, std::uint64_t every, std::uint64_t phase) {
  const std::uint64_t into = (ordinal % every + (every - phase)) % every;
  const std::uint64_t left = every - into;
  return ordinal > UINT64_MAX - left ? UINT64_MAX : ordinal + left;
}

// By Knuth's TwoSum, as NumberSum of the daemon's query/ adds up what it is given one by one; then
// `sum` is made the double next to both, which takes fewer bytes where the numbers are decimals.
// False: it left the range of a double.
bool sum_up(const std::uint64_t* bits, std::size_t count, WindowSums::Window& window) {
  double sum = 0;
  double low = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double number = std::bit_cast<double>(bits[i]);
    const double next = sum + number;
    const double of_number = next - sum;
    low += (sum - (next - of_number)) + (number - of_number);
    sum = next;
  }
  const double both = sum + low;
  const double of_low = both - sum;
  window.count = static_cast<std::uint32_t>(count);
  window.sum = both;
  window.sum_low = (sum - (both - of_low)) + (low - of_low);
  return window.sum_low - window.sum_low == 0;
}

bool is_float(double number) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(number))) ==
         std::bit_cast<std::uint64_t>(number);
}

bool is_even(const std::vector<WindowSums::Window>& windows) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].number != windows.front().number + i) return false;
    if (i > 1 && i + 1 < windows.size() && windows[i].count != windows[1].count) return false;
  }
  return windows.front().number == 0;
}

bool take_count(ByteView& input, std::uint32_t& count) {
  return take_varint32(input, count);
}

bool take_even_counts(ByteView& input, std::vector<WindowSums::Window>& windows) {
  std::array<std::uint32_t, 3> counts{};
  for (std::uint32_t& count : counts)
    if (!take_count(input, count)) return false;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    windows[i].number = static_cast<std::uint32_t>(i);
    windows[i].count = counts[1];
  }
  windows.back().count = counts[2];
  windows.front().count = counts[0];
  return true;
}

bool take_counts(ByteView& input, std::vector<WindowSums::Window>& windows) {
  std::uint32_t number = 0;
  for (WindowSums::Window& window : windows) {
    std::uint32_t step = 0;
    if (!take_count(input, step) || !take_count(input, window.count)) return false;
    window.number = number += step;
  }
  return true;
}

bool take_lows(ByteView input, unsigned char form, std::vector<WindowSums::Window>& windows) {
  const std::size_t each_bytes = form == kNoLow ? 0 : form == kFloatLow ? 4 : 8;
  if (input.size() != windows.size() * each_bytes) return false;
  const char* at = input.data();
  for (WindowSums::Window& window : windows) {
    if (form == kNoLow) {
      window.sum_low = 0;
    } else if (form == kFloatLow) {
      window.sum_low = static_cast<double>(std::bit_cast<float>(decode_fixed32(at)));
    } else {
      window.sum_low = std::bit_cast<double>(decode_fixed64(at));
    }
    at += each_bytes;
  }
  return true;
}

}  // namespace

bool is_cut_by(const NumberSummary& group, std::uint64_t every) {
  if (group.type != NumberType::Float || group.count > NumberColumns::kMax) return false;
  const std::uint64_t span = group.last_ordinal - group.first_ordinal;
  return span >= every && span / every < group.count / kNumbersMin;
}

bool sum_windows(const NumberColumns& columns, std::uint64_t every, std::uint64_t phase,
                 WindowSums& sums) {
  sums.every = every;
  sums.phase = phase;
  sums.first_ordinal = columns.ordinals.front();
  sums.last_ordinal = columns.ordinals.back();
  sums.windows.clear();
  const std::uint64_t begin = end_of(sums.first_ordinal, every, phase) - every;
  for (std::size_t at = 0; at < columns.size();) {
    const std::uint64_t first = columns.ordinals[at];
    const std::uint64_t end = end_of(first, every, phase);
    const auto from = columns.ordinals.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count =
        static_cast<std::size_t>(std::lower_bound(from, columns.ordinals.end(), end) - from);
    if (count == 0) return false;  // the last ordinal there is
    WindowSums::Window window;
    window.number = static_cast<std::uint32_t>((first - begin) / every);
    if (!sum_up(columns.bits.data() + at, count, window)) return false;
    sums.windows.push_back(window);
    at += count;
  }
  return true;
}

namespace {

std::uint64_t high_bits(const WindowSums::Window& window) {
  return std::bit_cast<std::uint64_t>(window.sum);
}

// False, and nothing appended: they are no decimals of so many places.
bool append_decimals(Bytes& out, const std::vector<WindowSums::Window>& windows, unsigned places) {
  const std::size_t begin = out.size();
  out.push_back(static_cast<char>(places));
  std::int64_t before = 0;
  for (const WindowSums::Window& window : windows) {
    const auto m = as_decimal(high_bits(window), places);
    if (!m) {
      out.resize(begin);
      return false;
    }
    append_varint64(out, zigzag(*m - std::exchange(before, *m)));
  }
  return true;
}

void append_highs(Bytes& out, const std::vector<WindowSums::Window>& windows) {
  const auto has_places = [&](unsigned places) {
    return as_decimal(high_bits(windows.front()), places) &&
           as_decimal(high_bits(windows.back()), places);
  };
  unsigned places = 0;
  while (places <= kSumPlacesMax && !has_places(places)) ++places;
  for (; places <= kSumPlacesMax; ++places)
    if (append_decimals(out, windows, places)) return;
  out.push_back(static_cast<char>(kRawHighs));
  for (const WindowSums::Window& window : windows) append_fixed64(out, high_bits(window));
}

bool take_highs(ByteView& input, std::vector<WindowSums::Window>& windows) {
  if (input.empty()) return false;
  const auto places = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  if (places > kSumPlacesMax && places != kRawHighs) return false;
  std::int64_t m = 0;
  for (WindowSums::Window& window : windows) {
    std::uint64_t number = 0;
    if (places == kRawHighs) {
      if (!take_fixed64(input, number)) return false;
    } else {
      if (!take_varint64(input, number)) return false;
      m += unzigzag(number);
      number = bits_of_decimal(m, places);
    }
    window.sum = std::bit_cast<double>(number);
  }
  return true;
}

}  // namespace

void append_window_sums(Bytes& out, const WindowSums& sums) {
  const std::vector<WindowSums::Window>& windows = sums.windows;
  unsigned char form = kNoLow;
  for (const WindowSums::Window& window : windows) {
    if (std::bit_cast<std::uint64_t>(window.sum_low) == 0) continue;
    form = std::max<unsigned char>(form, is_float(window.sum_low) ? kFloatLow : kDoubleLow);
  }
  const bool even = is_even(windows);
  out.push_back(static_cast<char>(form | (even ? kIsEven : 0)));
  append_varint64(out, windows.size());
  if (even) {
    append_varint32(out, windows.front().count);
    append_varint32(out, windows[windows.size() > 1 ? 1 : 0].count);
    append_varint32(out, windows.back().count);
  } else {
    std::uint32_t number = 0;
    for (const WindowSums::Window& window : windows) {
      append_varint32(out, window.number - std::exchange(number, window.number));
      append_varint32(out, window.count);
    }
  }
  append_highs(out, windows);
  for (const WindowSums::Window& window : windows) {
    if (form == kFloatLow) {
      append_fixed32(out, std::bit_cast<std::uint32_t>(static_cast<float>(window.sum_low)));
    } else if (form == kDoubleLow) {
      append_fixed64(out, std::bit_cast<std::uint64_t>(window.sum_low));
    }
  }
}

bool take_window_sums(ByteView input, WindowSums& sums) {
  if (input.empty()) return false;
  const auto form = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  std::uint64_t count = 0;
  if (!take_varint64(input, count) || count == 0 || count > NumberColumns::kMax) return false;
  sums.windows.resize(count);
  const bool has_counts = (form & kIsEven) != 0 ? take_even_counts(input, sums.windows)
                                                : take_counts(input, sums.windows);
  return has_counts && take_highs(input, sums.windows) &&
         take_lows(input, form & kLowMask, sums.windows);
}

namespace {

// Groups that begin within so many bytes of a file lie together: ten of noisy numbers, or thirty of
// regular ones. Each that comes copies the others.
constexpr std::uint64_t kStretchBytes = 4u << 10;
// What their sums take, as far as one knows before they are made.
constexpr std::uint64_t kUsualBytes = 2u << 10;
// What a window of decimals takes.
constexpr std::size_t kBytesPerWindow = 8;
// A group with more windows lies alone, so that no stretch is too large for the cache.
constexpr std::uint64_t kSharedWindowsMax = 64;

// As which file the cache has sums of a value file's groups.
FileNumber file_of_sums(FileNumber number) {
  return number | FileNumber{1} << 63;
}

std::uint64_t windows_max(const WholeGroup& group, std::uint64_t every) {
  return (group.numbers.last_ordinal - group.numbers.first_ordinal) / every + 2;
}

// Where a stretch begins, and how it is cut. Several cuts lie in the cache side by side.
struct StretchPlace {
  std::uint64_t begin = 0;
  std::uint64_t every = 0;
  std::uint64_t phase = 0;
  friend bool operator==(const StretchPlace&, const StretchPlace&) = default;

  std::uint64_t in_cache() const { return begin ^ mix64(every * 0x9e3779b97f4a7c15 + phase); }
};

StretchPlace place_of(const WholeGroup& group, std::uint64_t every, std::uint64_t phase) {
  const bool is_alone = windows_max(group, every) > kSharedWindowsMax;
  const std::uint64_t offset = group.offset_bytes;
  return {is_alone ? offset : offset - offset % kStretchBytes, every, phase};
}

}  // namespace

// Immutable; each group that comes makes a new one.
class KeptSums::Stretch {
 public:
  // With what `before` has, which may be null, and one group more.
  Stretch(const StretchPlace& place, const Stretch* before, std::uint64_t offset,
          const WindowSums& sums)
      : place_(place) {
    const std::size_t groups = before == nullptr ? 0 : before->groups_.size();
    const std::size_t bytes = before == nullptr ? 0 : before->sums_.size();
    groups_.reserve(groups + 1);
    sums_.reserve(bytes + kBytesPerWindow * (sums.windows.size() + 1));
    if (before != nullptr) {
      groups_.assign(before->groups_.begin(), before->groups_.end());
      sums_.append(before->sums_);
    }
    append_window_sums(sums_, sums);
    groups_.insert(lower_bound(offset), {static_cast<std::uint32_t>(offset - place.begin),
                                         static_cast<std::uint32_t>(bytes),
                                         static_cast<std::uint32_t>(sums_.size() - bytes)});
  }

  bool is_of(const StretchPlace& place) const { return place_ == place; }
  // Empty: it has none.
  ByteView find(std::uint64_t offset) const {
    const auto found = lower_bound(offset);
    if (found == groups_.end() || found->offset != offset - place_.begin) return {};
    return ByteView(sums_).substr(found->begin, found->size);
  }
  std::uint64_t memory_bytes() const {
    return sizeof *this + groups_.capacity() * sizeof(Group) + sums_.capacity();
  }

 private:
  struct Group {
    std::uint32_t offset = 0;  // from where the stretch begins
    std::uint32_t begin = 0;   // in sums_
    std::uint32_t size = 0;
  };

  std::vector<Group>::const_iterator lower_bound(std::uint64_t offset) const {
    return std::partition_point(groups_.begin(), groups_.end(), [&](const Group& group) {
      return place_.begin + group.offset < offset;
    });
  }

  StretchPlace place_;
  std::vector<Group> groups_;  // by offset
  Bytes sums_;
};

std::shared_ptr<const KeptSums::Stretch> KeptSums::stretch_of(const WholeGroup& group,
                                                              std::uint64_t every,
                                                              std::uint64_t phase) {
  const StretchPlace place = place_of(group, every, phase);
  auto stretch = cache_.find<Stretch>(file_of_sums(group.file_number), place.in_cache());
  return stretch != nullptr && stretch->is_of(place) ? stretch : nullptr;
}

bool KeptSums::find(const WholeGroup& group, std::uint64_t every, std::uint64_t phase,
                    WindowSums& sums, SumsAdmission& admission) {
  const FileNumber file = file_of_sums(group.file_number);
  const std::uint64_t place = place_of(group, every, phase).in_cache();
  if (const auto stretch = stretch_of(group, every, phase)) {
    const ByteView kept = stretch->find(group.offset_bytes);
    if (!kept.empty()) {
      sums.every = every;
      sums.phase = phase;
      sums.first_ordinal = group.numbers.first_ordinal;
      sums.last_ordinal = group.numbers.last_ordinal;
      return take_window_sums(kept, sums);
    }
    admission = {file, place, true};
  }
  if (admission.file_number == file && admission.place == place) return false;
  const std::uint64_t windows = windows_max(group, every);
  const std::uint64_t bytes = windows > kSharedWindowsMax ? windows * sizeof(double) : kUsualBytes;
  admission = {file, place, cache_.admits(file, place, bytes)};
  return false;
}

void KeptSums::keep(const WholeGroup& group, const WindowSums& sums) {
  const auto before = stretch_of(group, sums.every, sums.phase);
  if (before != nullptr && !before->find(group.offset_bytes).empty()) return;
  const StretchPlace place = place_of(group, sums.every, sums.phase);
  auto stretch = std::make_shared<const Stretch>(place, before.get(), group.offset_bytes, sums);
  const std::uint64_t memory_bytes = stretch->memory_bytes();
  cache_.replace(file_of_sums(group.file_number), place.in_cache(), std::move(stretch),
                 memory_bytes, CacheClass::Item);
  // The item itself takes several times as much, and nobody who asks for this needs it.
  cache_.erase(group.file_number, group.offset_bytes);
}

void KeptSums::forget(FileNumber file_number) {
  cache_.erase_file(file_of_sums(file_number));
}

}  // namespace edgecase::engine
