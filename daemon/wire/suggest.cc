#include "wire/suggest.h"

#include <algorithm>
#include <vector>

namespace edgecase::wire {
namespace {

constexpr std::size_t kDistanceMax = 2;
constexpr std::size_t kWordMaxBytes = 64;

// How many letters must change to make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_distance = kDistanceMax + 1;
  if (word.size() > kWordMaxBytes) return best;
  for (const std::string_view candidate : known) {
    const bool begins = word.size() > 1 && candidate.starts_with(word);
    const std::size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance < best_distance && 2 * distance <= word.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace edgecase::wire
