#include "table/window_sums.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "table/table_cache.h"
#include "table/table_files.h"

namespace edgecase::engine {
namespace {

// Windows that hold fewer are as soon decoded: a sum takes as much memory as two numbers.
constexpr std::uint64_t kNumbersMin = 4;

// Several cuts of a group lie in the cache side by side.
std::uint64_t place_of(const WholeGroup& group, std::uint64_t every, std::uint64_t phase) {
  return group.offset_bytes ^ mix64(every * 0x9e3779b97f4a7c15 + phase);
}

std::uint64_t bytes_of(std::size_t windows) {
  return sizeof(WindowSums) + windows * sizeof(WindowSums::Window);
}

// The first ordinal behind the window of `ordinal`, or the last one there is.
std::uint64_t end_of(std::uint64_t ordinal, std::uint64_t every, std::uint64_t phase) {
  const std::uint64_t into = (ordinal % every + (every - phase)) % every;
  const std::uint64_t left = every - into;
  return ordinal > UINT64_MAX - left ? UINT64_MAX : ordinal + left;
}

// By Knuth's TwoSum, as NumberSum of the daemon's query/ adds up what it is given one by one.
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
  window.count = static_cast<std::uint32_t>(count);
  window.sum = sum;
  window.sum_low = low;
  return low - low == 0;
}

}  // namespace

bool is_cut_by(const NumberSummary& group, std::uint64_t every) {
  if (group.type != NumberType::Float || group.count > NumberColumns::kMax) return false;
  const std::uint64_t span = group.last_ordinal - group.first_ordinal;
  return span >= every && span / every < group.count / kNumbersMin;
}

std::shared_ptr<const WindowSums> sum_windows(const NumberColumns& columns, std::uint64_t every,
                                              std::uint64_t phase) {
  auto sums = std::make_shared<WindowSums>();
  sums->every = every;
  sums->phase = phase;
  sums->first_ordinal = columns.ordinals.front();
  sums->last_ordinal = columns.ordinals.back();
  sums->windows.reserve((columns.ordinals.back() - columns.ordinals.front()) / every + 2);
  const std::uint64_t begin = end_of(sums->first_ordinal, every, phase) - every;
  for (std::size_t at = 0; at < columns.size();) {
    const std::uint64_t first = columns.ordinals[at];
    const std::uint64_t end = end_of(first, every, phase);
    const auto from = columns.ordinals.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count =
        static_cast<std::size_t>(std::lower_bound(from, columns.ordinals.end(), end) - from);
    if (count == 0) return nullptr;  // the last ordinal there is
    WindowSums::Window window;
    window.number = static_cast<std::uint32_t>((first - begin) / every);
    if (!sum_up(columns.bits.data() + at, count, window)) return nullptr;
    sums->windows.push_back(window);
    at += count;
  }
  return sums;
}

std::shared_ptr<const WindowSums> TableFiles::find_sums(const WholeGroup& group,
                                                        std::uint64_t every, std::uint64_t phase,
                                                        bool& admits) {
  const std::uint64_t windows =
      (group.numbers.last_ordinal - group.numbers.first_ordinal) / every + 2;
  auto sums = cache_.find_or_note<WindowSums>(
      sums_of(group.file_number), place_of(group, every, phase), bytes_of(windows), admits);
  const bool is_it = sums != nullptr && sums->every == every && sums->phase == phase &&
                     sums->first_ordinal == group.numbers.first_ordinal &&
                     sums->last_ordinal == group.numbers.last_ordinal;
  return is_it ? sums : nullptr;
}

void TableFiles::keep_sums(const WholeGroup& group, std::shared_ptr<const WindowSums> sums) {
  const std::uint64_t place = place_of(group, sums->every, sums->phase);
  const std::uint64_t bytes = bytes_of(sums->windows.capacity());
  cache_.insert(sums_of(group.file_number), place, std::move(sums), bytes, CacheClass::Item);
}

std::shared_ptr<const WindowSums> TableCache::find_sums(const WholeGroup& group,
                                                        std::uint64_t every, std::uint64_t phase,
                                                        bool& admits) {
  return files_->find_sums(group, every, phase, admits);
}

void TableCache::keep_sums(const WholeGroup& group, std::shared_ptr<const WindowSums> sums) {
  files_->keep_sums(group, std::move(sums));
}

}  // namespace edgecase::engine
