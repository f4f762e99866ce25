#include "progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "output.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr std::chrono::milliseconds kDrawInterval{100};
constexpr std::size_t kBarWidth = 24;

}  // namespace

Progress::Progress(std::string what, std::uint64_t total, std::string unit)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      shown_(is_terminal(stderr)),
      started_(std::chrono::steady_clock::now()),
      last_drawn_(started_) {}

Progress::~Progress() {
  finish();
}

void Progress::add(std::uint64_t done, std::uint64_t bytes) {
  done_ += done;
  bytes_ += bytes;
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_drawn_ < kDrawInterval) return;
  last_drawn_ = now;
  draw();
}

void Progress::draw() {
  const std::chrono::duration<double> elapsed = last_drawn_ - started_;
  std::string line = what_ + " ";
  double share = share_;
  if (total_ > 0) share = static_cast<double>(done_) / static_cast<double>(total_);
  if (share >= 0) {
    share = std::min(share, 1.0);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
    line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
            std::to_string(static_cast<int>(share * 100)) + "% ";
  }
  line += count_text(done_) + " " + unit_ + ", " + wire::format_size(bytes_) + ", " +
          rate_text(static_cast<double>(done_) / std::max(elapsed.count(), 1e-3));
  if (share >= 0) {
    const std::string left = time_left(share, elapsed.count());
    if (!left.empty()) line += ", " + left + " left";
  }
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  drawn_ = true;
}

std::string time_left(double share, double seconds_so_far) {
  constexpr double kFirstSeconds = 2, kShareMin = 0.005;
  constexpr double kLongest = 99 * 3600;
  if (seconds_so_far < kFirstSeconds || share < kShareMin) return "";
  const double left = std::min(seconds_so_far * (1 - share) / share, kLongest);
  const auto seconds = static_cast<int>(std::max(left, 0.0) + 0.5);
  char text[32];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%ds", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%dm %02ds", seconds / 60, seconds % 60);
  } else {
    std::snprintf(text, sizeof text, "%dh %02dm", seconds / 3600, seconds / 60 % 60);
  }
  return text;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

bool confirmed(const std::string& what, bool yes, const std::string& word) {
  if (yes) return true;
  if (!is_terminal(stdin)) {
    print_error("edgecase: %s; nothing was done: --yes says that it is meant\n", what.c_str());
    return false;
  }
  print_error("%s. Type %s: ", printable(what).c_str(), printable(word).c_str());
  std::string typed;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    if (typed.size() <= word.size()) typed += static_cast<char>(c);
  }
  if (typed == word) return true;
  print_error("edgecase: nothing was done\n");
  return false;
}

}  // namespace edgecase::cli
